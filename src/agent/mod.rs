//! What an agent is and what it does next. No IO: whatever is to be done outside is a [`step::Step`].

pub mod assembly;
pub mod authorization;
pub mod direct;
pub mod machine;
pub mod model_choice;
pub mod options;
pub mod sections;
pub mod selection;
pub mod step;
pub mod tool_list;
