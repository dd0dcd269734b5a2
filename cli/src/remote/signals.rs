//! The signals that end, interrupt or resize what this terminal shows.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for them.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    window: Signal,
}

/// One of them.
pub(super) enum Signalled {
    Interrupt,
    Terminate,
    Hangup,
    Resize,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            window: signal(SignalKind::window_change())?,
        })
    }

    pub(super) async fn next(&mut self) -> Signalled {
        tokio::select! {
            _ = self.interrupt.recv() => Signalled::Interrupt,
            _ = self.terminate.recv() => Signalled::Terminate,
            _ = self.hangup.recv() => Signalled::Hangup,
            _ = self.window.recv() => Signalled::Resize,
        }
    }
}
