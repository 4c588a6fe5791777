//! Ports in memory: the files of threads, and a sandbox that may fail or lie.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fawn::ports::BoxFuture;
use fawn::ports::host::RunContext;
use fawn::ports::sandbox::Sandbox;
use fawn::ports::thread_files::{FileContent, ThreadFiles, ThreadPaths};
use fawn::protocol::error::{Error, ErrorCode};

/// What a store of files does when it is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Behaviour {
    /// What it is asked for.
    #[default]
    Sound,
    /// Nothing works.
    Fails,
    /// Writes are forgotten, and it says that they were done.
    Forgets,
}

/// Files in memory, by path.
#[derive(Debug, Default)]
pub struct Files {
    pub texts: Mutex<BTreeMap<String, Vec<u8>>>,
    pub behaviour: Behaviour,
    /// Whether a sandbox says that its files are those of this machine.
    pub mounted: bool,
    pub acquired: AtomicUsize,
}

impl Files {
    pub fn new(behaviour: Behaviour) -> Arc<Self> {
        Arc::new(Files {
            behaviour,
            ..Files::default()
        })
    }

    pub fn mounted() -> Arc<Self> {
        Arc::new(Files {
            mounted: true,
            ..Files::default()
        })
    }

    pub fn put(&self, path: &str, text: &str) {
        self.texts.lock().unwrap().insert(path.into(), text.into());
    }

    pub fn get(&self, path: &str) -> Option<String> {
        let texts = self.texts.lock().unwrap();
        let text = texts.get(path)?.clone();
        Some(String::from_utf8(text).unwrap())
    }

    pub fn paths(&self) -> Vec<String> {
        self.texts.lock().unwrap().keys().cloned().collect()
    }

    fn works(&self) -> Result<(), Error> {
        match self.behaviour {
            Behaviour::Fails => Err(Error::new(ErrorCode::Store, "the disk is gone")),
            Behaviour::Sound | Behaviour::Forgets => Ok(()),
        }
    }

    fn write(&self, path: &str, text: &str) -> Result<(), Error> {
        self.works()?;
        if self.behaviour == Behaviour::Sound {
            self.put(path, text);
        }
        Ok(())
    }
}

impl ThreadFiles for Files {
    fn paths(&self, _: &str) -> Result<ThreadPaths, Error> {
        Err(Error::new(
            ErrorCode::Unsupported,
            "these have no directory",
        ))
    }

    fn make_directories(&self, _: String) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    fn read(
        &self,
        _: String,
        virtual_path: String,
        max_bytes: u64,
    ) -> BoxFuture<'_, Result<Option<FileContent>, Error>> {
        Box::pin(async move {
            self.works()?;
            let texts = self.texts.lock().unwrap();
            Ok(texts.get(&virtual_path).map(|text| FileContent {
                size: text.len() as u64,
                head: text[..text.len().min(max_bytes as usize)].to_vec(),
            }))
        })
    }

    fn write(
        &self,
        _: String,
        virtual_path: String,
        text: String,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { Files::write(self, &virtual_path, &text) })
    }
}

impl Sandbox for Files {
    fn acquire(&self, _: Arc<RunContext>) -> BoxFuture<'_, Result<String, Error>> {
        self.acquired.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok("box-1".to_owned()) })
    }

    fn release(&self, _: Arc<RunContext>, _: String) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    fn read_file(
        &self,
        _: Arc<RunContext>,
        _: String,
        path: String,
    ) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async move {
            self.works()?;
            Ok(self.get(&path))
        })
    }

    fn write_file(
        &self,
        _: Arc<RunContext>,
        _: String,
        path: String,
        text: String,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { Files::write(self, &path, &text) })
    }

    fn has_host_mounts(&self) -> bool {
        self.mounted
    }
}
