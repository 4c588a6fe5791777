//! What an agent is and what it does next. No IO: whatever is to be done outside is a [`step::Step`].

pub mod assembly;
pub mod authorization;
pub mod descriptor;
pub mod descriptor_diagram;
pub mod descriptor_diff;
pub mod direct;
pub mod extras;
pub mod goal;
pub mod lead;
pub mod machine;
pub mod model_choice;
pub mod model_parameters;
pub mod options;
pub mod sections;
pub mod selection;
pub mod step;
pub mod subagent;
pub mod subagent_scope;
pub mod subagent_settings;
pub mod tool_list;

/// What middlewares there are, for whoever writes a configuration.
pub fn middleware_catalog() -> serde_json::Value {
    crate::middleware::catalog::describe()
}
