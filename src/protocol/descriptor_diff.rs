//! What tells two descriptors apart: input and answer of the comparison.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::descriptor::AssemblyDescriptor;
use super::error::Error;

/// Most changes that an answer lists.
pub const MAX_CHANGES: usize = 10_000;

/// Two descriptors to compare.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DescriptorPair {
    /// The earlier one (schema "assembly_descriptor"). It may be another version's: members that are not known here may stand in
    /// it, and `skills`, `base_data_hash`, `requested_model`, `build`, `hooks` and `fingerprint` may be missing.
    #[schemars(with = "Map<String, Value>")]
    pub before: Value,
    /// The later one, likewise.
    #[schemars(with = "Map<String, Value>")]
    pub after: Value,
}

impl DescriptorPair {
    /// Checks that both are descriptors.
    ///
    /// # Errors
    /// `MissingMember` or `WrongType`, at a path below `/before` or `/after`.
    pub fn validate(&self) -> Result<(), Error> {
        for (path, value) in [("/before", &self.before), ("/after", &self.after)] {
            AssemblyDescriptor::from_foreign(value.clone()).map_err(|error| error.below(path))?;
        }
        Ok(())
    }
}

/// What tells them apart.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DescriptorDiff {
    /// Whether both are one agent: their fingerprints are equal. There may be changes all the same, none of which is part of
    /// the fingerprint.
    pub same: bool,
    /// The fingerprints, computed from what the descriptors say, whatever fingerprint they state.
    pub fingerprints: DescriptorFingerprints,
    /// The changes: agent, model, prompt, tools, middleware, skills, policies, build; in each the order of `after`, then what
    /// is gone. At most 10000.
    pub changes: Vec<DescriptorChange>,
    /// How many changes there are beyond those listed.
    pub left_out: u64,
    /// What is odd about the descriptors, in words: a fingerprint that does not belong to the facts it is stated with.
    pub warnings: Vec<String>,
    /// All of it in words, a sentence per change.
    pub text: String,
}

/// A fingerprint of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DescriptorFingerprints {
    /// Of the earlier descriptor.
    pub before: String,
    /// Of the later one.
    pub after: String,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DescriptorChange {
    /// What kind of change.
    pub what: DescriptorChangeKind,
    /// Name of the tool, middleware, skill, setting or policy; null where there is only one of its kind.
    pub name: Option<String>,
    /// JSON pointer into the later descriptor; into the earlier one for what is gone.
    pub path: String,
    /// What stood there; null when nothing did.
    pub before: Value,
    /// What stands there now; null when nothing does.
    pub after: Value,
    /// Whether it is part of the fingerprint.
    pub identity: bool,
    /// The change in one sentence.
    pub text: String,
}

/// What kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DescriptorChangeKind {
    /// Another name or namespace.
    AgentChanged,
    /// Another model works.
    ModelChanged,
    /// Another model was asked for.
    RequestedModelChanged,
    /// A setting of the model came.
    ModelParameterAdded,
    /// A setting of the model went.
    ModelParameterRemoved,
    /// A setting of the model has another value.
    ModelParameterChanged,
    /// It thinks now, or no more.
    ThinkingChanged,
    /// It thinks more or less hard.
    ReasoningEffortChanged,
    /// The system text is another.
    PromptChanged,
    /// The text in the human data channel is another, came or went.
    DataChanged,
    /// A tool came.
    ToolAdded,
    /// A tool went.
    ToolRemoved,
    /// A tool has another description, schema or source.
    ToolChanged,
    /// The tools are bound in another order.
    ToolsReordered,
    /// A middleware came.
    MiddlewareAdded,
    /// A middleware went.
    MiddlewareRemoved,
    /// A middleware has another place among those that stayed.
    MiddlewareMoved,
    /// A middleware has other settings, or comes from elsewhere.
    MiddlewareChanged,
    /// A tool's schema is held back now.
    DeferredToolAdded,
    /// A tool's schema is not held back any more.
    DeferredToolRemoved,
    /// A skill came.
    SkillAdded,
    /// A skill went.
    SkillRemoved,
    /// A skill has another text, description or allowance.
    SkillChanged,
    /// The skills are offered in another order.
    SkillsReordered,
    /// The catalog has another hash, and the entries do not tell why.
    SkillCatalogChanged,
    /// A policy came.
    PolicyAdded,
    /// A policy went.
    PolicyRemoved,
    /// A policy has another value.
    PolicyChanged,
    /// Another build.
    BuildChanged,
    /// A member that this version does not know has another value.
    OtherChanged,
}

/// Answer of the diagram function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DescriptorDiagram {
    /// A flowchart in Mermaid's language.
    pub mermaid: String,
}
