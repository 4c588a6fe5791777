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
