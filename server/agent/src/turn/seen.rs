//! Read before edit: the files that a session has seen, and the content that an edit expects.
//!
//! A function of the calls before an edit, which have all ended when it begins. So a worker that runs the edit again
//! after a crash sends the same request (docs/internals/contracts.md#c9).

use shared_sandbox::{Outcome, Request, path_from_root};
use shared_types::{FileDigest, event::FileSeen};

/// The session has not seen the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Never;

/// The digest that the edit of a file expects. `files` are those that the session has seen there, the newest first.
/// Nothing where its runner may be of a release that refuses an edit with a digest: such a runner tells none with the
/// lines that it reads.
///
/// # Errors
/// The file is not among them.
pub(super) fn expected<'a>(
    files: impl Iterator<Item = &'a FileSeen>,
    path: &str,
) -> Result<Option<FileDigest>, Never> {
    let files: Vec<_> = files.collect();
    let seen = files.iter().find(|file| file.path == path).ok_or(Never)?;
    let tells_digests = |file: &&FileSeen| !file.changed && file.digest.is_some();
    let checks = !seen.changed || files.iter().any(tells_digests);
    Ok(seen.digest.filter(|_| checks))
}

/// The file whose content a request has seen, for a session that works in this directory.
pub(super) fn file(request: &Request, outcome: &Outcome, directory: &str) -> Option<FileSeen> {
    let (path, digest, changed) = match (request, outcome) {
        (Request::Read(read), Outcome::Read(content)) => (&read.path, content.digest, false),
        // An image. Runners of every release tell its digest, and no edit needs it.
        (Request::Download(download), Outcome::Downloaded(_)) => (&download.path, None, false),
        (Request::Write(write), Outcome::Written(written)) => {
            (&write.path, Some(written.after), true)
        }
        (Request::Edit(edit), Outcome::Edited(edited)) => {
            (&edit.path, Some(edited.after.into()), true)
        }
        _ => return None,
    };
    Some(FileSeen {
        path: path_from_root(directory, path),
        digest,
        changed,
    })
}

#[cfg(test)]
mod tests {
    use shared_sandbox::scripted::ScriptedSandbox;
    use shared_types::{
        Digest, Epoch, Event, OperationId, OperationKey, OperationScope, Owner, ReplicaId,
        SessionId, TenantId, Timestamp, TurnId, UserId,
        event::{CallOutcome, Choice, Finish, Part, Parts, Place, ToolCall, Usage},
    };

    use super::*;
    use crate::transcript::Transcript;

    const BEFORE: TurnId = TurnId::from_u128(1);
    const NOW: TurnId = TurnId::from_u128(2);

    fn choice(place: &Place, workspace: Option<&str>) -> Choice {
        Choice::User {
            runner: place.runner,
            name: place.runner_name.clone(),
            workspace: workspace.map(str::to_owned),
        }
    }

    /// A session whose earlier turn read the file `a` at this place, and whose second turn has this choice.
    fn session(place: &Place, before: Choice, now: Choice) -> Transcript {
        let mut transcript = Transcript::default();
        let mut apply = |event| transcript.apply(&event, Timestamp::from_micros(0));
        for (turn, choice) in [(BEFORE, before), (NOW, now)] {
            apply(Event::InputAccepted {
                turn,
                by: UserId::from_u128(9),
                client_id: None,
                parts: Parts::text("go"),
                compacts: None,
                terms: crate::testing::full(),
            });
            apply(Event::TurnClaimed {
                turn,
                epoch: Epoch(1),
                replica: ReplicaId::from_u128(1),
                choice: Some(choice),
                settings: None,
            });
        }
        let asked = ToolCall {
            vendor_id: "c".to_owned(),
            name: "Read".to_owned(),
            arguments: "{}".to_owned(),
            opaque: Default::default(),
        };
        apply(Event::AnswerRecorded {
            turn: BEFORE,
            step: 1,
            model: "m".to_owned(),
            origin: None,
            parts: Parts(vec![Part::ToolCall(asked)]),
            finish: Finish::Complete,
            usage: Usage::default(),
            estimated: 0,
            model_ms: 0,
            limit: None,
        });
        let key = OperationKey::Call {
            turn: BEFORE,
            step: 1,
            ordinal: 0,
            attempt: 0,
        };
        let owner = Owner::Session(SessionId::from_u128(1));
        apply(Event::CallPlaced {
            turn: BEFORE,
            step: 1,
            ordinal: 0,
            operation: OperationId::derive(
                &OperationScope::of(TenantId::from_u128(1)),
                &owner,
                &key,
            ),
            place: place.clone(),
        });
        apply(Event::CallEnded {
            turn: BEFORE,
            step: 1,
            ordinal: 0,
            outcome: CallOutcome::Completed,
            parts: Parts::text("1\tone"),
            unplaced: false,
            task: None,
            awaits: None,
            budget_ms: 1,
            duration_ms: 1,
            overran: false,
            file: Some(FileSeen {
                path: "a".to_owned(),
                digest: Some(Digest::of(b"one").into()),
                changed: false,
            }),
            whole: None,
            findings: Vec::new(),
            tools: Vec::new(),
        });
        transcript
    }

    #[test]
    fn what_an_earlier_turn_read_counts_on_the_same_runner_in_the_same_workspace_alone() {
        let here = ScriptedSandbox::place();
        let there = Place {
            runner: shared_types::RunnerId::from_u128(77),
            ..here.clone()
        };
        let seen = |before, now| {
            let session = session(&here, before, now);
            expected(session.files_before(NOW, (1, 0)), "a").is_ok()
        };
        assert!(seen(choice(&here, None), choice(&here, None)));
        assert!(seen(choice(&here, Some("web")), choice(&here, Some("web"))));
        assert!(!seen(
            choice(&here, Some("web")),
            choice(&here, Some("app"))
        ));
        assert!(!seen(choice(&here, Some("web")), choice(&here, None)));
        assert!(!seen(choice(&here, None), choice(&there, None)));
        assert!(!seen(choice(&here, None), Choice::None));
    }

    #[test]
    fn only_the_calls_before_an_edit_count() {
        let here = ScriptedSandbox::place();
        let session = session(&here, choice(&here, None), choice(&here, None));
        let expects = |call| expected(session.files_before(BEFORE, call), "a");
        assert_eq!(expects((1, 0)), Err(Never));
        assert_eq!(expects((1, 1)), Ok(Some(Digest::of(b"one").into())));
        assert_eq!(expected(session.files_before(NOW, (1, 0)), "b"), Err(Never));
    }
}
