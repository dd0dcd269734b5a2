//! The proof that goes with the refusal of `Authenticate` where the server has dismissed the runner
//! (removed or locked it), over gRPC as over HTTP/1.1: an entry of the status's metadata.
//!
//! Anything between the two can refuse, a proxy's bare 403 for one; what a refusal without the
//! proof says is worth no more than a lost connection.

use tonic::{Status, metadata::MetadataValue};

const ENTRY: &str = "gantry-dismissed-bin";

/// Adds the identity key's signature over [`crate::signing::dismissed`] to a refusal.
pub fn prove(mut refusal: Status, signature: &[u8]) -> Status {
    let entry = MetadataValue::from_bytes(signature);
    refusal.metadata_mut().insert_bin(ENTRY, entry);
    refusal
}

/// The signature that came with a refusal, where one did.
pub fn proof(refusal: &Status) -> Option<Vec<u8>> {
    let entry = refusal.metadata().get_bin(ENTRY)?.to_bytes();
    Some(entry.ok()?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_survives_the_headers_of_an_answer() {
        let refusal = prove(
            Status::permission_denied("the runner was removed"),
            &[7; 64],
        );
        let answer = refusal.into_http::<()>();
        let told = Status::from_header_map(answer.headers()).expect("a status");
        assert_eq!(proof(&told), Some(vec![7; 64]));
        assert_eq!(proof(&Status::permission_denied("forbidden")), None);
    }
}
