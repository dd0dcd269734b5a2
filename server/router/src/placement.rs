//! The place of an operation: the runner that was chosen when its turn was claimed, or none.
//!
//! Placement is a pure function of stored facts. There is no second best: a chosen runner that cannot be used is an
//! error with its reason, and never another runner or the server itself. A runner that was heard of within its lease is
//! only away, and may be waited for.

use std::time::Duration;

use shared_types::{
    Incarnation, Isolation, Refusal, RefusalCode, RunnerId, Timestamp,
    event::{Choice, Place},
};

use server_records::{FleetRunner, FleetSnapshot};
use shared_link::server::RunnerState;

/// The place where an operation will run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The place.
    pub place: Place,
    /// The incarnation of its runner: the operation is of no use to another.
    pub incarnation: Incarnation,
}

/// The reason why an operation has no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPlaced {
    /// Waiting does not help.
    Refused(Refusal),
    /// The runner has no link, and may be back at any moment.
    Away(Away),
}

/// A runner that was heard of within its lease, and has no link here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Away {
    /// The runner.
    pub runner: RunnerId,
    /// Its name.
    pub name: String,
    /// Its state, as a text behind its name.
    pub state: String,
    /// The refusal if the call waits no longer.
    pub refusal: Refusal,
}

/// The difference between a runner that is away and one that is offline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recent {
    /// The time.
    pub now: Timestamp,
    /// The time after its last sign in which a runner counts as there.
    pub lease: Duration,
}

/// Places in the workspace that was chosen with the runner, else in the runner's first one.
///
/// # Errors
/// `Unavailable` if no runner is active, or the active one is unknown, offline, locked, draining or removed.
/// `ForbiddenByRunnerPolicy` if it does not report the demanded isolation, or its report does not count.
pub fn place(snapshot: &FleetSnapshot, recent: Recent) -> Result<Placement, NotPlaced> {
    let runner = chosen(snapshot).map_err(NotPlaced::Refused)?;
    let (which, other) = (which(snapshot, &runner.name), other(snapshot));
    if runner.locked && runner.state != RunnerState::Revoked {
        return Err(unavailable(format!(
            "{which} is locked, because its folder was copied; find the copy, remove the runner \
             (gantry runners remove {}) and enrol it anew, or {other}",
            runner.name
        )));
    }
    if let Some(by) = &runner.drained_by {
        return Err(unavailable(format!(
            "{which} takes no new work: {by} lets it drain, and what runs there goes on; {other}, or have it take \
             work again: gantry runners undrain {}",
            runner.name
        )));
    }
    match runner.state {
        RunnerState::Online => {}
        RunnerState::Offline { since } => {
            return Err(offline(snapshot, runner.id, &runner.name, since, recent));
        }
        RunnerState::Revoked => {
            return Err(unavailable(format!("{which} was removed; {other}")));
        }
    }
    let (Some(first), Some(incarnation)) = (runner.sandboxes.first(), &runner.incarnation) else {
        return Err(unavailable(format!(
            "{which} offers no workspace; look at its log"
        )));
    };
    let sandbox = match snapshot.choice.workspace() {
        None => first,
        Some(name) => {
            let found = runner.sandboxes.iter().find(|sandbox| sandbox.name == name);
            found.ok_or_else(|| {
                let names = runner.sandboxes.iter().map(|sandbox| sandbox.name.as_str());
                let names = names.collect::<Vec<_>>().join(", ");
                unavailable(format!(
                    "{which} has no workspace {name:?} any more, only: {names}; {other}"
                ))
            })?
        }
    };
    if let Some(problem) = &sandbox.problem
        && runner.pool
    {
        return Err(unavailable(format!(
            "{which} can make no sandbox now: {problem}; or {other}"
        )));
    }
    if let Some(problem) = &sandbox.problem {
        return Err(unavailable(format!(
            "{which} cannot work in its workspace {:?}: {problem}; then restart the runner, or {other}",
            sandbox.name
        )));
    }
    let missing = sandbox.isolation.missing(&snapshot.demanded);
    if missing != Isolation::none() {
        return Err(forbidden(format!(
            "{which} does not prove the isolation that is demanded: {missing} is missing; {other}"
        )));
    }
    let proved = match runner.believed {
        true => sandbox.isolation.clone(),
        false => Isolation::none(),
    };
    if !proved.satisfies(&snapshot.demanded) {
        return Err(forbidden(format!(
            "{which} reports the isolation that is demanded, and its word does not count here; an \
             admin lets it count with: gantry runners trust {}; or {other}",
            runner.name
        )));
    }
    Ok(Placement {
        place: Place {
            runner: runner.id,
            runner_name: runner.name.clone(),
            sandbox: sandbox.id,
            isolation: proved,
        },
        incarnation: incarnation.clone(),
    })
}

/// The answer for an active runner without a link: it is away, or offline for longer.
pub(crate) fn offline(
    snapshot: &FleetSnapshot,
    runner: RunnerId,
    name: &str,
    since: Option<Timestamp>,
    recent: Recent,
) -> NotPlaced {
    let (which, other) = (which(snapshot, name), other(snapshot));
    let refused = |state: String| {
        let message = format!("{which} {state}; start it (gantry-runner run) or {other}");
        Refusal::new(RefusalCode::Unavailable, message)
    };
    match since {
        None => NotPlaced::Refused(refused("has never been online".to_owned())),
        Some(since) => {
            let refusal = refused(format!("is offline since {since:.0}"));
            match recent.now.since(since) < recent.lease {
                true => NotPlaced::Away(Away {
                    runner,
                    name: name.to_owned(),
                    state: format!("offline since {since:.0}"),
                    refusal,
                }),
                false => NotPlaced::Refused(refusal),
            }
        }
    }
}

/// The answer for a chosen runner whose link another server of this database holds. If one server takes the other's
/// place, the runner comes over within seconds.
pub(crate) fn elsewhere(snapshot: &FleetSnapshot, runner: RunnerId, name: &str) -> NotPlaced {
    let (which, other) = (which(snapshot, name), other(snapshot));
    let state = "is online at another server, and not at this one";
    let message = format!("{which} {state}; try again in a minute, or {other}");
    NotPlaced::Away(Away {
        runner,
        name: name.to_owned(),
        state: state.to_owned(),
        refusal: Refusal::new(RefusalCode::Unavailable, message),
    })
}

fn chosen(snapshot: &FleetSnapshot) -> Result<&FleetRunner, Refusal> {
    let Some((choice, name)) = snapshot.choice.runner() else {
        let advice = if snapshot.runners.is_empty() {
            "ask its owner to share one, or add a machine with: gantry runners add"
        } else {
            "choose one for the next message with: gantry runners use NAME; where gantry runners lists \
             none, ask its owner to share one"
        };
        return Err(Refusal::new(
            RefusalCode::Unavailable,
            format!("no runner was active when this turn began; {advice}"),
        ));
    };
    let found = snapshot.runners.iter().find(|runner| runner.id == choice);
    found.ok_or_else(|| {
        let (which, other) = (which(snapshot, name), other(snapshot));
        Refusal::new(
            RefusalCode::Unavailable,
            format!(
                "{which} is not there for this session any more (removed, or not shared); {other}"
            ),
        )
    })
}

/// The runner in words, and the reason why it is this one.
fn which(snapshot: &FleetSnapshot, name: &str) -> String {
    match &snapshot.choice {
        _ if snapshot.is_callers => format!("runner {name:?}"),
        Choice::Session { .. } => format!("runner {name:?}, to which this session is pinned,"),
        Choice::Tenant { .. } => format!("the active runner {name:?}, the tenant's default,"),
        Choice::None | Choice::User { .. } => format!("the active runner {name:?}"),
    }
}

/// The way to work on another runner, in words. A turn stays where it began, so a new choice counts from the next
/// message. A caller names a runner for each operation.
fn other(snapshot: &FleetSnapshot) -> &'static str {
    match &snapshot.choice {
        _ if snapshot.is_callers => "name another runner (gantry exec -r NAME)",
        Choice::Session { .. } => {
            "choose another for the next message: /runner NAME, or gantry chat --runner NAME"
        }
        Choice::None | Choice::User { .. } | Choice::Tenant { .. } => {
            "choose another for the next message with: gantry runners use NAME"
        }
    }
}

fn forbidden(message: String) -> NotPlaced {
    let code = RefusalCode::ForbiddenByRunnerPolicy;
    NotPlaced::Refused(Refusal::new(code, message))
}

fn unavailable(message: String) -> NotPlaced {
    NotPlaced::Refused(Refusal::new(RefusalCode::Unavailable, message))
}

#[cfg(test)]
mod tests;
