//! The daemon's settings for memory from the host.

#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "the allocator's settings have no safe form")
)]

/// Keeps the memory of pieces that pass through. Else glibc would give each piece back to the
/// kernel and take it again, which is a fifth of the time that a piece takes. Call it before there
/// is another thread.
#[cfg(target_env = "gnu")]
pub(crate) fn keep() {
    // Pieces of memory up to this size are cut from a heap; what passes through is smaller (64 to
    // 256 KiB).
    const CUT_BYTES: i32 = 4 * 1024 * 1024;

    // Free memory at the end of a heap that is kept for the next piece.
    const KEPT_BYTES: i32 = 4 * 1024 * 1024;

    // Heaps; more threads than that never work at a time.
    const HEAPS: i32 = 2;

    // SAFETY: there is no other thread yet; a setting that the allocator refuses stays as it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, CUT_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
        libc::mallopt(libc::M_ARENA_MAX, HEAPS);
    }
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn keep() {}
