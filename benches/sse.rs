//! What models cost without a network: reading a streamed reply, writing a request, and a call of a scripted model.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::task::{Context, Poll, Waker};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fawn::adapters::model::openai::encode;
use fawn::adapters::model::reply::{ReplyStream, WireFormat};
use fawn::adapters::model::scripted::Scripted;
use fawn::adapters::model::sse::SseParser;
use fawn::adapters::model::{anthropic, openai};
use fawn::ports::model::{DynModelProvider, ModelProvider};
use fawn::protocol::message::{Fields, Kind, Message};
use fawn::protocol::model::{
    AnthropicConfig, OpenAiConfig, ReplyContent, ScriptedConfig, ScriptedReply,
};

#[path = "../tests/support/mod.rs"]
#[allow(
    clippy::unwrap_used,
    clippy::new_ret_no_self,
    reason = "tests share it; only requests are needed here"
)]
mod support;

use support::http_server::{Server, chunked_stream};
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

/// The same in the form of the messages format.
fn messages_stream() -> Vec<u8> {
    let mut stream = String::from(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_0123456789\",\
         \"type\":\"message\",\"role\":\"assistant\",\"model\":\"model-of-the-year\",\"content\":[],\
         \"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n\
         event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\
         \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    );
    for word in 0..DELTAS {
        stream.push_str(&format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{{\"type\":\"text_delta\",\"text\":\" word{word}\"}}}}\n\n"
        ));
    }
    stream.push_str(
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
         event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\
         \"usage\":{\"output_tokens\":1000}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    stream.into_bytes()
}

/// Events of a stream that is read in pieces.
fn events(stream: &[u8]) -> usize {
    let mut parser = SseParser::default();
    let mut events = 0;
    for piece in stream.chunks(PIECE_BYTES) {
        parser.feed(piece);
        while let Ok(Some(event)) = parser.next_event() {
            events += usize::from(!event.data.is_empty());
        }
    }
    events
}

/// A whole reply out of a stream that is read in pieces of `size` bytes.
fn reply<F: WireFormat>(stream: &[u8], size: usize) {
    let mut reader = ReplyStream::<F>::new();
    let mut deltas = 0;
    for piece in stream.chunks(size) {
        reader.feed(piece).expect("the stream is well formed");
        deltas += reader.take_deltas().count();
    }
    assert_eq!(deltas, DELTAS);
    let end = reader.end(&mut Vec::new());
    black_box(end.expect("the stream is whole"));
}

fn read(c: &mut Criterion) {
    let stream = stream();
    let messages = messages_stream();
    let mut group = c.benchmark_group("stream");
    for (name, stream, count) in [
        ("sse_parser", &stream, DELTAS + 2),
        ("sse_parser_messages", &messages, DELTAS + 5),
    ] {
        group.throughput(Throughput::Bytes(stream.len() as u64));
        group.bench_function(name, |b| b.iter(|| assert_eq!(events(stream), count)));
    }
    group.throughput(Throughput::Bytes(stream.len() as u64));
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
    for (name, size) in [("by_reads", PIECE_BYTES), ("by_packets", 400)] {
        group.bench_function(format!("reply_{name}"), |b| {
            b.iter(|| reply::<openai::ChatCompletion>(&stream, size));
        });
        group.bench_function(format!("messages_{name}"), |b| {
            b.iter(|| reply::<anthropic::Messages>(&messages, size));
        });
    }
    group.finish();
}

/// A reply over a socket, one event a packet: a reader that looks at nothing is the yardstick, what a provider takes more
/// is its overhead.
fn wire(c: &mut Criterion) {
    let mut group = c.benchmark_group("wire");
    group.throughput(Throughput::Elements(DELTAS as u64));
    group.sample_size(20);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let question = request(vec![Message::new(Fields::new(Kind::Human, "hello"))]);
    for (name, stream) in [("openai", stream()), ("anthropic", messages_stream())] {
        let text = String::from_utf8(stream).expect("it was text");
        let events: Vec<String> = text.split_inclusive("\n\n").map(str::to_owned).collect();
        let pieces: Vec<&str> = events.iter().map(String::as_str).collect();
        let server = Server::start(vec![chunked_stream(&pieces)]);
        group.bench_function(format!("raw_{name}"), |b| {
            let mut socket = TcpStream::connect(server.addr()).expect("the server listens");
            let mut buffer = vec![0; PIECE_BYTES];
            b.iter(|| {
                socket
                    .write_all(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
                    .expect("the server reads");
                let mut tail = Vec::new();
                while tail != b"0\r\n\r\n" {
                    let read = socket.read(&mut buffer).expect("the server writes");
                    tail.extend_from_slice(&buffer[read.saturating_sub(5)..read]);
                    tail.drain(..tail.len().saturating_sub(5));
                }
            });
        });
        let model: Box<dyn DynModelProvider> = if name == "openai" {
            let config = OpenAiConfig::new("m", server.url(""));
            Box::new(openai::OpenAi::new(config, &|_| None).expect("it is valid"))
        } else {
            let config = AnthropicConfig::new("m", server.url(""));
            Box::new(anthropic::Anthropic::new(config, &|_| None).expect("it is valid"))
        };
        group.bench_function(format!("provider_{name}"), |b| {
            b.iter(|| {
                let mut sink = Collect::default();
                let reply = runtime.block_on(model.call_boxed(&question, &mut sink));
                assert!(reply.is_ok() && sink.deltas.len() == DELTAS);
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

criterion_group!(benches, read, wire, write, script);
criterion_main!(benches);
