//! The rules of admission one by one, and random sequences against an obvious model.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use super::*;
use crate::protocol::app_config::AdmissionPolicy;

fn config(max_running: u64, max_queued: u64) -> SubagentRuntimeConfig {
    SubagentRuntimeConfig {
        max_running,
        max_queued,
        ..SubagentRuntimeConfig::default()
    }
}

fn slot(admission: &Admission) -> Slot {
    match admission.admit() {
        Admitted::Slot(slot) => slot,
        other => panic!("{other:?}"),
    }
}

fn waiter(admission: &Admission) -> Waiter {
    match admission.admit() {
        Admitted::Waiter(waiter) => waiter,
        other => panic!("{other:?}"),
    }
}

fn rejected(admission: &Admission) -> (u64, u64) {
    match admission.admit() {
        Admitted::Rejected { running, queued } => (running, queued),
        other => panic!("{other:?}"),
    }
}

fn counts(admission: &Admission) -> (u64, u64) {
    let now = admission.snapshot();
    (now.running, now.queued)
}

fn poll(waiter: &mut Waiter) -> Option<Slot> {
    poll_with(waiter, Waker::noop())
}

fn poll_with(waiter: &mut Waiter, waker: &Waker) -> Option<Slot> {
    match Pin::new(waiter).poll(&mut Context::from_waker(waker)) {
        Poll::Ready(slot) => Some(slot),
        Poll::Pending => None,
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicU64);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Random numbers that are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn driver() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

#[test]
fn v33_the_third_is_rejected_and_the_second_runs_when_the_first_ends() {
    let admission = Admission::new(config(1, 1));
    let first = slot(&admission);
    let mut second = waiter(&admission);
    assert!(poll(&mut second).is_none());
    assert_eq!(rejected(&admission), (1, 1));
    drop(first);
    assert_eq!(counts(&admission), (1, 0), "running stays 1");
    let second = poll(&mut second).expect("handed over");
    assert_eq!(counts(&admission), (1, 0));
    drop(second);
    assert_eq!(counts(&admission), (0, 0));
}

#[test]
fn v34_rt_42_whoever_leaves_the_queue_makes_room_in_it_and_never_runs() {
    let admission = Admission::new(config(1, 1));
    let first = slot(&admission);
    let mut second = waiter(&admission);
    assert!(poll(&mut second).is_none());
    drop(second);
    assert_eq!(counts(&admission), (1, 0));
    let mut third = waiter(&admission);
    drop(first);
    assert!(poll(&mut third).is_some());
}

#[test]
fn v35_rt_31_the_policy_reject_lets_nobody_wait() {
    let capacity = Capacity::new(SubagentRuntimeConfig {
        admission_policy: AdmissionPolicy::Reject,
        ..config(1, 64)
    });
    driver().block_on(async {
        let held = capacity.acquire().await.unwrap();
        let refused = capacity.acquire().await.unwrap_err();
        let (running, queued) = (1, 0);
        assert_eq!(refused, CapacityError::Rejected { running, queued });
        drop(held);
        drop(capacity.acquire().await.unwrap());
    });
}

#[test]
fn rt_9_a_snapshot_tells_all_five() {
    let capacity = Capacity::new(config(2, 5));
    let _slots = [slot(&capacity.admission), slot(&capacity.admission)];
    let _waiter = waiter(&capacity.admission);
    let right = CapacitySnapshot {
        max_running: 2,
        running: 2,
        max_queued: 5,
        queued: 1,
        admission_policy: AdmissionPolicy::Queue,
    };
    assert_eq!(capacity.snapshot(), right);
    assert_eq!(capacity.config(), config(2, 5));
}

#[test]
fn rt_31_errors_say_how_it_stood() {
    let (running, queued) = (3, 64);
    assert_eq!(
        CapacityError::Rejected { running, queued }.to_string(),
        "Subagent execution capacity is full (3 running, 64 queued)"
    );
    assert_eq!(
        CapacityError::Timeout { seconds: 300 }.to_string(),
        "Timed out after 300s waiting for a subagent execution slot"
    );
}

#[test]
fn rt_31_no_queue_is_none() {
    let admission = Admission::new(config(1, 0));
    let held = slot(&admission);
    assert_eq!(rejected(&admission), (1, 0));
    drop(held);
    drop(slot(&admission));
}

#[test]
fn rt_31_rt_32_a_wait_ends_when_its_time_is_up_and_leaves_nothing_behind() {
    let capacity = Capacity::new(SubagentRuntimeConfig {
        queue_timeout_seconds: 1,
        ..config(1, 2)
    });
    driver().block_on(async {
        let held = capacity.acquire().await.unwrap();
        let start = Instant::now();
        let (first, second) = tokio::join!(capacity.acquire(), capacity.acquire());
        let late = CapacityError::Timeout { seconds: 1 };
        assert_eq!((first.unwrap_err(), second.unwrap_err()), (late, late));
        let waited = start.elapsed();
        assert!(waited >= Duration::from_secs(1), "{waited:?}");
        assert!(waited < Duration::from_secs(5), "{waited:?}");
        assert_eq!(counts(&capacity.admission), (1, 0));
        drop(held);
        assert_eq!(counts(&capacity.admission), (0, 0));
    });
}

#[test]
fn rt_32_a_slot_that_its_waiter_does_not_take_goes_to_the_next() {
    let admission = Admission::new(config(1, 3));
    let held = slot(&admission);
    let [mut first, second, mut third] = [(); 3].map(|()| waiter(&admission));
    let woken = Arc::new(Wakes::default());
    assert!(poll(&mut first).is_none());
    assert!(poll_with(&mut third, &Arc::clone(&woken).into()).is_none());
    drop(held);
    assert_eq!(counts(&admission), (1, 2));
    drop(first); // it was handed the slot
    drop(second); // so was it, from the first
    assert_eq!(counts(&admission), (1, 0));
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    drop(poll(&mut third).expect("the slot"));
    assert_eq!(counts(&admission), (0, 0));
}

#[test]
fn rt_32_a_slot_that_nobody_is_left_for_becomes_free() {
    let admission = Admission::new(config(1, 1));
    let held = slot(&admission);
    let handed = waiter(&admission);
    drop(held);
    assert_eq!(counts(&admission), (1, 0));
    drop(handed);
    assert_eq!(counts(&admission), (0, 0));
}

#[test]
fn rt_33_nobody_overtakes_a_slot_that_is_on_its_way() {
    let admission = Admission::new(config(1, 4));
    let held = slot(&admission);
    let mut first = waiter(&admission);
    drop(held);
    // The first has not looked yet; a newcomer waits all the same.
    let mut newcomer = waiter(&admission);
    assert!(poll(&mut newcomer).is_none());
    let first = poll(&mut first).expect("handed over");
    assert!(poll(&mut newcomer).is_none());
    drop(first);
    assert!(poll(&mut newcomer).is_some());
}

#[test]
fn rt_33_the_waker_of_the_last_poll_is_the_one_that_is_woken() {
    let admission = Admission::new(config(1, 1));
    let held = slot(&admission);
    let mut moved = waiter(&admission);
    let (old, new) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    assert!(poll_with(&mut moved, &Arc::clone(&old).into()).is_none());
    assert!(poll_with(&mut moved, &Arc::clone(&new).into()).is_none());
    assert_eq!(Arc::strong_count(&old), 1, "the old one is let go");
    drop(held);
    let woken = [&old, &new].map(|wakes| wakes.0.load(Ordering::Relaxed));
    assert_eq!(woken, [0, 1]);
    let held = poll(&mut moved).expect("handed over");
    assert!(poll(&mut moved).is_none(), "nothing comes after the slot");
    drop(moved);
    assert_eq!(counts(&admission), (1, 0));
    drop(held);
}

#[test]
fn rt_33_a_thousand_waiters_go_in_the_order_of_their_arrival() {
    let admission = Admission::new(config(4, 1_000));
    let mut held: VecDeque<Slot> = (0..4).map(|_| slot(&admission)).collect();
    let mut waiting: Vec<Option<Waiter>> = (0..1_000).map(|_| Some(waiter(&admission))).collect();
    for turn in 0..1_000 {
        drop(held.pop_front());
        // Asked from behind, so that the order of asking is not that of coming.
        let mut got = Vec::new();
        for number in (0..1_000).rev() {
            let Some(waiter) = &mut waiting[number] else {
                continue;
            };
            if let Some(slot) = poll(waiter) {
                got.push((number, slot));
            }
        }
        assert_eq!(got.len(), 1, "{turn}");
        let (number, slot) = got.pop().unwrap();
        assert_eq!(number, turn);
        waiting[number] = None;
        held.push_back(slot);
    }
    assert_eq!(counts(&admission), (4, 0));
}

#[test]
fn rt_33_newcomers_do_not_starve_whoever_waits() {
    let admission = Admission::new(config(2, 50));
    let mut held: VecDeque<Slot> = [slot(&admission), slot(&admission)].into();
    let mut waiting: VecDeque<(u64, Waiter)> = (0..50).map(|at| (at, waiter(&admission))).collect();
    for now in 50..5_000 {
        drop(held.pop_front());
        let (arrived, mut first) = waiting.pop_front().unwrap();
        held.push_back(poll(&mut first).expect("whoever came first"));
        assert_eq!(
            now - arrived,
            50,
            "waits for those before it, and no longer"
        );
        waiting.push_back((now, waiter(&admission)));
    }
}

#[test]
fn rt_34_a_panic_gives_its_slot_back() {
    let admission = Admission::new(config(1, 1));
    let held = slot(&admission);
    let mut next = waiter(&admission);
    let outcome = std::thread::spawn(move || {
        let _quiet = crate::runtime::guarded::Quiet::enter();
        let _held = held;
        panic!("on purpose");
    });
    assert!(outcome.join().is_err());
    assert!(poll(&mut next).is_some());
}

/// Wakers are code of others: one that asks how it stands, when it is woken and when it is dropped, finds the lock free.
#[test]
fn rt_33_no_waker_runs_or_is_dropped_under_the_lock() {
    struct Asks(Admission);
    impl Wake for Asks {
        fn wake(self: Arc<Self>) {
            self.0.snapshot();
        }
    }
    impl Drop for Asks {
        fn drop(&mut self) {
            self.0.snapshot();
        }
    }
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let admission = Admission::new(config(1, 2));
        let waker = || -> Waker { Arc::new(Asks(admission.clone())).into() };
        let held = slot(&admission);
        let [mut first, mut second] = [waiter(&admission), waiter(&admission)];
        assert!(poll_with(&mut first, &waker()).is_none());
        assert!(poll_with(&mut first, &waker()).is_none());
        assert!(poll_with(&mut second, &waker()).is_none());
        drop(second);
        drop(held);
        drop(poll_with(&mut first, &waker()).expect("handed over"));
        done.send(()).unwrap();
    });
    is_done
        .recv_timeout(Duration::from_secs(20))
        .expect("no deadlock");
}

#[test]
fn rt_35_ten_thousand_wait_on_one_thread_in_little_memory() {
    assert!(size_of::<Waiter>() <= 16);
    let capacity = Capacity::new(config(1, 10_000));
    driver().block_on(async {
        let held = capacity.acquire().await.unwrap();
        let finished = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..10_000)
            .map(|number| {
                let (capacity, finished) = (Arc::clone(&capacity), Arc::clone(&finished));
                tokio::spawn(async move {
                    let _slot = capacity.acquire().await.unwrap();
                    finished.lock().unwrap().push(number);
                })
            })
            .collect();
        while capacity.snapshot().queued < 10_000 {
            tokio::task::yield_now().await;
        }
        let (running, queued) = (1, 10_000);
        assert_eq!(
            capacity.acquire().await.unwrap_err(),
            CapacityError::Rejected { running, queued }
        );
        drop(held);
        for task in tasks {
            task.await.unwrap();
        }
        let finished = finished.lock().unwrap();
        assert!(finished.iter().copied().eq(0..10_000), "in order");
    });
    assert_eq!(counts(&capacity.admission), (0, 0));
}

/// Leaving and joining a queue of 10,000 in its middle costs hardly more than doing so in one of 10. A scan would cost
/// hundreds of times as much.
#[test]
fn rt_32_leaving_a_long_queue_costs_no_scan() {
    let churn = |length: u64| {
        let admission = Admission::new(config(1, length));
        let _held = slot(&admission);
        let mut waiting: Vec<Waiter> = (0..length).map(|_| waiter(&admission)).collect();
        let mut random = Random(7);
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            for _ in 0..10_000 {
                drop(waiting.swap_remove(random.below(length) as usize));
                waiting.push(waiter(&admission));
            }
            best = best.min(start.elapsed());
        }
        assert_eq!(counts(&admission), (1, length));
        best / 10_000
    };
    let (short, long) = (churn(10), churn(10_000));
    println!("leave and join: {short:?} in a queue of 10, {long:?} in one of 10,000");
    assert!(long < 40 * short, "{short:?} and {long:?}");
}

#[test]
fn rt_37_limits_are_replaced_only_while_idle() {
    let capacity = Capacity::new(config(1, 1));
    let other = config(2, 0);
    let held = slot(&capacity.admission);
    capacity.reconfigure(&config(1, 1)).expect("equal");
    let error = capacity.reconfigure(&other).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(
        error.message.contains("(1 running, 0 queued)"),
        "{}",
        error.message
    );
    let mut next = waiter(&capacity.admission);
    drop(held);
    // A slot that nobody has looked at yet is somebody's.
    capacity.reconfigure(&other).unwrap_err();
    drop(poll(&mut next).expect("handed over"));
    capacity.reconfigure(&other).expect("idle");
    assert_eq!(capacity.config(), other);
    // Whoever kept the capacity has the new limits.
    let _both = [slot(&capacity.admission), slot(&capacity.admission)];
    assert_eq!(rejected(&capacity.admission), (2, 0));
}

#[test]
fn rt_37_the_process_has_one_and_others_share_no_slot_with_it() {
    let shared = process_capacity();
    assert!(Arc::ptr_eq(&shared, &process_capacity()));
    let own = Capacity::new(config(1, 0));
    let _own = slot(&own.admission);
    // Whatever other tests do with it, this makes it busy.
    let held = shared.admission.admit();
    assert!(!matches!(held, Admitted::Rejected { .. }));
    let in_force = shared.config();
    configure_process_capacity(&in_force).expect("equal");
    let error = configure_process_capacity(&SubagentRuntimeConfig {
        queue_timeout_seconds: in_force.queue_timeout_seconds + 1,
        ..in_force
    });
    assert_eq!(error.unwrap_err().code, ErrorCode::Conflict);
}

/// What an admission should do, written down as plainly as possible.
struct Model {
    config: SubagentRuntimeConfig,
    running: u64,
    waiting: VecDeque<u64>,
    handed: BTreeSet<u64>,
}

impl Model {
    fn release(&mut self) {
        match self.waiting.pop_front() {
            Some(number) => _ = self.handed.insert(number),
            None => self.running -= 1,
        }
    }

    fn leave(&mut self, number: u64) {
        if self.handed.remove(&number) {
            self.release();
        } else {
            self.waiting.retain(|waiting| *waiting != number);
        }
    }
}

struct Waiting {
    waiter: Waiter,
    wakes: Arc<Wakes>,
    is_polled: bool,
}

#[test]
fn rt_31_to_rt_33_random_sequences_agree_with_the_obvious() {
    for seed in 1..=400u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let start = config(1 + random.below(4), random.below(8));
        let admission = Admission::new(start.clone());
        let mut model = Model {
            config: start,
            running: 0,
            waiting: VecDeque::new(),
            handed: BTreeSet::new(),
        };
        let mut slots: Vec<Slot> = Vec::new();
        let mut waiters: BTreeMap<u64, Waiting> = BTreeMap::new();
        // Fewer arrivals in some sequences, so that they come to rest now and then.
        let eagerness = 1 + random.below(8);
        for step in 0..1_000u64 {
            let at = format!("seed {seed}, step {step}");
            let pick = |random: &mut Random, waiters: &BTreeMap<u64, Waiting>| {
                let nth = random.below(waiters.len() as u64) as usize;
                *waiters.keys().nth(nth).unwrap()
            };
            match random.below(8 + eagerness) {
                0 | 1 if !slots.is_empty() => {
                    let nth = random.below(slots.len() as u64) as usize;
                    drop(slots.swap_remove(nth));
                    model.release();
                }
                2 | 3 if !waiters.is_empty() => {
                    let number = pick(&mut random, &waiters);
                    drop(waiters.remove(&number));
                    model.leave(number);
                }
                4..=6 if !waiters.is_empty() => {
                    let number = pick(&mut random, &waiters);
                    let own = waiters.get_mut(&number).unwrap();
                    let woken = own.wakes.0.load(Ordering::Relaxed);
                    let is_handed = model.handed.remove(&number);
                    // Woken once for the slot, if there was anyone to wake; never for nothing.
                    assert_eq!(woken, u64::from(is_handed && own.is_polled), "{at}");
                    let waker = Arc::clone(&own.wakes).into();
                    match poll_with(&mut own.waiter, &waker) {
                        Some(slot) => {
                            assert!(is_handed, "{at}");
                            slots.push(slot);
                            waiters.remove(&number);
                        }
                        None => {
                            assert!(!is_handed, "{at}");
                            own.is_polled = true;
                        }
                    }
                }
                7 => {
                    let mut other = config(1 + random.below(4), random.below(8));
                    if random.below(8) == 0 {
                        other.admission_policy = AdmissionPolicy::Reject;
                    }
                    let is_idle = model.running == 0;
                    let is_taken = admission.reconfigure(&other).is_ok();
                    assert_eq!(is_taken, is_idle || other == model.config, "{at}");
                    if is_taken {
                        model.config = other;
                    }
                }
                _ => match admission.admit() {
                    Admitted::Slot(slot) => {
                        assert!(model.running < model.config.max_running, "{at}");
                        model.running += 1;
                        slots.push(slot);
                    }
                    Admitted::Rejected { running, queued } => {
                        let right = (model.running, model.waiting.len() as u64);
                        assert_eq!((running, queued), right, "{at}");
                        assert_eq!(running, model.config.max_running, "{at}");
                        let is_full = queued >= model.config.max_queued;
                        let never = model.config.admission_policy == AdmissionPolicy::Reject;
                        assert!(is_full || never, "{at}");
                    }
                    Admitted::Waiter(waiter) => {
                        assert_eq!(model.running, model.config.max_running, "{at}");
                        assert!((model.waiting.len() as u64) < model.config.max_queued);
                        assert_eq!(model.config.admission_policy, AdmissionPolicy::Queue);
                        model.waiting.push_back(step);
                        let own = Waiting {
                            waiter,
                            wakes: Arc::default(),
                            is_polled: false,
                        };
                        waiters.insert(step, own);
                    }
                },
            }
            let right = (model.running, model.waiting.len() as u64);
            assert_eq!(counts(&admission), right, "{at}");
            assert!(model.running <= model.config.max_running, "{at}");
            assert_eq!(slots.len() + model.handed.len(), model.running as usize);
        }
        drop((slots, waiters));
        assert_eq!(counts(&admission), (0, 0), "seed {seed}");
    }
}
