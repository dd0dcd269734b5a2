//! Operations as the engine would place them.

use std::time::Duration;

use shared_sandbox::{Consent, Operation, OperationLimits, Request};
use shared_types::{
    Effect, Epoch, Mode, OperationId, OperationKey, OsEntropy, Owner, SessionId, SystemClock,
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// One with an id of its own, that has an effect and all the time it needs.
pub fn operation(request: Request) -> Operation {
    let id = OperationId::generate(&SystemClock::new(), &OsEntropy);
    Operation {
        id,
        owner: Owner::Session(SessionId::from_u128(1)),
        key: OperationKey::Request(id.to_string()),
        epoch: Epoch(1),
        effect: Effect::Effectful,
        limits: OperationLimits {
            start_within: PATIENCE,
            run_for: PATIENCE,
        },
        request,
        consent: Consent::Agent(Mode::Full),
        trace: None,
    }
}
