//! The section `sandbox`: where commands and files live. The host can be one; what names another is refused.

use std::collections::BTreeMap;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::feature::{Unavailable, not_available, not_blank, within};
use crate::protocol::config::check_deadline;
use crate::protocol::decode::carry;
use crate::protocol::error::{Error, ErrorCode};

/// How long the host has for one call of its sandbox unless the configuration says otherwise: time to start a container.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

/// Where commands and files live.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// Which sandbox: `host` for one that the host has, which it is asked for by host calls of the kind `sandbox`. The classes
    /// that DeerFlow names are not available in this version.
    #[serde(rename = "use")]
    pub class: SandboxClass,
    /// Of the host's sandbox: how long the host has for one call, in milliseconds. Default 120000.
    #[schemars(range(min = 1))]
    pub deadline_ms: Option<u64>,
    /// Of the host's sandbox: whether it is asked for at the first call of a tool that works in it, and not at the beginning of
    /// a run. Default true.
    pub lazy_init: Option<bool>,
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
    /// Of the host's sandbox: whether its `/mnt/user-data` is the thread's directory below `home`. Default false.
    pub thread_data_mounts: Option<bool>,
    /// Of containers. Not available in this version.
    pub provisioner_url: Unavailable,
    /// Of containers. Not available in this version.
    pub provisioner_api_key: Unavailable,
}

/// Which sandbox there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxClass {
    /// None.
    #[default]
    None,
    /// The host's.
    Host,
}

impl<'de> Deserialize<'de> for SandboxClass {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Null => Ok(SandboxClass::None),
            Value::String(class) if class == "host" => Ok(SandboxClass::Host),
            other => {
                let shown: String = other.to_string().chars().take(200).collect();
                Err(carry(&Error::at(
                    ErrorCode::Unsupported,
                    "",
                    format!("the sandbox {shown} is not available in this version; \"host\" is"),
                )))
            }
        }
    }
}

impl JsonSchema for SandboxClass {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SandboxClass".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"enum": ["host", null]})
    }
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
            class: SandboxClass::None,
            deadline_ms: None,
            lazy_init: None,
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
            thread_data_mounts: None,
            provisioner_url: Unavailable,
            provisioner_api_key: Unavailable,
        }
    }
}

impl SandboxConfig {
    /// How long the host has for one call of its sandbox.
    pub fn deadline(&self) -> Duration {
        self.deadline_ms
            .map_or(DEFAULT_DEADLINE, Duration::from_millis)
    }

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
        check_deadline("/deadline_ms", self.deadline_ms)?;
        if self.class == SandboxClass::None {
            for (member, is_given) in [
                ("deadline_ms", self.deadline_ms.is_some()),
                ("lazy_init", self.lazy_init.is_some()),
                ("thread_data_mounts", self.thread_data_mounts.is_some()),
            ] {
                if is_given {
                    let text = format!("{member} is of a sandbox, and none is named by \"use\"");
                    return Err(Error::at(ErrorCode::MissingMember, "/use", text));
                }
            }
        }
        if self.allow_host_bash {
            return Err(not_available("/allow_host_bash", "allow_host_bash"));
        }
        if !self.mounts.is_empty() {
            return Err(not_available("/mounts", "mounts"));
        }
        Ok(())
    }
}
