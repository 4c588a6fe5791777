//! What an agent is told: the system prompt of framework and operator text, and the data channel for everything else.
//!
//! [`render`] makes both at once, [`render_subagent`] does for subagents. The system prompt is a list of sections, each of which stands there only when it applies;
//! the type of a text decides its channel (`protocol::trust`), so that a section whose entries come from several hands is
//! split: what the operator wrote stands in the section, the rest in the part of the data message that the section names.
//!
//! Nothing here depends on the day, the thread or a memory: one configuration gives one prompt (PT-3).
//!
//! Source: DeerFlow `apply_prompt_template`, section 6 of its behaviour (PT, PR).

pub mod sanitize;

mod boundary;
mod conduct;
mod data;
mod facts;
mod identity;
mod inputs;
mod memory;
mod skills;
mod subagent;
mod subagents;
mod tools;
mod workspace;

use std::sync::Arc;

pub use inputs::{
    Delegation, Interaction, Mount, PromptInputs, PromptSkills, RoutingHint, SkillListing,
    SubagentEntry, routing_hints,
};

pub use subagent::{SUBAGENT_PROMPT_TEMPLATE, SubagentPromptInputs, SubagentRole, render_subagent};

use crate::protocol::trust::{SystemText, SystemWriter};
use facts::Facts;

/// A part of the system prompt. It writes nothing when it does not apply.
type Section = fn(&Facts<'_>, &mut SystemWriter);

/// The system prompt, in order: who the agent is, whom to trust, how to think, what there is to work with, how to answer.
/// The rules that are broken most are said again at the end, where models weigh them most.
const SECTIONS: &[(&str, Section)] = &[
    ("role", identity::role),
    ("input_boundary", boundary::input_boundary),
    ("data_channel", boundary::data_channel),
    ("confidentiality", boundary::confidentiality),
    ("soul", identity::soul),
    ("self_update", identity::self_update),
    ("thinking_style", conduct::thinking_style),
    ("clarification_system", conduct::clarification_system),
    ("skill_system", skills::skill_system),
    ("memory_tool_system", memory::memory_tool_system),
    ("available-deferred-tools", tools::deferred_tools),
    ("mcp_routing_hints", tools::routing_hints),
    ("subagent_system", subagents::subagent_system),
    ("working_directory", workspace::working_directory),
    ("response_style", conduct::response_style),
    ("citations", conduct::citations),
    ("critical_reminders", conduct::critical_reminders),
];

/// What an agent is told, rendered once for each assembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedPrompt {
    /// The system prompt.
    pub system: SystemText,
    /// The data message: escaped, framed, and to be given as a hidden human message. `None` when there is nothing to say.
    pub data: Option<Arc<str>>,
}

/// Renders the prompt of an agent. Equal inputs give equal texts.
pub fn render(inputs: &PromptInputs<'_>) -> RenderedPrompt {
    #[cfg(test)]
    RENDERED.with(|count| count.set(count.get() + 1));
    let mut facts = Facts::of(inputs);
    let data = data::render(&facts);
    facts.has_data = data.is_some();
    RenderedPrompt {
        system: joined(SECTIONS.iter().map(|(_, section)| {
            let facts = &facts;
            move |out: &mut SystemWriter| section(facts, out)
        })),
        data,
    }
}

/// Texts behind each other, a blank line between them; those that say nothing are left out.
fn joined(sections: impl Iterator<Item = impl Fn(&mut SystemWriter)>) -> SystemText {
    let mut system = SystemWriter::new();
    for section in sections {
        let mut text = SystemWriter::new();
        section(&mut text);
        if text.is_empty() {
            continue;
        }
        if !system.is_empty() {
            system.framework("\n\n");
        }
        system.append(text);
    }
    system.finish()
}

#[cfg(test)]
thread_local! {
    /// How often a prompt was rendered on this OS thread (EP-11).
    pub(crate) static RENDERED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}
