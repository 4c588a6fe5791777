//! A streamed reply in the messages format: no cut of the bytes changes it, none panics, and calls that can be run have a name.
#![no_main]

use fawn::adapters::model::anthropic::Messages;
use fawn::adapters::model::reply::{Limits, ReplyStream, StreamEnd};
use fawn::ports::model::{ModelDelta, ModelReply};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits {
    event: 4096,
    reply: 8192,
    answer: 1 << 20,
};

/// What a stream in these pieces gives.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<ModelDelta>, String, Option<ModelReply>) {
    let mut stream = ReplyStream::<Messages>::with_limits(LIMITS);
    let mut deltas = Vec::new();
    for piece in pieces {
        let fed = stream.feed(piece);
        deltas.extend(stream.take_deltas());
        if let Err(fault) = fed {
            return (deltas, fault.to_string(), stream.partial());
        }
    }
    match stream.end(&mut deltas) {
        Ok(StreamEnd::Whole(reply)) => (deltas, "whole".to_owned(), Some(reply)),
        Ok(StreamEnd::Cut(reply)) => (deltas, "cut".to_owned(), Some(reply)),
        Ok(StreamEnd::NoEvents) => (deltas, "nothing".to_owned(), None),
        Err(fault) => (deltas, fault.to_string(), None),
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let whole = read([bytes].into_iter());
    assert_eq!(read(bytes.chunks(1 + usize::from(size))), whole);
    assert_eq!(read(bytes.chunks(1)), whole);
    if let Some(reply) = whole.2 {
        assert!(reply.tool_calls.iter().all(|call| !call.name.is_empty()));
    }
});
