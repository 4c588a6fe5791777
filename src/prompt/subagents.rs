//! The section on delegation: whether it pays, how much of it there may be, and to whom.
//!
//! Two texts, by the limit for one response. With one subagent at a time nothing can be gained by doing things at once, so
//! nothing in that text suggests it (PR-15); with several, what may and may not run at once has to be said (PR-16).

use crate::protocol::trust::SystemWriter;

use super::facts::{DelegationFacts, Facts};
use super::inputs::SubagentEntry;

/// Delegation to subagents.
pub(super) fn subagent_system(facts: &Facts<'_>, out: &mut SystemWriter) {
    let Some(delegation) = &facts.delegation else {
        return;
    };
    out.framework(
        "<subagent_system>\n\
         The `task` tool hands a piece of work to a subagent. Delegating is optional, and doing the work yourself is the rule: \
         that something is long or complex is no reason to give it away.\n",
    );
    out.framework(match delegation.is_single() {
        true => BENEFITS_OF_ONE,
        false => BENEFITS_OF_SEVERAL,
    });
    out.framework(COSTS);
    if facts.can_clarify() {
        out.framework(
            "\nSettle open questions with the user before you delegate: a subagent cannot ask.\n",
        );
    }
    if !delegation.is_single() {
        out.framework(VETOES);
    }
    limits(delegation, out);
    after(delegation, out);
    if delegation.batches {
        out.framework(BATCHES);
    }
    list(facts, delegation, out);
    out.framework(
        "\nThe `task` tool returns when the subagent is done, with its result. There is nothing to poll for.\n\
         </subagent_system>",
    );
}

/// The line on delegation among the rules of thinking (PR-18).
pub(super) fn thinking(delegation: &DelegationFacts<'_>, out: &mut SystemWriter) {
    out.framework("\n- Before a `task` call, name the gain (");
    out.framework(short_benefits(delegation));
    out.framework(
        ") and see that it outweighs start-up, repeated context and coordination; otherwise do it yourself. At most ",
    );
    both_limits(delegation, out);
    out.framework(".");
}

/// The line on delegation among the reminders (PR-18).
pub(super) fn reminder(delegation: &DelegationFacts<'_>, out: &mut SystemWriter) {
    out.framework("\n- Delegation is the exception: only for a clear gain (");
    out.framework(short_benefits(delegation));
    out.framework("), at most ");
    both_limits(delegation, out);
    out.framework(".");
}

impl DelegationFacts<'_> {
    /// Whether there is one subagent at a time, either by the limit of a response or by that of a run.
    pub(super) fn is_single(&self) -> bool {
        self.max_per_response == 1
    }
}

const BENEFITS_OF_ONE: &str = "\n\
    What can be gained:\n\
    - a specialist: it has tools or abilities that you lack;\n\
    - isolation: bulky material is worked through elsewhere, and only the result comes back here.\n\
    Time is not gained: one subagent runs at a time and you wait for it, so parallelism cannot reduce latency here.\n";

const BENEFITS_OF_SEVERAL: &str = "\n\
    What can be gained:\n\
    - time: independent pieces run in parallel, and the whole takes as long as the longest of them;\n\
    - a specialist: it has tools or abilities that you lack;\n\
    - isolation: bulky material is worked through elsewhere, and only the result comes back here.\n";

const COSTS: &str = "\n\
    What it costs, every time: starting up, telling the context again, coordinating, conflicts over shared state, and side \
    effects that you do not see happen. Weigh both before each `task` call. If the gain is not clear, do it yourself.\n\
    Signs against it: the subagent would have to find out again what you already know; you could do it in a few tool calls; \
    explaining and checking would take more than doing.\n";

const VETOES: &str = "\n\
    Never run two subagents at the same time when\n\
    - one needs what the other will find or make, or\n\
    - both may change the same files, records or accounts, unless each owns a part that the other does not touch.\n\
    Use as few subagents as the gain needs.\n";

const BATCHES: &str = "\n\
    A `task` call is part of this response: you wait for it, and its result is yours to use at once. `batch_task` stores many \
    items that are worked through in the background, also after this run. Use it for large sets of like items whose results \
    may come later; for what the present answer needs, use `task`. Items of a batch do not count against the limits above.\n";

fn limits(delegation: &DelegationFacts<'_>, out: &mut SystemWriter) {
    out.framework("\nHard limits:\n- at most ");
    out.number(delegation.max_per_response);
    out.framework(match delegation.is_single() {
        true => " `task` call in a response: launch the single subagent, never a second one beside it;\n- at most ",
        false => " `task` calls in a response;\n- at most ",
    });
    out.number(delegation.max_per_run);
    out.framework(match delegation.max_per_run {
        1 => " `task` call in this run, from the user's request to your final answer.\n",
        _ => " `task` calls in this run, from the user's request to your final answer.\n",
    });
    out.framework(
        "Calls beyond a limit are discarded without being run. Delegations of earlier turns in this conversation do not use up \
         the allowance of this run.\n",
    );
}

/// What to do with results, and when the next call is due.
fn after(delegation: &DelegationFacts<'_>, out: &mut SystemWriter) {
    if delegation.is_single() {
        out.framework(
            "\nWhen the result is there, verify it and work it into your answer, or continue directly. Ask the question of gain and \
             cost anew before any further call. Do not chain calls to get around the limit.\n",
        );
        return;
    }
    out.framework(
        "\nNever start a batch that exceeds either limit. After every batch, read the results together and decide again whether \
         more delegation pays.\n",
    );
    if delegation.max_per_run > delegation.max_per_response {
        // One round of calls more than fits into one response, so that the example is about batches.
        let second = delegation
            .max_per_response
            .min(delegation.max_per_run - delegation.max_per_response);
        out.framework("Example: ");
        out.number(delegation.max_per_response + second);
        out.framework(" sources are to be examined independently. First response: ");
        out.number(delegation.max_per_response);
        out.framework(
            " `task` calls. Their results show what is still open: the rest may be settled, or cheap to do yourself. Only if not, \
             second response: up to ",
        );
        out.number(second);
        out.framework(" more. Then the answer.\n");
    }
}

fn list(facts: &Facts<'_>, delegation: &DelegationFacts<'_>, out: &mut SystemWriter) {
    out.framework("\nSubagents, by the name that a `task` call gives:\n");
    for entry in &delegation.operator {
        match entry {
            SubagentEntry::GeneralPurpose => {
                out.framework(
                    "- general-purpose: any work of several steps that needs both finding out and doing.\n",
                );
            }
            SubagentEntry::Bash if facts.inputs.shell_available => {
                out.framework(
                    "- bash: runs commands (builds, tests, version control, data processing) and reports what came of them.\n",
                );
            }
            SubagentEntry::Bash => {
                out.framework(
                    "- bash: not available here, because there is no shell. Do not call it.\n",
                );
            }
            SubagentEntry::Custom { name, description } => {
                if let (Some(name), Some(description)) = (name.operator(), description.operator()) {
                    out.framework("- ").operator_line(name);
                    out.framework(": ").operator_line(&description.first_line());
                    out.framework("\n");
                }
            }
        }
    }
    if !delegation.user.is_empty() {
        out.framework(
            "- those in the `user_subagents` part of the data block: their descriptions say what each is for, and nothing about when \
             delegation pays.\n",
        );
    }
}

fn short_benefits(delegation: &DelegationFacts<'_>) -> &'static str {
    match delegation.is_single() {
        true => "a specialist's abilities, isolation of bulky material",
        false => "time saved in parallel, a specialist's abilities, isolation of bulky material",
    }
}

fn both_limits(delegation: &DelegationFacts<'_>, out: &mut SystemWriter) {
    out.number(delegation.max_per_response);
    out.framework(" per response and ");
    out.number(delegation.max_per_run);
    out.framework(" per run");
}
