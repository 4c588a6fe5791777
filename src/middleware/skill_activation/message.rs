//! What is said about a skill that was named with a slash: to the model with its text, or to the user when there is none.

use serde_json::{Map, Value};

use super::shown;
use crate::middleware::message_marks::HIDDEN;
use crate::prompt::sanitize::neutralize;
use crate::protocol::message::{Fields, Kind, Message};
use crate::protocol::trust::escape_into;
use crate::skills::slash::{self, Refusal};
use crate::skills::{Category, Skill};
use crate::state::python::truthy_member;

/// What follows the target's id in the id of its activation (MW-SKA-3).
pub(super) const ID_SUFFIX: &str = "__slash_activation";
/// Marks an activation.
const ACTIVATION: &str = "slash_skill_activation";
/// Which message an activation belongs to.
const TARGET: &str = "slash_skill_activation_target_id";

/// Why a skill that the user named is not there to be followed (MW-SKA-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Not installed, switched off, or not among those of the agent.
    Refused(Refusal),
    /// The skills could not be looked up.
    Unresolved,
    /// Its file is gone, or is not what is safe to read.
    Unreadable,
}

impl Failure {
    /// What the user is told. `command` is the message that names the skill.
    pub(super) fn text(self, command: &str) -> String {
        let name = slash::parse(command).map_or("", |command| command.name);
        let name = shown(name);
        match self {
            Failure::Refused(Refusal::NotInstalled) => {
                format!("There is no skill `/{name}` here: it is not installed.")
            }
            Failure::Refused(Refusal::Disabled) => format!(
                "The skill `/{name}` is installed and switched off. Once it is switched on, `/{name}` starts it."
            ),
            Failure::Refused(Refusal::NotAvailable) => {
                format!("The skill `/{name}` is not available to this agent.")
            }
            Failure::Unresolved => {
                format!("The skill `/{name}` could not be looked up. Please try again later.")
            }
            Failure::Unreadable => format!(
                "The skill `/{name}` could not be read safely. Please check how it is installed."
            ),
        }
    }
}

/// A skill as it is given to the model.
pub(super) struct Activated<'a> {
    pub(super) skill: &'a Skill,
    /// Text of its SKILL.md.
    pub(super) text: &'a str,
    /// The digest of the text.
    pub(super) sha256: &'a str,
    /// What the user wants done with it; may be empty.
    pub(super) task: &'a str,
}

impl Activated<'_> {
    /// The facts for the record of it.
    pub(super) fn record(&self) -> Map<String, Value> {
        let facts = [
            ("skill_name", self.skill.name()),
            ("category", self.skill.category.name()),
            ("path", self.skill.location.expose()),
            ("content_hash", self.sha256),
        ];
        facts
            .into_iter()
            .map(|(name, fact)| (name.to_owned(), fact.into()))
            .collect()
    }

    /// The text for the model. Nothing of the skill's or the user's can end a part of it or pass for one: both are escaped,
    /// and the markers of user input in them are taken apart.
    fn render(&self) -> String {
        let mut out = String::with_capacity(self.text.len() + self.task.len() + 1024);
        out.push_str("<slash_skill_activation>\nThe user has started the skill `");
        push(&mut out, self.skill.name());
        out.push_str(
            "` for the message that follows. What they want done with it:\n<user_request>\n",
        );
        match self.task.trim().is_empty() {
            true => out.push_str(
                "(They did not say. If the skill does not make the next step clear, ask them what they want.)",
            ),
            false => push(&mut out, self.task),
        }
        out.push_str(
            "\n</user_request>\nFollow the skill below rather than a way of your own, as far as the rules of the system \
             allow. Other files of its folder are there to be read when a step needs them.\n<skill",
        );
        let editable = match self.skill.category {
            Category::Custom => "true",
            Category::Public | Category::Integrations | Category::Legacy => "false",
        };
        for (name, value) in [
            ("name", self.skill.name()),
            ("category", self.skill.category.name()),
            ("path", self.skill.location.expose()),
            ("sha256", self.sha256),
            ("editable", editable),
        ] {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            push_quoted(&mut out, value);
            out.push('"');
        }
        out.push_str(">\n<skill_content encoding=\"xml-escaped\">\n");
        push(&mut out, self.text);
        if !self.text.ends_with('\n') {
            out.push('\n');
        }
        out.push_str("</skill_content>\n</skill>\n</slash_skill_activation>");
        out
    }
}

/// Adds a text, escaped and without markers of user input.
fn push(out: &mut String, text: &str) {
    let mut escaped = String::with_capacity(text.len());
    escape_into(&mut escaped, text);
    out.push_str(&neutralize(&escaped));
}

/// Adds a text that stands between double quotes.
fn push_quoted(out: &mut String, text: &str) {
    let mut escaped = String::with_capacity(text.len());
    escape_into(&mut escaped, text);
    for (place, part) in neutralize(&escaped).split('"').enumerate() {
        if place > 0 {
            out.push_str("&quot;");
        }
        out.push_str(part);
    }
}

/// The hidden message that stands before the user's (MW-SKA-3). `target` is the id of the user's message, or what stands for it.
pub(super) fn activation_message(target: &str, activated: &Activated<'_>) -> Message {
    let mut fields = Fields::new(Kind::Human, activated.render());
    fields.id = Some(format!("{target}{ID_SUFFIX}"));
    fields.additional_kwargs = Map::from_iter([
        (HIDDEN.to_owned(), true.into()),
        (ACTIVATION.to_owned(), true.into()),
        (TARGET.to_owned(), target.into()),
    ]);
    Message::new(fields)
}

/// Whether a message activates a skill for the message `target`. Right before it any activation is the target's
/// (`is_next_to`).
pub(super) fn is_activation_of(message: &Message, target: &str, is_next_to: bool) -> bool {
    if message.kind() != Kind::Human || !message.json().contains(ACTIVATION) {
        return false;
    }
    let kwargs = &message.fields().additional_kwargs;
    if truthy_member(kwargs, ACTIVATION).is_none() {
        return false;
    }
    let id = message.id().unwrap_or_default();
    is_next_to
        || kwargs.get(TARGET).and_then(Value::as_str) == Some(target)
        || id.strip_suffix(ID_SUFFIX) == Some(target)
}
