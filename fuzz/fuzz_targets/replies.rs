//! Replies that come as one document, in both formats; and what they hold goes back to the endpoint as JSON.
#![no_main]

use fawn::adapters::model::{anthropic, openai};
use fawn::ports::model::ModelReply;
use fawn::protocol::message::{Fields, Kind, Message};
use libfuzzer_sys::fuzz_target;

/// The reply as a message, which must be readable JSON.
fn keep(reply: ModelReply) {
    let mut fields = Fields::new(Kind::Ai, reply.content);
    fields.tool_calls = reply.tool_calls;
    fields.invalid_tool_calls = reply.invalid_tool_calls;
    fields.additional_kwargs = reply.additional_kwargs;
    fields.response_metadata = reply.response_metadata;
    fields.usage_metadata = reply.usage.map(|usage| usage.to_value()).into();
    let message = Message::new(fields);
    let read: serde_json::Value =
        serde_json::from_str(message.json()).expect("a message is JSON text");
    assert!(read.is_object());
}

fuzz_target!(|text: &str| {
    for read in [openai::read_whole, anthropic::read_whole] {
        let mut deltas = Vec::new();
        if let Ok(reply) = read(text, &mut deltas) {
            keep(reply);
        }
    }
});
