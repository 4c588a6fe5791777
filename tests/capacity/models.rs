//! Small cases of the admission in every interleaving: no slot is lost, nobody is forgotten, never too many, in order.
//!
//! A model that leaves a thread asleep for ever fails as a deadlock, so waiting for a slot is itself the check that somebody is
//! woken for it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use loom::future::{AtomicWaker, block_on};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::admission::{Admission, Admitted, Slot, Waiter};
use crate::protocol::app_config::{AdmissionPolicy, SubagentRuntimeConfig};

/// Runs the case in every interleaving, or in all with at most so many preemptions.
fn model(preemptions: Option<usize>, case: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    builder.check(move || {
        counter.fetch_add(1, Relaxed);
        case();
    });
    println!("{count:?} interleavings");
}

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

/// Nobody runs or waits, and all slots can be had.
fn all_free(admission: &Admission) {
    let now = admission.snapshot();
    assert_eq!((now.running, now.queued), (0, 0));
    let slots: Vec<Slot> = (0..now.max_running).map(|_| slot(admission)).collect();
    assert_eq!(admission.snapshot().running, now.max_running);
    drop(slots);
}

/// Counts who is inside.
#[derive(Clone, Default)]
struct Inside(Arc<AtomicU64>);

impl Inside {
    /// Holds a slot for a while, with at most so many inside.
    fn hold(&self, slot: Slot, most: u64) {
        assert!(self.0.fetch_add(1, Relaxed) < most);
        thread::yield_now();
        self.0.fetch_sub(1, Relaxed);
        drop(slot);
    }
}

#[test]
fn rt_32_hand_over_against_cancellation() {
    model(None, || {
        let admission = Admission::new(config(1, 2));
        let held = slot(&admission);
        let [leaving, staying] = [waiter(&admission), waiter(&admission)];
        let releaser = thread::spawn(move || drop(held));
        let canceller = thread::spawn(move || drop(leaving));
        // Whether the one that leaves had been handed the slot or not.
        drop(block_on(staying));
        releaser.join().unwrap();
        canceller.join().unwrap();
        all_free(&admission);
    });
}

#[test]
fn rt_32_cancellation_against_cancellation_and_hand_over() {
    model(Some(3), || {
        let admission = Admission::new(config(1, 3));
        let held = slot(&admission);
        let leaving = [waiter(&admission), waiter(&admission)];
        let staying = waiter(&admission);
        let cancellers = leaving.map(|waiter| thread::spawn(move || drop(waiter)));
        let releaser = thread::spawn(move || drop(held));
        drop(block_on(staying));
        for canceller in cancellers {
            canceller.join().unwrap();
        }
        releaser.join().unwrap();
        all_free(&admission);
    });
}

#[test]
fn rt_32_everybody_leaves_at_once() {
    model(None, || {
        let admission = Admission::new(config(1, 2));
        let held = slot(&admission);
        let leaving = [waiter(&admission), waiter(&admission)];
        let cancellers = leaving.map(|waiter| thread::spawn(move || drop(waiter)));
        drop(held);
        for canceller in cancellers {
            canceller.join().unwrap();
        }
        all_free(&admission);
    });
}

#[test]
fn rt_33_release_against_arrival() {
    model(None, || {
        let admission = Admission::new(config(1, 1));
        let held = slot(&admission);
        let releaser = thread::spawn(move || drop(held));
        let slot = match admission.admit() {
            Admitted::Slot(slot) => slot,
            Admitted::Waiter(waiter) => block_on(waiter),
            other => panic!("{other:?}"),
        };
        releaser.join().unwrap();
        drop(slot);
        all_free(&admission);
    });
}

#[test]
fn rt_31_release_against_an_arrival_that_may_not_wait() {
    model(None, || {
        let admission = Admission::new(config(1, 0));
        let held = slot(&admission);
        let releaser = thread::spawn(move || drop(held));
        match admission.admit() {
            Admitted::Slot(slot) => drop(slot),
            Admitted::Rejected { running, queued } => assert_eq!((running, queued), (1, 0)),
            other => panic!("{other:?}"),
        }
        releaser.join().unwrap();
        all_free(&admission);
    });
}

/// The last place in the queue, for which two arrive while another leaves it.
#[test]
fn rt_31_two_arrivals_against_the_place_of_one_that_leaves() {
    model(None, || {
        let admission = Admission::new(config(1, 1));
        let held = slot(&admission);
        let leaving = waiter(&admission);
        let canceller = thread::spawn(move || drop(leaving));
        let arrive = |admission: Admission| match admission.admit() {
            Admitted::Waiter(waiter) => Some(waiter),
            Admitted::Rejected { running, queued } => {
                assert_eq!((running, queued), (1, 1));
                None
            }
            other => panic!("{other:?}"),
        };
        let other = admission.clone();
        let arriver = thread::spawn(move || arrive(other));
        let first = arrive(admission.clone());
        let second = arriver.join().unwrap();
        canceller.join().unwrap();
        let waiting = usize::from(first.is_some()) + usize::from(second.is_some());
        assert!(waiting <= 1);
        assert_eq!(admission.snapshot().queued, waiting as u64);
        drop(held);
        for waiter in [first, second].into_iter().flatten() {
            drop(block_on(waiter));
        }
        all_free(&admission);
    });
}

/// What `tokio::time::timeout` does: waits for the slot or the time, and drops the waiter when the time is first.
#[test]
fn rt_32_time_that_is_up_against_hand_over() {
    struct Timer {
        is_up: AtomicBool,
        waker: AtomicWaker,
    }
    model(Some(3), || {
        let admission = Admission::new(config(1, 2));
        let held = slot(&admission);
        let [mut hasty, patient] = [waiter(&admission), waiter(&admission)];
        let timer = loom::sync::Arc::new(Timer {
            is_up: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        });
        let clock = loom::sync::Arc::clone(&timer);
        let clock = thread::spawn(move || {
            clock.is_up.store(true, Ordering::Release);
            clock.waker.wake();
        });
        let releaser = thread::spawn(move || drop(held));
        let got = block_on(poll_fn(|context| {
            timer.waker.register_by_ref(context.waker());
            match Pin::new(&mut hasty).poll(context) {
                Poll::Ready(slot) => Poll::Ready(Some(slot)),
                Poll::Pending if timer.is_up.load(Ordering::Acquire) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        }));
        drop(hasty);
        drop(got);
        drop(block_on(patient));
        clock.join().unwrap();
        releaser.join().unwrap();
        // Holds a waker of this thread.
        drop(timer.waker.take_waker());
        all_free(&admission);
    });
}

/// A future may move to another task between two polls: whoever polled last is woken.
#[test]
fn rt_33_hand_over_against_a_change_of_waker() {
    model(None, || {
        let admission = Admission::new(config(1, 1));
        let held = slot(&admission);
        let mut moving = waiter(&admission);
        let releaser = thread::spawn(move || drop(held));
        let first = Pin::new(&mut moving).poll(&mut Context::from_waker(Waker::noop()));
        match first {
            Poll::Ready(slot) => drop(slot),
            Poll::Pending => drop(block_on(moving)),
        }
        releaser.join().unwrap();
        all_free(&admission);
    });
}

#[test]
fn rt_33_whoever_came_first_goes_first() {
    model(Some(2), || {
        let admission = Admission::new(config(1, 3));
        let held = slot(&admission);
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let waiting = [0, 1, 2].map(|number| (number, waiter(&admission)));
        let threads = waiting.map(|(number, waiter)| {
            let order = Arc::clone(&order);
            thread::spawn(move || {
                let slot = block_on(waiter);
                order.lock().unwrap().push(number);
                drop(slot);
            })
        });
        drop(held);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
        all_free(&admission);
    });
}

#[test]
fn rt_31_never_more_inside_than_may_be() {
    for (max_running, preemptions) in [(1, 3), (2, 3)] {
        model(Some(preemptions), move || {
            let admission = Admission::new(config(max_running, 3));
            let inside = Inside::default();
            let execution = {
                let (admission, inside) = (admission.clone(), inside.clone());
                move || {
                    let slot = match admission.admit() {
                        Admitted::Slot(slot) => slot,
                        Admitted::Waiter(waiter) => block_on(waiter),
                        other => panic!("{other:?}"),
                    };
                    inside.hold(slot, max_running);
                }
            };
            let threads = [execution.clone(), execution.clone()].map(thread::spawn);
            execution();
            for thread in threads {
                thread.join().unwrap();
            }
            all_free(&admission);
        });
    }
}

/// Two slots are given back at once while one of two waiters leaves and a newcomer arrives.
#[test]
fn rt_33_two_releases_against_leaving_and_arrival() {
    model(Some(2), || {
        let admission = Admission::new(config(2, 2));
        let held = [slot(&admission), slot(&admission)];
        let [leaving, staying] = [waiter(&admission), waiter(&admission)];
        let releasers = held.map(|slot| thread::spawn(move || drop(slot)));
        let canceller = thread::spawn(move || drop(leaving));
        match admission.admit() {
            Admitted::Slot(slot) => drop(slot),
            Admitted::Waiter(waiter) => drop(block_on(waiter)),
            Admitted::Rejected { running, queued } => assert_eq!((running, queued), (2, 2)),
        }
        drop(block_on(staying));
        for releaser in releasers {
            releaser.join().unwrap();
        }
        canceller.join().unwrap();
        all_free(&admission);
    });
}

/// Limits change only while nobody runs or waits, so no newcomer ever runs beside more than its limits allow.
#[test]
fn rt_37_new_limits_against_arrivals() {
    model(None, || {
        let admission = Admission::new(config(2, 0));
        let narrow = SubagentRuntimeConfig {
            admission_policy: AdmissionPolicy::Reject,
            ..config(1, 0)
        };
        let (other, new) = (admission.clone(), narrow.clone());
        let operator = thread::spawn(move || other.reconfigure(&new).is_ok());
        let got = [admission.admit(), admission.admit()];
        let is_narrow = operator.join().unwrap();
        let running = got
            .iter()
            .filter(|got| matches!(got, Admitted::Slot(_)))
            .count() as u64;
        assert_eq!(running, if is_narrow { 1 } else { 2 });
        assert_eq!(admission.snapshot().running, running);
        assert_eq!(admission.config() == narrow, is_narrow);
        drop(got);
        all_free(&admission);
    });
}
