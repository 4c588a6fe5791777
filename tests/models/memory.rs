//! What a reader of streams may take: at most four times the input and 1 MiB, whatever comes.

use fawn::adapters::model::reply::{ReplyStream, WireFormat};
use fawn::adapters::model::{anthropic, openai};
use serde_json::json;

use crate::support::counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// The most that reading took, the reply included; deltas are dropped as they come.
fn most<F: WireFormat>(input: &[u8], piece: usize) -> usize {
    let before = counting::start();
    let mut stream = ReplyStream::<F>::new();
    let mut fault = false;
    for piece in input.chunks(piece) {
        fault = stream.feed(piece).is_err();
        stream.take_deltas().for_each(drop);
        if fault {
            break;
        }
    }
    if fault {
        drop(stream.partial());
    } else {
        drop(stream.end(&mut Vec::new()));
    }
    (counting::most() - before) as usize
}

fn hold<F: WireFormat>(name: &str, input: &str) {
    for piece in [400, 16 << 10, 1 << 20] {
        let most = most::<F>(input.as_bytes(), piece);
        let allowed = 4 * input.len() + (1 << 20);
        assert!(
            most <= allowed,
            "{name} by {piece}: {most} bytes for {} of input, {:.2} times it",
            input.len(),
            most as f64 / input.len() as f64
        );
    }
}

const MIB: usize = 1 << 20;

#[test]
fn chat_completions_take_no_more_than_four_times_their_bytes() {
    let chunk =
        |delta: serde_json::Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}));
    let stop = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";
    let dense = format!("[{}1]", "1,".repeat(2 * MIB));
    let call = |args: &str| {
        let args = serde_json::to_string(args).unwrap();
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"a\",\"function\":{{\"name\":\"f\",\"arguments\":{args}}}}}]}}}}]}}\n\n"
        )
    };
    for (name, input) in [
        ("small pieces", chunk(json!({"content": "word "})).repeat(100_000) + stop),
        ("one large text", chunk(json!({"content": "x".repeat(8 * MIB)})) + stop),
        ("one large text with escapes", chunk(json!({"content": "x\n".repeat(3 * MIB)})) + stop),
        ("reasoning", chunk(json!({"reasoning_content": "thought"})).repeat(50_000) + stop),
        ("arguments", call(&format!("{{\"text\":\"{}\"}}", "x".repeat(4 * MIB))) + stop),
        ("many calls", (0..2000).map(|n| chunk(json!({"tool_calls": [{"index": n, "id": "i", "function": {"name": "f", "arguments": "{}"}}]}))).collect()),
        ("dense unknown member", format!("data: {{\"choices\":[],\"odd\":{dense}}}\n\n{stop}")),
        ("dense content", format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{dense}}}}}]}}\n\n{stop}")),
        ("dense usage", format!("data: {{\"choices\":[],\"usage\":{dense}}}\n\n{stop}")),
        ("dense error", format!("data: {{\"error\":{dense}}}\n\n")),
        ("dense member of the message", format!("data: {{\"choices\":[{{\"delta\":{{\"odd\":{dense}}}}}]}}\n\n{stop}")),
        ("many dense members", (0..100).map(|n| format!("data: {{\"choices\":[],\"odd{n}\":[{}1]}}\n\n", "1,".repeat(10_000))).collect::<String>() + stop),
        ("many dense lists of one member", format!("data: {{\"choices\":[{{\"delta\":{{\"odd\":[{}1]}}}}]}}\n\n", "1,".repeat(3000)).repeat(300) + stop),
        ("many choices", format!("data: {{\"choices\":[{}{{}}]}}\n\n{stop}", "{},".repeat(MIB))),
        ("many empty pieces of calls", format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{}{{}}]}}}}]}}\n\n{stop}", "{},".repeat(MIB))),
        ("endless line", "data: ".to_owned() + &"x".repeat(20 * MIB)),
        ("endless event", "data: x\n".repeat(3 * MIB)),
        ("empty data lines", "data\n".repeat(3 * MIB)),
        ("comments", ": still here\n\n".repeat(MIB)),
        ("halves of characters", "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n".repeat(50_000) + stop),
    ] {
        hold::<openai::ChatCompletion>(name, &input);
    }
}

#[test]
fn messages_take_no_more_than_four_times_their_bytes() {
    let delta = |delta: serde_json::Value| {
        let event = json!({"type": "content_block_delta", "index": 0, "delta": delta});
        format!("data: {event}\n\n")
    };
    let begin = |block: &str| {
        format!(
            "data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{block}}}\n\n"
        )
    };
    let text = begin(r#"{"type":"text","text":""}"#);
    let stop = "data: {\"type\":\"message_stop\"}\n\n";
    let dense = format!("[{}1]", "1,".repeat(2 * MIB));
    for (name, input) in [
        ("small pieces", text.clone() + &delta(json!({"type": "text_delta", "text": "w "})).repeat(80_000) + stop),
        ("one large text", text.clone() + &delta(json!({"type": "text_delta", "text": "x".repeat(8 * MIB)})) + stop),
        ("one large text with escapes", text.clone() + &delta(json!({"type": "text_delta", "text": "x\n".repeat(3 * MIB)})) + stop),
        ("arguments", begin(r#"{"type":"tool_use","id":"a","name":"f"}"#)
            + &delta(json!({"type": "input_json_delta", "partial_json": format!("{{\"text\":\"{}\"}}", "x".repeat(4 * MIB))})) + stop),
        ("many blocks", text.repeat(10_000) + stop),
        ("dense block", begin(&format!("{{\"type\":\"odd\",\"x\":{dense}}}")) + stop),
        ("dense text", begin(&format!("{{\"type\":\"text\",\"text\":{dense}}}")) + stop),
        ("dense citation", text.clone() + &format!("data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"citation\":{dense}}}}}\n\n{stop}")),
        ("dense member", format!("data: {{\"type\":\"message_start\",\"message\":{{\"odd\":{dense}}}}}\n\n{stop}")),
        ("dense usage", format!("data: {{\"type\":\"message_delta\",\"usage\":{dense}}}\n\n{stop}")),
        ("many contents", format!("data: {{\"type\":\"message_start\",\"message\":{{\"content\":[{}{{}}]}}}}\n\n{stop}", "{},".repeat(MIB))),
        ("many citations", text.clone() + &format!("data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"citation\":[{}1]}}}}\n\n", "1,".repeat(3000)).repeat(300) + stop),
    ] {
        hold::<anthropic::Messages>(name, &input);
    }
}
