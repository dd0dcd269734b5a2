//! The sandboxes of a pool: what they are to be, and how they are.

use proto::v1::{
    self,
    ensure_sandbox::Network,
    runner_frame,
    sandbox_report::{Privilege, State},
    server_frame,
};
use shared_types::{
    Refusal, SandboxId, SandboxLimits, SandboxNetwork, SandboxPrivilege, SandboxSpec, SandboxState,
    is_sandbox_name,
};

use super::{Malformed, from_runner, invalid, words};

/// The state of a sandbox of a pool, by its runner's report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxReport {
    /// The sandbox.
    pub sandbox: SandboxId,
    /// Its state.
    pub state: SandboxState,
    /// The reason for the state, for people: one clean line.
    pub reason: String,
    /// The privilege that its commands have.
    pub privilege: SandboxPrivilege,
}

/// A pool's facts, from its runner's hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolFacts {
    /// The program that makes sandboxes: `docker`.
    pub backend: String,
    /// The templates of the pool; the first is the default.
    pub templates: Vec<String>,
    /// Those of them whose commands may be root there.
    pub sudo_templates: Vec<String>,
    /// The isolation of its sandboxes, by the runner's report.
    pub isolation: shared_types::Isolation,
    /// The reason why the runner can make no sandbox; empty where it can.
    pub problem: String,
}

/// The frame that gives a sandbox's specification.
pub fn ensure_sandbox(sandbox: SandboxId, spec: &SandboxSpec, start: bool) -> server_frame::Kind {
    let network = match spec.network {
        SandboxNetwork::None => Network::None,
        SandboxNetwork::Open => Network::Open,
    };
    server_frame::Kind::EnsureSandbox(v1::EnsureSandbox {
        sandbox: sandbox.to_string(),
        name: spec.name.clone(),
        template: spec.template.clone(),
        limits: Some(v1::SandboxLimits {
            memory_bytes: spec.limits.memory_bytes,
            cpu_millis: spec.limits.cpu_millis,
            processes: spec.limits.processes,
            idle_for_ms: spec.limits.idle_for_ms,
        }),
        network: network.into(),
        start,
        may_sudo: spec.may_sudo,
    })
}

/// The frame that stops a sandbox.
pub fn stop_sandbox(sandbox: SandboxId) -> server_frame::Kind {
    server_frame::Kind::StopSandbox(v1::StopSandbox {
        sandbox: sandbox.to_string(),
    })
}

/// The frame that removes a sandbox with its files.
pub fn remove_sandbox(sandbox: SandboxId) -> server_frame::Kind {
    server_frame::Kind::RemoveSandbox(v1::RemoveSandbox {
        sandbox: sandbox.to_string(),
    })
}

/// The specification of a sandbox, and `true` if it is to start at once.
pub(crate) fn read_ensure(
    wire: v1::EnsureSandbox,
) -> Result<(SandboxId, SandboxSpec, bool), Refusal> {
    let network = match wire.network() {
        Network::None => SandboxNetwork::None,
        Network::Open => SandboxNetwork::Open,
        Network::Unspecified => return Err(invalid("network of a sandbox")),
    };
    let sandbox = wire.sandbox.parse().map_err(|_| invalid("sandbox id"))?;
    if !is_sandbox_name(&wire.name) || !is_sandbox_name(&wire.template) {
        return Err(invalid("name of a sandbox or its template"));
    }
    let limits = wire.limits.ok_or_else(|| invalid("limits of a sandbox"))?;
    let limits = SandboxLimits {
        memory_bytes: limits.memory_bytes,
        cpu_millis: limits.cpu_millis,
        processes: limits.processes,
        idle_for_ms: limits.idle_for_ms,
    };
    let spec = SandboxSpec {
        name: wire.name,
        template: wire.template,
        limits: limits
            .checked()
            .map_err(|_| invalid("limits of a sandbox"))?,
        network,
        may_sudo: wire.may_sudo,
    };
    Ok((sandbox, spec, wire.start))
}

/// The sandbox that a frame names.
pub(crate) fn sandbox_id(text: &str) -> Option<SandboxId> {
    text.parse().ok()
}

/// The frame that reports the state of a sandbox.
pub fn report(report: &SandboxReport) -> v1::RunnerFrame {
    let state = match report.state {
        SandboxState::Wanted => State::Unspecified,
        SandboxState::Starting => State::Starting,
        SandboxState::Running => State::Running,
        SandboxState::Stopped => State::Stopped,
        SandboxState::Failed => State::Failed,
        SandboxState::Removed => State::Removed,
    };
    let privilege = match report.privilege {
        SandboxPrivilege::Strict => Privilege::Strict,
        SandboxPrivilege::Sudo => Privilege::Sudo,
    };
    from_runner(runner_frame::Kind::SandboxReport(v1::SandboxReport {
        sandbox: report.sandbox.to_string(),
        state: state.into(),
        reason: report.reason.clone(),
        privilege: privilege.into(),
    }))
}

/// The report of a sandbox's state in a frame.
///
/// # Errors
/// It names no sandbox, or no state.
pub fn read_report(wire: &v1::SandboxReport) -> Result<SandboxReport, Malformed> {
    let state = match wire.state() {
        State::Starting => SandboxState::Starting,
        State::Running => SandboxState::Running,
        State::Stopped => SandboxState::Stopped,
        State::Failed => SandboxState::Failed,
        State::Removed => SandboxState::Removed,
        State::Unspecified => return Err(Malformed::new("a report names no state of a sandbox")),
    };
    let sandbox = sandbox_id(&wire.sandbox);
    Ok(SandboxReport {
        sandbox: sandbox.ok_or_else(|| Malformed::new("a report names no sandbox"))?,
        state,
        reason: words(&wire.reason),
        privilege: match wire.privilege() {
            Privilege::Sudo => SandboxPrivilege::Sudo,
            Privilege::Strict | Privilege::Unspecified => SandboxPrivilege::Strict,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sandbox_is_to_be_arrives_as_it_was_said() {
        let spec = SandboxSpec {
            name: "usr_1".to_owned(),
            template: "base".to_owned(),
            limits: SandboxLimits::default(),
            network: SandboxNetwork::Open,
            may_sudo: true,
        };
        let id = SandboxId::from_u128(7);
        let server_frame::Kind::EnsureSandbox(wire) = ensure_sandbox(id, &spec, true) else {
            panic!("another frame");
        };
        assert_eq!(read_ensure(wire.clone()), Ok((id, spec, true)));
        let elsewhere = v1::EnsureSandbox {
            name: "../x".to_owned(),
            ..wire.clone()
        };
        assert!(read_ensure(elsewhere).is_err());
        let unlimited = v1::EnsureSandbox {
            limits: None,
            ..wire
        };
        assert!(read_ensure(unlimited).is_err());
    }

    #[test]
    fn a_report_arrives_as_it_was_said_and_in_one_line() {
        for state in [
            SandboxState::Starting,
            SandboxState::Running,
            SandboxState::Stopped,
            SandboxState::Failed,
            SandboxState::Removed,
        ] {
            let said = SandboxReport {
                sandbox: SandboxId::from_u128(7),
                state,
                reason: "idle\nfor long".to_owned(),
                privilege: SandboxPrivilege::Sudo,
            };
            let Some(runner_frame::Kind::SandboxReport(wire)) = report(&said).kind else {
                panic!("another frame");
            };
            let heard = read_report(&wire).expect("a report");
            assert_eq!((heard.sandbox, heard.state), (said.sandbox, state));
            assert_eq!(heard.privilege, said.privilege);
            assert!(!heard.reason.contains('\n'), "{}", heard.reason);
        }
        assert!(read_report(&v1::SandboxReport::default()).is_err());
    }
}
