//! The inputs of a prompt, sorted: which text goes to which channel, and what applies at all.

use std::sync::Arc;

use crate::protocol::trust::{OperatorText, SourcedText, UntrustedText};
use crate::skills::{Category, Skill};

use super::inputs::{Interaction, PromptInputs, RoutingHint, SkillListing, SubagentEntry};

/// What the sections write from.
pub(super) struct Facts<'a> {
    pub inputs: &'a PromptInputs<'a>,
    /// Whether there is a data message.
    pub has_data: bool,
    /// Personality that the operator wrote.
    pub operator_soul: Option<&'a OperatorText>,
    /// Personality that anybody else wrote.
    pub other_soul: Option<&'a UntrustedText>,
    pub skills: SkillFacts<'a>,
    /// Names of deferred tools, sorted.
    pub operator_deferred: Vec<&'a OperatorText>,
    /// The same of MCP servers.
    pub remote_deferred: Vec<&'a UntrustedText>,
    pub hints: &'a [RoutingHint],
    /// Delegation, if there is anybody to delegate to.
    pub delegation: Option<DelegationFacts<'a>>,
}

/// Skills by channel.
#[derive(Default)]
pub(super) struct SkillFacts<'a> {
    /// Whether there is anything to say of skills (PR-8).
    pub applies: bool,
    pub index: bool,
    pub evolution: bool,
    pub operator: Vec<OperatorSkill<'a>>,
    pub operator_disabled: Vec<&'a OperatorText>,
    pub user: Vec<&'a Skill>,
    pub user_disabled: Vec<&'a Skill>,
}

impl SkillFacts<'_> {
    /// Whether any skill can be used.
    pub fn any(&self) -> bool {
        !self.operator.is_empty() || !self.user.is_empty()
    }
}

/// A skill whose texts are all the operator's.
pub(super) struct OperatorSkill<'a> {
    pub name: &'a OperatorText,
    pub description: &'a OperatorText,
    pub location: &'a OperatorText,
    pub category: Category,
}

/// Delegation to somebody.
pub(super) struct DelegationFacts<'a> {
    pub max_per_response: u64,
    pub max_per_run: u64,
    pub batches: bool,
    /// Built-in subagents and those of the operator.
    pub operator: Vec<&'a SubagentEntry>,
    /// Name and description of the others.
    pub user: Vec<(&'a SourcedText, &'a SourcedText)>,
}

impl<'a> Facts<'a> {
    pub fn of(inputs: &'a PromptInputs<'a>) -> Self {
        let soul = inputs.soul.filter(|soul| !soul.expose().trim().is_empty());
        let (operator_soul, other_soul) = match soul {
            Some(SourcedText::Operator(text)) => (Some(text), None),
            Some(SourcedText::Untrusted(text)) => (None, Some(text)),
            None => (None, None),
        };
        let (mut operator_deferred, mut remote_deferred) = (Vec::new(), Vec::new());
        for name in inputs.deferred_tools {
            match name {
                SourcedText::Operator(name) => operator_deferred.push(name),
                SourcedText::Untrusted(name) => remote_deferred.push(name),
            }
        }
        operator_deferred.sort_unstable();
        operator_deferred.dedup();
        remote_deferred.sort_unstable_by_key(|name| name.expose());
        remote_deferred.dedup();
        Facts {
            inputs,
            has_data: false,
            operator_soul,
            other_soul,
            skills: skill_facts(inputs),
            operator_deferred,
            remote_deferred,
            hints: inputs.routing_hints,
            delegation: delegation_facts(inputs),
        }
    }

    /// Whether a tool may be mentioned by its name.
    pub fn has(&self, tool: &str) -> bool {
        self.inputs.bound_tools.contains(tool)
    }

    /// Whether the agent can stop and ask by a tool.
    pub fn can_clarify(&self) -> bool {
        self.inputs.interaction == Interaction::Interactive && self.has("ask_clarification")
    }
}

fn skill_facts<'a>(inputs: &PromptInputs<'a>) -> SkillFacts<'a> {
    let is_bound = |tool: &str| inputs.bound_tools.contains(tool);
    let skills = &inputs.skills;
    let is_available = |skill: &&Skill| {
        skills
            .available
            .is_none_or(|names| names.iter().any(|name| name == skill.name()))
    };
    let mut listed: Vec<&'a Skill> = skills
        .installed
        .iter()
        .map(Arc::as_ref)
        .filter(is_available)
        .collect();
    listed.sort_by_key(|skill| skill.name());
    let mut facts = SkillFacts {
        evolution: skills.evolution && is_bound("skill_manage"),
        ..SkillFacts::default()
    };
    for skill in listed {
        let operator = operator_skill(skill);
        match (skill.enabled, operator) {
            (true, Some(skill)) => facts.operator.push(skill),
            (true, None) => facts.user.push(skill),
            (false, Some(skill)) => facts.operator_disabled.push(skill.name),
            (false, None) => facts.user_disabled.push(skill),
        }
    }
    let any = facts.any();
    let any_disabled = !facts.operator_disabled.is_empty() || !facts.user_disabled.is_empty();
    // An agent that is limited to skills of which none is there has no use for any of this (PR-8).
    facts.applies = any || skills.available.is_none() && (any_disabled || facts.evolution);
    facts.index = any && skills.listing == SkillListing::Index && is_bound("describe_skill");
    if !facts.applies {
        return SkillFacts::default();
    }
    facts
}

fn operator_skill(skill: &Skill) -> Option<OperatorSkill<'_>> {
    Some(OperatorSkill {
        name: skill.name.operator()?,
        description: skill.description.operator()?,
        location: skill.location.operator()?,
        category: skill.category,
    })
}

/// Nothing when there is nobody to delegate to: the reference then still advertises the tool in two places, which sends
/// models into calls that are refused.
fn delegation_facts<'a>(inputs: &PromptInputs<'a>) -> Option<DelegationFacts<'a>> {
    let delegation = inputs.delegation.as_ref()?;
    if delegation.subagents.is_empty() || !inputs.bound_tools.contains("task") {
        return None;
    }
    let (mut operator, mut user) = (Vec::new(), Vec::new());
    for entry in delegation.subagents {
        match entry {
            SubagentEntry::Custom { name, description }
                if name.operator().is_none() || description.operator().is_none() =>
            {
                user.push((name, description));
            }
            entry => operator.push(entry),
        }
    }
    Some(DelegationFacts {
        max_per_response: u64::from(delegation.max_per_response.max(1)),
        max_per_run: u64::from(delegation.max_per_run.max(1)),
        batches: delegation.batches && inputs.bound_tools.contains("batch_task"),
        operator,
        user,
    })
}

/// What a skill's entry says about who may change it (PR-7).
pub(super) const fn mutability(category: Category) -> &'static str {
    match category {
        Category::Custom => "[custom, editable]",
        Category::Legacy => "[legacy, read-only]",
        Category::Public | Category::Integrations => "[built-in]",
    }
}
