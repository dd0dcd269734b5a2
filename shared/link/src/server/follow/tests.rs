use shared_sandbox::{Command, Consent, Download, Downloaded, Exec, OperationLimits};
use shared_types::{
    Digest, Effect, FileDigest, Isolation, Mode, OperationKey, SandboxId, SessionId, event::Place,
};

use super::*;
use crate::testing::incarnation;

/// Long after each operation here was to start.
fn late() -> BootMoment {
    BootMoment {
        boot: "b".to_owned(),
        at: Duration::from_secs(3600),
    }
}

/// A reader that knows the request of an operation which was placed, and had 60 s to start.
fn follow(request: Request, outcome: Option<Outcome>, closed: bool) -> Follow {
    let (id, owner) = (
        OperationId::from_u128(1),
        Owner::Session(SessionId::from_u128(1)),
    );
    let intent = StoredIntent {
        digest: request.digest(),
        owner,
        epoch: Epoch(1),
        place: Place {
            runner: RunnerId::from_u128(1),
            runner_name: "laptop".to_owned(),
            sandbox: SandboxId::from_u128(1),
            isolation: Isolation::default(),
        },
        incarnation: incarnation(),
        outcome,
        cancel_requested: false,
        closed,
        effect: Effect::Pure,
        start_by: Some(BootMoment {
            at: Duration::from_secs(60),
            ..late()
        }),
        trace: None,
    };
    let asked = Operation {
        id,
        owner,
        key: OperationKey::Request("key".to_owned()),
        epoch: Epoch(1),
        effect: Effect::Pure,
        limits: OperationLimits {
            start_within: Duration::from_secs(60),
            run_for: Duration::from_secs(60),
        },
        request,
        consent: Consent::Caller,
        trace: None,
    };
    Follow::new(id, Some(Arc::new(asked)), intent, None, [0, 0])
}

fn linked() -> Linked {
    Linked {
        generation: Generation(1),
        incarnation: incarnation(),
    }
}

/// Whether the request goes with what is sent to the runner then.
fn is_sent_late(mut follow: Follow) -> bool {
    follow.connection(RunnerConnection::Online(linked()));
    let frame = follow.frame([0, 0], &late());
    assert_eq!(frame.request.is_some(), frame.start_within_ms > 0);
    frame.request.is_some()
}

fn download() -> Request {
    Request::Download(Download {
        path: "file".to_owned(),
        algorithm: Default::default(),
        max_bytes: 0,
    })
}

fn downloaded() -> Option<Outcome> {
    let digest = FileDigest::from(Digest::of(b"abc"));
    Some(Outcome::Downloaded(Downloaded { bytes: 3, digest }))
}

#[test]
fn a_download_that_has_begun_is_sent_again_after_its_time_to_start() {
    assert!(is_sent_late(follow(download(), downloaded(), false)));
    let mut begun = follow(download(), None, false);
    begun.told_accepted = true;
    assert!(is_sent_late(begun));
}

#[test]
fn nothing_else_is_and_no_download_that_never_began_or_that_nobody_reads() {
    assert!(!is_sent_late(follow(download(), None, false)));
    assert!(!is_sent_late(follow(download(), downloaded(), true)));
    let exec = || Request::Exec(Exec::new(Command::Shell("true".to_owned())));
    let mut begun = follow(exec(), None, false);
    begun.told_accepted = true;
    assert!(!is_sent_late(begun));
    let ended = Outcome::Refused(expired());
    assert!(!is_sent_late(follow(exec(), Some(ended), false)));
}

#[test]
fn a_download_that_a_full_runner_refuses_for_now_waits_and_any_other_refusal_ends_it() {
    let refused = |retry_after_ms| {
        let mut follow = follow(download(), downloaded(), false);
        follow.connection(RunnerConnection::Online(linked()));
        follow.found(Some(follow.intent.clone()));
        follow.frame([0, 0], &late());
        let refusal = Refusal::new(RefusalCode::ResourceExhausted, "full");
        follow.mail(Mail::Refused(Refusal {
            retry_after_ms,
            ..refusal
        }));
        follow.step()
    };
    assert!(matches!(refused(Some(500)), FollowStep::Wait(..)));
    assert!(matches!(
        refused(None),
        FollowStep::Settle(Outcome::Downloaded(_))
    ));
}

#[test]
fn the_consent_goes_with_the_request_and_changes_no_identity() {
    let frame = |consent| {
        let exec = Request::Exec(Exec::new(Command::Shell("true".to_owned())));
        let mut follow = follow(exec, None, false);
        let asked = follow
            .asked
            .as_deref()
            .cloned()
            .map(|asked| Operation { consent, ..asked });
        follow.asked = asked.map(Arc::new);
        follow.connection(RunnerConnection::Online(linked()));
        let in_time = BootMoment {
            at: Duration::ZERO,
            ..late()
        };
        follow.frame([0, 0], &in_time)
    };
    let caller = frame(Consent::Caller);
    let agent = frame(Consent::Agent(Mode::Auto));
    assert_eq!(
        agent.consent,
        Some(wire::consent(Consent::Agent(Mode::Auto)))
    );
    assert_eq!(caller.consent, Some(wire::consent(Consent::Caller)));
    assert_eq!(
        (agent.operation, agent.digest),
        (caller.operation, caller.digest)
    );
}
