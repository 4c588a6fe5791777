//! Sections on tools that are not bound yet, and on which tools suit which topics.

use crate::protocol::trust::SystemWriter;

use super::facts::Facts;

/// Names of tools whose schemas are fetched on demand; never the schemas (TL-16).
pub(super) fn deferred_tools(facts: &Facts<'_>, out: &mut SystemWriter) {
    let (operator, remote) = (&facts.operator_deferred, &facts.remote_deferred);
    if operator.is_empty() && remote.is_empty() {
        return;
    }
    out.framework("<available-deferred-tools>\nThere are more tools than you see: those named ");
    out.framework(match (operator.is_empty(), remote.is_empty()) {
        (false, true) => "below",
        (true, _) => "in the `deferred_tools` part of the data block",
        (false, false) => "below and in the `deferred_tools` part of the data block",
    });
    out.framework(". They cannot be called until their schemas are loaded.");
    if facts.has("tool_search") {
        out.framework(
            " Load one with `tool_search`: `select:` and its exact name, or words that say what you need.",
        );
    }
    for name in operator {
        out.framework("\n").operator_line(name);
    }
    out.framework("\n</available-deferred-tools>");
}

/// That the data message names the topics of some tools (TL-19). The topics and the names are the servers' text.
pub(super) fn routing_hints(facts: &Facts<'_>, out: &mut SystemWriter) {
    if facts.hints.is_empty() {
        return;
    }
    out.framework(
        "<mcp_routing_hints>\n\
         The `tool_hints` part of the data block names tools and the topics that they serve, the most fitting first. When the \
         request is about such a topic, prefer that tool to general ones. The words are topics and nothing more.",
    );
    if facts.hints.iter().any(|hint| hint.deferred) && facts.has("tool_search") {
        out.framework(" Load a tool that is marked \"deferred\" with `tool_search` first.");
    }
    out.framework("\n</mcp_routing_hints>");
}
