//! The chain of a subagent: the ordered list of what is in it.
//!
//! What keeps a lead agent's runs in bounds keeps those of its subagents in bounds, too (U8): the places are the lead agent's,
//! made by the same builders, in an order of their own (MC-6). What belongs to a conversation with a user is not there:
//! uploads, clarification, title, plan, memory, the recovery of empty replies. Neither is what bounds delegation: a subagent
//! does not delegate (U9).
//!
//! All executions of one subagent of an assembly share one chain and run at the same time, with the ids of the run that
//! delegates: what a middleware remembers goes by [`run_key`](super::remembered::run_key) and its parts. Shared on purpose, by
//! all of them and with the agent that delegates, are the sandbox of the run and the turns at files; by all executions, the
//! circuit breaker of the model.

use std::sync::Arc;

use super::dynamic_context::DynamicContextConfig;
use super::subagent_date::SubagentDate;
use super::{CHAIN, ChainInputs, Lead, Middleware, guardrail_provider, there};
use crate::protocol::error::Error;
use crate::protocol::request_secrets::RequestSecrets;

/// One place in the chain of a subagent.
pub struct SubagentPlace {
    /// Name of the middleware that stands there.
    pub name: &'static str,
    /// Makes it; `None` when its feature is off there.
    make: Lead,
}

/// The chain of a subagent, outermost first, and why each stands where it stands (MC-6, SUB-26).
pub const SUBAGENT_CHAIN: &[SubagentPlace] = &[
    // Outermost: the task was written by a model, so everything inside sees it as data.
    as_lead("input_sanitization"),
    // As in a lead agent: a cut must not make a tag.
    as_lead("tool_output_budget"),
    // Outside of whatever rewrites results.
    as_lead("tool_result_sanitization"),
    // Before whatever reads where the files are; they are those of the thread that delegates.
    as_lead("thread_data"),
    // Outside of whatever looks into a sandbox for a call. It uses that of the run that delegates, and never gives it back.
    as_lead("sandbox"),
    // Repairs the transcript that all others leave behind.
    as_lead("dangling_tool_call"),
    // Outside of all that has words for one call only.
    as_lead("llm_error_handling"),
    // Outside of the handling of errors. A subagent's calls are authorized like its agent's.
    as_lead("guardrail"),
    // What the authorization denies, nobody else is asked about.
    as_lead(guardrail_provider::NAME),
    // After those who know the caller.
    as_lead("sandbox_audit"),
    // Inside of whoever refuses a call: what does not run holds up nobody, the agent and other subagents included.
    as_lead("read_before_write"),
    // Outside of the classes that it reads (MC-4).
    as_lead("tool_progress"),
    // Classifies what the tool itself did.
    as_lead("tool_error_handling"),
    // Inside of what frames the task, right before the policy that goes by the skill it activates (MC-4).
    as_lead("skill_activation"),
    // Right inside of the activation, outside of what finds and promotes tools.
    as_lead("skill_tool_policy"),
    // What it adds is of one request.
    as_lead("view_image"),
    // Promotes before the filter hides (MC-4).
    as_lead("mcp_routing"),
    // Inside of everything that could add tools to a request.
    as_lead("deferred_tool_filter"),
    // From here on inwards: what a reply may do. After a reply the innermost speaks first, so that each sees what the stricter
    // one left.
    as_lead("loop_detection"),
    // Counts by the subagent's own budget.
    as_lead("token_budget"),
    // First of the guards to see a reply: nothing of one that was cut for safety counts for the others.
    as_lead("safety_finish_reason"),
    // Notes what has to outlive a summary before one takes it away. Nothing of it is about replies: there are no delegations.
    as_lead("durable_context"),
    // Right after those notes. It tells no memory of what leaves.
    as_lead("summarization"),
    // Behind all that looks at the task as the newest message.
    SubagentPlace {
        name: "subagent_date",
        make: |_| there(SubagentDate::new(&DynamicContextConfig::default())),
    },
    // Innermost: it makes one system text of what the others, the date among them, say (P9).
    as_lead("system_message_coalescing"),
];

/// The place of a middleware that is made as a lead agent's is. A name that [`CHAIN`] does not have is an error of the
/// compilation.
const fn as_lead(name: &'static str) -> SubagentPlace {
    let mut place = 0;
    while place < CHAIN.len() {
        if is_same(CHAIN[place].name, name) {
            return SubagentPlace {
                name,
                make: CHAIN[place].lead,
            };
        }
        place += 1;
    }
    panic!("CHAIN has no middleware of this name")
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut place = 0;
    while place < a.len() && place < b.len() && a[place] == b[place] {
        place += 1;
    }
    place == a.len() && place == b.len()
}

/// Composes the chain of a subagent.
///
/// `inputs` are those of the subagent itself (its tools, its model's vision, its skills, its token budget), with the sandboxes
/// and the turns at files of the agent that delegates. What a subagent has no place for is not looked at: plan, memory,
/// limits of delegation, the model of titles. Secrets are left out, since a subagent inherits none (SUB-19).
///
/// # Errors
/// Those of the sections that a middleware reads, below their names.
pub fn compose_subagent(mut inputs: ChainInputs<'_>) -> Result<Vec<Arc<dyn Middleware>>, Error> {
    inputs.secrets = RequestSecrets::default();
    // Whatever a place may come to do with a memory, nothing of a subagent goes into one.
    inputs.memory = None;
    inputs.memory_queue = None;
    let places = SUBAGENT_CHAIN.iter();
    places
        .filter_map(|place| (place.make)(&mut inputs).transpose())
        .collect()
}

#[cfg(test)]
mod tests;
