//! Recorded streams: each gives one result, however its bytes are cut and its lines end.
//!
//! `streams/<name>.sse` is the stream, `streams/<name>.json` what it must give; `UPDATE=1` rewrites the latter.

use std::path::PathBuf;

use fawn::adapters::model::openai::{ReplyFault, ReplyStream, StreamEnd};
use fawn::ports::model::ModelDelta;
use serde_json::{Value, json};

use crate::support::model::{delta_json, reply_json};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/models/streams")
}

/// Name and bytes of every recorded stream.
fn recorded() -> Vec<(String, Vec<u8>)> {
    let mut streams: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "sse"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    streams.sort();
    streams
}

/// What a stream in these pieces gives: deltas, and how it ends.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Value {
    let mut stream = ReplyStream::new();
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
    let fault_json = |fault: ReplyFault| match fault {
        ReplyFault::Reported(error) => json!({"reported": error}),
        ReplyFault::Format(text) => json!({"format": text}),
    };
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
    assert!(streams.len() >= 60, "{} streams", streams.len());
    for (name, bytes) in streams {
        let result = read([bytes.as_slice()]);
        let golden = folder().join(format!("{name}.json"));
        if update {
            let text = serde_json::to_string_pretty(&result).unwrap();
            std::fs::write(&golden, text + "\n").unwrap();
        }
        let text = std::fs::read_to_string(&golden).unwrap_or_default();
        let expected: Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(result, expected, "{name}");
    }
}

/// S1, S2: no cut changes the result, inside characters and line ends included.
#[test]
fn no_cut_of_the_bytes_changes_the_result() {
    for (name, bytes) in recorded() {
        let expected = read([bytes.as_slice()]);
        for cut in 0..=bytes.len() {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(read([a, b]), expected, "{name} cut at {cut}");
        }
        for size in [1, 2, 3, 7, 64] {
            assert_eq!(read(bytes.chunks(size)), expected, "{name} by {size}");
        }
    }
}

/// S2: LF, CRLF and CR.
#[test]
fn line_ends_do_not_change_the_result() {
    for (name, bytes) in recorded() {
        let expected = read([bytes.as_slice()]);
        for end in [&b"\r\n"[..], b"\r"] {
            let mut other = Vec::new();
            for byte in &bytes {
                match byte {
                    b'\n' => other.extend_from_slice(end),
                    byte => other.push(*byte),
                }
            }
            assert_eq!(read([other.as_slice()]), expected, "{name} {end:?}");
            assert_eq!(read(other.chunks(1)), expected, "{name} {end:?} by bytes");
        }
    }
}

/// A stream that stops anywhere before its end mark is never taken for a whole reply, and never panics.
#[test]
fn a_stream_that_stops_before_its_end_mark_is_not_whole() {
    for (name, bytes) in recorded() {
        let text = String::from_utf8_lossy(&bytes);
        let whole = read([bytes.as_slice()]);
        if whole["end"].get("whole").is_none() {
            continue;
        }
        // The end mark is whole with the last byte of the first event that holds one.
        let mark = ["finish_reason\":\"", "[DONE]"]
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
        for stop in 0..mark.min(bytes.len()) {
            let end = &read([&bytes[..stop]])["end"];
            assert!(
                end.get("whole").is_none(),
                "{name} stopped at {stop}: {end}"
            );
        }
    }
}
