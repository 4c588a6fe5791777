//! The section `authorization`: who may use which model and tool.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::feature::{Unavailable, not_blank};
use crate::protocol::decode::{carry, from_value, tagged, wrong_type};
use crate::protocol::error::{Error, ErrorCode};

/// How DeerFlow names its provider of roles.
const RBAC: &str = "deerflow.authz.rbac:RbacAuthorizationProvider";
/// Providers by their `use`.
const PROVIDERS: &[&str] = &[RBAC, "rbac", "lists"];

/// Who may use which model and tool (MD-2 to MD-4, TL-8).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorizationConfig {
    /// Whether anybody is asked. Default false.
    pub enabled: bool,
    /// Whether what cannot be decided is denied. Default true.
    pub fail_closed: bool,
    /// The role of whoever has none. Default `user`.
    #[schemars(length(min = 1))]
    pub default_role: String,
    /// Who is asked. Without it, the assembly has to say.
    pub provider: Option<AuthorizationProviderConfig>,
}

impl Default for AuthorizationConfig {
    fn default() -> Self {
        AuthorizationConfig {
            enabled: false,
            fail_closed: true,
            default_role: "user".to_owned(),
            provider: None,
        }
    }
}

impl AuthorizationConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        not_blank("/default_role", &self.default_role)?;
        match &self.provider {
            Some(AuthorizationProviderConfig::Roles(roles)) => {
                let known: Vec<&str> = roles.keys().map(String::as_str).collect();
                if self.enabled && !known.contains(&&*self.default_role) {
                    let text = format!("there is no role {:?}", self.default_role);
                    return Err(Error::at(ErrorCode::OutOfRange, "/default_role", text));
                }
                Ok(())
            }
            Some(AuthorizationProviderConfig::Lists(_)) | None => Ok(()),
        }
    }
}

/// Who is asked for authorization. In JSON `{"use": …, "config": {…}}`: DeerFlow's
/// `deerflow.authz.rbac:RbacAuthorizationProvider` (or `rbac`) with `roles`, or `lists` with the lists that hold for everybody.
#[derive(Clone, Debug, PartialEq)]
pub enum AuthorizationProviderConfig {
    /// Lists by role.
    Roles(BTreeMap<String, RoleConfig>),
    /// The same lists for everybody.
    Lists(AuthorizationLists),
}

impl<'de> Deserialize<'de> for AuthorizationProviderConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        provider(Value::deserialize(deserializer)?).map_err(|error| carry(&error))
    }
}

fn provider(value: Value) -> Result<AuthorizationProviderConfig, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rest {
        #[serde(default)]
        config: Value,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Roles {
        roles: BTreeMap<String, RoleConfig>,
    }
    let (class, rest) = tagged(value, "use", PROVIDERS).map_err(|error| match error.code {
        ErrorCode::UnknownVariant => Error {
            code: ErrorCode::Unsupported,
            ..error
        },
        _ => error,
    })?;
    let Rest { config } = from_value(rest)?;
    let config = match config {
        Value::Null => json!({}),
        config => config,
    };
    let decoded = if class == "lists" {
        from_value(config).map(AuthorizationProviderConfig::Lists)
    } else {
        from_value(config).and_then(|Roles { roles }| {
            if roles.contains_key("") {
                let text = "a role needs a name";
                return Err(Error::at(ErrorCode::OutOfRange, "/roles/", text));
            }
            Ok(AuthorizationProviderConfig::Roles(roles))
        })
    };
    decoded.map_err(|error| error.below("/config"))
}

impl JsonSchema for AuthorizationProviderConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AuthorizationProvider".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let role = generator.subschema_for::<RoleConfig>();
        let lists = generator.subschema_for::<AuthorizationLists>();
        schemars::json_schema!({
            "description": "Who is asked for authorization.",
            "type": "object",
            "required": ["use"],
            "oneOf": [
                {
                    "description": "Lists by role; a role without lists for a resource may use all of it.",
                    "required": ["config"],
                    "properties": {
                        "use": {"enum": [RBAC, "rbac"]},
                        "config": {
                            "type": "object",
                            "required": ["roles"],
                            "properties": {"roles": {"type": "object", "additionalProperties": role}},
                            "additionalProperties": false,
                        },
                    },
                    "additionalProperties": false,
                },
                {
                    "description": "The same lists for everybody.",
                    "properties": {"use": {"const": "lists"}, "config": lists},
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// What a role may use. A resource that is not named is not restricted.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoleConfig {
    /// Tools, by name.
    pub tools: Option<AccessPolicy>,
    /// Models, by name.
    pub models: Option<AccessPolicy>,
    /// Routes of DeerFlow's server, which mean nothing here.
    pub routes: Option<AccessPolicy>,
    /// Skills. Not available in this version.
    pub skills: Unavailable,
    /// The sandbox. Not available in this version.
    pub sandbox: Unavailable,
    /// MCP servers. Not available in this version.
    pub mcp_servers: Unavailable,
}

/// Lists that hold for everybody. A resource that is not named is not restricted.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorizationLists {
    /// Tools, by name.
    pub tools: Option<AccessPolicy>,
    /// Models, by name.
    pub models: Option<AccessPolicy>,
}

/// What may be used of one resource. In JSON `{"allow": "*" | true | false | [names], "deny": [names]}`; what is denied is
/// denied whatever is allowed, and an empty `allow` allows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    /// What may be used. Default: all.
    pub allow: Allowed,
    /// What may not.
    pub deny: Vec<String>,
}

/// What may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    /// Everything.
    #[default]
    All,
    /// Only these; an empty list allows nothing.
    Only(Vec<String>),
}

impl AccessPolicy {
    /// Whether `name` may be used: deny beats allow (MD-4). In either list `*` is every name.
    pub fn allows(&self, name: &str) -> bool {
        let listed = |names: &[String]| names.iter().any(|listed| listed == name || listed == "*");
        let is_allowed = match &self.allow {
            Allowed::All => true,
            Allowed::Only(names) => listed(names),
        };
        is_allowed && !listed(&self.deny)
    }
}

impl<'de> Deserialize<'de> for AccessPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        policy(Value::deserialize(deserializer)?).map_err(|error| carry(&error))
    }
}

fn policy(value: Value) -> Result<AccessPolicy, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Lists {
        #[serde(default = "everything")]
        allow: Value,
        #[serde(default)]
        deny: Vec<String>,
    }
    fn everything() -> Value {
        Value::Bool(true)
    }
    let Lists { allow, deny } = from_value(value)?;
    let allow = match allow {
        Value::Bool(true) => Allowed::All,
        Value::Bool(false) => Allowed::Only(Vec::new()),
        Value::String(all) if all == "*" => Allowed::All,
        names @ Value::Array(_) => {
            Allowed::Only(from_value(names).map_err(|error| error.below("/allow"))?)
        }
        // Null included: whoever writes it may have meant nothing at all.
        other => return Err(wrong_type(&other, "\"*\", a boolean or a list").below("/allow")),
    };
    let lists = [("deny", &deny[..])];
    let only = match &allow {
        Allowed::Only(names) => &names[..],
        Allowed::All => &[],
    };
    for (member, names) in lists.into_iter().chain([("allow", only)]) {
        if let Some(place) = names.iter().position(String::is_empty) {
            let at = format!("/{member}/{place}");
            return Err(Error::at(
                ErrorCode::OutOfRange,
                at,
                "a name must not be empty",
            ));
        }
    }
    Ok(AccessPolicy { allow, deny })
}

impl JsonSchema for AccessPolicy {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AccessPolicy".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names = json!({"type": "array", "items": {"type": "string", "minLength": 1}});
        let mut deny = names.clone();
        deny["description"] = "What may not be used, whatever is allowed.".into();
        schemars::json_schema!({
            "description": "What may be used of one resource.",
            "type": "object",
            "properties": {
                "allow": {
                    "description": "What may be used: all (`*` or true), nothing (false or an empty list), or these. Default: all.",
                    "anyOf": [{"const": "*"}, {"type": "boolean"}, names],
                },
                "deny": deny,
            },
            "additionalProperties": false,
        })
    }
}
