//! What the daemon keeps of the host's memory, and what it gives back.

#![cfg_attr(
    target_env = "gnu",
    expect(
        unsafe_code,
        reason = "neither the allocator's settings nor advice on a mapping have a safe form"
    )
)]

#[cfg(target_env = "gnu")]
use std::{fs, ops::Range};

/// Keeps the memory of what passes through: glibc would give each piece back to the kernel and take
/// it anew, which is a fifth of the time that a piece takes. To be called before there is another
/// thread.
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

/// Gives back what a start or a new link needed, and what follows does not: memory that is free, and
/// the pages of the program and its libraries, which are most of what an idle daemon would hold.
#[cfg(target_env = "gnu")]
pub(crate) fn give_back() {
    // SAFETY: it touches only what nobody uses, under the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
    for code in fs::read_to_string("/proc/self/maps")
        .iter()
        .flat_map(|maps| maps.lines())
        .filter_map(code)
    {
        // SAFETY: it is mapped from a file and never written to, so that what is wanted again is what
        // it was. It is advice: a range that is none is refused.
        unsafe { libc::madvise(code.start as *mut _, code.len(), libc::MADV_DONTNEED) };
    }
}

/// Where code of a file lies, by a line of `/proc/PID/maps` (proc(5)).
#[cfg(target_env = "gnu")]
fn code(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let is_code = words.next() == Some("r-xp") && words.nth(3)?.starts_with('/');
    let number = |hex| usize::from_str_radix(hex, 16).ok();
    is_code.then_some(number(start)?..number(end)?)
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn keep() {}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back() {}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_given_back_but_code_that_comes_from_a_file() {
        let line = |permissions, path| {
            code(&format!(
                "55d0c000-55d0f000 {permissions} 00001000 fe:00 42    {path}"
            ))
        };
        assert_eq!(line("r-xp", "/usr/bin/it"), Some(0x55d0_c000..0x55d0_f000));
        assert_eq!(
            line("r--p", "/usr/bin/it"),
            None,
            "holds what was relocated"
        );
        assert_eq!(line("rw-p", "/usr/bin/it"), None);
        assert_eq!(line("r-xp", "[vdso]"), None);
        assert_eq!(code("7f00-7f01 r-xp 00000000 00:00 0"), None, "of no file");
        assert_eq!(code("nonsense"), None);
    }
}
