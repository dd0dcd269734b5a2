//! The supervisor's records in the sandbox's words.

use runner_supervisor::{Cause, PoolError, RecordError, ReportedEnd};
use rustix::io::Errno;
use shared_sandbox::{ExitCause, ExitRecord, ExitStatus, NotStarted, Outcome, StreamEnd};
use shared_types::{Refusal, RefusalCode};

/// The end that an exit record tells.
pub(super) fn of(record: runner_supervisor::ExitRecord) -> Outcome {
    Outcome::Exited(ExitRecord {
        status: match record.end {
            ReportedEnd::Code(code) => ExitStatus::Code(code),
            ReportedEnd::Signal(signal) => ExitStatus::Signal(signal),
            ReportedEnd::NotStarted(reason) => ExitStatus::NotStarted(not_started(reason)),
            ReportedEnd::Unknown => ExitStatus::Unknown,
        },
        cause: match record.cause {
            Cause::Exited => ExitCause::Exited,
            Cause::Timeout => ExitCause::Timeout,
            Cause::Idle => ExitCause::Idle,
            Cause::Cancelled => ExitCause::Cancelled,
            Cause::Orphaned => ExitCause::Orphaned,
            Cause::OutOfMemory => ExitCause::OutOfMemory,
            Cause::DiskFull => ExitCause::DiskFull,
            Cause::SupervisorLost => ExitCause::SupervisorLost,
            Cause::HostReboot => ExitCause::HostReboot,
            Cause::SandboxStopped => ExitCause::SandboxStopped,
        },
        stdout: stream_end(record.out),
        stderr: stream_end(record.err),
        wall_ms: record.wall_us / 1000,
        cpu_us: record.cpu_us,
        max_rss_bytes: record.max_rss_bytes,
        tree_gone: record.tree_gone,
    })
}

/// The end of an operation whose records tell nothing.
pub(super) fn lost(reason: &str) -> Outcome {
    let message = format!("what became of the command is not known: {reason}");
    Outcome::Refused(Refusal::new(RefusalCode::Lost, message))
}

/// A failure to use records, with what the host said.
pub(super) fn in_words(error: &RecordError) -> String {
    match error {
        RecordError::Io(cause) => format!("{error}: {cause}"),
        RecordError::Damaged { .. } | RecordError::Version { .. } => error.to_string(),
    }
}

/// The reason why there is no supervisor for a command.
pub(super) fn no_supervisor(error: &PoolError) -> NotStarted {
    match error.errno().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => NotStarted::DiskFull,
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => NotStarted::NoProcess,
        _ => NotStarted::Host(error.to_string()),
    }
}

fn not_started(reason: runner_supervisor::NotStarted) -> NotStarted {
    use runner_supervisor::NotStarted as Supervised;
    match reason {
        Supervised::MissingProgram(name) => NotStarted::MissingProgram(name),
        Supervised::MissingInterpreter(name) => NotStarted::MissingInterpreter(name),
        Supervised::MissingDirectory(name) => NotStarted::MissingDirectory(name),
        Supervised::Denied(name) => NotStarted::Denied(name),
        Supervised::NotAProgram(name) => NotStarted::NotAProgram(name),
        Supervised::TooLarge => NotStarted::TooLarge,
        Supervised::NoProcess => NotStarted::NoProcess,
        Supervised::DiskFull => NotStarted::DiskFull,
        Supervised::Host(words) => NotStarted::Host(words),
    }
}

fn stream_end(end: runner_supervisor::SpoolEnd) -> StreamEnd {
    StreamEnd {
        offset: end.offset,
        checksum: end.checksum,
    }
}
