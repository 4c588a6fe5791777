//! Real races on real threads: hand-over against cancellation, time that is up and aborted tasks, by the ten thousand.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fawn::protocol::app_config::{AdmissionPolicy, SubagentRuntimeConfig};
use fawn::runtime::capacity::{Admission, Admitted, Capacity, CapacityError, Slot, Waiter};
use tokio::task::yield_now;

fn config(max_running: u64, max_queued: u64) -> SubagentRuntimeConfig {
    SubagentRuntimeConfig {
        max_running,
        max_queued,
        ..SubagentRuntimeConfig::default()
    }
}

fn workers() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap()
}

/// A number that is the same for the same seed, and like no other.
fn scatter(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Who is inside, and how many there were at most.
#[derive(Default)]
struct Gauge {
    inside: AtomicU64,
    most: AtomicU64,
    total: AtomicU64,
}

impl Gauge {
    fn enter(self: &Arc<Self>) -> Inside {
        let now = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.total.fetch_add(1, Ordering::SeqCst);
        Inside(Arc::clone(self))
    }

    fn most(&self) -> u64 {
        self.most.load(Ordering::SeqCst)
    }
}

/// Somebody inside, also when it is dropped from outside.
struct Inside(Arc<Gauge>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn yields(count: u64) {
    for _ in 0..count {
        yield_now().await;
    }
}

/// All slots can be had, and no more.
async fn all_free(capacity: &Capacity) {
    let now = capacity.snapshot();
    assert_eq!((now.running, now.queued), (0, 0));
    let mut slots = Vec::new();
    for _ in 0..now.max_running {
        let slot = tokio::time::timeout(Duration::from_secs(10), capacity.acquire());
        slots.push(slot.await.expect("at once").unwrap());
    }
    assert_eq!(capacity.snapshot().running, now.max_running);
}

/// 40,000 executions on four threads. Some give up after so many turns, some when their time is up, some are aborted from
/// outside, in the queue or in their slot.
#[test]
fn rt_32_no_slot_is_lost_when_hand_over_meets_leaving() {
    const LANES: u64 = 200;
    const EACH: u64 = 200;
    let capacity = Capacity::new(config(3, 10_000));
    let gauge = Arc::new(Gauge::default());
    workers().block_on(async {
        let lanes: Vec<_> = (0..LANES)
            .map(|lane| {
                let (capacity, gauge) = (Arc::clone(&capacity), Arc::clone(&gauge));
                tokio::spawn(async move {
                    for number in 0..EACH {
                        let dice = scatter(lane * EACH + number);
                        let hold = (dice >> 8) % 4;
                        let patience = (dice >> 16) % 300;
                        let execution = {
                            let (capacity, gauge) = (Arc::clone(&capacity), Arc::clone(&gauge));
                            async move {
                                let _slot = capacity.acquire().await.unwrap();
                                let _inside = gauge.enter();
                                yields(hold).await;
                            }
                        };
                        match dice % 4 {
                            0 => execution.await,
                            1 => tokio::select! {
                                () = execution => {}
                                () = yields(patience) => {}
                            },
                            2 => {
                                let time = Duration::from_micros(patience * 10);
                                _ = tokio::time::timeout(time, execution).await;
                            }
                            _ => {
                                let task = tokio::spawn(execution);
                                yields(patience).await;
                                task.abort();
                                _ = task.await;
                            }
                        }
                    }
                })
            })
            .collect();
        let all = async {
            for lane in lanes {
                lane.await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(100), all)
            .await
            .expect("nobody waits for ever");
        all_free(&capacity).await;
    });
    let total = gauge.total.load(Ordering::SeqCst);
    println!("{total} of {} had a slot", LANES * EACH);
    assert_eq!(gauge.most(), 3);
    assert!(total > LANES * EACH / 4 && total < LANES * EACH);
}

/// Two threads that start at once: one gives the slot back, the other drops the waiter that is next for it, having looked
/// or not. Whoever is after it has the slot then.
#[test]
fn rt_32_one_hand_over_against_one_cancellation_ten_thousand_times() {
    const ROUNDS: u64 = 10_000;
    type Handed = std::sync::Mutex<Option<Waiter>>;
    let poll = |waiter: &mut Waiter| {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(waiter).poll(&mut context) {
            Poll::Ready(slot) => Some(slot),
            Poll::Pending => None,
        }
    };
    let admission = Admission::new(config(1, 2));
    let leaving: Handed = None.into();
    let (begin, end) = (Barrier::new(2), Barrier::new(2));
    let spin = |turns: u64| (0..turns % 256).for_each(|_| std::hint::spin_loop());
    let (mut handed, gone) = (0, AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                begin.wait();
                let mut waiter = leaving.lock().unwrap().take().unwrap();
                spin(scatter(round));
                if round % 2 == 0 {
                    drop(poll(&mut waiter));
                }
                drop(waiter);
                // The other still waits: there was no slot to pass on.
                gone.fetch_add(admission.snapshot().queued, Ordering::SeqCst);
                end.wait();
            }
        });
        for round in 0..ROUNDS {
            let held = match admission.admit() {
                Admitted::Slot(slot) => slot,
                other => panic!("{other:?}"),
            };
            let next = || match admission.admit() {
                Admitted::Waiter(waiter) => waiter,
                other => panic!("{other:?}"),
            };
            *leaving.lock().unwrap() = Some(next());
            let mut staying = next();
            begin.wait();
            spin(scatter(round + ROUNDS));
            drop(held);
            // The other still waits: the slot went to the one before it.
            handed += admission.snapshot().queued;
            end.wait();
            let slot: Slot = poll(&mut staying).unwrap_or_else(|| panic!("lost in {round}"));
            drop((slot, staying));
            let now = admission.snapshot();
            assert_eq!((now.running, now.queued), (0, 0), "{round}");
        }
    });
    let gone = gone.into_inner();
    println!("at least {handed} times handed over first, at least {gone} times gone first");
    assert!(handed > 0 && gone > 0);
}

#[test]
fn rt_33_a_thousand_tasks_run_in_the_order_of_their_arrival() {
    let capacity = Capacity::new(config(1, 1_000));
    workers().block_on(async {
        let held = capacity.acquire().await.unwrap();
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for number in 0..1_000u64 {
            let (own, order) = (Arc::clone(&capacity), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let _slot = own.acquire().await.unwrap();
                order.lock().unwrap().push(number);
            }));
            while capacity.snapshot().queued <= number {
                yield_now().await;
            }
        }
        drop(held);
        for task in tasks {
            task.await.unwrap();
        }
        assert!(order.lock().unwrap().iter().copied().eq(0..1_000));
    });
}

/// Ten threads of three children each against eight slots: eight run at once, neither more nor fewer.
#[test]
fn u11_as_many_run_at_once_as_are_configured() {
    let capacity = Capacity::new(config(8, 100));
    let gauge = Arc::new(Gauge::default());
    workers().block_on(async {
        let parents: Vec<_> = (0..10)
            .map(|_| {
                let (capacity, gauge) = (Arc::clone(&capacity), Arc::clone(&gauge));
                tokio::spawn(async move {
                    let child = || async {
                        let _slot = capacity.acquire().await.unwrap();
                        let _inside = gauge.enter();
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    };
                    tokio::join!(child(), child(), child());
                })
            })
            .collect();
        for parent in parents {
            parent.await.unwrap();
        }
        all_free(&capacity).await;
    });
    assert_eq!(gauge.most(), 8);
    assert_eq!(gauge.total.load(Ordering::SeqCst), 30);
}

#[test]
fn u11_whoever_finds_no_place_is_told_so_and_cancelled_waiters_are_gone() {
    workers().block_on(async {
        for (policy, places) in [(AdmissionPolicy::Queue, 5), (AdmissionPolicy::Reject, 0)] {
            let capacity = Capacity::new(SubagentRuntimeConfig {
                admission_policy: policy,
                ..config(8, 5)
            });
            let (refusals, mut refused) = tokio::sync::mpsc::unbounded_channel();
            let tasks: Vec<_> = (0..30)
                .map(|_| {
                    let (capacity, refusals) = (Arc::clone(&capacity), refusals.clone());
                    tokio::spawn(async move {
                        match capacity.acquire().await {
                            Ok(_slot) => std::future::pending().await,
                            Err(error) => refusals.send(error).unwrap(),
                        }
                    })
                })
                .collect();
            for _ in 0..22 - places {
                let error = refused.recv().await.unwrap();
                let (running, queued) = (8, places);
                assert_eq!(error, CapacityError::Rejected { running, queued });
            }
            let now = capacity.snapshot();
            assert_eq!((now.running, now.queued), (8, places));
            for task in tasks {
                task.abort();
                _ = task.await;
            }
            all_free(&capacity).await;
        }
    });
}
