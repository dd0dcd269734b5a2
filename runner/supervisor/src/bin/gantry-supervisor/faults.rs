//! Carries out the faults that tests order; in a release build there are none.

use runner_supervisor::{Fault, FaultPoint};

use crate::client::ControlClient;

/// The fault that was ordered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faults {
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "never obeyed"))]
    ordered: Option<Fault>,
}

impl Faults {
    /// For where nothing is to fail.
    pub(crate) fn none() -> Self {
        Self { ordered: None }
    }
}

#[cfg(debug_assertions)]
impl Faults {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the part of `main` that exists in debug builds only"
    )]
    pub(crate) fn from_environment() -> Self {
        let ordered = std::env::var(Fault::VARIABLE).ok();
        Self {
            ordered: ordered.and_then(|text| text.parse().ok()),
        }
    }

    /// Fails here, if that was ordered.
    pub(crate) fn at(self, point: FaultPoint, client: Option<&ControlClient>) {
        use runner_supervisor::FaultAction;
        use rustix::process::{Signal, getpid, kill_process};
        let Some(fault) = self.ordered.filter(|fault| fault.point == point) else {
            return;
        };
        let (victim, signal) = match fault.action {
            FaultAction::KillSupervisor => (Some(getpid()), Signal::KILL),
            FaultAction::StopSupervisor => (Some(getpid()), Signal::STOP),
            FaultAction::KillDaemon => (client.and_then(ControlClient::pid), Signal::KILL),
        };
        if let Some(victim) = victim {
            // It may be dead already.
            let _ = kill_process(victim, signal);
        }
    }
}

#[cfg(not(debug_assertions))]
impl Faults {
    pub(crate) fn from_environment() -> Self {
        Self::none()
    }

    pub(crate) fn at(self, _point: FaultPoint, _client: Option<&ControlClient>) {}
}
