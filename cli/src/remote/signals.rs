//! The signals that end, interrupt or resize what this terminal shows. A signal that was ignored when
//! the program started stays ignored: so `nohup` keeps its word, and a shell's background jobs are not
//! interrupted.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The file in which Linux lists the signals that a process ignores.
const STATUS: &str = "/proc/self/status";

/// Listens for them.
pub(crate) struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
    window: Option<Signal>,
}

/// One of them.
pub(super) enum Signalled {
    Interrupt,
    Terminate,
    Hangup,
    Resize,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        // Another system than Linux tells it elsewhere; there none counts as ignored.
        let status = std::fs::read_to_string(STATUS).unwrap_or_default();
        let listen = |kind: SignalKind| match is_ignored(&status, kind.as_raw_value()) {
            true => Ok(None),
            false => signal(kind).map(Some),
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            window: listen(SignalKind::window_change())?,
        })
    }

    pub(super) async fn next(&mut self) -> Signalled {
        tokio::select! {
            () = received(&mut self.interrupt) => Signalled::Interrupt,
            () = received(&mut self.terminate) => Signalled::Terminate,
            () = received(&mut self.hangup) => Signalled::Hangup,
            () = received(&mut self.window) => Signalled::Resize,
        }
    }

    /// Waits for one that ends a program and is no key; the exit code that shells give it.
    pub(crate) async fn killed(&mut self) -> u8 {
        loop {
            let signal = self.next().await;
            if let (Signalled::Terminate | Signalled::Hangup, Some(code)) =
                (&signal, signal.exit_code())
            {
                return code;
            }
        }
    }

    /// Waits for one that ends a program; the exit code that shells give it.
    pub(crate) async fn ended(&mut self) -> u8 {
        loop {
            if let Some(code) = self.next().await.exit_code() {
                return code;
            }
        }
    }
}

impl Signalled {
    /// 128 and the signal's number, as shells count; `None` for a signal that ends nothing.
    pub(super) fn exit_code(&self) -> Option<u8> {
        match self {
            Self::Hangup => Some(128 + 1),
            Self::Interrupt => Some(128 + 2),
            Self::Terminate => Some(128 + 15),
            Self::Resize => None,
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// True if this status of a process says that it ignores the signal. The status has a mask in hexadecimal, whose lowest
/// bit is signal 1.
fn is_ignored(status: &str, number: i32) -> bool {
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let bit = u32::try_from(number - 1).unwrap_or(u32::MAX);
    mask.is_some_and(|mask| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_was_ignored_is_known_as_such() {
        let nohup = "Name:\tgantry\nSigBlk:\t0000000000000006\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(nohup, 1));
        assert!(is_ignored(nohup, 13));
        assert!(!is_ignored(nohup, 2));
        assert!(!is_ignored("", 1));
    }
}
