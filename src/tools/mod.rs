//! Tools: the built-in ones, one file each, and the checks that stand before every call.

pub mod arguments;
pub mod ask_clarification;
mod clarification_form;
pub mod clarification_request;
pub mod deferred;
pub mod describe_skill;
pub mod present_files;
pub mod query;
pub mod self_management;
pub mod setup_agent;
pub mod task;
#[cfg(test)]
pub(crate) mod testing;
pub mod tool_search;
pub mod update_agent;
pub mod view_image;

use std::sync::Arc;

use crate::ports::delegate::Delegate;
use crate::ports::thread_files::ThreadFiles;
use crate::ports::tool::DynTool;

/// Makes a built-in tool; `None` when its feature is off in this assembly.
type Build = fn(&BuiltinInputs) -> Option<Arc<dyn DynTool>>;

/// The built-in tools of a lead agent: name, builder. The order is that of TL-1, in which the model is told of them and in
/// which the first of two tools of one name is kept.
pub const TOOLS: &[(&str, Build)] = &[
    ("present_files", present_files::build),
    ("ask_clarification", ask_clarification::build),
    // review_skill_package: with the skills that an agent writes.
    // The list and the cancelling of background tasks: with the runtime of MCP tasks.
    // list_uploaded_files: with uploads.
    // skill_manage: with the evolution of skills.
    ("task", task::build),
    ("view_image", view_image::build),
];

/// What a builder may look at.
#[derive(Clone, Default)]
pub struct BuiltinInputs {
    /// The files of the user's threads, if they are kept on this machine and the agent's tools work on them there.
    pub thread_files: Option<Arc<dyn ThreadFiles>>,
    /// To whom the agent gives work, if it may delegate.
    pub delegate: Option<Arc<dyn Delegate>>,
    /// Whether the model sees images.
    pub vision: bool,
}

/// The built-in tools of an assembly, in order.
pub fn builtins(inputs: &BuiltinInputs) -> Vec<Arc<dyn DynTool>> {
    TOOLS
        .iter()
        .filter_map(|(_, build)| build(inputs))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::arguments::ArgumentCheck;
    use super::*;

    #[test]
    fn every_builder_makes_the_tool_of_its_name_with_a_sound_schema() {
        for (name, build) in TOOLS {
            if let Some(tool) = build(&BuiltinInputs::default()) {
                assert_eq!(tool.spec().name, *name);
                assert!(!tool.spec().description.is_empty(), "{name}");
                ArgumentCheck::compile(&tool.spec().parameters).expect(name);
            }
        }
    }

    #[test]
    fn tl_1_the_built_in_tools_stand_in_their_order() {
        let tools = builtins(&BuiltinInputs::default());
        let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        assert_eq!(names, ["present_files", "ask_clarification"]);
    }
}
