//! What an agent is and what it does next. No IO: whatever is to be done outside is a [`step::Step`].

pub mod assembly;
pub mod descriptor;
pub mod descriptor_diagram;
pub mod descriptor_diff;
pub mod machine;
pub mod model_parameters;
pub mod step;
