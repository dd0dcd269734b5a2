//! Output lines of a verb, whose reader may close the pipe.
//!
//! Rust ignores SIGPIPE, so `println!` panics in `gantry-runner status | head -1` once `head` has read enough. The
//! signal stays ignored, because a verb may act between its lines, and sockets must not end a program. Instead, a
//! closed pipe is no failure: the verb continues in silence and ends with its usual code.

use std::{
    fmt,
    io::{self, ErrorKind, Write},
};

/// Writes a line to standard output, with the words of `format!`. See [`line`](crate::line).
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::line(::core::format_args!($($words)*)) };
}

/// Writes a line to standard error, with the words of `format!`. See [`note_line`](crate::note_line).
#[macro_export]
macro_rules! note {
    ($($words:tt)*) => { $crate::note_line(::core::format_args!($($words)*)) };
}

/// Writes a line to standard output at once. A pipe that its reader has closed takes it as well.
///
/// # Errors
/// Fails if standard output cannot be written for another reason, such as a full disk.
pub fn line(words: fmt::Arguments<'_>) -> io::Result<()> {
    write_line(&mut io::stdout().lock(), words)
}

/// Writes a line to standard error, where it is taken: there is no other place to tell a failure.
pub fn note_line(words: fmt::Arguments<'_>) {
    let _ = write_line(&mut io::stderr().lock(), words);
}

fn write_line(out: &mut impl Write, words: fmt::Arguments<'_>) -> io::Result<()> {
    let line = format!("{words}\n");
    match out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!("standard output cannot be written: {error}"),
        )),
        Ok(()) => Ok(()),
    }
}
