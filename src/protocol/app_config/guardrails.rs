//! The section `guardrails`: who is asked before each tool call.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::feature::{Feature, OpaqueSettings, not_blank, within};
use crate::protocol::config::MAX_DEADLINE_MS;
use crate::protocol::decode::{carry, from_value, hint};
use crate::protocol::error::{Error, ErrorCode};

/// How DeerFlow names its lists.
const ALLOWLIST_CLASS: &str = "deerflow.guardrails.builtin:AllowlistProvider";
/// Its short name.
const ALLOWLIST: &str = "allowlist";
/// The provider that is the host.
const HOST: &str = "host";

/// Asks somebody before each tool call (MW-GRD).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GuardrailsConfig {
    /// Whether anybody is asked. Default false, whatever else stands here; a section with settings and without this is a warning
    /// (`section_off`) of each assembly.
    pub enabled: Option<bool>,
    /// Whether a call is denied when they cannot answer. Default true.
    pub fail_closed: bool,
    /// What names the agent to them.
    pub passport: Option<String>,
    /// Who is asked.
    pub provider: Option<GuardrailProviderConfig>,
}

impl Default for GuardrailsConfig {
    fn default() -> Self {
        GuardrailsConfig {
            enabled: None,
            fail_closed: true,
            passport: None,
            provider: None,
        }
    }
}

impl Feature for GuardrailsConfig {
    const ON_BY_DEFAULT: bool = false;
    fn switch(&self) -> Option<bool> {
        self.enabled
    }
}

impl GuardrailsConfig {
    /// Checks bounds, and that there is somebody to ask if anybody is to be asked.
    ///
    /// # Errors
    /// `OutOfRange`, `MissingMember` or `Unsupported` at the member at fault.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        match &self.provider {
            Some(GuardrailProviderConfig::Class(class)) if self.is_enabled() => {
                let name: String = class.class.chars().take(120).collect();
                let is_class = name.contains(['.', ':']);
                let (what, near) = match is_class {
                    true => (format!("{name:?} is a Python class"), String::new()),
                    false => {
                        let near = hint(&name, &[ALLOWLIST, HOST]);
                        (format!("there is no guardrail {name:?}"), near)
                    }
                };
                let text = format!(
                    "{what}; here there are {ALLOWLIST:?} ({ALLOWLIST_CLASS:?}) and {HOST:?}, which asks the host by a host call{near}"
                );
                Err(Error::at(ErrorCode::Unsupported, "/provider/use", text))
            }
            None if self.is_enabled() => Err(Error::at(
                ErrorCode::MissingMember,
                "/provider",
                "guardrails are on, and nothing says who is asked",
            )),
            Some(provider) => provider
                .validate()
                .map_err(|error| error.below("/provider/config")),
            None => Ok(()),
        }
    }
}

/// Somebody who is asked before each tool call. In JSON `{"use": …, "config": {…}}`.
#[derive(Clone, Debug, PartialEq)]
pub enum GuardrailProviderConfig {
    /// `allowlist`, or DeerFlow's `deerflow.guardrails.builtin:AllowlistProvider`.
    Allowlist(AllowlistConfig),
    /// `host`: a host call of the kind `guardrail` for each tool call.
    Host(HostGuardrailConfig),
    /// A class that only a Python program could load. Refused where guardrails are on.
    Class(ClassGuardrailConfig),
}

/// Lists of tools, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AllowlistConfig {
    /// The tools that may be called; an empty list allows none. Default: all.
    pub allowed_tools: Option<Vec<String>>,
    /// The tools that may not, whatever is allowed.
    pub denied_tools: Option<Vec<String>>,
}

/// How the host is asked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HostGuardrailConfig {
    /// The `name` of the host calls. Default `guardrail`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// How long the host has for an answer, in milliseconds. Default 10000.
    #[schemars(range(min = 1, max = MAX_DEADLINE_MS))]
    pub timeout_ms: u64,
}

impl Default for HostGuardrailConfig {
    fn default() -> Self {
        HostGuardrailConfig {
            name: "guardrail".to_owned(),
            timeout_ms: 10_000,
        }
    }
}

/// A guardrail that DeerFlow would load by its class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassGuardrailConfig {
    /// How DeerFlow names it.
    pub class: String,
    /// Its settings.
    pub config: OpaqueSettings,
}

impl GuardrailProviderConfig {
    fn validate(&self) -> Result<(), Error> {
        match self {
            GuardrailProviderConfig::Allowlist(lists) => {
                let lists = [
                    ("allowed_tools", &lists.allowed_tools),
                    ("denied_tools", &lists.denied_tools),
                ];
                for (member, names) in lists {
                    for (place, name) in names.iter().flatten().enumerate() {
                        not_blank(&format!("/{member}/{place}"), name)?;
                    }
                }
                Ok(())
            }
            GuardrailProviderConfig::Host(host) => {
                not_blank("/name", &host.name)?;
                within("/timeout_ms", host.timeout_ms, 1, MAX_DEADLINE_MS)
            }
            GuardrailProviderConfig::Class(_) => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for GuardrailProviderConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        provider(Value::deserialize(deserializer)?).map_err(|error| carry(&error))
    }
}

fn provider(value: Value) -> Result<GuardrailProviderConfig, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Members {
        #[serde(rename = "use")]
        class: String,
        #[serde(default)]
        config: Value,
    }
    let Members { class, config } = from_value(value)?;
    let config = match config {
        Value::Null => json!({}),
        config => config,
    };
    let decoded = match class.as_str() {
        ALLOWLIST | ALLOWLIST_CLASS => from_value(config).map(GuardrailProviderConfig::Allowlist),
        HOST => from_value(config).map(GuardrailProviderConfig::Host),
        _ => from_value(config)
            .map(|config| GuardrailProviderConfig::Class(ClassGuardrailConfig { class, config })),
    };
    decoded.map_err(|error| error.below("/config"))
}

impl JsonSchema for GuardrailProviderConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GuardrailProvider".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let lists = generator.subschema_for::<AllowlistConfig>();
        let host = generator.subschema_for::<HostGuardrailConfig>();
        schemars::json_schema!({
            "description": "Somebody who is asked before each tool call.",
            "type": "object",
            "required": ["use"],
            // Any of them: the last takes every name, also those of the first two.
            "anyOf": [
                {
                    "description": "Lists of tools.",
                    "properties": {
                        "use": {"enum": [ALLOWLIST, ALLOWLIST_CLASS]},
                        "config": {"anyOf": [lists, {"type": "null"}]},
                    },
                    "additionalProperties": false,
                },
                {
                    "description": "The host: a host call of the kind guardrail for each tool call (schemas guardrail_request and guardrail_answer).",
                    "properties": {
                        "use": {"const": HOST},
                        "config": {"anyOf": [host, {"type": "null"}]},
                    },
                    "additionalProperties": false,
                },
                {
                    "description": "A class that only DeerFlow could load. Taken while guardrails are off.",
                    "properties": {
                        "use": {"type": "string"},
                        "config": {"type": ["object", "null"]},
                    },
                    "additionalProperties": false,
                },
            ],
        })
    }
}
