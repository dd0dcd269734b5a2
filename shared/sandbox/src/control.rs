//! Input, signals and other controls for an operation that is under way.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use shared_types::Refusal;

use crate::{OutputStream, TerminalSize};

/// The controls of one operation. Each reader of an operation has its own. Once another reader has
/// taken the operation over, or it has ended, every call is refused.
#[async_trait]
pub trait Controls: Send + Sync + fmt::Debug {
    /// Hands over a piece of input. It reaches the operation once and in order, also where the link
    /// is lost. [`crate::OperationEvent::InputTaken`] reports how much of it the operation has.
    /// Waits while a whole window ([`shared_types::limits::INPUT_WINDOW_BYTES`]) is not taken yet.
    ///
    /// Returns the offset to go on at: the end of the piece, or less where there was no room for
    /// all of it. Where bytes before it are missing, nothing of it was kept, and the offset is
    /// theirs. Repeats do no harm.
    ///
    /// # Errors
    /// A refusal: the operation takes no input, its input has ended, or this reader cannot reach it
    /// any more.
    async fn input(&self, input: Input) -> Result<u64, Refusal>;

    /// Does something to its process, at most once; waits until it is done, also where the link is
    /// lost.
    ///
    /// # Errors
    /// A refusal: it does not apply, what another reader asked for later was done first, or the
    /// operation ended first. Where the operation ended, it is unknown if the control was applied.
    async fn control(&self, control: Control) -> Result<(), Refusal>;

    /// Output below this offset is durable with the caller, or not needed any more: it need not be
    /// kept anywhere. Never goes back; less than before changes nothing.
    async fn commit(&self, stream: OutputStream, up_to: u64);
}

/// A piece of an operation's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The offset of this piece in the input, from 0.
    pub offset: u64,
    /// Its bytes; may be none.
    pub data: Bytes,
    /// True if the input ends after this piece.
    pub end: bool,
}

/// An action on a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Give its terminal another size.
    Resize(TerminalSize),
    /// Send a signal to its process group.
    Signal(Signal),
}

/// A signal to a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// SIGHUP.
    Hangup,
    /// SIGINT, which control-C sends in a terminal.
    Interrupt,
    /// SIGQUIT.
    Quit,
    /// SIGKILL.
    Kill,
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
    /// SIGTERM.
    Terminate,
    /// SIGCONT.
    Continue,
    /// SIGSTOP.
    Stop,
}
