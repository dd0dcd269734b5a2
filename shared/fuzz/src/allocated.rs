//! The memory that a call takes: the bytes that its thread has allocated and not freed.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// An allocator that counts, for the `#[global_allocator]` of a test.
#[derive(Debug)]
pub struct Measured;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Runs `work`, and returns the most bytes that it held at a time, beyond those held before. Counts
/// nothing without [`Measured`], nor in other threads.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get().saturating_sub(before))
}

fn add(bytes: usize) {
    let now = NOW.get().wrapping_add(bytes);
    NOW.set(now);
    // Memory that another thread allocated and this one freed makes the count negative.
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
