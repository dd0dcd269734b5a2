//! Secrets that come in the environment. `/proc/PID/environ` shows what a process was started with for as long as it
//! runs, so such a value is read once, and then overwritten.

use std::ffi::c_char;

/// The value of a variable, which no reader finds any more from now on. To be called by `main`, before there are
/// other threads.
#[expect(
    clippy::disallowed_methods,
    reason = "`main` reads the environment by this and passes it down"
)]
pub fn take_secret(name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    overwrite(name);
    value
}

#[expect(
    unsafe_code,
    reason = "what the kernel shows of a process's first environment is changed in no other way"
)]
fn overwrite(name: &str) {
    unsafe extern "C" {
        static environ: *const *mut c_char;
    }
    let begin = [name.as_bytes(), b"="].concat();
    // SAFETY: `environ` is null or a list of texts that ends with a null, each of which ends with a NUL and can be
    // written (environ(7)). Nothing else writes them: no other thread is there.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = *entry;
            let is_it = begin
                .iter()
                .enumerate()
                .all(|(place, letter)| *text.add(place).cast::<u8>() == *letter);
            let mut at = text.add(if is_it { begin.len() } else { 0 });
            while is_it && *at != 0 {
                *at = 0;
                at = at.add(1);
            }
            entry = entry.add(1);
        }
    }
}
