//! Tools for the unit tests of this folder and of its neighbours.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::ports::BoxFuture;
use crate::ports::host::{HostCall, HostCallHandle, HostCalls, RunContext, RunFacts};
use crate::ports::tool::{
    DynTool, McpOrigin, McpRouting, Tool, ToolAnswer, ToolInvocation, ToolOrigin, ToolOutcome,
    ToolSpec,
};
use crate::protocol::error::{Error, ErrorCode};
use crate::state::reads::ChannelReads;

struct Fake {
    spec: ToolSpec,
    origin: ToolOrigin,
}

impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn origin(&self) -> &ToolOrigin {
        &self.origin
    }
    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        ToolOutcome::Answer(ToolAnswer {
            content: format!("{} ran", invocation.name).into(),
            ..ToolAnswer::default()
        })
    }
}

fn fake(name: &str, description: &str, parameters: Value, origin: ToolOrigin) -> Arc<dyn DynTool> {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: parameters.into(),
    };
    Arc::new(Fake { spec, origin })
}

/// A tool of the host.
pub(crate) fn host(name: &str) -> Arc<dyn DynTool> {
    fake(name, "", json!({"type": "object"}), ToolOrigin::Host)
}

/// A tool of an MCP server.
pub(crate) fn mcp(name: &str) -> Arc<dyn DynTool> {
    mcp_with(name, "", json!({"type": "object"}))
}

/// The same with a description and a schema.
pub(crate) fn mcp_with(name: &str, description: &str, parameters: Value) -> Arc<dyn DynTool> {
    fake(
        name,
        description,
        parameters,
        ToolOrigin::Mcp(McpOrigin::default()),
    )
}

/// A tool of an MCP server that is preferred for some words.
pub(crate) fn routed(name: &str, priority: u8, keywords: &[&str]) -> Arc<dyn DynTool> {
    let origin = McpOrigin {
        routing: Some(McpRouting {
            priority,
            keywords: keywords.iter().map(|word| (*word).to_owned()).collect(),
        }),
        ..McpOrigin::default()
    };
    fake(name, "", json!({"type": "object"}), ToolOrigin::Mcp(origin))
}

struct NoHost;

impl HostCalls for NoHost {
    fn open(&self, _: HostCall) -> Result<Box<dyn HostCallHandle>, Error> {
        Err(Error::new(ErrorCode::NoQueue, "no host in this test"))
    }
    fn emit_custom(&self, _: &str, _: Value) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// A run with these facts.
pub(crate) fn run_with(facts: RunFacts) -> Arc<RunContext> {
    Arc::new(RunContext {
        run_id: facts.run_id.clone(),
        thread_id: facts.thread_id.clone(),
        facts: Arc::new(facts),
        host: Arc::new(NoHost),
    })
}

/// A call `c1` of a tool.
pub(crate) fn call(name: &str, args: Value) -> ToolInvocation {
    ToolInvocation {
        message_id: "m".into(),
        call_id: "c1".to_owned(),
        name: name.to_owned(),
        args: args.as_object().cloned().unwrap_or_default(),
        reads: ChannelReads::default(),
        run: run_with(RunFacts::default()),
    }
}

/// The result of a future that waits for nothing.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("a part of this test waits"),
    }
}

/// Files of threads that are nowhere.
pub(crate) mod files {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use crate::ports::BoxFuture;
    use crate::ports::thread_files::{FileContent, ThreadFiles, ThreadPaths};
    use crate::protocol::error::{Error, ErrorCode};

    /// The same files for every thread.
    #[derive(Default)]
    pub(crate) struct FakeFiles {
        /// By virtual path.
        pub files: Mutex<BTreeMap<String, Vec<u8>>>,
        /// Whose directories were made.
        pub made: Mutex<Vec<String>>,
        /// Whether nothing can be read.
        pub fails: bool,
    }

    impl FakeFiles {
        /// Files by their path below `/mnt/user-data`.
        pub(crate) fn with(files: &[(&str, &str)]) -> Self {
            let files = files.iter().map(|(path, text)| {
                let path = format!("/mnt/user-data/{path}");
                (path, text.as_bytes().to_vec())
            });
            FakeFiles {
                files: Mutex::new(files.collect()),
                ..FakeFiles::default()
            }
        }

        /// Puts a file in its place.
        pub(crate) fn put(&self, path: &str, bytes: Vec<u8>) {
            self.files
                .lock()
                .expect("a lock")
                .insert(path.to_owned(), bytes);
        }
    }

    impl ThreadFiles for FakeFiles {
        fn paths(&self, thread_id: &str) -> Result<ThreadPaths, Error> {
            let at = |root: &str| format!("/h/{thread_id}/{root}");
            Ok(ThreadPaths {
                workspace: at("workspace"),
                uploads: at("uploads"),
                outputs: at("outputs"),
            })
        }

        fn make_directories(&self, thread_id: String) -> BoxFuture<'_, Result<(), Error>> {
            self.made.lock().expect("a lock").push(thread_id);
            Box::pin(std::future::ready(Ok(())))
        }

        fn read(
            &self,
            _: String,
            virtual_path: String,
            max_bytes: u64,
        ) -> BoxFuture<'_, Result<Option<FileContent>, Error>> {
            let read = match self.fails {
                true => Err(Error::new(ErrorCode::Store, "the disk is gone")),
                false => {
                    let files = self.files.lock().expect("a lock");
                    Ok(files.get(&virtual_path).map(|bytes| FileContent {
                        size: bytes.len() as u64,
                        head: bytes.iter().take(max_bytes as usize).copied().collect(),
                    }))
                }
            };
            Box::pin(std::future::ready(read))
        }

        fn write(&self, _: String, path: String, text: String) -> BoxFuture<'_, Result<(), Error>> {
            self.put(&path, text.into_bytes());
            Box::pin(std::future::ready(Ok(())))
        }
    }
}
