//! Sections about skills: where they are, which are on, and whether agents write them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::feature::{not_available, not_blank};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;
use crate::protocol::trust::OperatorText;

/// How DeerFlow names the only storage of skills that there is.
const SKILL_FILES: &str = "deerflow.skills.storage.local_skill_storage:LocalSkillStorage";

/// Where skills are found, and how the model learns of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillsConfig {
    /// How DeerFlow names the class that keeps them: in files, and nothing else in this version.
    #[serde(rename = "use")]
    pub class: Option<String>,
    /// The operator's directory of skills; `public/` below it is looked at. Default: none, and then there are none of the
    /// operator's.
    pub path: Option<String>,
    /// Where the model sees the directory. Default `/mnt/skills`.
    pub container_path: OperatorText,
    /// Whether the model is told the names alone and asks for the rest (PR-5). Default false.
    pub deferred_discovery: bool,
}

impl Default for SkillsConfig {
    fn default() -> Self {
        SkillsConfig {
            class: None,
            path: None,
            container_path: OperatorText::from_operator_directory("/mnt/skills"),
            deferred_discovery: false,
        }
    }
}

impl SkillsConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        if self
            .class
            .as_ref()
            .is_some_and(|class| class != SKILL_FILES)
        {
            return Err(not_available("/use", "use"));
        }
        if let Some(path) = &self.path {
            not_blank("/path", path)?;
        }
        let seen = self.container_path.as_str();
        if !seen.starts_with('/') || seen.chars().any(char::is_control) {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/container_path",
                "container_path must be an absolute path",
            ));
        }
        Ok(())
    }
}

/// Whether agents write skills (TL-1).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillEvolutionConfig {
    /// Whether they do. Default false.
    pub enabled: bool,
    /// Model that looks at what they write. Default: the first model.
    pub moderation_model_name: Option<String>,
    /// Whether nothing is written while that model cannot be asked. Default true.
    pub security_fail_closed: bool,
}

impl Default for SkillEvolutionConfig {
    fn default() -> Self {
        SkillEvolutionConfig {
            enabled: false,
            moderation_model_name: None,
            security_fail_closed: true,
        }
    }
}

/// Which skills are on. DeerFlow keeps this in `extensions_config.json`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExtensionsConfig {
    /// Skills by name; one that is not named is on.
    pub skills: BTreeMap<String, SkillStateConfig>,
    /// MCP servers by name. Only such as are switched off are taken in this version.
    #[serde(rename = "mcpServers")]
    pub mcp_servers: BTreeMap<String, Value>,
    /// Middleware by class. Not available in this version.
    pub middlewares: Vec<String>,
}

/// Whether a skill is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillStateConfig {
    /// Whether it is. Default true.
    pub enabled: bool,
}

impl Default for SkillStateConfig {
    fn default() -> Self {
        SkillStateConfig { enabled: true }
    }
}

impl ExtensionsConfig {
    /// Whether the skill of this name is on, if anything is said about it.
    pub fn skill_switch(&self, name: &str) -> Option<bool> {
        self.skills.get(name).map(|state| state.enabled)
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        let on = |server: &Value| server.get("enabled") != Some(&Value::Bool(false));
        if let Some((name, _)) = self.mcp_servers.iter().find(|(_, server)| on(server)) {
            let path = format!("/mcpServers/{}", pointer_token(name));
            return Err(not_available(&path, "mcpServers"));
        }
        if !self.middlewares.is_empty() {
            return Err(not_available("/middlewares", "middlewares"));
        }
        Ok(())
    }
}
