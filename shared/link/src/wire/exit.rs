//! The ends of processes, in both directions.

use proto::v1::{
    self,
    exit_record::{Cause, NotStarted as Why, Status},
};
use shared_sandbox::{ExitCause, ExitRecord, ExitStatus, NotStarted, StreamEnd};

use super::{Malformed, alike::OnWire};

impl OnWire<Malformed> for ExitRecord {
    type Wire = v1::ExitRecord;

    fn to_wire(self) -> v1::ExitRecord {
        let (status, why) = match self.status {
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
            cause: cause_to_wire(self.cause).into(),
            stdout: Some(stream_end(self.stdout)),
            stderr: Some(stream_end(self.stderr)),
            wall_ms: self.wall_ms,
            tree_gone: self.tree_gone,
            why: why.into(),
            cpu_us: self.cpu_us,
            max_rss_bytes: self.max_rss_bytes,
        }
    }

    fn from_wire(wire: v1::ExitRecord) -> Result<Self, Malformed> {
        let (why, cause) = (wire.why(), cause(wire.cause())?);
        let status = match wire.status {
            Some(Status::Code(code)) => ExitStatus::Code(code),
            Some(Status::Signal(signal)) => ExitStatus::Signal(signal),
            Some(Status::NotStarted(text)) => {
                ExitStatus::NotStarted(not_started(why, super::words(&text)))
            }
            Some(Status::Unknown(_)) => ExitStatus::Unknown,
            None => return Err(Malformed::new("an exit record carries no status")),
        };
        Ok(Self {
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
}

/// Makes both directions from one list; a cause that is missing does not compile.
macro_rules! causes {
    ($($cause:ident)*) => {
        fn cause_to_wire(cause: ExitCause) -> Cause {
            match cause {
                $(ExitCause::$cause => Cause::$cause,)*
            }
        }

        fn cause(wire: Cause) -> Result<ExitCause, Malformed> {
            match wire {
                $(Cause::$cause => Ok(ExitCause::$cause),)*
                Cause::Unspecified => Err(Malformed::new("an exit record names no known cause")),
            }
        }
    };
}

causes! {
    Exited Timeout Idle Cancelled Orphaned OutOfMemory DiskFull SupervisorLost HostReboot
    SandboxStopped
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
    fn a_reason_without_a_kind_is_told_as_it_stands() {
        let wire = v1::ExitRecord {
            status: Some(Status::NotStarted("no such program".to_owned())),
            cause: Cause::Exited.into(),
            stdout: Some(v1::StreamEnd::default()),
            stderr: Some(v1::StreamEnd::default()),
            ..v1::ExitRecord::default()
        };
        let record = ExitRecord::from_wire(wire).expect("a record");
        let reason = NotStarted::Host("no such program".to_owned());
        assert_eq!(record.status, ExitStatus::NotStarted(reason));
    }
}
