//! How many model calls of a runtime's lead agents are in flight at once.
//!
//! An attempt takes a place and gives it back when it ends, however it ends: a future that is dropped in the queue leaves it,
//! and one that is dropped in its place frees it. Whoever came first goes first.
//!
//! Source: DeerFlow's limiter of model calls, MW-LLM-7. There it belongs to the process; here to the runtime, since a process
//! may hold several that know nothing of each other.

use std::sync::{Arc, OnceLock};

use tokio::sync::{Semaphore, SemaphorePermit};

/// The places of attempts.
pub struct InFlight {
    places: Semaphore,
    limit: u64,
}

impl InFlight {
    fn new(limit: u64) -> Self {
        let places = usize::try_from(limit).unwrap_or(usize::MAX);
        InFlight {
            places: Semaphore::new(places.min(Semaphore::MAX_PERMITS)),
            limit,
        }
    }

    /// Waits for a place, and holds it until what is returned is dropped. Never `None`: nobody closes the places.
    pub async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        self.places.acquire().await.ok()
    }
}

/// The places of a runtime, whose number is fixed by whoever first says one.
#[derive(Default)]
pub struct SharedInFlight(OnceLock<Option<Arc<InFlight>>>);

impl SharedInFlight {
    /// The places, `limit` of them if nobody has said a number before; 0 is any number, for which there are none.
    pub fn resolve(&self, limit: u64) -> Option<Arc<InFlight>> {
        let make = || (limit > 0).then(|| Arc::new(InFlight::new(limit)));
        self.0.get_or_init(make).clone()
    }

    /// The number that was said first, 0 for any number; `None` before that.
    pub fn limit(&self) -> Option<u64> {
        let places = self.0.get()?;
        Some(places.as_ref().map_or(0, |places| places.limit))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiter<'a> = Pin<Box<dyn Future<Output = Option<SemaphorePermit<'a>>> + 'a>>;

    fn poll<'a>(waiter: &mut Waiter<'a>) -> Option<SemaphorePermit<'a>> {
        match waiter
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(place) => Some(place.expect("open")),
            Poll::Pending => None,
        }
    }

    #[test]
    fn llm_7_the_first_number_counts() {
        let shared = SharedInFlight::default();
        assert_eq!(shared.limit(), None);
        let first = shared.resolve(4).expect("places");
        let second = shared.resolve(0).expect("places");
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(shared.limit(), Some(4));
        let any = SharedInFlight::default();
        assert!(any.resolve(0).is_none() && any.resolve(7).is_none());
        assert_eq!(any.limit(), Some(0));
        assert!(SharedInFlight::default().resolve(u64::MAX).is_some());
    }

    #[test]
    fn llm_7_whoever_came_first_goes_first() {
        let places = InFlight::new(1);
        let mut holder = poll(&mut (Box::pin(places.enter()) as Waiter<'_>));
        assert!(holder.is_some());
        let mut waiters: Vec<Waiter<'_>> = (0..10).map(|_| Box::pin(places.enter()) as _).collect();
        assert!(waiters.iter_mut().all(|waiter| poll(waiter).is_none()));
        for turn in 0..10 {
            drop(holder.take());
            // Asked from behind, so that whoever is polled first is not whoever came first.
            for (place, waiter) in waiters.iter_mut().enumerate().skip(turn).rev() {
                match poll(waiter) {
                    Some(_) if place != turn => panic!("{place} before {turn}"),
                    got => holder = got.or(holder),
                }
            }
            assert!(holder.is_some(), "{turn}");
        }
    }

    /// 100 waiters for 3 places, of which a random one gives up, finishes or asks at every step: never more than 3 inside, in
    /// the order of their coming, and all 3 places are free in the end.
    #[test]
    fn llm_7_no_place_is_lost_or_stranded_when_waiters_give_up() {
        for seed in 1..=50u64 {
            let places = InFlight::new(3);
            let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut below = |bound: usize| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random % bound as u64) as usize
            };
            let mut waiting: BTreeMap<usize, Waiter<'_>> = BTreeMap::new();
            let mut inside = BTreeMap::new();
            for number in 0..100 {
                let mut waiter: Waiter<'_> = Box::pin(places.enter());
                // The first poll is what takes a place in the queue.
                match poll(&mut waiter) {
                    Some(place) => _ = inside.insert(number, place),
                    None => _ = waiting.insert(number, waiter),
                }
            }
            assert_eq!((inside.len(), waiting.len()), (3, 97));
            let mut last = 2;
            while !waiting.is_empty() || !inside.is_empty() {
                match below(3) {
                    0 if !waiting.is_empty() => {
                        // Also one that was let in and does not know yet.
                        let nth = below(waiting.len());
                        let number = *waiting.keys().nth(nth).expect("one");
                        drop(waiting.remove(&number));
                    }
                    1 if !inside.is_empty() => {
                        let nth = below(inside.len());
                        let number = *inside.keys().nth(nth).expect("one");
                        drop(inside.remove(&number));
                    }
                    _ => {
                        let numbers: Vec<usize> = waiting.keys().copied().collect();
                        for number in numbers {
                            let waiter = waiting.get_mut(&number).expect("one");
                            if let Some(place) = poll(waiter) {
                                assert!(number > last, "{number} after {last}, seed {seed}");
                                last = number;
                                waiting.remove(&number);
                                inside.insert(number, place);
                            }
                        }
                        // Whoever waits has everybody inside before them.
                        let is_full = inside.len() == 3;
                        assert!(is_full || waiting.is_empty(), "seed {seed}");
                    }
                }
                assert!(inside.len() <= 3);
            }
            assert_eq!(places.places.available_permits(), 3, "seed {seed}");
        }
    }
}
