//! What a host may tell a runtime (`fawn_runtime_submit`), op by op.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::agent_record::agent_name;
use super::decode::{carry, from_value};
use super::trust::Identifier;
use super::user_id::UserId;

/// `{"op": "reset_agent", …}` without the member `op`: forgets what was cached about custom agents, so that the next run
/// reads their records anew (CA-8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResetAgent {
    /// Which agent; `None` for all.
    pub agent: Option<Identifier>,
    /// Whose; `None` for everybody's.
    pub user: Option<UserId>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Members {
    /// Which agent. Default: all.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[A-Za-z0-9-]{1,64}$"))]
    agent_name: Option<String>,
    /// Whose, by the id that runs have. Default: everybody's.
    #[serde(default)]
    user_id: Option<String>,
}

impl<'de> Deserialize<'de> for ResetAgent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let decode = || {
            let members: Members = from_value(value)?;
            let agent = members.agent_name.as_deref().map(agent_name).transpose();
            Ok(ResetAgent {
                agent: agent.map_err(|error| error.below("/agent_name"))?,
                user: members.user_id.as_deref().map(UserId::new),
            })
        };
        decode().map_err(|error| carry(&error))
    }
}

impl JsonSchema for ResetAgent {
    fn schema_name() -> Cow<'static, str> {
        "ResetAgent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Members::json_schema(generator)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::super::error::ErrorCode;
    use super::*;

    #[test]
    fn ca8_absent_members_mean_all() {
        let decode = |value| from_value::<ResetAgent>(value).unwrap();
        assert_eq!(decode(json!({})), ResetAgent::default());
        assert_eq!(
            decode(json!({"agent_name": null, "user_id": null})),
            ResetAgent::default()
        );
        let one = decode(json!({"agent_name": "a", "user_id": "a/b"}));
        assert_eq!(one.agent.unwrap().as_str(), "a");
        assert_eq!(one.user, Some(UserId::new("a/b")));
    }

    #[test]
    fn faults_are_told_with_their_path() {
        for (value, code, path) in [
            (
                json!({"agent_name": "a_b"}),
                ErrorCode::OutOfRange,
                "/agent_name",
            ),
            (
                json!({"agent_name": 1}),
                ErrorCode::WrongType,
                "/agent_name",
            ),
            (json!({"agent": "a"}), ErrorCode::UnknownMember, "/agent"),
        ] {
            let error = from_value::<ResetAgent>(value).unwrap_err();
            assert_eq!((error.code, error.path.as_deref()), (code, Some(path)));
        }
    }
}
