//! An operation as clients see it.

use server_app::{OperationView, StopCause as HadToStop, TakesInput};
use shared_api::{
    Entry, InputKind, ListedEntry, Listing, Operation, OperationEnd, OperationRunner,
    OperationState, Skipped, Stopped,
};
use shared_sandbox::{EntryKind, ExitCause, ExitRecord, ExitStatus, Found, Listed, Outcome};
use shared_types::{FileDigest, RefusalCode, Timestamp, clean::clean_line, limits::MAX_PEER_TEXT};

/// The operation with its end, where it has one.
pub(crate) fn to_operation(view: OperationView) -> Operation {
    Operation {
        id: view.id,
        runner: OperationRunner {
            id: view.runner,
            name: view.runner_name,
        },
        title: view.title,
        kind: view.kind,
        started_by: view.started_by,
        session: view.session,
        turn: view.turn,
        input: view.input.map(|input| match input {
            TakesInput::Nothing => InputKind::Nothing,
            TakesInput::Bytes => InputKind::Bytes,
            TakesInput::Terminal => InputKind::Terminal,
        }),
        placed_at: view.placed_at,
        cancel_requested_at: view.cancel_requested_at,
        end: (view.outcome.as_ref()).map(|outcome| end(outcome, view.stopped.as_ref())),
        stopped: view.stopped.map(|stopped| Stopped {
            why: stopped.why,
            by: stopped.by,
        }),
        // Of a long end a list has only the time.
        state: match view.ended_at.is_some() || view.outcome.is_some() {
            true => OperationState::Ended,
            false => OperationState::Open,
        },
        ended_at: view.ended_at,
    }
}

fn end(outcome: &Outcome, stopped: Option<&HadToStop>) -> OperationEnd {
    match outcome {
        Outcome::Exited(record) => exited(record, stopped),
        Outcome::Read(read) => done(format!("read {} lines", read.lines), None),
        Outcome::Written(written) => file("wrote", written.bytes, written.after),
        Outcome::Edited(edited) => done(format!("replaced {} places", edited.replaced), None),
        Outcome::Listed(listed) => done_with(
            format!("listed {} entries", listed.entries.len()),
            None,
            Some(listing(listed)),
        ),
        // Only the engine asks for one.
        Outcome::Surveyed(_) => done("looked at the place".to_owned(), None),
        Outcome::Globbed(found) => done(format!("found {} paths", found.paths.len()), None),
        Outcome::Grepped(found) => done(format!("found {} lines", found.matches.len()), None),
        Outcome::Downloaded(read) => file("read", read.bytes, read.digest),
        Outcome::Packed(packed) => OperationEnd::Done {
            words: left_out("packed", &packed.skipped),
            bytes: Some(packed.bytes),
            digest: Some(packed.digest),
            entry: None,
            listing: None,
            skipped: packed.skipped.iter().map(skipped).collect(),
        },
        Outcome::Unpacked(unpacked) => OperationEnd::Done {
            words: left_out(
                &format!("unpacked {} entries", unpacked.entries),
                &unpacked.skipped,
            ),
            bytes: None,
            digest: None,
            entry: None,
            listing: None,
            skipped: unpacked.skipped.iter().map(skipped).collect(),
        },
        Outcome::Found(found) => done_with(
            format!("found a {}", kind(found.kind)),
            Some(entry(found)),
            None,
        ),
        Outcome::MadeDirectory(made) => done(
            match made.made {
                true => "made the directory".to_owned(),
                false => "the directory was there already".to_owned(),
            },
            None,
        ),
        Outcome::Moved(_) => done("moved".to_owned(), None),
        Outcome::Removed(_) => done("removed".to_owned(), None),
        Outcome::Failed(failure) => OperationEnd::Failed {
            reason: failure.kind(),
            words: line(failure),
        },
        Outcome::Refused(refusal) if refusal.code == RefusalCode::Lost => OperationEnd::Lost {
            words: line(refusal),
        },
        Outcome::Refused(refusal) => OperationEnd::Refused {
            words: line(refusal),
        },
    }
}

fn exited(record: &ExitRecord, stopped: Option<&HadToStop>) -> OperationEnd {
    let (code, signal) = match record.status {
        ExitStatus::Code(code) => (Some(code), None),
        ExitStatus::Signal(signal) => (None, Some(signal)),
        ExitStatus::NotStarted(_) | ExitStatus::Unknown => (None, None),
    };
    let words = match (record.cause, stopped) {
        (ExitCause::Exited, _) => line(&record.status),
        (ExitCause::Cancelled, Some(stopped)) => {
            let by = stopped.by.as_ref().map(|name| format!(" (by {name})"));
            line(format_args!(
                "stopped: {}{}",
                stopped.why,
                by.unwrap_or_default()
            ))
        }
        (cause, _) => line(format_args!("ended {cause}: {}", record.status)),
    };
    OperationEnd::Exited {
        code,
        signal,
        cause: cause(record.cause).to_owned(),
        words,
        stdout_bytes: record.stdout.offset,
        stderr_bytes: record.stderr.offset,
        wall_ms: record.wall_ms,
    }
}

fn cause(cause: ExitCause) -> &'static str {
    match cause {
        ExitCause::Exited => "exited",
        ExitCause::Timeout => "timeout",
        ExitCause::Idle => "idle",
        ExitCause::Cancelled => "cancelled",
        ExitCause::Orphaned => "orphaned",
        ExitCause::OutOfMemory => "out_of_memory",
        ExitCause::DiskFull => "disk_full",
        ExitCause::SupervisorLost => "supervisor_lost",
        ExitCause::HostReboot => "host_reboot",
        ExitCause::SandboxStopped => "sandbox_stopped",
    }
}

fn left_out(did: &str, skipped: &[shared_sandbox::Skipped]) -> String {
    match skipped.len() {
        0 => did.to_owned(),
        1 => format!("{did}; 1 entry was left out"),
        entries => format!("{did}; {entries} entries were left out"),
    }
}

fn skipped(skipped: &shared_sandbox::Skipped) -> Skipped {
    Skipped {
        path: skipped.path.clone(),
        words: line(&skipped.failure),
    }
}

fn file(did: &str, bytes: u64, digest: FileDigest) -> OperationEnd {
    done(format!("{did} {bytes} bytes"), Some((bytes, digest)))
}

fn done(words: String, file: Option<(u64, FileDigest)>) -> OperationEnd {
    let (bytes, digest) = file.unzip();
    OperationEnd::Done {
        words,
        bytes,
        digest,
        entry: None,
        listing: None,
        skipped: Vec::new(),
    }
}

fn done_with(words: String, entry: Option<Entry>, listing: Option<Listing>) -> OperationEnd {
    OperationEnd::Done {
        words,
        bytes: None,
        digest: None,
        entry,
        listing,
        skipped: Vec::new(),
    }
}

fn entry(found: &Found) -> Entry {
    Entry {
        kind: kind(found.kind).to_owned(),
        bytes: found.bytes,
        mode: found.mode,
        modified_at: Timestamp::from_micros(found.modified_us),
        leads_to: found.leads_to.clone(),
    }
}

fn listing(listed: &Listed) -> Listing {
    let entries = listed.entries.iter().map(|entry| ListedEntry {
        name: entry.name.clone(),
        kind: kind(entry.kind).to_owned(),
        bytes: entry.bytes,
        mode: entry.mode,
        leads_to: entry.leads_to.clone(),
        is_replaced: entry.is_replaced,
        is_unreadable: entry.is_unreadable,
    });
    Listing {
        entries: entries.collect(),
        more: listed.more,
    }
}

fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Link => "link",
        EntryKind::Other => "other",
    }
}

/// Words that a runner may have chosen, on one line of bounded length.
fn line(words: impl ToString) -> String {
    clean_line(&words.to_string(), MAX_PEER_TEXT)
}

#[cfg(test)]
mod tests {
    use shared_sandbox::{NotStarted, StreamEnd};
    use shared_types::{Refusal, event::StopReason};

    use super::*;

    fn ends(status: ExitStatus, cause: ExitCause) -> OperationEnd {
        ends_stopped(status, cause, None)
    }

    fn ends_stopped(
        status: ExitStatus,
        cause: ExitCause,
        stopped: Option<&HadToStop>,
    ) -> OperationEnd {
        let exited = Outcome::Exited(ExitRecord {
            status,
            cause,
            stdout: StreamEnd::default(),
            stderr: StreamEnd::default(),
            wall_ms: 0,
            cpu_us: 0,
            max_rss_bytes: 0,
            tree_gone: true,
        });
        end(&exited, stopped)
    }

    #[test]
    fn every_end_says_in_one_line_how_it_came_about() {
        let refused = |code| {
            let refusal = Refusal::new(code, "why\n\x1b[2Jnot");
            end(&Outcome::Refused(refusal), None)
        };
        let removed = HadToStop {
            why: StopReason::PersonRemoved,
            by: Some("ann".to_owned()),
        };
        let by_signal = ExitStatus::Signal(15);
        let missing = NotStarted::MissingProgram("sl".to_owned());
        for (end, words) in [
            (ends(ExitStatus::Code(3), ExitCause::Exited), "exit code 3"),
            (
                ends(ExitStatus::Signal(9), ExitCause::Timeout),
                "ended at its time limit: ended by signal 9",
            ),
            (
                ends_stopped(by_signal.clone(), ExitCause::Cancelled, Some(&removed)),
                "stopped: its person was removed (by ann)",
            ),
            (
                ends_stopped(by_signal, ExitCause::Exited, Some(&removed)),
                "ended by signal 15",
            ),
            (
                ends(ExitStatus::NotStarted(missing), ExitCause::Exited),
                "it could not be started: there is no program \"sl\" on the runner's host; install \
                 it, or name its file",
            ),
            (refused(RefusalCode::Lost), "why⏎not"),
            (refused(RefusalCode::Expired), "why⏎not"),
        ] {
            assert_eq!(end.words(), words, "{end:?}");
        }
        assert!(matches!(
            refused(RefusalCode::Lost),
            OperationEnd::Lost { .. }
        ));
    }

    #[test]
    fn a_cause_has_the_name_that_it_has_everywhere() {
        for known in [
            ExitCause::Exited,
            ExitCause::Timeout,
            ExitCause::Idle,
            ExitCause::Cancelled,
            ExitCause::Orphaned,
            ExitCause::OutOfMemory,
            ExitCause::DiskFull,
            ExitCause::SupervisorLost,
            ExitCause::HostReboot,
            ExitCause::SandboxStopped,
        ] {
            let name = serde_json::to_value(known).expect("JSON");
            assert_eq!(name, cause(known));
        }
    }
}
