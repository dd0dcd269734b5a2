//! The limit of the content of a frame.

use shared_link::wire;
use shared_sandbox::Request;
use shared_types::{Refusal, RefusalCode, limits::MAX_FRAME_BYTES};

/// Bytes of a frame that are left for everything but the request.
const FRAME_OVERHEAD_BYTES: usize = 16 * 1024;

/// Refuses a request that no frame can carry, before anything is recorded.
pub(crate) fn fits_a_frame(request: &Request) -> Result<(), Refusal> {
    let bytes = wire::request(request).encoded_len();
    let limit = MAX_FRAME_BYTES - FRAME_OVERHEAD_BYTES;
    if bytes > limit {
        return Err(Refusal::new(
            RefusalCode::Invalid,
            format!("the request has {bytes} bytes; at most {limit} can be sent at once"),
        ));
    }
    Ok(())
}
