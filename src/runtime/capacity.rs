//! Stand-in until the admission controller is merged: it counts nothing.

use std::sync::{Arc, OnceLock};

use crate::protocol::app_config::{AdmissionPolicy, SubagentRuntimeConfig};

pub struct Capacity(SubagentRuntimeConfig);

pub struct CapacitySnapshot {
    pub max_running: u64,
    pub running: u64,
    pub max_queued: u64,
    pub queued: u64,
    pub admission_policy: AdmissionPolicy,
}

impl Capacity {
    pub fn new(config: SubagentRuntimeConfig) -> Arc<Capacity> {
        Arc::new(Capacity(config))
    }
    pub fn config(&self) -> &SubagentRuntimeConfig {
        &self.0
    }
    pub fn snapshot(&self) -> CapacitySnapshot {
        CapacitySnapshot {
            max_running: self.0.max_running,
            running: 0,
            max_queued: self.0.max_queued,
            queued: 0,
            admission_policy: self.0.admission_policy,
        }
    }
}

pub fn process_capacity() -> Arc<Capacity> {
    static PROCESS: OnceLock<Arc<Capacity>> = OnceLock::new();
    PROCESS
        .get_or_init(|| Capacity::new(SubagentRuntimeConfig::default()))
        .clone()
}
