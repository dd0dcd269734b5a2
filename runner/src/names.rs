//! The way in which names of hosts and users are looked up.

#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "the C library's lookups have no safe form")
)]

/// Looks names up in the host's files and by DNS, and by nothing else. The program is linked statically: what
/// the host's nsswitch.conf(5) names beside those two would be loaded from there, and may not fit. To be
/// called before there is another thread.
#[cfg(target_env = "gnu")]
pub(crate) fn settle() {
    use std::ffi::{CStr, c_char, c_int};

    unsafe extern "C" {
        // <nss.h>
        fn __nss_configure_lookup(database: *const c_char, line: *const c_char) -> c_int;
    }

    const LOOKUPS: [(&CStr, &CStr); 3] = [
        (c"hosts", c"files dns"),
        (c"passwd", c"files"),
        (c"group", c"files"),
    ];
    for (database, line) in LOOKUPS {
        // SAFETY: there is no other thread yet, and both are strings that the call only reads.
        unsafe {
            __nss_configure_lookup(database.as_ptr(), line.as_ptr());
        }
    }
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn settle() {}
