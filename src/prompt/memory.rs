//! The section on a memory that the agent manages by tools.

use crate::protocol::trust::SystemWriter;

use super::facts::Facts;

/// What each memory tool is for.
const TOOLS: &[(&str, &str)] = &[
    (
        "memory_search",
        "\n- `memory_search`: look here before you conclude that something about the user or earlier work is not known.",
    ),
    (
        "memory_get",
        "\n- `memory_get`: read one entry whole, when its summary is not enough.",
    ),
    (
        "memory_add",
        "\n- `memory_add`: keep a fact that will still matter in later conversations, such as a lasting preference or a decision. No \
         passing detail, no secret, no guess.",
    ),
    (
        "memory_update",
        "\n- `memory_update`: when a known fact has changed, correct its entry. Do not add a second one beside it.",
    ),
    (
        "memory_delete",
        "\n- `memory_delete`: only for entries that are wrong or have lost their meaning, or when the user asks you to forget.",
    ),
];

/// How to use the memory tools that are bound.
pub(super) fn memory_tool_system(facts: &Facts<'_>, out: &mut SystemWriter) {
    if !facts.inputs.memory_tools || !TOOLS.iter().any(|(tool, _)| facts.has(tool)) {
        return;
    }
    out.framework(
        "<memory_tool_system>\n\
         What you are shown of the memory is a summary; more is stored than stands there.",
    );
    for (tool, text) in TOOLS {
        if facts.has(tool) {
            out.framework(text);
        }
    }
    out.framework("\n</memory_tool_system>");
}
