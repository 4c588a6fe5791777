//! What the targets of both wire formats ask of a streamed reply. Not a target itself.

use fawn::adapters::model::reply::{Limits, ReplyStream, StreamEnd, WireFormat};
use fawn::ports::model::{ModelDelta, ModelReply};

const LIMITS: Limits = Limits {
    event: 4096,
    reply: 8192,
    answer: 1 << 20,
};

/// What a stream in these pieces gives.
fn read<'a, F: WireFormat>(
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<ModelDelta>, String, Option<ModelReply>) {
    let mut stream = ReplyStream::<F>::with_limits(LIMITS);
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

/// No cut of the bytes changes the reply, none panics, and calls that can be run have a name.
pub fn check<F: WireFormat>((size, bytes): (u8, &[u8])) {
    let whole = read::<F>([bytes].into_iter());
    assert_eq!(read::<F>(bytes.chunks(1 + usize::from(size))), whole);
    assert_eq!(read::<F>(bytes.chunks(1)), whole);
    if let Some(reply) = whole.2 {
        assert!(reply.tool_calls.iter().all(|call| !call.name.is_empty()));
    }
}
