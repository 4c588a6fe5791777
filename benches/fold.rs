//! What the message fold costs: writes into resident threads, many writes at once, and texts from end to end.
//!
//! The ratios that the project promises are printed at the end, each against its yardstick in the same run.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints and stops at the unexpected"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion};
use fawn::protocol::message::Message;
use fawn::state::channels::Channel;
use fawn::state::coerce::write_text;
use fawn::state::delta::StoredState;
use fawn::state::ids::SequentialIds;
use fawn::state::messages::fold_messages;
use fawn::state::reduce::reduce_document;
use fawn::state::thread::{Overlay, Selection, ThreadState};
use fawn::state::update::{StateUpdate, Write};
use serde_json::Value;

const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

fn canonical(place: usize) -> String {
    format!(
        r#"{{"content":"message number {place}: {}","additional_kwargs":{{}},"response_metadata":{{}},"type":"human","name":null,"id":"m-{place:08}"}}"#,
        "lorem ipsum dolor sit amet ".repeat(2)
    )
}

fn thread(messages: usize) -> ThreadState {
    let message = |place| {
        (
            place as u64,
            Message::from_canonical_text(&canonical(place)).unwrap(),
        )
    };
    ThreadState::restore(StoredState {
        messages: (0..messages).map(message).collect(),
        channels: Vec::new(),
        next_seq: messages as u64,
    })
}

/// One write of two messages: text in, committed state and delta out.
fn write(thread: &mut ThreadState, text: &str, ids: &mut SequentialIds) {
    let messages = write_text(text).unwrap();
    let mut overlay = Overlay::new();
    let step = [StateUpdate::messages(messages)];
    thread.stage(&mut overlay, &step, ids).unwrap();
    black_box(thread.delta(&overlay));
    thread.commit(overlay);
}

const WRITE: &str = r#"[{"role":"user","content":"What does the second paragraph say about deadlines?"},{"role":"assistant","content":"It says that all of them moved by a week."}]"#;
const WRITE_ONE: &str =
    r#"{"role":"user","content":"What does the second paragraph say about deadlines?"}"#;

fn resident(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("resident");
    for size in SIZES {
        for (name, text) in [("write_of_one", WRITE_ONE), ("write_of_two", WRITE)] {
            let full = thread(size);
            group.bench_function(BenchmarkId::new(name, size), |bencher| {
                bencher.iter_custom(|writes| {
                    let mut total = Duration::ZERO;
                    let mut left = writes;
                    while left > 0 {
                        // Begin again before the thread grows away from its size.
                        let now = left.min(size.max(1_000) as u64 / 10);
                        left -= now;
                        let mut state = full.clone();
                        let mut ids = SequentialIds::default();
                        let start = Instant::now();
                        for _ in 0..now {
                            write(&mut state, text, &mut ids);
                        }
                        total += start.elapsed();
                    }
                    total
                });
            });
        }
        let state = thread(size);
        let selection = Selection {
            channels: Some(vec![Channel::Messages]),
            last_messages: Some(20),
        };
        group.bench_function(BenchmarkId::new("read_last_20", size), |bencher| {
            let overlay = Overlay::new();
            bencher.iter(|| {
                let mut out = String::new();
                state.view(&overlay).write_json(&mut out, &selection);
                out
            });
        });
    }
    let state = thread(10_000);
    let step: Vec<StateUpdate> = (0..1_000)
        .map(|place| {
            // Replacements, new messages and messages without an id.
            let text = match place % 3 {
                0 => format!(
                    r#"[{{"role":"user","content":"new","id":"m-{:08}"}}]"#,
                    place * 7
                ),
                1 => format!(r#"[{{"role":"user","content":"new","id":"n-{place}"}}]"#),
                _ => r#"[{"role":"user","content":"new"}]"#.to_owned(),
            };
            StateUpdate::messages(write_text(&text).unwrap())
        })
        .collect();
    group.bench_function("1000_writes_onto_10000", |bencher| {
        bencher.iter_batched(
            || (Overlay::new(), SequentialIds::default()),
            |(mut overlay, mut ids)| {
                state.stage(&mut overlay, &step, &mut ids).unwrap();
                black_box(state.delta(&overlay));
                overlay
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn best_of(runs: u32, mut run: impl FnMut() -> Duration) -> Duration {
    (0..runs).map(|_| run()).min().unwrap()
}

fn timed<T>(run: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    // Dropped after the time is taken.
    let answer = black_box(run());
    let elapsed = start.elapsed();
    drop(answer);
    elapsed
}

fn texts() {
    let list: Vec<String> = (0..100_000).map(canonical).collect();
    let list = list.join(",");
    let documents = [
        (
            "canonical",
            format!(r#"{{"existing":[{list}],"updates":[{WRITE}],"form":"canonical"}}"#),
        ),
        (
            "coerced",
            format!(r#"{{"existing":[{list}],"updates":[{WRITE}]}}"#),
        ),
        (
            "coerced, roles only",
            format!(
                r#"{{"existing":[{}],"updates":[{WRITE}]}}"#,
                vec![
                    format!(
                        r#"{{"role":"user","content":"{}"}}"#,
                        "lorem ipsum ".repeat(14)
                    );
                    100_000
                ]
                .join(",")
            ),
        ),
    ];
    for (name, document) in &documents {
        let fold = best_of(7, || {
            timed(|| reduce_document("messages", document).unwrap())
        });
        let round_trip = best_of(5, || {
            timed(|| serde_json::from_str::<Value>(document).unwrap().to_string())
        });
        println!(
            "text, 100,000 messages, {:.1} MB, {name}: {:.1} ms, {:.2} of a serde_json round trip ({:.1} ms)",
            document.len() as f64 / 1e6,
            fold.as_secs_f64() * 1e3,
            fold.as_secs_f64() / round_trip.as_secs_f64(),
            round_trip.as_secs_f64() * 1e3,
        );
    }
}

fn ratios() {
    let per_write = |size: usize, text: &str| {
        best_of(9, || {
            let mut state = thread(size);
            let mut ids = SequentialIds::default();
            let writes = 2_000_u32;
            timed(|| (0..writes).for_each(|_| write(&mut state, text, &mut ids))) / writes
        })
    };
    for (name, text) in [("one message", WRITE_ONE), ("two messages", WRITE)] {
        let costs = SIZES.map(|size| per_write(size, text));
        println!(
            "{name} written, text to committed, at {SIZES:?}: {costs:?}; 100,000 against 1,000: {:.2}",
            costs[3].as_secs_f64() / costs[1].as_secs_f64()
        );
    }
    let many = |writes: usize| {
        let message = |place| {
            Some(vec![
                Message::from_canonical_text(&canonical(place)).unwrap(),
            ])
        };
        best_of(11, || {
            let writes: Vec<_> = (0..writes).map(message).collect();
            timed(|| fold_messages(Vec::new(), writes, &mut SequentialIds::default()).unwrap())
        })
    };
    let (half, whole) = (many(64_000), many(128_000));
    println!(
        "one fold of single-message writes: 64,000 in {half:?}, 128,000 in {whole:?}, ratio {:.2}",
        whole.as_secs_f64() / half.as_secs_f64()
    );
    let document = |writes: usize| {
        let writes: Vec<String> = (0..writes)
            .map(|place| format!("[{}]", canonical(place)))
            .collect();
        format!(r#"{{"existing":[],"updates":[{}]}}"#, writes.join(","))
    };
    let text = |document: &str| {
        best_of(5, || {
            timed(|| reduce_document("messages", document).unwrap())
        })
    };
    let (half, whole) = (text(&document(64_000)), text(&document(128_000)));
    println!(
        "the same as a document: {half:?}, {whole:?}, ratio {:.2}",
        whole.as_secs_f64() / half.as_secs_f64()
    );
    let state = thread(10_000);
    let value = Write::Value(serde_json::from_str(WRITE).unwrap());
    let step = [StateUpdate::default().and(Channel::Messages, value)];
    let over_values = best_of(9, || {
        timed(|| {
            for _ in 0..1_000 {
                let mut overlay = Overlay::new();
                state
                    .stage(&mut overlay, &step, &mut SequentialIds::default())
                    .unwrap();
                black_box(state.delta(&overlay));
            }
        }) / 1_000
    });
    println!("two messages given as values, staged: {over_values:?}");
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(900))
        .configure_from_args();
    resident(&mut criterion);
    criterion.final_summary();
    ratios();
    texts();
}
