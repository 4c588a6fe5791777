//! Starts llama.cpp's server with one of the models that `setup.sh` has fetched.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Which model.
#[derive(Clone, Copy, Debug)]
pub enum Model {
    /// Half a billion parameters; calls tools.
    Tools,
    /// A quarter of that; only talks.
    Small,
}

/// A running server; stops when dropped.
pub struct RealModel {
    child: Child,
    origin: String,
}

impl RealModel {
    /// Starts a server that takes so many requests at once. `None`, with a message, when it is not set up.
    pub fn start(model: Model, slots: u32) -> Option<RealModel> {
        let Some(folder) = std::env::var_os("FAWN_REAL").map(PathBuf::from) else {
            // Not a print macro: those are swallowed when a test passes.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: FAWN_REAL does not name the folder of tests/real/setup.sh; use make test-real"
            );
            return None;
        };
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/real/serve.py");
        let mut command = Command::new(folder.join("bin/python"));
        command.current_dir(&folder).arg(script);
        match model {
            Model::Tools => command.args(["tools.gguf", &slots.to_string(), "tools.jinja"]),
            Model::Small => command.args(["small.gguf", &slots.to_string()]),
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let origin = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix("READY ")?.trim().to_owned()));
        std::thread::spawn(move || lines.for_each(drop));
        let Some(origin) = origin else {
            let _ = child.kill();
            panic!("the server ended before it was ready");
        };
        Some(RealModel { child, origin })
    }

    /// `http://127.0.0.1:PORT` and `path`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// Whether the server is at work on a request.
    pub fn is_busy(&self) -> bool {
        let address = self.origin.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let request =
            format!("GET /slots HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("\"is_processing\""), "{answer}");
        answer.contains("\"is_processing\":true")
    }
}

impl Drop for RealModel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
