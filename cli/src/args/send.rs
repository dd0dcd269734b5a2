//! The command that sends a message to a session without watching it.

use clap::Args as Arguments;
use shared_types::WhileWorking;

use crate::pick::SessionName;

#[derive(Debug, Arguments)]
pub(crate) struct Send {
    /// The session: an id, the beginning of one, or `last`
    pub(crate) session: SessionName,
    /// The message. Piped standard input is appended to it. End it with `-` to wait for slow standard input; use
    /// </dev/null to append nothing
    #[arg(required = true)]
    pub(crate) text: Vec<String>,
    /// While a turn works: the agent reads the message before its next step (the default)
    #[arg(long, conflicts_with_all = ["queue", "interrupt"])]
    pub(crate) steer: bool,
    /// While a turn works: the message waits for the end of the turn, and starts the next one
    #[arg(long, conflicts_with = "interrupt")]
    pub(crate) queue: bool,
    /// While a turn works: stop it with its processes, and start the next one with the message
    #[arg(long)]
    pub(crate) interrupt: bool,
    /// Print one JSON object: the turn, and whether the message joined it
    #[arg(long)]
    pub(crate) json: bool,
}

impl Send {
    /// The effect on a turn that works.
    pub(crate) fn while_working(&self) -> WhileWorking {
        match (self.queue, self.interrupt) {
            (true, _) => WhileWorking::Queue,
            (_, true) => WhileWorking::Interrupt,
            _ => WhileWorking::Steer,
        }
    }
}
