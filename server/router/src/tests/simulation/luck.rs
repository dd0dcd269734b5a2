//! All chance of a process that runs one seed: also that of tokio, which wakes and selects at random, and of
//! the standard library's maps. Both take theirs from `getrandom`, which is this one in the tests.

use std::{
    fs::File,
    io::Read as _,
    slice,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::dice::Dice;

static DECIDED: AtomicBool = AtomicBool::new(false);
static SEED: AtomicU64 = AtomicU64::new(0);

/// From now on threads that begin get the same random numbers for the same seed.
pub(super) fn decide(seed: u64) {
    SEED.store(seed, Ordering::SeqCst);
    DECIDED.store(true, Ordering::SeqCst);
}

fn fill(buffer: &mut [u8]) {
    if DECIDED.load(Ordering::SeqCst) {
        let mut dice = Dice::new(SEED.load(Ordering::SeqCst));
        buffer.fill_with(|| dice.below(256) as u8);
    } else {
        let system = File::open("/dev/urandom");
        let filled = system.and_then(|mut system| system.read_exact(buffer));
        filled.expect("the system's random numbers");
    }
}

/// In place of the C library's.
#[expect(
    unsafe_code,
    reason = "the one way to decide the chance that libraries take for themselves"
)]
#[unsafe(no_mangle)]
extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: by the function's contract so many bytes can be written there.
    fill(unsafe { slice::from_raw_parts_mut(buffer, length) });
    isize::try_from(length).unwrap_or(isize::MAX)
}
