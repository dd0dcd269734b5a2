//! How much memory something takes: what a thread has allocated, and not freed.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// An allocator that counts, for a test to say `#[global_allocator]` of.
#[derive(Debug)]
pub struct Measured;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Does it, and returns the most bytes that it had at a time, beyond those that were there before.
/// Counts nothing without [`Measured`], nor what other threads do.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get().saturating_sub(before))
}

fn add(bytes: usize) {
    let now = NOW.get().wrapping_add(bytes);
    NOW.set(now);
    // What another thread allocated and this one freed counts below nothing.
    if now < usize::MAX / 2 {
        PEAK.set(PEAK.get().max(now));
    }
}

fn remove(bytes: usize) {
    NOW.set(NOW.get().wrapping_sub(bytes));
}

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe to implement; this one hands everything to the system's"
)]
// SAFETY: the system's allocator keeps the contract, and counting neither allocates nor panics.
unsafe impl GlobalAlloc for Measured {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        remove(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }
}
