//! Conversions of what every frame carries.

use shared_types::{
    Incarnation, Refusal, RefusalCode,
    clean::clean_line,
    limits::{MAX_PEER_TEXT, MAX_RETRY_AFTER_MS},
};

use crate::v1;

impl From<v1::server_frame::Kind> for v1::ServerFrame {
    /// A frame that is yet to be sent.
    fn from(kind: v1::server_frame::Kind) -> Self {
        Self {
            kind: Some(kind),
            sent_ms: 0,
        }
    }
}

impl From<&Incarnation> for v1::Incarnation {
    fn from(incarnation: &Incarnation) -> Self {
        Self {
            journal: incarnation.journal.to_string(),
            boot: incarnation.boot.clone(),
        }
    }
}

/// The incarnation of a frame; `None` where it is absent or not one.
pub fn incarnation(wire: Option<v1::Incarnation>) -> Option<Incarnation> {
    let wire = wire?;
    Some(Incarnation {
        journal: wire.journal.parse().ok()?,
        boot: wire.boot,
    })
}

impl From<Refusal> for v1::Refusal {
    fn from(refusal: Refusal) -> Self {
        let code = CODES
            .iter()
            .find(|(code, _)| *code == refusal.code)
            .map_or(v1::refusal::Code::Unspecified, |(_, wire)| *wire);
        Self {
            code: code.into(),
            message: refusal.message,
            retry_after_ms: refusal.retry_after_ms.unwrap_or(0),
        }
    }
}

impl From<v1::Refusal> for Refusal {
    /// A code that this build does not know becomes `Unsupported`: final, and nothing was run. A
    /// time to wait is at most [`MAX_RETRY_AFTER_MS`].
    fn from(wire: v1::Refusal) -> Self {
        let code = CODES
            .iter()
            .find(|(_, known)| *known == wire.code())
            .map_or(RefusalCode::Unsupported, |(code, _)| *code);
        Self {
            code,
            retry_after_ms: (wire.retry_after_ms > 0)
                .then_some(wire.retry_after_ms.min(MAX_RETRY_AFTER_MS)),
            message: clean_line(&wire.message, MAX_PEER_TEXT),
        }
    }
}

const CODES: [(RefusalCode, v1::refusal::Code); 14] = [
    (RefusalCode::Conflict, v1::refusal::Code::Conflict),
    (RefusalCode::StaleEpoch, v1::refusal::Code::StaleEpoch),
    (RefusalCode::Fenced, v1::refusal::Code::Fenced),
    (RefusalCode::Expired, v1::refusal::Code::Expired),
    (RefusalCode::Draining, v1::refusal::Code::Draining),
    (
        RefusalCode::ResourceExhausted,
        v1::refusal::Code::ResourceExhausted,
    ),
    (
        RefusalCode::Unauthenticated,
        v1::refusal::Code::Unauthenticated,
    ),
    (
        RefusalCode::ForbiddenByRunnerPolicy,
        v1::refusal::Code::ForbiddenByRunnerPolicy,
    ),
    (RefusalCode::SpoolFull, v1::refusal::Code::SpoolFull),
    (RefusalCode::Lost, v1::refusal::Code::Lost),
    (RefusalCode::Unsupported, v1::refusal::Code::Unsupported),
    (RefusalCode::NotFound, v1::refusal::Code::NotFound),
    (RefusalCode::Invalid, v1::refusal::Code::Invalid),
    (RefusalCode::Unavailable, v1::refusal::Code::Unavailable),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_refusal_are_one_line_that_drives_no_terminal() {
        let refused = Refusal::from(v1::Refusal {
            message: format!(
                "no\nERROR forged \x1b]0;title\x07\u{202e}{}",
                "x".repeat(9_000)
            ),
            ..v1::Refusal::default()
        });
        assert!(refused.message.starts_with("no⏎ERROR forged \u{fffd}xxx"));
        assert_eq!(refused.message.chars().count(), MAX_PEER_TEXT + 1);
    }

    #[test]
    fn every_refusal_survives_the_wire() {
        for (code, _) in CODES {
            let refusal =
                Refusal::new(code, "because").retry_after(std::time::Duration::from_millis(7));
            assert_eq!(Refusal::from(v1::Refusal::from(refusal.clone())), refusal);
        }
    }
}
