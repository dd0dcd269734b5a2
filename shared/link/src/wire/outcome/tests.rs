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
