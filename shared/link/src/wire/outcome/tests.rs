//! Every outcome over the wire and back.

use prost::Message as _;
use shared_sandbox::examples;

use super::*;

#[test]
fn every_outcome_reads_back_from_the_wire() {
    for outcome in examples::outcomes() {
        let frame = ended(OperationId::from_u128(1), outcome.clone());
        let bytes = frame.encode_to_vec();
        let frame = v1::RunnerFrame::decode(bytes.as_slice()).expect("a frame");
        let Some(runner_frame::Kind::Ended(told)) = frame.kind else {
            panic!("no end");
        };
        assert_eq!(super::outcome(told.outcome), Ok(outcome));
    }
}

#[test]
fn every_request_can_succeed_and_no_success_is_of_no_request() {
    let requests = examples::requests();
    let succeeds = |request: &Request, outcome: &Outcome| expected(request)(outcome);
    for outcome in examples::ends() {
        let any = requests.iter().any(|request| succeeds(request, &outcome));
        assert!(any, "{outcome:?}");
    }
    for request in &requests {
        let ends = examples::ends()
            .into_iter()
            .filter(|outcome| succeeds(request, outcome));
        let success = |end: &Outcome| !matches!(end, Outcome::Failed(_) | Outcome::Refused(_));
        assert!(ends.into_iter().any(|end| success(&end)), "{request:?}");
    }
}
