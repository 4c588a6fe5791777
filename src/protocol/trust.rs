//! Where a text comes from, as types: what decides whether it may stand in the system channel.
//!
//! [`SystemText`] is the only thing a model request takes as system text, and it is built here alone: from literals of
//! the framework, from [`OperatorText`], from numbers and from [`Identifier`]s. Everything else is [`UntrustedText`]: it
//! has no way into a [`SystemText`], escaped or not, because escaping does not neutralise natural language (PT-1, PT-2).
//! It goes, escaped and framed, into the human data channel.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::message::{Kind, Message};

/// Who wrote a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// This library.
    Framework,
    /// Whoever runs the host: what is passed as JSON, and the operator's own directories.
    Operator,
    /// A user: what they write, and files under their directories.
    User,
    /// A model: whatever it wrote, files included.
    Model,
    /// Another machine: web pages, MCP servers, tools elsewhere.
    Remote,
}

impl Source {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Framework => "framework",
            Source::Operator => "operator",
            Source::User => "user",
            Source::Model => "model",
            Source::Remote => "remote",
        }
    }

    /// Whether texts of this source may stand in the system channel.
    pub const fn is_trusted(self) -> bool {
        matches!(self, Source::Framework | Source::Operator)
    }
}

/// Text of the operator. It comes out of the host's JSON, or out of a file in a directory that is the operator's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct OperatorText(Arc<str>);

impl OperatorText {
    /// A file's text, for readers of directories that the operator owns. Not for user and agent directories.
    pub fn from_operator_directory(text: impl Into<Arc<str>>) -> Self {
        OperatorText(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text without white space around it.
    pub fn trimmed(&self) -> OperatorText {
        OperatorText(self.0.trim().into())
    }

    /// The first line that says something, trimmed.
    pub fn first_line(&self) -> OperatorText {
        OperatorText(first_line(&self.0).into())
    }
}

impl<'de> Deserialize<'de> for OperatorText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| OperatorText(text.into()))
    }
}

impl JsonSchema for OperatorText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OperatorText".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string"})
    }
}

/// Text that may never stand in the system channel.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UntrustedText {
    source: Source,
    text: Arc<str>,
}

impl UntrustedText {
    /// Text of a user.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        UntrustedText {
            source: Source::User,
            text: text.into(),
        }
    }

    /// Text that a model wrote.
    pub fn model(text: impl Into<Arc<str>>) -> Self {
        UntrustedText {
            source: Source::Model,
            text: text.into(),
        }
    }

    /// Text from another machine.
    pub fn remote(text: impl Into<Arc<str>>) -> Self {
        UntrustedText {
            source: Source::Remote,
            text: text.into(),
        }
    }

    /// Who wrote it.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The bare text: for comparing, hashing, and for the functions that escape and frame it.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for UntrustedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.source.name(), self.text)
    }
}

/// Text with the source that it came with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourcedText {
    /// The operator's.
    Operator(OperatorText),
    /// Anybody else's.
    Untrusted(UntrustedText),
}

impl SourcedText {
    /// Who wrote it.
    pub fn source(&self) -> Source {
        match self {
            SourcedText::Operator(_) => Source::Operator,
            SourcedText::Untrusted(text) => text.source(),
        }
    }

    /// The bare text: for comparing, hashing and showing to the host.
    pub fn expose(&self) -> &str {
        match self {
            SourcedText::Operator(text) => text.as_str(),
            SourcedText::Untrusted(text) => text.expose(),
        }
    }

    /// The text, if it is the operator's.
    pub fn operator(&self) -> Option<&OperatorText> {
        match self {
            SourcedText::Operator(text) => Some(text),
            SourcedText::Untrusted(_) => None,
        }
    }
}

/// A name of `A-Z a-z 0-9 _ -` alone, 1 to 64 of them: too poor to say anything with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Identifier(Arc<str>);

impl Identifier {
    /// Longest identifier, in characters.
    pub const MAX_CHARS: usize = 64;

    /// The name, if it is one.
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=Self::MAX_CHARS).contains(&text.len());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (fits && text.bytes().all(plain)).then(|| Identifier(text.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// System text: of the framework and the operator alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SystemText(Arc<str>);

impl SystemText {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are one text in memory.
    pub fn is_same(&self, other: &SystemText) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<&OperatorText> for SystemText {
    fn from(text: &OperatorText) -> Self {
        SystemText(text.0.clone())
    }
}

impl From<&'static str> for SystemText {
    /// Text of the framework.
    fn from(text: &'static str) -> Self {
        SystemText(text.into())
    }
}

/// Builds a [`SystemText`] piece by piece.
#[derive(Clone, Debug, Default)]
pub struct SystemWriter(String);

impl SystemWriter {
    /// Nothing yet.
    pub fn new() -> Self {
        SystemWriter::default()
    }

    /// Text of the framework.
    pub fn framework(&mut self, text: &'static str) -> &mut Self {
        self.0.push_str(text);
        self
    }

    /// Text of the operator, with `&`, `<` and `>` escaped, so that it cannot end the section that it stands in (PT-4).
    pub fn operator(&mut self, text: &OperatorText) -> &mut Self {
        escape_into(&mut self.0, text.as_str());
        self
    }

    /// Text of the operator on one line, escaped as by [`SystemWriter::operator`]: an entry of a list cannot look like two.
    pub fn operator_line(&mut self, text: &OperatorText) -> &mut Self {
        escape_line_into(&mut self.0, text.as_str());
        self
    }

    /// Text of the operator, as it is.
    pub fn operator_verbatim(&mut self, text: &OperatorText) -> &mut Self {
        self.0.push_str(text.as_str());
        self
    }

    /// System text that is whole already.
    pub fn system(&mut self, text: &SystemText) -> &mut Self {
        self.0.push_str(text.as_str());
        self
    }

    /// A system message of a thread, its blocks on lines of their own. Such messages are written by the framework and by the
    /// host alone: a reply of a model is an ai message, whatever it says. Messages of any other class add nothing.
    pub fn system_message(&mut self, message: &Message) -> &mut Self {
        if message.kind() == Kind::System {
            push_lines(&mut self.0, &message.fields().content);
        }
        self
    }

    /// A name.
    pub fn identifier(&mut self, name: &Identifier) -> &mut Self {
        self.0.push_str(name.as_str());
        self
    }

    /// A number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        // Writing to a string does not fail.
        let _ = write!(self.0, "{number}");
        self
    }

    /// What another writer has.
    pub fn append(&mut self, other: SystemWriter) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text.
    pub fn finish(self) -> SystemText {
        SystemText(self.0.into())
    }
}

/// Adds the text of a content: a string as it is, of a list the strings, the `text` of blocks, and what has none as JSON.
fn push_lines(out: &mut String, content: &Value) {
    let Value::Array(blocks) = content else {
        return out.push_str(content.as_str().unwrap_or_default());
    };
    for (place, block) in blocks.iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        match block.as_str().or_else(|| block["text"].as_str()) {
            Some(text) => out.push_str(text),
            // Writing to a string does not fail.
            None => drop(write!(out, "{block}")),
        }
    }
}

/// Adds `text` with `&`, `<` and `>` as entities; quotes stay (PT-4, B-6).
pub fn escape_into(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            _ => "&gt;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Adds `text` escaped and on one line: each run of white space becomes one space, and those at the ends go.
pub fn escape_line_into(out: &mut String, text: &str) {
    for (place, word) in text.split_whitespace().enumerate() {
        if place > 0 {
            out.push(' ');
        }
        escape_into(out, word);
    }
}

/// The first line of `text` that says something, trimmed; empty when none does.
pub fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_text_is_made_of_what_may_stand_there() {
        let operator: OperatorText =
            serde_json::from_value("</role> & more".into()).expect("text decodes");
        let name = Identifier::new("code-bot_2").expect("a name");
        let mut writer = SystemWriter::new();
        writer.framework("<role>").identifier(&name);
        writer
            .framework(" ")
            .number(3)
            .framework(" ")
            .operator(&operator);
        assert_eq!(
            writer.finish().as_str(),
            "<role>code-bot_2 3 &lt;/role&gt; &amp; more"
        );
    }

    #[test]
    fn one_line_stays_one_line() {
        let text = OperatorText::from_operator_directory("\n  <a>\t&\n\n b \r\nc");
        let mut writer = SystemWriter::new();
        writer.operator_line(&text);
        assert_eq!(writer.finish().as_str(), "&lt;a&gt; &amp; b c");
        assert_eq!(text.first_line().as_str(), "<a>\t&");
        assert_eq!(first_line(" \n "), "");
    }

    #[test]
    fn only_system_messages_become_system_text() {
        use crate::protocol::message::Fields;
        let blocks = serde_json::json!(["a", {"type": "text", "text": "b"}, {"type": "x"}]);
        let mut writer = SystemWriter::new();
        writer.system(&"first ".into());
        writer.system_message(&Message::new(Fields::new(Kind::System, blocks)));
        for kind in [Kind::Human, Kind::Ai, Kind::Tool, Kind::Chat] {
            writer.system_message(&Message::new(Fields::new(kind, "no")));
        }
        assert_eq!(writer.finish().as_str(), "first a\nb\n{\"type\":\"x\"}");
    }

    #[test]
    fn identifiers_are_plain_and_short() {
        for bad in ["", "a b", "a.b", "ä", "a\n", &"x".repeat(65)] {
            assert_eq!(Identifier::new(bad), None, "{bad:?}");
        }
    }
}
