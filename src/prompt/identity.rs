//! Sections on who the agent is: its role, its personality, and how it may change itself.

use crate::protocol::trust::SystemWriter;

use super::facts::Facts;

/// Names the agent: by its own name or, without one, by the product's.
pub(super) fn role(facts: &Facts<'_>, out: &mut SystemWriter) {
    out.framework("<role>\nYou are ");
    match facts.inputs.agent_name {
        Some(name) => out.identifier(name),
        None => out.framework("fawn"),
    };
    out.framework(
        ", an AI agent that takes a request through to a finished result: you find things out, work with files and tools, write \
         and check, and report what you did and what you did not.\n</role>",
    );
}

/// The personality that the operator wrote. One that anybody else wrote is data.
pub(super) fn soul(facts: &Facts<'_>, out: &mut SystemWriter) {
    if let Some(soul) = facts.operator_soul {
        out.framework("<soul>\n")
            .operator(soul)
            .framework("\n</soul>");
    }
}

/// How a custom agent changes itself for good.
pub(super) fn self_update(facts: &Facts<'_>, out: &mut SystemWriter) {
    if facts.inputs.agent_name.is_none() || !facts.has("update_agent") {
        return;
    }
    out.framework(
        "<self_update>\n\
         Your definition (personality, description, skills, tool groups, model) is stored outside this conversation. When the \
         user wants it changed for good, call `update_agent`. It is the only way: what you write into files or do by commands \
         does not become part of you and is lost with the next turn.\n\
         - Pass only the fields that change. Leave the others out; do not pass \"null\", \"none\" or \"undefined\" as text.\n\
         - `soul` replaces the personality as a whole: carry over what is to stay.\n\
         - `skills=[]` switches every skill off. To keep the skills, leave the field out.\n\
         - The change holds from the next turn on. Tell the user so.\n\
         </self_update>",
    );
}
