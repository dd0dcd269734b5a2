//! The seal of the server's frames on a link, as they leave (docs/internals/contracts.md#b6). It comes behind every
//! queue. So the numbers of the frames are in their order, and nothing is sealed for a runner whose removal is
//! committed ([`Gate`]).

use std::{sync::Arc, time::Duration};

use proto::{
    sealing::{KeyPlace, Sealer},
    v1::{ServerFrame, server_frame::Kind},
};
use shared_types::Clock;

use super::Gate;

/// Seals the frames of one link; it has to see every frame, in their order.
pub struct LinkSealer {
    sealer: Sealer<ServerFrame>,
    gate: Gate,
    clock: Arc<dyn Clock>,
    /// The time when the challenge left, on the server's boot-time clock: the age of frames is counted from here.
    challenged: Option<Duration>,
}

impl LinkSealer {
    pub(super) fn new(key: KeyPlace<ServerFrame>, gate: Gate, clock: Arc<dyn Clock>) -> Self {
        Self {
            sealer: Sealer::new(key),
            gate,
            clock,
            challenged: None,
        }
    }

    /// The sealed frame; none if it may not leave, and the link is to end. For a runner that is about to be removed, a
    /// goodbye leaves as it is, and a heartbeat in place of every other frame.
    pub fn seal(&mut self, mut frame: Box<ServerFrame>) -> Option<ServerFrame> {
        let now = self.clock.boot_time();
        let since = now.saturating_sub(*self.challenged.get_or_insert(now));
        let sent_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        frame.sent_ms = sent_ms;
        if matches!(frame.kind, Some(Kind::Goodbye(_))) {
            return self.sealer.seal(*frame);
        }
        let sealed = self.gate.while_open(|| self.sealer.seal(*frame));
        sealed.unwrap_or_else(|| {
            let kind = Some(Kind::Heartbeat(proto::v1::Heartbeat::default()));
            self.sealer.seal(ServerFrame { kind, sent_ms })
        })
    }
}

#[cfg(test)]
mod tests {
    use proto::{
        agreement::Ephemeral,
        sealing::{LinkKeys, Opener},
        v1,
    };
    use shared_types::{RunnerId, Timestamp, clock::ManualClock};

    use super::*;

    /// A link whose ends have agreed, and its challenge is sent.
    struct Edge {
        clock: Arc<ManualClock>,
        gate: Gate,
        sealer: LinkSealer,
        opener: Opener<ServerFrame>,
    }

    impl Edge {
        fn agreed() -> Self {
            let (server, challenge) = (Ephemeral::of([1; 32]), v1::Challenge::default());
            let keys = || {
                LinkKeys::of_runner(
                    RunnerId::from_u128(1),
                    Ephemeral::of([2; 32]),
                    &v1::Challenge {
                        ephemeral_key: server.public(),
                        ..challenge.clone()
                    },
                )
            };
            let keys = || keys().expect("a public key");
            let clock = Arc::new(ManualClock::at(Timestamp::from_micros(0)));
            let (gate, place) = (Gate::open(), KeyPlace::default());
            let mut sealer = LinkSealer::new(place.clone(), gate.clone(), clock.clone());
            let sent = Box::new(Kind::Challenge(challenge.clone()).into());
            assert!(sealer.seal(sent).is_some());
            place.put(keys().from_server);
            let opener = Opener::new(keys().from_server);
            Self {
                clock,
                gate,
                sealer,
                opener,
            }
        }

        /// The frame that leaves for this one.
        fn pass(&mut self, kind: &Kind) -> ServerFrame {
            let sealed = self.sealer.seal(Box::new(kind.clone().into()));
            let opened = self.opener.open(sealed.expect("it leaves"));
            opened.expect("the next frame")
        }
    }

    #[test]
    fn a_frame_leaves_with_the_time_since_the_challenge() {
        let mut edge = Edge::agreed();
        edge.clock.advance(Duration::from_millis(1500));
        let frame = edge.pass(&Kind::Forget(v1::Forget::default()));
        assert_eq!(frame.sent_ms, 1500);
    }

    #[test]
    fn behind_a_closed_gate_only_the_last_word_leaves() {
        let mut edge = Edge::agreed();
        let operation = Kind::Operation(Box::default());
        assert_eq!(edge.pass(&operation).kind.as_ref(), Some(&operation));
        edge.gate.close();
        for kind in [
            operation,
            Kind::Input(v1::Input::default()),
            Kind::Cancel(v1::Cancel::default()),
            Kind::Forget(v1::Forget::default()),
        ] {
            let beat = Kind::Heartbeat(v1::Heartbeat::default());
            assert_eq!(edge.pass(&kind).kind, Some(beat));
        }
        let goodbye = Kind::Goodbye(v1::Goodbye::default());
        assert_eq!(edge.pass(&goodbye).kind.as_ref(), Some(&goodbye));
    }
}
