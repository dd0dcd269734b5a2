//! The same messages over HTTP/1.1, for networks that gRPC does not pass. The calls of enrolment
//! are bodies of `POST`. The link is a WebSocket with one frame in each binary message.
//!
//! A gRPC status becomes the headers `grpc-status` and `grpc-message` of an answer without gRPC, or
//! the close frame at the end of a link.

use tonic::Code;

/// The path of `Enrolment.Identify`.
pub const IDENTIFY: &str = "/runner/v1/identify";
/// The path of `Enrolment.Enrol`.
pub const ENROL: &str = "/runner/v1/enrol";
/// The path of `Enrolment.Authenticate`.
pub const AUTHENTICATE: &str = "/runner/v1/authenticate";
/// The path of `RunnerLink.Link`: a WebSocket, with the same `authorization`.
pub const LINK: &str = "/runner/v1/link";

/// The type of the bodies.
pub const MEDIA_TYPE: &str = "application/x-protobuf";

/// Codes from here on are free for applications (RFC 6455, 7.4.2); a status has this and its
/// number.
const FIRST_CLOSE_CODE: u16 = 4000;

/// Bytes that a close frame has for its reason (RFC 6455, 5.5).
const MAX_REASON_BYTES: usize = 123;

/// The close frame of a link that ends with this status.
pub fn close(code: Code, message: &str) -> (u16, String) {
    let mut end = message.len().min(MAX_REASON_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    (FIRST_CLOSE_CODE + code as u16, message[..end].to_owned())
}

/// The status code of a link's close frame; `None` if the frame ends no link. A violation of
/// WebSocket's own rules has a code of RFC 6455, 7.4.1.
pub fn closed(close: u16) -> Option<Code> {
    match close {
        1002 | 1007 => return Some(Code::InvalidArgument),
        1008 => return Some(Code::PermissionDenied),
        1009 => return Some(Code::OutOfRange),
        _ => {}
    }
    let number = close.checked_sub(FIRST_CLOSE_CODE)?;
    (number <= Code::Unauthenticated as u16).then(|| Code::from_i32(number.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_survives_a_close_frame() {
        for number in 0..=16 {
            let code = Code::from_i32(number);
            let (close, reason) = close(code, "because");
            assert_eq!((closed(close), reason.as_str()), (Some(code), "because"));
        }
    }

    #[test]
    fn other_ends_are_no_status() {
        for close in [0, 1000, 1006, 3999, 4017, u16::MAX] {
            assert_eq!(closed(close), None, "{close}");
        }
    }

    #[test]
    fn a_reason_is_cut_between_characters_to_what_a_close_frame_holds() {
        let (_, reason) = close(Code::Internal, &format!("x{}", "é".repeat(80)));
        assert_eq!(reason, format!("x{}", "é".repeat(61)));
    }
}
