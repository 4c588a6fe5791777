//! What models cost without a network: reading a streamed reply, writing a request, and a call of a scripted model.

use std::hint::black_box;
use std::task::{Context, Poll, Waker};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fawn::adapters::model::openai::{ReplyStream, encode};
use fawn::adapters::model::scripted::Scripted;
use fawn::adapters::model::sse::SseParser;
use fawn::ports::model::ModelProvider;
use fawn::protocol::message::{Fields, Kind, Message};
use fawn::protocol::model::{OpenAiConfig, ReplyContent, ScriptedConfig, ScriptedReply};

#[path = "../tests/support/mod.rs"]
#[allow(
    clippy::unwrap_used,
    clippy::new_ret_no_self,
    reason = "tests share it; only requests are needed here"
)]
mod support;

use support::model::{Collect, request};

const DELTAS: usize = 1000;
/// About what one read from a socket gives.
const PIECE_BYTES: usize = 16 << 10;

/// A reply of many small deltas, in the form of the best-known endpoint.
fn stream() -> Vec<u8> {
    let mut stream = String::new();
    for word in 0..DELTAS {
        stream.push_str(&format!(
            "data: {{\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion.chunk\",\
             \"created\":1700000000,\"model\":\"model-of-the-year\",\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_0123456789\",\"choices\":[{{\"index\":0,\
             \"delta\":{{\"content\":\" word{word}\"}},\"logprobs\":null,\"finish_reason\":null}}],\
             \"usage\":null}}\n\n"
        ));
    }
    stream.push_str(
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    );
    stream.into_bytes()
}

fn read(c: &mut Criterion) {
    let stream = stream();
    let mut group = c.benchmark_group("stream");
    group.throughput(Throughput::Bytes(stream.len() as u64));
    group.bench_function("sse_parser", |b| {
        b.iter(|| {
            let mut parser = SseParser::default();
            let mut events = 0;
            for piece in stream.chunks(PIECE_BYTES) {
                parser.feed(piece);
                while let Ok(Some(event)) = parser.next_event() {
                    events += usize::from(!event.data.is_empty());
                }
            }
            assert_eq!(events, DELTAS + 2);
        });
    });
    // The yardstick of the next one: a generic parse of the same documents.
    group.bench_function("serde_json_value", |b| {
        b.iter(|| {
            for line in stream.split(|byte| *byte == b'\n') {
                if let Some(data) = line.strip_prefix(b"data: ") {
                    black_box(serde_json::from_slice::<serde_json::Value>(data).ok());
                }
            }
        });
    });
    group.throughput(Throughput::Elements(DELTAS as u64));
    for (name, size) in [("reply_by_reads", PIECE_BYTES), ("reply_by_packets", 400)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut reader = ReplyStream::new();
                let mut deltas = 0;
                for piece in stream.chunks(size) {
                    reader.feed(piece).expect("the stream is well formed");
                    deltas += reader.take_deltas().count();
                }
                assert_eq!(deltas, DELTAS);
                reader.end(&mut Vec::new()).expect("the stream is whole")
            });
        });
    }
    group.finish();
}

fn write(c: &mut Criterion) {
    let messages = (0..200).map(|turn| {
        let kind = if turn % 2 == 0 { Kind::Human } else { Kind::Ai };
        Message::new(Fields::new(kind, "Some text of usual length. ".repeat(20)))
    });
    let request = request(messages.collect());
    let config = OpenAiConfig::new("m", "http://localhost");
    let mut group = c.benchmark_group("request");
    group.throughput(Throughput::Bytes(encode(&config, &request).len() as u64));
    group.bench_function("encode_200_messages", |b| {
        b.iter_batched(|| (), |()| encode(&config, &request), BatchSize::SmallInput);
    });
    group.finish();
}

/// One call of a scripted model, which is ready when it is polled first.
fn script(c: &mut Criterion) {
    let reply = ScriptedReply {
        content: Some(ReplyContent("A short answer.".into())),
        ..ScriptedReply::default()
    };
    let model = Scripted::new(&ScriptedConfig::of(vec![reply])).expect("the script is valid");
    let request = request(vec![Message::new(Fields::new(Kind::Human, "hello"))]);
    c.bench_function("scripted/call", |b| {
        let mut context = Context::from_waker(Waker::noop());
        b.iter(|| {
            let mut sink = Collect::default();
            let mut call = std::pin::pin!(model.call(&request, &mut sink));
            matches!(call.as_mut().poll(&mut context), Poll::Ready(Ok(_)))
        });
    });
}

criterion_group!(benches, read, write, script);
criterion_main!(benches);
