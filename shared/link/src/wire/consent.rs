//! The consent of an operation, and the modes of agents.

use proto::v1::{self, consent::By};
use shared_sandbox::Consent;
use shared_types::{Digest, Mode, Refusal};

use super::invalid;

/// The consent in its wire form.
pub fn consent(consent: Consent) -> v1::Consent {
    let by = match consent {
        Consent::Caller => By::Caller(v1::consent::Caller {}),
        Consent::Agent(mode) => By::Agent(v1::consent::Agent {
            mode: mode_to_wire(mode).into(),
        }),
        Consent::Approved { mode, plan } => By::Approved(v1::consent::Approved {
            mode: mode_to_wire(mode).into(),
            plan: plan.as_bytes().to_vec(),
        }),
    };
    v1::Consent { by: Some(by) }
}

/// The consent that came; [`Consent::UNKNOWN`] where the server names none.
pub(crate) fn read_consent(wire: Option<v1::Consent>) -> Result<Consent, Refusal> {
    let Some(wire) = wire else {
        return Ok(Consent::UNKNOWN);
    };
    let known = |mode| mode_from_wire(mode).ok_or_else(|| invalid("mode of an agent"));
    match wire.by.ok_or_else(|| invalid("consent"))? {
        By::Caller(_) => Ok(Consent::Caller),
        By::Agent(agent) => Ok(Consent::Agent(known(agent.mode())?)),
        By::Approved(approved) => Ok(Consent::Approved {
            mode: known(approved.mode())?,
            plan: Digest::from_slice(&approved.plan)
                .ok_or_else(|| invalid("digest of what was approved"))?,
        }),
    }
}

/// A mode in its wire form.
pub fn mode_to_wire(mode: Mode) -> v1::Mode {
    match mode {
        Mode::Plan => v1::Mode::Plan,
        Mode::Ask => v1::Mode::Ask,
        Mode::Auto => v1::Mode::Auto,
        Mode::Full => v1::Mode::Full,
    }
}

/// The mode on the wire; `None` where it is absent, or of another version.
pub(crate) fn mode_from_wire(wire: v1::Mode) -> Option<Mode> {
    match wire {
        v1::Mode::Unspecified => None,
        v1::Mode::Plan => Some(Mode::Plan),
        v1::Mode::Ask => Some(Mode::Ask),
        v1::Mode::Auto => Some(Mode::Auto),
        v1::Mode::Full => Some(Mode::Full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consent_arrives_as_it_was_said() {
        let plan = Digest::of(b"a plan");
        let agents = Mode::ALL.into_iter().map(Consent::Agent);
        let approved = Mode::ALL.map(|mode| Consent::Approved { mode, plan });
        for said in agents.chain(approved).chain([Consent::Caller]) {
            assert_eq!(read_consent(Some(consent(said))), Ok(said));
        }
    }

    #[test]
    fn a_consent_that_cannot_be_read_is_never_taken_for_a_freer_one() {
        assert_eq!(read_consent(None), Ok(Consent::Agent(Mode::Full)));
        let newer = By::Agent(v1::consent::Agent { mode: 99 });
        let short = By::Approved(v1::consent::Approved {
            mode: v1::Mode::Ask.into(),
            plan: vec![1],
        });
        for by in [None, Some(newer), Some(short)] {
            assert!(read_consent(Some(v1::Consent { by })).is_err());
        }
    }
}
