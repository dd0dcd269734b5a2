//! Where an operation runs: the runner that the user chose, or nowhere.
//!
//! A pure function of what is stored. There is no second best: a chosen runner that cannot be
//! used is an error that says why, and never another runner or the server itself.

use shared_types::{Incarnation, Refusal, RefusalCode, event::Place};

use crate::ports::{FleetRunner, FleetSnapshot, RunnerState};

/// Where an operation will run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The place.
    pub place: Place,
    /// The incarnation of its runner: the operation is worth nothing to another.
    pub incarnation: Incarnation,
}

/// The chosen runner's sandbox.
///
/// # Errors
/// `Unavailable`: no runner is chosen, or the chosen one is unknown, offline, locked or revoked.
/// `ForbiddenByRunnerPolicy`: it does not prove the isolation that is demanded.
pub fn place(snapshot: &FleetSnapshot) -> Result<Placement, Refusal> {
    let runner = chosen(snapshot)?;
    let name = &runner.name;
    if runner.locked && runner.state != RunnerState::Revoked {
        return Err(unavailable(format!(
            "runner {name:?}, which is chosen, is locked, because its folder was copied; find the \
             copy, remove the runner (gantry runners remove {name}) and enrol it anew, or choose \
             another with: gantry runners use NAME"
        )));
    }
    match runner.state {
        RunnerState::Online => {}
        RunnerState::Offline { since } => {
            let since = since.map_or_else(
                || "has never been online".to_owned(),
                |since| format!("is offline since {since:.0}"),
            );
            return Err(unavailable(format!(
                "runner {name:?}, which is chosen, {since}; start it (gantry-runner run) or \
                 choose another with: gantry runners use NAME"
            )));
        }
        RunnerState::Revoked => {
            return Err(unavailable(format!(
                "runner {name:?}, which is chosen, was revoked; choose another with: gantry \
                 runners use NAME"
            )));
        }
    }
    let (Some((sandbox, isolation)), Some(incarnation)) = (&runner.sandbox, &runner.incarnation)
    else {
        return Err(unavailable(format!(
            "runner {name:?}, which is chosen, offers no workspace; look at its log"
        )));
    };
    if !isolation.satisfies(&snapshot.demanded) {
        return Err(Refusal::new(
            RefusalCode::ForbiddenByRunnerPolicy,
            format!(
                "runner {name:?}, which is chosen, does not prove the isolation that is demanded: \
                 {} is missing; choose another with: gantry runners use NAME",
                isolation.missing(&snapshot.demanded)
            ),
        ));
    }
    Ok(Placement {
        place: Place {
            runner: runner.id,
            runner_name: runner.name.clone(),
            sandbox: *sandbox,
            isolation: isolation.clone(),
        },
        incarnation: incarnation.clone(),
    })
}

fn chosen(snapshot: &FleetSnapshot) -> Result<&FleetRunner, Refusal> {
    let Some(choice) = snapshot.choice else {
        let advice = if snapshot.runners.is_empty() {
            "enrol a machine with: gantry-runner enrol --server URL"
        } else {
            "choose one with: gantry runners use NAME"
        };
        return Err(unavailable(format!("no runner is chosen; {advice}")));
    };
    snapshot
        .runners
        .iter()
        .find(|runner| runner.id == choice)
        .ok_or_else(|| {
            unavailable(
                "the runner that is chosen does not exist any more; choose another with: gantry \
                 runners use NAME",
            )
        })
}

fn unavailable(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::Unavailable, message)
}

#[cfg(test)]
mod tests;
