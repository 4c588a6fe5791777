//! The wake-up hook of a queue: the one function of the host that is ever kept.
//!
//! The runtime is given a closure; what that closure calls, and whether it still may, is decided here. So the promises
//! to the host (no call after the end of a registration, the drop function exactly once) hold whatever the runtime is
//! doing at the time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::guard::InHost;
use crate::protocol::error::{Error, ErrorCode};

/// A function of the host that is called when a queue that was empty has something to take.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type fawn_wakeup_fn = Option<unsafe extern "C" fn(user_data: usize)>;

/// A function of the host that is called exactly once when a registration has ended.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type fawn_drop_fn = Option<unsafe extern "C" fn(user_data: usize)>;

/// What the runtime calls.
type Hook = Box<dyn Fn() + Send + Sync>;

/// One `fawn_queue_set_wakeup`, until it is replaced, cleared or the queue is gone.
pub(super) struct Registration {
    wakeup: unsafe extern "C" fn(usize),
    drop: fawn_drop_fn,
    user_data: usize,
    progress: Mutex<Progress>,
    /// Signalled when the drop function has returned.
    dropped: Condvar,
}

#[derive(Default)]
struct Progress {
    /// Calls of the hook that have not returned.
    running: usize,
    /// No call begins any more.
    ended: bool,
    /// The drop function has returned.
    dropped: bool,
}

impl Registration {
    /// A registration that nobody fires yet.
    pub(super) fn new(
        wakeup: unsafe extern "C" fn(usize),
        user_data: usize,
        drop: fawn_drop_fn,
    ) -> Arc<Self> {
        Arc::new(Registration {
            wakeup,
            drop,
            user_data,
            progress: Mutex::default(),
            dropped: Condvar::new(),
        })
    }

    /// Calls the hook, unless the registration has ended.
    fn fire(&self) {
        {
            let mut progress = lock(&self.progress);
            if progress.ended {
                return;
            }
            progress.running += 1;
        }
        {
            let _inside = InHost::enter();
            // SAFETY: the host registered this function for this argument, and has not been told yet that it may
            // take them away: the drop function runs only when no call is running.
            unsafe { (self.wakeup)(self.user_data) };
        }
        let last = {
            let mut progress = lock(&self.progress);
            progress.running -= 1;
            progress.ended && progress.running == 0
        };
        if last {
            self.run_drop();
        }
    }

    /// Ends the registration. When this returns the hook is not running, will not run again, and the drop function has
    /// returned; only inside a function of the host, where waiting could be waiting for oneself, may that come later.
    fn end(&self) {
        let mut progress = lock(&self.progress);
        let first = !std::mem::replace(&mut progress.ended, true);
        if first && progress.running == 0 {
            drop(progress);
            self.run_drop();
            return;
        }
        while !progress.dropped && !InHost::is() {
            progress = self
                .dropped
                .wait(progress)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whoever ends the registration, or leaves the hook last after its end, calls this: one caller.
    fn run_drop(&self) {
        if let Some(drop) = self.drop {
            let _inside = InHost::enter();
            // SAFETY: the host gave the function for this argument; it runs once, after the last call of the hook.
            unsafe { drop(self.user_data) };
        }
        lock(&self.progress).dropped = true;
        self.dropped.notify_all();
    }
}

/// The place for a queue's registration.
#[derive(Default)]
pub(super) struct Slot {
    /// Held while the runtime is told, so that it ends up with the hook that is current here. Lock order: this one,
    /// then `current`. Never taken inside a function of the host.
    telling: Mutex<()>,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    /// The queue is gone; nothing is registered any more.
    closed: bool,
    registration: Option<Arc<Registration>>,
}

impl Slot {
    /// Replaces the registration and tells the runtime. The old one has ended when this returns.
    ///
    /// # Errors
    /// [`ErrorCode::Handle`] if the queue was freed meanwhile; `new` was not registered then.
    pub(super) fn replace(
        &self,
        new: Option<Arc<Registration>>,
        tell: impl FnOnce(Option<Hook>),
    ) -> Result<(), Error> {
        let old = {
            let _telling = lock(&self.telling);
            let old = {
                let mut current = lock(&self.current);
                if current.closed {
                    let message = "this queue handle was freed";
                    return Err(Error::new(ErrorCode::Handle, message));
                }
                std::mem::replace(&mut current.registration, new.clone())
            };
            tell(new.map(|registration| Box::new(move || registration.fire()) as Hook));
            old
        };
        if let Some(old) = old {
            old.end();
        }
        Ok(())
    }

    /// Ends the registration and takes no other.
    pub(super) fn close(&self) {
        let old = {
            let mut current = lock(&self.current);
            current.closed = true;
            current.registration.take()
        };
        if let Some(old) = old {
            old.end();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    /// What the C functions below count; its address is the user data.
    #[derive(Default)]
    struct Host {
        calls: AtomicU32,
        drops: AtomicU32,
        /// The hook stays inside until this is 0.
        hold: AtomicU32,
        /// Address of a `Slot` that the hook closes.
        closes: AtomicUsize,
    }

    unsafe extern "C" fn on_wakeup(user_data: usize) {
        // SAFETY: the tests keep the host alive until they have joined every thread.
        let host = unsafe { &*(user_data as *const Host) };
        assert_eq!(host.drops.load(SeqCst), 0, "called after its end");
        host.calls.fetch_add(1, SeqCst);
        while host.hold.load(SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let slot = host.closes.load(SeqCst);
        if slot != 0 {
            // SAFETY: the test that set it keeps the slot alive.
            unsafe { &*(slot as *const Slot) }.close();
        }
        assert_eq!(host.drops.load(SeqCst), 0, "dropped while running");
    }

    unsafe extern "C" fn on_drop(user_data: usize) {
        assert!(InHost::is());
        // SAFETY: as above.
        unsafe { &*(user_data as *const Host) }
            .drops
            .fetch_add(1, SeqCst);
    }

    fn register(host: &Host) -> Arc<Registration> {
        Registration::new(on_wakeup, std::ptr::from_ref(host) as usize, Some(on_drop))
    }

    #[test]
    fn drop_runs_once_when_replaced_cleared_or_closed() {
        let hosts: [Host; 3] = Default::default();
        let slot = Slot::default();
        let told = Mutex::new(None::<Hook>);
        let tell = |hook| *lock(&told) = hook;
        let fire = || lock(&told).as_ref().map(|hook| hook());
        let drops = || hosts.each_ref().map(|host| host.drops.load(SeqCst));
        slot.replace(Some(register(&hosts[0])), tell).unwrap();
        fire();
        slot.replace(Some(register(&hosts[1])), tell).unwrap();
        assert_eq!(drops(), [1, 0, 0]);
        fire();
        slot.replace(None, tell).unwrap();
        assert_eq!(drops(), [1, 1, 0]);
        assert!(fire().is_none());
        slot.replace(Some(register(&hosts[2])), tell).unwrap();
        fire();
        slot.close();
        assert_eq!(drops(), [1, 1, 1]);
        fire();
        slot.close();
        assert_eq!(drops(), [1, 1, 1]);
        assert_eq!(
            hosts.each_ref().map(|host| host.calls.load(SeqCst)),
            [1, 1, 1]
        );
        let late = register(&hosts[0]);
        assert!(slot.replace(Some(late), tell).is_err());
        assert_eq!(drops(), [1, 1, 1], "what was not registered is not dropped");
    }

    #[test]
    fn ending_waits_for_a_hook_that_is_running() {
        let host = Host::default();
        host.hold.store(1, SeqCst);
        let registration = register(&host);
        std::thread::scope(|scope| {
            scope.spawn(|| registration.fire());
            while host.calls.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            let enders: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        registration.end();
                        assert_eq!(host.drops.load(SeqCst), 1);
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(host.drops.load(SeqCst), 0);
            assert!(enders.iter().all(|ender| !ender.is_finished()));
            host.hold.store(0, SeqCst);
        });
        assert_eq!(host.drops.load(SeqCst), 1);
        registration.fire();
        assert_eq!(host.calls.load(SeqCst), 1);
    }

    #[test]
    fn a_hook_that_ends_its_own_registration_does_not_wait_for_itself() {
        let host = Host::default();
        let slot = Slot::default();
        host.closes
            .store(std::ptr::from_ref(&slot) as usize, SeqCst);
        let registration = register(&host);
        slot.replace(Some(registration.clone()), |_| ()).unwrap();
        registration.fire();
        assert_eq!((host.calls.load(SeqCst), host.drops.load(SeqCst)), (1, 1));
    }

    #[test]
    fn many_threads_fire_replace_and_close() {
        let hosts: Vec<Host> = (0..200).map(|_| Host::default()).collect();
        let slot = Slot::default();
        let told = Mutex::new(None::<Arc<Hook>>);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let hook = lock(&told).clone();
                        if let Some(hook) = hook {
                            hook();
                        }
                    }
                });
            }
            for part in hosts.chunks(100) {
                let (slot, told) = (&slot, &told);
                scope.spawn(move || {
                    for host in part {
                        let tell = |hook: Option<Hook>| *lock(told) = hook.map(Arc::new);
                        slot.replace(Some(register(host)), tell).unwrap();
                    }
                });
            }
        });
        slot.close();
        assert!(hosts.iter().all(|host| host.drops.load(SeqCst) == 1));
    }
}
