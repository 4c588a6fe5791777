//! Skills: folders with a SKILL.md that an agent may read and follow. Pure: the folders are read by an adapter.

pub mod catalog;
pub mod describe;
pub mod library;
pub mod parse;
pub mod policy;
pub mod scope;
pub mod slash;
pub mod validate;

use std::sync::Arc;

use crate::protocol::trust::{OperatorText, Source, SourcedText, UntrustedText};

/// Which of the skill folders a skill stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// The operator's own, under `skills.path`.
    Public,
    /// A user's, under the user's directory.
    Custom,
    /// Came with an integration that a user set up.
    Integrations,
    /// Custom skills of all users together, in the place where they stood before users had directories.
    Legacy,
}

impl Category {
    /// Name in paths and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Category::Public => "public",
            Category::Custom => "custom",
            Category::Integrations => "integrations",
            Category::Legacy => "legacy",
        }
    }

    /// Who writes the files of this category: only public skills are the operator's.
    pub const fn source(self) -> Source {
        match self {
            Category::Public => Source::Operator,
            Category::Custom | Category::Integrations | Category::Legacy => Source::User,
        }
    }

    /// Who may change a skill of this category, in the words that stand beside its description (PR-7).
    pub const fn mutability(self) -> &'static str {
        match self {
            Category::Custom => "[custom, editable]",
            Category::Legacy => "[legacy, read-only]",
            Category::Public | Category::Integrations => "[built-in]",
        }
    }

    /// A text that stands in a file of this category, or names one.
    pub fn text(self, text: impl Into<Arc<str>>) -> SourcedText {
        match self.source() {
            Source::Operator => SourcedText::Operator(OperatorText::from_operator_directory(text)),
            _ => SourcedText::Untrusted(UntrustedText::user(text)),
        }
    }
}

/// Which tools a skill lets the agent use while it is active (SKL-5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AllowedTools {
    /// The skill says nothing: all.
    #[default]
    Undeclared,
    /// Only these, sorted; an empty list means none.
    Only(Vec<String>),
}

/// A secret that a skill wants (SKL-6).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequiredSecret {
    /// Its name in `context.secrets`.
    pub name: String,
    /// Whether the skill works without it.
    pub optional: bool,
}

/// One skill, as its SKILL.md says.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// Name, not blank.
    pub name: SourcedText,
    /// When to use it, not blank.
    pub description: SourcedText,
    /// Where it stands.
    pub category: Category,
    /// Which tools it allows.
    pub allowed_tools: AllowedTools,
    /// Secrets it wants.
    pub required_secrets: Vec<RequiredSecret>,
    /// Whether it may use them without being asked each time. Default true.
    pub secrets_autonomous: bool,
    /// Path of its SKILL.md as the agent sees it, such as `/mnt/skills/public/demo/SKILL.md`.
    pub location: SourcedText,
    /// Text of its SKILL.md, front matter included.
    pub content: Arc<str>,
    /// Whether it is switched on.
    pub enabled: bool,
}

impl Skill {
    /// Its name, bare.
    pub fn name(&self) -> &str {
        self.name.expose()
    }
}
