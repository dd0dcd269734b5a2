//! Signals that ask the server to stop, or to read its settings again.

use std::{
    io::{IsTerminal as _, stdin},
    time::Duration,
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::Instant,
};

/// Signals within this time are one wish: a terminal sends Ctrl-C to a script and to the server that it started, and
/// the script asks the server to stop as well.
const ONE_WISH: Duration = Duration::from_secs(1);

/// The request of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// To stop in order.
    Stop,
    /// To reload the settings.
    Reload,
}

/// Listened for from [`ProcessSignals::listen`] on.
pub(crate) struct ProcessSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    in_terminal: bool,
}

impl ProcessSignals {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            in_terminal: stdin().is_terminal(),
        })
    }

    /// Waits for the next request.
    pub(crate) async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.hangup.recv() => match self.in_terminal && !stdin().is_terminal() {
                // The window was closed in which the server was started.
                true => SignalRequest::Stop,
                false => SignalRequest::Reload,
            },
        }
    }

    /// Waits until a server that stops is asked once more to stop.
    pub(crate) async fn stop_again(&mut self) {
        let again = Instant::now() + ONE_WISH;
        self.stop().await;
        while Instant::now() < again {
            self.stop().await;
        }
    }

    /// Waits until the server is asked to stop.
    pub(crate) async fn stop(&mut self) {
        while self.next().await != SignalRequest::Stop {}
    }
}
