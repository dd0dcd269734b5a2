//! The exit codes of the process.

/// The result that the exit code reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is done.
    Done,
    /// The turn failed.
    Failed,
    /// The turn was cancelled.
    Cancelled,
    /// The person left before the turn had ended.
    Left,
    /// The reader of standard output is gone.
    ReaderGone,
    /// A command ended with this exit code.
    Code(u8),
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            // 128 + SIGINT, as shells count.
            Exit::Cancelled | Exit::Left => 130,
            // 128 + SIGPIPE.
            Exit::ReaderGone => 141,
            Exit::Code(code) => code,
        })
    }
}
