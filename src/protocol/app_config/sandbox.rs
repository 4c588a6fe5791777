//! The section `sandbox`: where commands and files live. There is no sandbox in this version, so what names one is refused.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::feature::{Unavailable, not_available, not_blank, within};
use crate::protocol::error::Error;

/// Where commands and files live.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// Which sandbox, as DeerFlow names its class. Not available in this version.
    #[serde(rename = "use")]
    pub class: Unavailable,
    /// Whether commands may run on the machine itself. Default false; true is not available in this version.
    pub allow_host_bash: bool,
    /// Directories of the machine that agents see. Not available in this version.
    pub mounts: Vec<MountConfig>,
    /// Variables for commands. Not available in this version.
    pub environment: BTreeMap<String, Unavailable>,
    /// Characters of a command's output that are kept, 0 for all. Default 20000.
    pub bash_output_max_chars: u64,
    /// Characters of a file that are read at once, 0 for all. Default 50000.
    pub read_file_output_max_chars: u64,
    /// Characters of a listing that are kept, 0 for all. Default 20000.
    pub ls_output_max_chars: u64,
    /// Longest time for one command, in seconds. Default 600.
    #[schemars(range(min = 1))]
    pub bash_command_timeout: u64,
    /// Of containers. Not available in this version.
    pub image: Unavailable,
    /// Of containers. Not available in this version.
    pub port: Unavailable,
    /// Of containers. Not available in this version.
    pub replicas: Unavailable,
    /// Of containers. Not available in this version.
    pub container_prefix: Unavailable,
    /// Of containers. Not available in this version.
    pub idle_timeout: Unavailable,
    /// Of containers. Not available in this version.
    pub ownership: Unavailable,
    /// Of containers. Not available in this version.
    pub thread_data_mounts: Unavailable,
    /// Of containers. Not available in this version.
    pub provisioner_url: Unavailable,
    /// Of containers. Not available in this version.
    pub provisioner_api_key: Unavailable,
}

/// A directory of the machine that agents see.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MountConfig {
    /// Where it is.
    #[schemars(length(min = 1))]
    pub host_path: String,
    /// Where agents see it.
    #[schemars(length(min = 1))]
    pub container_path: String,
    /// Whether they may only read it. Default false.
    #[serde(default)]
    pub read_only: bool,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        SandboxConfig {
            class: Unavailable,
            allow_host_bash: false,
            mounts: Vec::new(),
            environment: BTreeMap::new(),
            bash_output_max_chars: 20_000,
            read_file_output_max_chars: 50_000,
            ls_output_max_chars: 20_000,
            bash_command_timeout: 600,
            image: Unavailable,
            port: Unavailable,
            replicas: Unavailable,
            container_prefix: Unavailable,
            idle_timeout: Unavailable,
            ownership: Unavailable,
            thread_data_mounts: Unavailable,
            provisioner_url: Unavailable,
            provisioner_api_key: Unavailable,
        }
    }
}

impl SandboxConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        for (place, mount) in self.mounts.iter().enumerate() {
            for (member, path) in [
                ("host_path", &mount.host_path),
                ("container_path", &mount.container_path),
            ] {
                not_blank(&format!("/mounts/{place}/{member}"), path)?;
            }
        }
        within(
            "/bash_command_timeout",
            self.bash_command_timeout,
            1,
            u64::MAX,
        )?;
        if self.allow_host_bash {
            return Err(not_available("/allow_host_bash", "allow_host_bash"));
        }
        if !self.mounts.is_empty() {
            return Err(not_available("/mounts", "mounts"));
        }
        Ok(())
    }
}
