//! An allocator that counts: what an OS thread holds, and has held at most.

#![allow(
    unsafe_code,
    reason = "counting what is allocated takes an allocator, which is unsafe to write"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting what each OS thread holds and has held at most.
pub struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this OS thread has allocated and not freed.
pub fn held() -> isize {
    HELD.get()
}

/// Begins to look for the most; what is held now.
pub fn start() -> isize {
    MOST.set(HELD.get());
    HELD.get()
}

/// The most that was held since [`start`].
pub fn most() -> isize {
    MOST.get()
}

fn count(bytes: isize) {
    // While an OS thread ends its counters are gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        MOST.with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call is the system allocator's, with the arguments unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: by this function's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: by this function's contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: by this function's contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
