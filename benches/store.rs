//! What stores cost: a checkpoint in a long thread, and opening one.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use fawn::adapters::store::memory::MemoryStore;
use fawn::ports::checkpoint::{CheckpointMeta, CheckpointStore, NewCheckpoint, Source};
use fawn::protocol::message::{Fields, Kind, Message};
use fawn::protocol::time::Timestamp;
use fawn::state::delta::{MessageDelta, StateDelta};
use uuid::Uuid;

const T: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

/// The answer of a future that does not wait.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the store waited"),
    }
}

fn id(n: u64) -> Uuid {
    Uuid::from_u128(u128::from(n) << 80 | 6 << 76 | 1 << 63)
}

/// The checkpoint that adds message number `n` to a thread of `n` messages.
fn next(n: u64) -> NewCheckpoint {
    let kind = if n.is_multiple_of(2) {
        Kind::Human
    } else {
        Kind::Ai
    };
    let mut fields = Fields::new(kind, "x".repeat(128));
    fields.id = Some(Uuid::from_u128(u128::from(n) * 0x9e37_79b9_7f4a_7c15_f39c).to_string());
    NewCheckpoint {
        meta: CheckpointMeta {
            id: id(n + 1),
            parent: n.checked_sub(1).map(|before| id(before + 1)),
            step: n as i64 - 1,
            source: Source::Loop,
            at: Timestamp(1_790_000_000_000_000 + n as i64),
            run_id: Some("6ba7b810-9dad-41d1-80b4-00c04fd430c8".into()),
            metadata: Default::default(),
        },
        delta: StateDelta {
            messages: MessageDelta {
                appended: vec![(n, Message::new(fields))],
                ..MessageDelta::default()
            },
            channels: Vec::new(),
        },
        next_seq: n + 1,
    }
}

fn filled<S: CheckpointStore>(store: S, messages: u64) -> S {
    for n in 0..messages {
        now(store.put(T, next(n))).expect("it fits");
    }
    store
}

/// Times `iterations` puts after `length` messages, a new store every few thousand so that the length stays what it says.
fn puts<S: CheckpointStore>(iterations: u64, length: u64, fill: impl Fn() -> S) -> Duration {
    let mut time = Duration::ZERO;
    let mut left = iterations;
    while left > 0 {
        let count = left.min(20_000);
        left -= count;
        let store = fill();
        let checkpoints: Vec<_> = (length..length + count).map(next).collect();
        let clock = Instant::now();
        for checkpoint in checkpoints {
            now(store.put(T, checkpoint)).expect("it fits");
        }
        time += clock.elapsed();
    }
    time
}

fn memory(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("memory");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(20));
    group.measurement_time(Duration::from_millis(100));
    for length in [100, 100_000] {
        group.bench_function(format!("put after {length} messages"), |bencher| {
            // Filling takes longer than putting: a thousand puts stand for one.
            bencher.iter_custom(|iterations| {
                puts(1000 * iterations, length, || {
                    filled(MemoryStore::new(), length)
                }) / 1000
            });
        });
    }
    let store = filled(MemoryStore::new(), 20_000);
    group.bench_function("open 20000 messages", |bencher| {
        bencher.iter(|| black_box(now(store.open(T)).expect("it is there")));
    });
    group.finish();
}

#[cfg(feature = "sqlite")]
fn sqlite(criterion: &mut Criterion) {
    use fawn::adapters::store::sqlite::{Offload, SqliteStore};

    let folder = std::env::temp_dir().join(format!("fawn-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let store = filled(
        SqliteStore::new(folder.join("t.db"), Offload::Inline),
        20_000,
    );
    let mut group = criterion.benchmark_group("sqlite");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_secs(2));
    group.bench_function("open 20000 messages", |bencher| {
        bencher.iter(|| black_box(now(store.open(T)).expect("it is there")));
    });
    group.bench_function("list 100 of 20000 checkpoints", |bencher| {
        let query = fawn::ports::checkpoint::HistoryQuery {
            limit: Some(100),
            before: None,
        };
        bencher.iter(|| black_box(now(store.list(T, query)).expect("it is there")));
    });
    let mut length = 20_000;
    group.bench_function("put after 20000 messages", |bencher| {
        bencher.iter_custom(|iterations| {
            let checkpoints: Vec<_> = (length..length + iterations).map(next).collect();
            length += iterations;
            let clock = Instant::now();
            for checkpoint in checkpoints {
                now(store.put(T, checkpoint)).expect("it fits");
            }
            clock.elapsed()
        });
    });
    // The yardstick: what the file system takes for the same bytes and one sync.
    group.bench_function("yardstick: append 8.8 kB and sync", |bencher| {
        use std::io::Write;
        let mut file = std::fs::File::create(folder.join("yardstick")).expect("a file");
        bencher.iter(|| {
            file.write_all(&[1; 8800]).expect("it fits");
            file.sync_data().expect("it syncs");
        });
    });
    group.finish();
    drop(store);
    let _ = std::fs::remove_dir_all(&folder);
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &mut Criterion) {}

criterion_group!(benches, memory, sqlite);
criterion_main!(benches);
