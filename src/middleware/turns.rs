//! Turns by key: of those who ask for the same key one is served at a time, in the order in which they asked.
//!
//! Needs no async runtime. A future that is dropped while it waits leaves its place, one that is dropped while it is served
//! gives the turn on, and a key is forgotten when nobody holds a place: nothing can be left locked, and nothing grows.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// The lines of those who wait. Clones share them.
#[derive(Debug)]
pub(super) struct Turns<K>(Arc<Mutex<Lines<K>>>);

#[derive(Debug)]
struct Lines<K> {
    lines: HashMap<K, VecDeque<Place>>,
    next: u64,
}

/// A place in a line; the first is served.
#[derive(Debug)]
struct Place {
    number: u64,
    waker: Option<Waker>,
}

/// A place in the line of a key, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<K: Hash + Eq> {
    turns: Turns<K>,
    key: K,
    number: u64,
}

impl<K> Turns<K> {
    /// Nobody waits.
    pub(super) fn new() -> Self {
        Turns(Arc::new(Mutex::new(Lines {
            lines: HashMap::new(),
            next: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Lines<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn keys(&self) -> usize {
        self.lock().lines.len()
    }
}

impl<K> Clone for Turns<K> {
    fn clone(&self) -> Self {
        Turns(self.0.clone())
    }
}

impl<K: Hash + Eq + Clone> Turns<K> {
    /// Waits for the turn of `key`. The place in the line is taken with the first poll.
    pub(super) async fn turn(&self, key: K) -> Turn<K> {
        let turn = {
            let mut all = self.lock();
            let number = all.next;
            all.next += 1;
            let line = all.lines.entry(key.clone()).or_default();
            line.push_back(Place {
                number,
                waker: None,
            });
            Turn {
                turns: self.clone(),
                key,
                number,
            }
        };
        poll_fn(|context| {
            let mut all = turn.turns.lock();
            let line = all.lines.get_mut(&turn.key);
            let place = line.and_then(|line| {
                let is_first = line.front()?.number == turn.number;
                let place = line.iter_mut().find(|place| place.number == turn.number);
                place.filter(|_| !is_first)
            });
            match place {
                None => Poll::Ready(()),
                Some(place) => {
                    place.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        turn
    }
}

impl<K: Hash + Eq> Drop for Turn<K> {
    fn drop(&mut self) {
        let woken = {
            let mut all = self.turns.lock();
            let Some(line) = all.lines.get_mut(&self.key) else {
                return;
            };
            line.retain(|place| place.number != self.number);
            match line.front_mut() {
                Some(first) => first.waker.take(),
                None => {
                    all.lines.remove(&self.key);
                    None
                }
            }
        };
        // Outside of the lock: a waker is somebody else's code.
        if let Some(waker) = woken {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    use super::*;

    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    type Waiting = Pin<Box<dyn Future<Output = Turn<&'static str>>>>;

    fn ask(turns: &Turns<&'static str>, key: &'static str) -> Waiting {
        let turns = turns.clone();
        Box::pin(async move { turns.turn(key).await })
    }

    fn poll(waiting: &mut Waiting, waker: &Waker) -> Option<Turn<&'static str>> {
        match waiting.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    #[test]
    fn turns_come_in_the_order_of_asking_and_keys_do_not_wait_for_each_other() {
        let turns = Turns::new();
        let counting = Arc::new(Counting(AtomicUsize::new(0)));
        let waker = Waker::from(counting.clone());
        let first = poll(&mut ask(&turns, "a"), &waker).expect("nobody is before it");
        let (mut second, mut third) = (ask(&turns, "a"), ask(&turns, "a"));
        assert!(poll(&mut second, &waker).is_none());
        assert!(poll(&mut third, &waker).is_none());
        let other = poll(&mut ask(&turns, "b"), &waker).expect("another key");
        assert_eq!(turns.keys(), 2);
        drop((first, other));
        assert_eq!(counting.0.load(Ordering::Relaxed), 1, "the next is woken");
        assert!(poll(&mut third, &waker).is_none(), "it is not its turn");
        let second = poll(&mut second, &waker).expect("its turn");
        drop(second);
        drop(poll(&mut third, &waker).expect("its turn"));
        assert_eq!(turns.keys(), 0, "nothing is left");
    }

    #[test]
    fn rbw_4_whoever_gives_up_leaves_nothing_locked() {
        let turns = Turns::new();
        let counting = Arc::new(Counting(AtomicUsize::new(0)));
        let waker = Waker::from(counting.clone());
        let first = poll(&mut ask(&turns, "a"), &waker).expect("nobody is before it");
        let (mut gives_up, mut last) = (ask(&turns, "a"), ask(&turns, "a"));
        let never_polled = ask(&turns, "a");
        assert!(poll(&mut gives_up, &waker).is_none() && poll(&mut last, &waker).is_none());
        drop((gives_up, never_polled));
        drop(first);
        assert!(counting.0.load(Ordering::Relaxed) >= 1);
        let last = poll(&mut last, &waker).expect("its turn");
        // One that is served and dropped in the middle.
        let mut after = ask(&turns, "a");
        assert!(poll(&mut after, &waker).is_none());
        drop(last);
        // Its turn came, and it is dropped before it takes it.
        let mut very_last = ask(&turns, "a");
        assert!(poll(&mut very_last, &waker).is_none());
        drop(after);
        drop(poll(&mut very_last, &waker).expect("its turn"));
        assert_eq!(turns.keys(), 0);
    }

    #[test]
    fn os_threads_take_turns() {
        let turns = Turns::new();
        let inside = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (turns, inside) = (turns.clone(), inside.clone());
                scope.spawn(move || {
                    for _ in 0..500 {
                        let mut waiting = ask(&turns, "a");
                        let turn = loop {
                            match poll(&mut waiting, Waker::noop()) {
                                Some(turn) => break turn,
                                None => std::thread::yield_now(),
                            }
                        };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(turn);
                    }
                });
            }
        });
        assert_eq!(turns.keys(), 0);
    }
}
