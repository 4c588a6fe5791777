//! How many tokens messages take, by their length: no tokenizer, and good enough to decide when a thread is long.
//!
//! Source: LangChain `count_tokens_approximately`: content, calls, role and name by characters, and 3 tokens a message.

use serde_json::Value;

use crate::protocol::message::{Kind, Message};
use crate::state::python::repr;
use crate::state::transcript::Transcript;

/// Tokens that a message takes besides what is in it.
const PER_MESSAGE: u64 = 3;
/// Characters of the role of a human message, `user`.
const USER_ROLE: u64 = 4;

/// Estimates by a number of characters a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenEstimate {
    /// Tenths of a character.
    tenths_per_token: u32,
}

impl TokenEstimate {
    /// The estimate for a provider: 3.3 characters a token for Anthropic, 4 for all others.
    pub(super) fn for_provider(provider: Option<&str>) -> Self {
        let tenths_per_token = match provider {
            Some("anthropic") => 33,
            _ => 40,
        };
        TokenEstimate { tenths_per_token }
    }

    /// The tokens of one message.
    pub(super) fn of(self, message: &Message) -> u64 {
        let fields = message.fields();
        let mut chars = match &fields.content {
            Value::String(text) => count(text),
            blocks => count(&repr(blocks)),
        };
        let role = match fields.kind {
            Kind::Human => "user",
            Kind::Ai => "assistant",
            Kind::Chat => &fields.role,
            Kind::System | Kind::Tool | Kind::Function | Kind::Remove => fields.kind.name(),
        };
        // Lists of blocks have the calls among them.
        if !fields.tool_calls.is_empty() && fields.content.is_string() {
            let calls = serde_json::to_value(&fields.tool_calls).unwrap_or_default();
            chars += count(&repr(&calls));
        }
        chars += count(role) + count(&fields.tool_call_id);
        chars += fields.name.as_deref().map_or(0, count);
        self.of_chars(chars)
    }

    /// The tokens of all messages of a transcript; those that were counted before are not counted again.
    pub(super) fn of_all(self, messages: &Transcript) -> u64 {
        messages.weight(self.tenths_per_token, |message| self.of(message))
    }

    /// The tokens of a text as a person's message of this name.
    pub(super) fn of_text(self, text: &str, name: &str) -> u64 {
        self.of_chars(count(text) + count(name) + USER_ROLE)
    }

    /// How many characters of text a person's message of so many tokens holds.
    pub(super) fn text_chars(self, tokens: u64) -> u64 {
        let chars = tokens.saturating_sub(PER_MESSAGE) * u64::from(self.tenths_per_token) / 10;
        chars.saturating_sub(USER_ROLE)
    }

    fn of_chars(self, chars: u64) -> u64 {
        (chars * 10).div_ceil(self.tenths_per_token.into()) + PER_MESSAGE
    }
}

fn count(text: &str) -> u64 {
    text.chars().count() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::message::{Fields, ToolCall};

    #[test]
    fn messages_are_counted_by_their_characters() {
        let four = TokenEstimate::for_provider(Some("openai"));
        // 5 + "user" = 9 characters, 3 tokens, and 3 for the message.
        let human = Message::new(Fields::new(Kind::Human, "hällo"));
        assert_eq!(four.of(&human), 6);
        assert_eq!(TokenEstimate::for_provider(Some("anthropic")).of(&human), 6);
        let mut ai = Fields::new(Kind::Ai, "");
        ai.tool_calls = vec![ToolCall {
            name: "f".into(),
            args: Default::default(),
            id: Some("c".into()),
        }];
        // [{'name': 'f', 'args': {}, 'id': 'c', 'type': 'tool_call'}] and "assistant".
        assert_eq!(four.of(&Message::new(ai)), (59 + 9_u64).div_ceil(4) + 3);
        let mut tool = Fields::new(Kind::Tool, json!(["a"]));
        tool.tool_call_id = "c1".into();
        tool.name = Some("f".into());
        // ['a'], "tool", "c1" and "f".
        assert_eq!(four.of(&Message::new(tool)), 3 + 3);
        assert_eq!(four.of_text("x", "summary"), 3 + 3);
    }

    #[test]
    fn text_that_fits_a_budget_is_within_it_and_one_more_is_not() {
        for provider in [None, Some("anthropic")] {
            let estimate = TokenEstimate::for_provider(provider);
            for tokens in 6..200 {
                let chars = estimate.text_chars(tokens) as usize;
                assert!(estimate.of_text(&"x".repeat(chars), "") <= tokens);
                assert!(estimate.of_text(&"x".repeat(chars + 1), "") > tokens);
            }
        }
    }
}
