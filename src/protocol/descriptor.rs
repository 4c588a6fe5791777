//! The descriptor of an assembly: what an agent turned out to be, as plain facts and hashes, and the fingerprint that tells
//! whether two are one agent (AD-5 to AD-26).
//!
//! Nothing that runs reads it (AD-29). It holds no prompt, no tool schema and no SKILL.md, only their hashes
//! ([`super::canonical_json`]), and nothing under the name of a credential.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::canonical_json::canonical_hash;
use super::decode::{carry, from_open_value, wrong_type};
use super::error::Error;

/// `namespace` of every descriptor (AD-7).
pub const NAMESPACE: &str = "deerflow";
/// `agent_name` of a lead agent without a name of its own (AD-7).
pub const LEAD_AGENT: &str = "lead-agent";
/// `agent_name` of the agent that makes agents (AD-7).
pub const BOOTSTRAP_AGENT: &str = "bootstrap";
/// `prompt_template_id` of lead agents: the one element that says a version (AD-6).
pub const LEAD_TEMPLATE: &str = "deerflow-lead-agent-v1";
/// `prompt_template_id` of subagents (AD-6, AD-28).
pub const SUBAGENT_TEMPLATE: &str = "deerflow-subagent-v1";
/// Stands for a fact that nobody stated (AD-22).
pub const UNKNOWN: &str = "unknown";
/// `recursion_limit` when the configuration gives none (EP-14).
pub const FRAMEWORK_DEFAULT: &str = "framework-default";

/// What an assembly turned out to be. Hashes are those of canonical JSON: SHA-256, 64 lower-case hexadecimal digits; texts
/// are hashed as JSON strings, quotes included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssemblyDescriptor {
    /// Always `deerflow`: agents are described in the reference's terms.
    pub namespace: String,
    /// `bootstrap`, the name of the custom agent, or `lead-agent`.
    pub agent_name: String,
    /// The model that the request asked for, else the one of the custom agent, else null. Not part of the fingerprint.
    #[serde(default)]
    pub requested_model: Option<String>,
    /// The model that works, after unknown names and authorization were seen to.
    pub effective_model: String,
    /// `provider`, then every setting of the model's profile with those of the agent laid over; without names,
    /// descriptions, prices, and whatever has the name of a credential. Counts of tokens are there.
    #[serde(deserialize_with = "object")]
    pub model_parameters: Map<String, Value>,
    /// Whether it thinks, after the model's abilities were seen to.
    pub thinking_enabled: bool,
    /// How hard it thinks: text, or null.
    pub reasoning_effort: Value,
    /// Hash of the system text.
    pub base_prompt_hash: String,
    /// Hash of the text that the model is given in the human data channel when the prompt is rendered; null when there is none.
    /// Part of the fingerprint when it is not null.
    #[serde(default)]
    pub base_data_hash: Option<String>,
    /// The tools that are left after authorization, in the order in which they are bound; then those of each middleware.
    pub tools: Vec<ToolDescriptor>,
    /// The chain, outermost first.
    pub middlewares: Vec<MiddlewareDescriptor>,
    /// Names of the tools whose schemas are held back until they are asked for, sorted.
    pub deferred_tool_names: Vec<String>,
    /// Names of the skills that the agent may find, in catalog order.
    pub enabled_skills: Vec<String>,
    /// The catalog's entries, in catalog order. The fingerprint has them by way of `skill_catalog_hash`.
    #[serde(default)]
    pub skills: Vec<SkillDescriptor>,
    /// The policies that hold for its runs.
    #[serde(deserialize_with = "object")]
    #[schemars(with = "EffectivePolicies")]
    pub effective_policies: Map<String, Value>,
    /// What was built. Not part of the fingerprint: deploying again makes no other agent.
    #[serde(default)]
    pub build: BuildFacts,
    /// Hash of what makes the agent this one. Tools, deferred tools and skills count whatever their order; middleware counts
    /// in its order.
    #[serde(default)]
    pub fingerprint: String,
}

/// One tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDescriptor {
    /// Name.
    pub name: String,
    /// Hash of the description; that of empty text when there is none.
    pub description_hash: String,
    /// Hash of the JSON Schema of the arguments.
    pub schema_hash: String,
    /// Where it comes from: `builtin`, `skill`, `host`, `mcp:<server>`, or `mcp:unknown`.
    pub source: String,
    /// Name of the MCP server; null for other tools, or when nothing is known of it.
    #[serde(default)]
    pub mcp_server: Option<String>,
    /// How the MCP server is reached; null likewise.
    #[serde(default)]
    pub mcp_transport: Option<String>,
}

/// One middleware of the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MiddlewareDescriptor {
    /// Name.
    pub name: String,
    /// Where its code is.
    pub module: String,
    /// Its settings, as it declares them.
    #[serde(default, deserialize_with = "object")]
    pub policy_parameters: Map<String, Value>,
    /// The extension that brought it; null for those of this library.
    #[serde(default)]
    pub extension: Option<String>,
    /// The hooks it has: before_agent, before_model, after_model, after_agent, wrap_model_call, wrap_tool_call. Not part of
    /// the fingerprint.
    #[serde(default)]
    pub hooks: Vec<String>,
}

/// One skill of the catalog (AD-19). These members, and no others, are what `skill_catalog_hash` is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillDescriptor {
    /// Name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// The tools that it allows, sorted. null: it says nothing, all of them; an empty list: none (AD-20).
    #[serde(default)]
    pub allowed_tools: Option<Vec<String>>,
    /// Hash of the text of SKILL.md; null when it cannot be read.
    #[serde(default)]
    pub content_hash: Option<String>,
    /// Whether it may use its secrets without being asked for by name.
    pub secrets_autonomous: bool,
    /// The secrets that it wants, each as `<name>:True` where it works without and `<name>:False` where it does not; sorted.
    pub required_secrets: Vec<String>,
}

/// The policies of a lead agent (AD-21).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectivePolicies {
    /// Whether it is the agent that makes agents.
    pub bootstrap: bool,
    /// Whether nobody is there to be asked.
    pub non_interactive: bool,
    /// `is_plan_mode` as it was given.
    pub plan_mode: Value,
    /// Delegation.
    pub subagents: SubagentPolicies,
    /// Tools whose schemas are held back.
    pub deferred_tools: DeferredToolPolicies,
    /// Whether skills are found by name alone, and described when asked for.
    pub deferred_skills: bool,
    /// Steps of a run, or `framework-default`.
    pub recursion_limit: Value,
    /// Which prompt it is given: the one element that says a version.
    pub prompt_template_id: String,
    /// Hash of the skill catalog, sorted by name.
    pub skill_catalog_hash: String,
}

/// Delegation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SubagentPolicies {
    /// Whether the agent may delegate.
    pub enabled: bool,
    /// Most subagents that work at one time.
    pub max_concurrent: u64,
    /// Most delegations of a run.
    pub max_total: u64,
    /// Names of the subagents it may delegate to, sorted; empty when it may not.
    pub type_allowlist: Vec<String>,
    /// Limits of each of them.
    pub runtime_limits: BTreeMap<String, RuntimeLimits>,
}

/// Limits of a subagent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuntimeLimits {
    /// Most model calls.
    pub max_turns: u64,
    /// Longest time, in seconds.
    pub timeout_seconds: u64,
}

/// Tools whose schemas are held back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeferredToolPolicies {
    /// Whether there are any.
    pub enabled: bool,
    /// Hash of their catalog; null when there are none.
    pub catalog_hash: Option<String>,
}

/// What was built (AD-22). `unknown` for what nobody stated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BuildFacts {
    /// Version of this library.
    pub package_version: String,
    /// Digest of the image that the host runs in.
    pub image_digest: String,
    /// Commit that the host was built from.
    pub git_commit: String,
}

impl Default for BuildFacts {
    fn default() -> Self {
        BuildFacts {
            package_version: UNKNOWN.to_owned(),
            image_digest: UNKNOWN.to_owned(),
            git_commit: UNKNOWN.to_owned(),
        }
    }
}

impl AssemblyDescriptor {
    /// Reads a descriptor that came from elsewhere: another version of this library, or the reference. Members that are not
    /// known here are passed over; `skills`, `base_data_hash`, `requested_model`, `build` and `fingerprint` may be missing.
    /// `fingerprint` is what the document says it is.
    ///
    /// # Errors
    /// `MissingMember` or `WrongType`, with the path of the member.
    pub fn from_foreign(value: Value) -> Result<Self, Error> {
        from_open_value(value)
    }

    /// Puts the fingerprint in.
    pub fn sealed(mut self) -> Self {
        self.fingerprint = self.compute_fingerprint();
        self
    }

    /// Hash of what makes the agent this one (AD-23, AD-24): everything but `build`, `requested_model`, the order of tools and
    /// skills, and what is only there to explain a hash (`skills`, `hooks`).
    ///
    /// `base_data_hash` is left out when it is null, so that an agent without such a text has the reference's set of members.
    pub fn compute_fingerprint(&self) -> String {
        let mut tools: Vec<&ToolDescriptor> = self.tools.iter().collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let tools: Vec<Value> = tools
            .into_iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description_hash": tool.description_hash,
                    "schema_hash": tool.schema_hash,
                    "source": tool.source,
                    "mcp_server": tool.mcp_server,
                    "mcp_transport": tool.mcp_transport,
                })
            })
            .collect();
        let middlewares: Vec<Value> = self
            .middlewares
            .iter()
            .map(|part| {
                json!({
                    "name": part.name,
                    "module": part.module,
                    "extension": part.extension,
                    "policy_parameters": part.policy_parameters,
                })
            })
            .collect();
        let mut facts = json!({
            "namespace": self.namespace,
            "agent_name": self.agent_name,
            "effective_model": self.effective_model,
            "model_parameters": self.model_parameters,
            "thinking_enabled": self.thinking_enabled,
            "reasoning_effort": self.reasoning_effort,
            "base_prompt_hash": self.base_prompt_hash,
            "tools": tools,
            "middlewares": middlewares,
            "deferred_tool_names": sorted(&self.deferred_tool_names),
            "enabled_skills": sorted(&self.enabled_skills),
            "effective_policies": self.effective_policies,
        });
        if let Some(hash) = &self.base_data_hash {
            facts["base_data_hash"] = hash.as_str().into();
        }
        canonical_hash(&facts)
    }
}

/// Hash of a skill catalog: of its entries sorted by name (AD-19).
pub fn skill_catalog_hash(skills: &[SkillDescriptor]) -> String {
    let mut sorted: Vec<&SkillDescriptor> = skills.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let entries = sorted
        .into_iter()
        .map(|skill| {
            json!({
                "name": skill.name,
                "description": skill.description,
                "allowed_tools": skill.allowed_tools,
                "content_hash": skill.content_hash,
                "secrets_autonomous": skill.secrets_autonomous,
                "required_secrets": skill.required_secrets,
            })
        })
        .collect();
    canonical_hash(&Value::Array(entries))
}

/// Reads an object; the type itself takes null for an empty one.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Object(members) => Ok(members),
        other => Err(carry(&wrong_type(&other, "an object"))),
    }
}

fn sorted(names: &[String]) -> Vec<&str> {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::error::ErrorCode;

    fn minimal() -> Value {
        json!({
            "namespace": "deerflow", "agent_name": "lead-agent", "effective_model": "m",
            "model_parameters": {}, "thinking_enabled": true, "reasoning_effort": null,
            "base_prompt_hash": "p", "tools": [], "middlewares": [], "deferred_tool_names": [],
            "enabled_skills": [], "effective_policies": {},
        })
    }

    #[test]
    fn foreign_descriptors_may_have_more_and_less() {
        let mut value = minimal();
        value["from_the_future"] = json!({"a": 1});
        value["tools"] = json!([{"name": "t", "description_hash": "d", "schema_hash": "s", "source": "plugin:p", "plugin": 1}]);
        let read = AssemblyDescriptor::from_foreign(value).expect("a descriptor");
        assert_eq!(read.tools[0].source, "plugin:p");
        assert_eq!(read.base_data_hash, None);
        assert_eq!(read.build, BuildFacts::default());
        assert_eq!(read.fingerprint, "");
    }

    #[test]
    fn what_is_no_descriptor_is_told_with_its_path() {
        let fault = |value: Value| {
            let error = AssemblyDescriptor::from_foreign(value).expect_err("no descriptor");
            (error.code, error.path.unwrap_or_default())
        };
        assert_eq!(fault(json!(null)), (ErrorCode::WrongType, String::new()));
        assert_eq!(
            fault(json!({})),
            (ErrorCode::MissingMember, "/namespace".into())
        );
        let mut value = minimal();
        value["tools"] = json!([{"name": "t", "description_hash": "d", "source": "s"}]);
        let expected = (ErrorCode::MissingMember, "/tools/0/schema_hash".into());
        assert_eq!(fault(value.clone()), expected);
        value["tools"] = json!([]);
        value["effective_policies"] = json!([]);
        assert_eq!(
            fault(value),
            (ErrorCode::WrongType, "/effective_policies".into())
        );
    }

    #[test]
    fn ad_23_without_data_the_fingerprint_is_made_of_the_reference_s_members() {
        let bare = AssemblyDescriptor::from_foreign(minimal()).expect("a descriptor");
        // minimal() has exactly the members of AD-23.
        assert_eq!(bare.compute_fingerprint(), canonical_hash(&minimal()));
        let mut data = bare.clone();
        data.base_data_hash = Some("d".to_owned());
        assert_ne!(data.compute_fingerprint(), bare.compute_fingerprint());
    }
}
