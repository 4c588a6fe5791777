//! The run on whose behalf a part is tested, with a host that cannot be asked.

use std::sync::Arc;

use fawn::ports::BoxFuture;
use fawn::ports::host::{HostCall, HostCallHandle, HostCalls, RunContext};
use fawn::protocol::error::{Error, ErrorCode};
use serde_json::Value;

/// Nobody to ask.
pub struct NoHost;

impl HostCalls for NoHost {
    fn open(&self, _: HostCall) -> Result<Box<dyn HostCallHandle>, Error> {
        Err(Error::new(ErrorCode::NoQueue, "no host in this test"))
    }
    fn emit_custom(&self, _: &str, _: Value) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// Run `r` on thread `t`.
pub fn run_context() -> Arc<RunContext> {
    Arc::new(RunContext {
        run_id: "r".into(),
        thread_id: "t".into(),
        facts: Arc::default(),
        host: Arc::new(NoHost),
    })
}
