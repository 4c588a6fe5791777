//! Recorded streams: each gives one result, however its bytes are cut and its lines end.
//!
//! `streams/<format>/<name>.sse` is the stream, `streams/<format>/<name>.json` what it must give; `UPDATE=1` rewrites the
//! latter.

use std::path::PathBuf;

use fawn::adapters::model::reply::{Limits, ReplyFault, ReplyStream, StreamEnd, WireFormat};
use fawn::adapters::model::{anthropic, openai};
use fawn::ports::model::ModelDelta;
use fawn::protocol::message::content_text;
use serde_json::{Value, json};

use crate::support::model::{delta_json, reply_json};
use crate::support::random::Random;

/// A recorded stream.
pub struct Recorded {
    format: &'static str,
    pub name: String,
    pub bytes: Vec<u8>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/models/streams")
}

/// Every recorded stream.
pub fn recorded() -> Vec<Recorded> {
    let mut streams = Vec::new();
    for format in ["openai", "anthropic"] {
        for entry in std::fs::read_dir(folder().join(format)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ext| ext == "sse") {
                streams.push(Recorded {
                    format,
                    name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
                    bytes: std::fs::read(path).unwrap(),
                });
            }
        }
    }
    streams.sort_by(|a, b| (a.format, &a.name).cmp(&(b.format, &b.name)));
    streams
}

impl Recorded {
    /// What it gives in these pieces: deltas, and how it ends.
    pub fn read<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Value {
        match self.format {
            "openai" => read::<openai::ChatCompletion>(pieces, Limits::default()),
            _ => read::<anthropic::Messages>(pieces, Limits::default()),
        }
    }

    fn whole(&self) -> Value {
        self.read([self.bytes.as_slice()])
    }
}

fn fault_json(fault: ReplyFault) -> Value {
    match fault {
        ReplyFault::Reported(error) => json!({"reported": error}),
        ReplyFault::Format(text) => json!({"format": text}),
        ReplyFault::TooLarge { what, limit } => json!({"too_large": what, "limit": limit}),
    }
}

fn read<'a, F: WireFormat>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> Value {
    let mut stream = ReplyStream::<F>::with_limits(limits);
    let mut deltas: Vec<ModelDelta> = Vec::new();
    let mut fault = None;
    for piece in pieces {
        let fed = stream.feed(piece);
        deltas.extend(stream.take_deltas());
        if let Err(error) = fed {
            fault = Some(error);
            break;
        }
    }
    let end = match fault {
        Some(fault) => json!({
            "fault": fault_json(fault),
            "partial": stream.partial().as_ref().map(reply_json),
        }),
        None => match stream.end(&mut deltas) {
            Ok(StreamEnd::Whole(reply)) => json!({"whole": reply_json(&reply)}),
            Ok(StreamEnd::Cut(partial)) => json!({"cut": reply_json(&partial)}),
            Ok(StreamEnd::NoEvents) => json!("no events"),
            Err(fault) => json!({"fault": fault_json(fault)}),
        },
    };
    json!({
        "deltas": deltas.iter().map(delta_json).collect::<Vec<_>>(),
        "end": end,
    })
}

#[test]
fn every_recorded_stream_gives_its_golden_result() {
    let update = std::env::var_os("UPDATE").is_some();
    let streams = recorded();
    for (format, least) in [("openai", 60), ("anthropic", 25)] {
        let count = streams.iter().filter(|one| one.format == format).count();
        assert!(count >= least, "{count} streams of {format}");
    }
    for stream in streams {
        let result = stream.whole();
        let name = &stream.name;
        let golden = folder().join(format!("{}/{name}.json", stream.format));
        if update {
            let text = serde_json::to_string_pretty(&result).unwrap();
            std::fs::write(&golden, text + "\n").unwrap();
        }
        let text = std::fs::read_to_string(&golden).unwrap_or_default();
        let expected: Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(result, expected, "{name}");
        let whole = &result["end"]["whole"];
        if whole.is_object() {
            // What was streamed is what is stored, but for half a character that waits for its other at the end.
            let deltas = result["deltas"].as_array().unwrap().iter();
            let streamed: String = deltas.filter_map(|delta| delta["text"].as_str()).collect();
            let stored = content_text(&whole["content"]);
            assert_eq!(stored.trim_end_matches('\u{FFFD}'), streamed, "{name}");
        }
        // No stand-ins for halves of characters get out.
        let shown = result.to_string();
        assert!(!shown.chars().any(|c| c >= '\u{10F800}'), "{name}: {shown}");
    }
}

/// Random cuts of each stream: 10,000 in all, and some. `FAWN_CUTS` sets another number.
fn random_cuts() -> usize {
    let asked = std::env::var("FAWN_CUTS").ok();
    asked.map_or(80, |number| number.parse().expect("FAWN_CUTS is a number"))
}

/// S1, S2: no cut changes the result, inside characters and line ends included: every single cut, pieces of one byte, and
/// random cuts.
#[test]
fn no_cut_of_the_bytes_changes_the_result() {
    let mut random = Random::new(0x5EED);
    let (mut cuts, random_cuts) = (0, random_cuts());
    for stream in recorded() {
        let (name, bytes) = (&stream.name, &stream.bytes);
        let expected = stream.whole();
        for cut in 0..=bytes.len() {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(stream.read([a, b]), expected, "{name} cut at {cut}");
        }
        for size in [1, 2, 3, 7, 64] {
            assert_eq!(
                stream.read(bytes.chunks(size)),
                expected,
                "{name} by {size}"
            );
        }
        for round in 0..random_cuts {
            let mut rest = bytes.as_slice();
            let mut pieces = Vec::new();
            let longest = 1 + random.below(1 + bytes.len() as u64) as usize;
            while !rest.is_empty() {
                let size = (1 + random.below(longest as u64) as usize).min(rest.len());
                let (piece, left) = rest.split_at(size);
                pieces.push(piece);
                // Empty pieces say nothing.
                if random.below(8) == 0 {
                    pieces.push(&[]);
                }
                rest = left;
            }
            assert_eq!(stream.read(pieces), expected, "{name} at random, {round}");
        }
        cuts += random_cuts;
    }
    assert!(cuts >= 10_000, "{cuts} random cuts in all");
}

/// S2: LF, CRLF and CR.
#[test]
fn line_ends_do_not_change_the_result() {
    for stream in recorded() {
        let name = &stream.name;
        let expected = stream.whole();
        for end in [&b"\r\n"[..], b"\r"] {
            let mut other = Vec::new();
            for byte in &stream.bytes {
                match byte {
                    b'\n' => other.extend_from_slice(end),
                    byte => other.push(*byte),
                }
            }
            assert_eq!(stream.read([other.as_slice()]), expected, "{name} {end:?}");
            assert_eq!(
                stream.read(other.chunks(1)),
                expected,
                "{name} {end:?} by bytes"
            );
        }
    }
}

/// A stream that stops anywhere before its end mark is never taken for a whole reply, and never panics.
#[test]
fn a_stream_that_stops_before_its_end_mark_is_not_whole() {
    for stream in recorded() {
        let name = &stream.name;
        let text = String::from_utf8_lossy(&stream.bytes);
        if stream.whole()["end"].get("whole").is_none() {
            continue;
        }
        let marks: &[&str] = match stream.format {
            "openai" => &["finish_reason\":\"", "[DONE]"],
            _ if text.contains("\"message_stop\"") => &["\"message_stop\""],
            _ => &["event: message_stop"],
        };
        // The end mark is whole with the last byte of the first event that holds one.
        let mark = marks
            .iter()
            .filter_map(|mark| {
                let start = text.match_indices(mark).find(|(at, mark)| {
                    // An empty finish reason is none (S17).
                    !text[at + mark.len()..].starts_with('"')
                })?;
                Some(start.0)
            })
            .min()
            .unwrap();
        for stop in 0..mark.min(stream.bytes.len()) {
            let end = &stream.read([&stream.bytes[..stop]])["end"];
            assert!(
                end.get("whole").is_none(),
                "{name} stopped at {stop}: {end}"
            );
        }
    }
}

/// Bounds are told, and what had arrived is kept.
#[test]
fn what_is_too_large_is_refused_with_its_name() {
    let limits = Limits {
        event: 1000,
        reply: 2000,
        answer: 20_000,
    };
    let text = |text: &str| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"content": text}}]})
        )
    };
    let delta = |text: &str| {
        let event = json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": text}});
        format!("data: {event}\n\n")
    };
    let openai = |stream: &str| {
        read::<openai::ChatCompletion>(stream.as_bytes().chunks(100), limits)["end"].clone()
    };
    let anthropic = |stream: &str| {
        read::<anthropic::Messages>(stream.as_bytes().chunks(100), limits)["end"].clone()
    };
    for (event, read) in [
        (
            &text as &dyn Fn(&str) -> String,
            &openai as &dyn Fn(&str) -> Value,
        ),
        (&delta, &anthropic),
    ] {
        let end = read(&(event("kept") + &event(&"x".repeat(1000))));
        assert_eq!(end["fault"]["too_large"], "an event of the stream");
        assert_eq!(end["partial"]["content"], "kept");
        let end = read(&event(&"x".repeat(800)).repeat(3));
        assert_eq!(
            end["fault"],
            json!({"too_large": "the reply", "limit": 2000})
        );
        assert_eq!(end["partial"]["content"], "x".repeat(2400));
        let end = read(&(event("kept") + &": comment\n\n".repeat(2000)));
        assert_eq!(end["fault"]["too_large"], "the answer");
        // A line, and lines that make one event.
        let end = read(&(event("kept") + &"data: x\n".repeat(2000)));
        assert_eq!(end["fault"]["too_large"], "an event of the stream");
        let end = read(&(event("kept") + "event: " + &"x".repeat(2000) + "\n\n"));
        assert_eq!(end["fault"]["too_large"], "an event of the stream");
    }
}
