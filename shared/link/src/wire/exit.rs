//! How processes end, in both directions.

use proto::v1::{
    self,
    exit_record::{Cause, NotStarted as Why, Status},
};
use shared_sandbox::{ExitCause, ExitRecord, ExitStatus, NotStarted, StreamEnd};

use super::Malformed;

/// The wire form of a process's end.
pub(crate) fn to_wire(record: ExitRecord) -> v1::ExitRecord {
    let (status, why) = match record.status {
        ExitStatus::Code(code) => (Status::Code(code), Why::Unspecified),
        ExitStatus::Signal(signal) => (Status::Signal(signal), Why::Unspecified),
        ExitStatus::NotStarted(reason) => {
            let (why, text) = why(reason);
            (Status::NotStarted(text), why)
        }
        ExitStatus::Unknown => (Status::Unknown(true), Why::Unspecified),
    };
    v1::ExitRecord {
        status: Some(status),
        cause: cause(record.cause).into(),
        stdout: Some(stream_end(record.stdout)),
        stderr: Some(stream_end(record.stderr)),
        wall_ms: record.wall_ms,
        tree_gone: record.tree_gone,
        why: why.into(),
        cpu_us: record.cpu_us,
        max_rss_bytes: record.max_rss_bytes,
    }
}

/// A process's end from the wire.
pub(crate) fn from_wire(wire: v1::ExitRecord) -> Result<ExitRecord, Malformed> {
    let why = wire.why();
    let cause = match wire.cause() {
        Cause::Exited => ExitCause::Exited,
        Cause::Timeout => ExitCause::Timeout,
        Cause::Idle => ExitCause::Idle,
        Cause::Cancelled => ExitCause::Cancelled,
        Cause::Orphaned => ExitCause::Orphaned,
        Cause::OutOfMemory => ExitCause::OutOfMemory,
        Cause::DiskFull => ExitCause::DiskFull,
        Cause::SupervisorLost => ExitCause::SupervisorLost,
        Cause::HostReboot => ExitCause::HostReboot,
        Cause::Unspecified => return Err(Malformed::new("an exit record names no known cause")),
    };
    let status = match wire.status {
        Some(Status::Code(code)) => ExitStatus::Code(code),
        Some(Status::Signal(signal)) => ExitStatus::Signal(signal),
        Some(Status::NotStarted(text)) => {
            ExitStatus::NotStarted(not_started(why, super::words(&text)))
        }
        Some(Status::Unknown(_)) => ExitStatus::Unknown,
        None => return Err(Malformed::new("an exit record carries no status")),
    };
    Ok(ExitRecord {
        status,
        cause,
        stdout: stream_end_from(wire.stdout)?,
        stderr: stream_end_from(wire.stderr)?,
        wall_ms: wire.wall_ms,
        cpu_us: wire.cpu_us,
        max_rss_bytes: wire.max_rss_bytes,
        tree_gone: wire.tree_gone,
    })
}

fn cause(cause: ExitCause) -> Cause {
    match cause {
        ExitCause::Exited => Cause::Exited,
        ExitCause::Timeout => Cause::Timeout,
        ExitCause::Idle => Cause::Idle,
        ExitCause::Cancelled => Cause::Cancelled,
        ExitCause::Orphaned => Cause::Orphaned,
        ExitCause::OutOfMemory => Cause::OutOfMemory,
        ExitCause::DiskFull => Cause::DiskFull,
        ExitCause::SupervisorLost => Cause::SupervisorLost,
        ExitCause::HostReboot => Cause::HostReboot,
    }
}

/// The kind, and what it is about.
fn why(reason: NotStarted) -> (Why, String) {
    match reason {
        NotStarted::MissingProgram(name) => (Why::MissingProgram, name),
        NotStarted::MissingInterpreter(name) => (Why::MissingInterpreter, name),
        NotStarted::MissingShell => (Why::MissingShell, String::new()),
        NotStarted::MissingDirectory(name) => (Why::MissingDirectory, name),
        NotStarted::OutsideWorkspace(name) => (Why::OutsideWorkspace, name),
        NotStarted::WorkspaceGone => (Why::WorkspaceGone, String::new()),
        NotStarted::Denied(name) => (Why::Denied, name),
        NotStarted::NotAProgram(name) => (Why::NotAProgram, name),
        NotStarted::TooLarge => (Why::TooLarge, String::new()),
        NotStarted::NoProcess => (Why::NoProcess, String::new()),
        NotStarted::DiskFull => (Why::DiskFull, String::new()),
        NotStarted::Host(words) => (Why::Host, words),
    }
}

fn not_started(why: Why, text: String) -> NotStarted {
    match why {
        Why::MissingProgram => NotStarted::MissingProgram(text),
        Why::MissingInterpreter => NotStarted::MissingInterpreter(text),
        Why::MissingShell => NotStarted::MissingShell,
        Why::MissingDirectory => NotStarted::MissingDirectory(text),
        Why::OutsideWorkspace => NotStarted::OutsideWorkspace(text),
        Why::WorkspaceGone => NotStarted::WorkspaceGone,
        Why::Denied => NotStarted::Denied(text),
        Why::NotAProgram => NotStarted::NotAProgram(text),
        Why::TooLarge => NotStarted::TooLarge,
        Why::NoProcess => NotStarted::NoProcess,
        Why::DiskFull => NotStarted::DiskFull,
        Why::Host | Why::Unspecified => NotStarted::Host(text),
    }
}

fn stream_end(end: StreamEnd) -> v1::StreamEnd {
    v1::StreamEnd {
        offset: end.offset,
        checksum: end.checksum,
    }
}

fn stream_end_from(wire: Option<v1::StreamEnd>) -> Result<StreamEnd, Malformed> {
    let wire = wire.ok_or_else(|| Malformed::new("an exit record misses a stream's end"))?;
    Ok(StreamEnd {
        offset: wire.offset,
        checksum: wire.checksum,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_process_reads_back_from_the_wire() {
        let name = || "name".to_owned();
        let statuses = [
            ExitStatus::Code(3),
            ExitStatus::Signal(9),
            ExitStatus::Unknown,
            ExitStatus::NotStarted(NotStarted::MissingProgram(name())),
            ExitStatus::NotStarted(NotStarted::MissingInterpreter(name())),
            ExitStatus::NotStarted(NotStarted::MissingShell),
            ExitStatus::NotStarted(NotStarted::MissingDirectory(name())),
            ExitStatus::NotStarted(NotStarted::OutsideWorkspace(name())),
            ExitStatus::NotStarted(NotStarted::WorkspaceGone),
            ExitStatus::NotStarted(NotStarted::Denied(name())),
            ExitStatus::NotStarted(NotStarted::NotAProgram(name())),
            ExitStatus::NotStarted(NotStarted::TooLarge),
            ExitStatus::NotStarted(NotStarted::NoProcess),
            ExitStatus::NotStarted(NotStarted::DiskFull),
            ExitStatus::NotStarted(NotStarted::Host(name())),
        ];
        let causes = [
            ExitCause::Exited,
            ExitCause::Timeout,
            ExitCause::Idle,
            ExitCause::Cancelled,
            ExitCause::Orphaned,
            ExitCause::OutOfMemory,
            ExitCause::DiskFull,
            ExitCause::SupervisorLost,
            ExitCause::HostReboot,
        ];
        for status in statuses {
            for cause in causes {
                let record = ExitRecord {
                    status: status.clone(),
                    cause,
                    stdout: StreamEnd {
                        offset: 5,
                        checksum: None,
                    },
                    stderr: StreamEnd::default(),
                    wall_ms: 1,
                    cpu_us: 2,
                    max_rss_bytes: 3,
                    tree_gone: true,
                };
                assert_eq!(from_wire(to_wire(record.clone())), Ok(record));
            }
        }
    }

    #[test]
    fn a_reason_without_a_kind_is_told_as_it_stands() {
        let wire = v1::ExitRecord {
            status: Some(Status::NotStarted("no such program".to_owned())),
            cause: Cause::Exited.into(),
            stdout: Some(v1::StreamEnd::default()),
            stderr: Some(v1::StreamEnd::default()),
            ..v1::ExitRecord::default()
        };
        let record = from_wire(wire).expect("a record");
        let reason = NotStarted::Host("no such program".to_owned());
        assert_eq!(record.status, ExitStatus::NotStarted(reason));
    }
}
