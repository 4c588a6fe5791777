//! The section on the sandbox's folders: where files come from, where work happens, where results go.

use crate::protocol::trust::SystemWriter;

use super::facts::Facts;

/// The folders of the sandbox.
pub(super) fn working_directory(facts: &Facts<'_>, out: &mut SystemWriter) {
    out.framework(
        "<working_directory existed=\"true\">\n\
         - `/mnt/user-data/uploads`: files from the user. Those that came with the newest message are listed in its \
         `current_uploads` block",
    );
    out.framework(if facts.has("list_uploaded_files") {
        "; `list_uploaded_files` finds the older ones."
    } else {
        "."
    });
    out.framework(
        " An office document or PDF may have a copy converted to Markdown beside it, with the ending `.md`: read that.",
    );
    workspace(facts, out);
    out.framework(
        "\n- `/mnt/user-data/outputs`: what the user is to get. Put finished files there, and nothing else",
    );
    out.framework(if facts.has("present_files") {
        "; then hand them over with `present_files`."
    } else {
        "."
    });
    if facts.skills.applies {
        out.framework(
            " Skills and their files are tools of yours, not results: do not deliver them.",
        );
    }
    if facts.inputs.acp_agents && facts.has("invoke_acp_agent") {
        acp(facts, out);
    }
    mounts(facts, out);
    out.framework("\n</working_directory>");
}

/// The folders of the sandbox, as far as a subagent has to do with them. Nobody tells it what was uploaded, and it presents
/// nothing.
pub(super) fn subagent_directory(facts: &Facts<'_>, out: &mut SystemWriter) {
    out.framework(
        "<working_directory existed=\"true\">\n\
         You work on the same files as the agent that gave you the task.\n\
         - `/mnt/user-data/uploads`: files from the user. An office document or PDF may have a copy converted to Markdown beside it, \
         with the ending `.md`: read that.",
    );
    workspace(facts, out);
    out.framework(
        "\n- `/mnt/user-data/outputs`: what the user is to get. Put files there only if the task asks for something to deliver; the \
         agent that gave it hands them over.",
    );
    mounts(facts, out);
    out.framework("\n</working_directory>");
}

/// Where work happens.
fn workspace(facts: &Facts<'_>, out: &mut SystemWriter) {
    out.framework(
        "\n- `/mnt/user-data/workspace`: where you work, and the current directory. Prefer paths relative to it",
    );
    out.framework(if facts.has("bash") && facts.inputs.shell_available {
        ", in commands too: `python3 report.py`, `ls data/`."
    } else {
        "."
    });
}

/// Agents that work elsewhere (PR-2).
fn acp(facts: &Facts<'_>, out: &mut SystemWriter) {
    out.framework(
        "\n- `/mnt/acp-workspace/`: what agents called with `invoke_acp_agent` have made, for reading only. They work in a \
         workspace of their own and do not see `/mnt/user-data`, so keep such paths out of what you tell them. To deliver a \
         result of theirs, copy it to `/mnt/user-data/outputs`",
    );
    out.framework(if facts.has("present_files") {
        " and present the copy."
    } else {
        "."
    });
}

/// Folders of the operator (PR-3).
fn mounts(facts: &Facts<'_>, out: &mut SystemWriter) {
    if facts.inputs.mounts.is_empty() {
        return;
    }
    out.framework("\nFurther folders:");
    for mount in facts.inputs.mounts {
        out.framework("\n- `")
            .operator_verbatim(&mount.container_path);
        out.framework(if mount.read_only {
            "` (read-only)"
        } else {
            "` (read-write)"
        });
    }
}
