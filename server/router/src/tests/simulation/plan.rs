//! The operations that a simulation has.

use std::time::Duration;

use shared_link::wire;
use shared_sandbox::{
    Command, Consent, Exec, Operation, OperationLimits, Outcome, Request, Retention, TerminalSize,
    examples,
};
use shared_types::{Effect, Epoch, OperationId, OperationKey, Owner, SessionId};

use super::{changing, dice::Dice};

/// Those that are asked for, the last one first.
pub(crate) fn operations(dice: &mut Dice) -> Vec<Operation> {
    // Of four operations so many change a file.
    let changes = dice.below(5);
    let operations = 1 + dice.below(8);
    let each = (1..=operations).map(|number| {
        let retention = match dice.below(4) {
            0 => Retention::All,
            1 => Retention::None,
            _ => Retention::Bounded,
        };
        let mut operation = operation(number, retention, dice);
        if dice.below(4) < changes {
            operation.request = changing::request(number, dice);
        }
        operation
    });
    each.collect()
}

/// How the output of an operation is retained.
pub(crate) fn retention(request: &Request) -> Retention {
    match request {
        Request::Exec(exec) => exec.retention,
        _ => Retention::Bounded,
    }
}

/// Requests that only read, and have no output.
fn reads() -> Vec<Request> {
    let mut requests = examples::requests();
    requests.retain(|request| request.only_reads() && !request.is_download());
    requests
}

/// What a request that succeeds comes to, by the examples.
pub(crate) fn result(request: &Request) -> Outcome {
    let expected = wire::expected(request);
    let success = |end: &Outcome| !matches!(end, Outcome::Failed(_) | Outcome::Refused(_));
    let mut ends = examples::ends().into_iter();
    let end = ends.find(|end| expected(end) && success(end));
    end.expect("an example")
}

fn operation(number: u64, retention: Retention, dice: &mut Dice) -> Operation {
    let request = match dice.below(6) {
        0 => {
            let mut reads = reads();
            let one = dice.below(reads.len() as u64);
            reads.swap_remove(one as usize)
        }
        kind => Request::Exec(Exec {
            input: kind == 1,
            terminal: (kind == 2).then_some(TerminalSize {
                rows: 0,
                columns: 0,
            }),
            retention,
            ..Exec::new(Command::Shell(format!("work {number}")))
        }),
    };
    Operation {
        id: OperationId::from_u128(u128::from(number)),
        owner: Owner::Session(SessionId::from_u128(1)),
        key: OperationKey::Request(number.to_string()),
        epoch: Epoch(1),
        effect: Effect::Effectful,
        limits: OperationLimits {
            start_within: Duration::from_secs(1 + dice.below(120)),
            run_for: Duration::from_secs(600),
        },
        request,
        consent: Consent::Caller,
        trace: None,
    }
}
