//! Starting and stopping: one at a time, each only once, and what is being stopped is out of sight first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use super::sync::{Wait, lock};
use crate::protocol::error::Error;

/// What is started and stopped.
pub trait Service: Send + Sync + 'static {
    /// Starts it; after a stop, anew. It is not running when this is called, but its stop may not have come to its end.
    ///
    /// # Errors
    /// Its own; it is not running then.
    fn start(&self) -> Result<(), Error>;

    /// Stops it and waits for that so long: whether it has stopped. To call this for one that has stopped does nothing, and for
    /// one whose stop took longer than a caller wanted to wait it waits once more.
    fn stop(&self, wait: Wait) -> bool;
}

/// The life of an object that may own a service. Without one, starting and stopping is all there is to it.
///
/// Source: DeerFlow `SubagentRuntime.start` and `stop`, RT-15 to RT-19.
pub struct LifeCycle<S> {
    service: Option<S>,
    /// What others see: read without waiting for whoever starts or stops.
    started: AtomicBool,
    /// Whether somebody starts or stops just now.
    busy: Mutex<bool>,
    free: Condvar,
}

/// The right to start or stop, given back when it is dropped: also by a panic of the service.
struct Turn<'a> {
    busy: &'a Mutex<bool>,
    free: &'a Condvar,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(self.busy) = false;
        self.free.notify_one();
    }
}

impl<S: Service> LifeCycle<S> {
    /// Of an object that is not started.
    pub fn new(service: Option<S>) -> Self {
        LifeCycle {
            service,
            started: AtomicBool::new(false),
            busy: Mutex::new(false),
            free: Condvar::new(),
        }
    }

    /// Whether the object owns a service.
    pub fn has_service(&self) -> bool {
        self.service.is_some()
    }

    /// Whether it was started and no stop has begun since.
    pub fn is_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// The service while it is started (RT-7).
    pub fn started_service(&self) -> Option<&S> {
        self.service.as_ref().filter(|_| self.is_started())
    }

    /// Starts what is not started (RT-15).
    ///
    /// # Errors
    /// Those of the service; it is not started then.
    pub fn start(&self) -> Result<(), Error> {
        let _turn = self.turn(None);
        if !self.is_started() {
            self.service.as_ref().map_or(Ok(()), Service::start)?;
            self.started.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Stops what is started (RT-16, RT-17): whether it has stopped in time. Otherwise the stop goes on; to stop again is to wait
    /// once more.
    pub fn stop(&self, wait: Wait) -> bool {
        let deadline = wait.deadline();
        let Some(_turn) = self.turn(deadline) else {
            return false;
        };
        // Before it stops, so that nobody is handed what is about to go.
        self.started.store(false, Ordering::Release);
        let left = match deadline {
            None => Wait::Forever,
            Some(at) => Wait::For(at.saturating_duration_since(Instant::now())),
        };
        self.service
            .as_ref()
            .is_none_or(|service| service.stop(left))
    }

    /// Waits for the turn; none if it does not come in time.
    fn turn(&self, deadline: Option<Instant>) -> Option<Turn<'_>> {
        let mut busy = lock(&self.busy);
        while *busy {
            busy = match deadline {
                None => self.free.wait(busy).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let left = at.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    let waited = self.free.wait_timeout(busy, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *busy = true;
        Some(Turn {
            busy: &self.busy,
            free: &self.free,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::protocol::error::ErrorCode;

    const NO_TIME: Wait = Wait::For(Duration::ZERO);

    /// Notes what happens to it. A stop waits until it is let go, if it has something to wait for.
    #[derive(Default)]
    struct Noted {
        events: Mutex<Vec<&'static str>>,
        fails: AtomicBool,
        panics: AtomicBool,
        stopping: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    }

    impl Noted {
        fn note(&self, event: &'static str) {
            lock(&self.events).push(event);
        }
    }

    impl Service for Arc<Noted> {
        fn start(&self) -> Result<(), Error> {
            self.note("start");
            assert!(!self.panics.load(Ordering::Relaxed), "planted");
            match self.fails.load(Ordering::Relaxed) {
                true => Err(Error::new(ErrorCode::Internal, "planted")),
                false => Ok(()),
            }
        }

        fn stop(&self, wait: Wait) -> bool {
            self.note("stop");
            match &*lock(&self.stopping) {
                None => true,
                Some((begun, go_on)) => {
                    begun.send(()).unwrap();
                    match wait {
                        Wait::Forever => go_on.recv().is_ok(),
                        Wait::For(limit) => go_on.recv_timeout(limit).is_ok(),
                    }
                }
            }
        }
    }

    fn life() -> (Arc<Noted>, Arc<LifeCycle<Arc<Noted>>>) {
        let noted = Arc::new(Noted::default());
        let life = Arc::new(LifeCycle::new(Some(noted.clone())));
        (noted, life)
    }

    #[test]
    fn rt_15_16_19_each_happens_once_however_often_it_is_asked_for() {
        let (noted, life) = life();
        assert!(life.has_service() && life.started_service().is_none());
        life.start().unwrap();
        life.start().unwrap();
        assert!(life.started_service().is_some());
        assert!(life.stop(NO_TIME));
        assert!(life.started_service().is_none());
        life.start().unwrap();
        assert!(life.started_service().is_some());
        assert_eq!(*lock(&noted.events), ["start", "stop", "start"]);
    }

    #[test]
    fn rt_15_a_start_that_fails_or_panics_leaves_it_stopped_and_can_be_tried_again() {
        let (noted, life) = life();
        noted.fails.store(true, Ordering::Relaxed);
        assert_eq!(life.start().unwrap_err().message, "planted");
        assert!(!life.is_started());
        noted.fails.store(false, Ordering::Relaxed);
        noted.panics.store(true, Ordering::Relaxed);
        let shared = life.clone();
        assert!(thread::spawn(move || shared.start()).join().is_err());
        assert!(!life.is_started());
        noted.panics.store(false, Ordering::Relaxed);
        life.start().unwrap();
        assert!(life.is_started());
    }

    #[test]
    fn rt_16_what_is_being_stopped_is_out_of_sight_and_a_start_waits_its_turn() {
        let (noted, life) = life();
        let ((begun, is_begun), (let_go, go_on)) = (channel(), channel());
        *lock(&noted.stopping) = Some((begun, go_on));
        life.start().unwrap();
        let stopper = {
            let life = life.clone();
            thread::spawn(move || life.stop(Wait::Forever))
        };
        is_begun.recv().unwrap();
        assert!(life.started_service().is_none());
        // Whoever has no time does not wait for the turn either.
        assert!(!life.stop(NO_TIME));
        let starter = {
            let life = life.clone();
            thread::spawn(move || life.start())
        };
        thread::sleep(Duration::from_millis(20));
        assert_eq!(*lock(&noted.events), ["start", "stop"]);
        let_go.send(()).unwrap();
        assert!(stopper.join().unwrap());
        starter.join().unwrap().unwrap();
        assert!(life.is_started());
        assert_eq!(*lock(&noted.events), ["start", "stop", "start"]);
    }

    #[test]
    fn rt_17_a_stop_that_takes_longer_than_anyone_waits_is_waited_for_again() {
        let (noted, life) = life();
        let ((begun, _is_begun), (let_go, go_on)) = (channel(), channel());
        *lock(&noted.stopping) = Some((begun, go_on));
        life.start().unwrap();
        assert!(!life.stop(NO_TIME));
        assert!(!life.is_started());
        let_go.send(()).unwrap();
        assert!(life.stop(Wait::Forever));
    }
}
