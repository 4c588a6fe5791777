//! Counts the work of an examination, so that a test can say that it grows with the command and no faster. Only tests count.

/// Notes that `amount` characters or bytes were looked at.
#[cfg(not(test))]
pub(super) fn note(_amount: usize) {}

#[cfg(test)]
thread_local! {
    static DONE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
pub(super) fn note(amount: usize) {
    DONE.with(|done| done.set(done.get() + amount));
}

/// What was done since the last call.
#[cfg(test)]
pub(super) fn take() -> usize {
    DONE.with(|done| done.replace(0))
}
