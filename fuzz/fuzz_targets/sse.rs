//! The splitter of event streams: no cut of the bytes changes the events, and none panics.
#![no_main]

use fawn::adapters::model::sse::SseParser;
use libfuzzer_sys::fuzz_target;

/// Small, so that the limit is met.
const LIMIT: usize = 256;

/// All events of a stream in these pieces, and whether it was refused.
fn events<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<(String, String)>, bool) {
    let mut parser = SseParser::new(LIMIT);
    let mut events = Vec::new();
    for piece in pieces {
        parser.feed(piece);
        loop {
            match parser.next_event() {
                Ok(Some(event)) => events.push((event.name.to_owned(), event.data.into_owned())),
                Ok(None) => break,
                Err(_) => return (events, true),
            }
        }
    }
    match parser.finish() {
        Ok(Some(event)) => events.push((event.name.to_owned(), event.data.into_owned())),
        Ok(None) => {}
        Err(_) => return (events, true),
    }
    (events, false)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let whole = events([bytes].into_iter());
    let pieces = events(bytes.chunks(1 + usize::from(size)));
    let single = events(bytes.chunks(1));
    assert_eq!(pieces, whole);
    assert_eq!(single, whole);
    assert!(whole.0.iter().all(|(_, data)| data.len() <= 3 * LIMIT));
});
