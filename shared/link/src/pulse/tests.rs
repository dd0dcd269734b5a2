use proptest::prelude::*;
use proto::{
    PROTOCOL_VERSION,
    v1::{self, server_frame::Kind},
};
use shared_types::{
    Generation,
    limits::{HEARTBEAT_EVERY, LINK_LEASE, LINK_SILENCE},
};

use super::*;
use crate::{
    runner::{Session, Todo},
    server::{ControlAnswer, HelloFacts, InboxError, Link, LinkTimes, Mail, Post},
    testing::incarnation,
};

/// The least and the most between two signs of life.
const BETWEEN: (Duration, Duration) = (Duration::from_secs(8), Duration::from_secs(12));

/// Nobody reads anything on these links.
struct Nobody;

impl Post for Nobody {
    fn put(&self, _: Mail) -> Result<(), InboxError> {
        Ok(())
    }

    fn put_answer(&self, _: ControlAnswer) -> Result<(), InboxError> {
        Ok(())
    }
}

/// One end of a link, with the times that are used where nobody chooses others.
enum End {
    Runner(Session),
    Server(Box<Link<Nobody>>),
}

impl End {
    fn both() -> [Self; 2] {
        [Self::runner(), Self::server()]
    }

    fn runner() -> Self {
        let mut session = Session::new(Duration::ZERO);
        for kind in [
            Kind::Challenge(v1::Challenge::default()),
            Kind::Welcome(v1::Welcome {
                protocol_version: PROTOCOL_VERSION,
                ..v1::Welcome::default()
            }),
        ] {
            session
                .frame(kind.into(), Duration::ZERO)
                .expect("it is polite");
        }
        Self::Runner(session)
    }

    fn server() -> Self {
        let facts = HelloFacts {
            pool: None,
            ceiling: None,
            protocol_version: PROTOCOL_VERSION,
            software_version: String::new(),
            incarnation: incarnation(),
            journal_sequence: 0,
            os: String::new(),
            architecture: String::new(),
            hostname: String::new(),
            features: Vec::new(),
            sandboxes: Vec::new(),
            inventory: Vec::new(),
        };
        let times = LinkTimes {
            heartbeat_every: HEARTBEAT_EVERY,
            silence: LINK_SILENCE,
            lease: LINK_LEASE,
        };
        let mut link = Link::new(&facts, Generation(1), times, Duration::ZERO);
        assert!(link.next_frame().is_some(), "the welcome comes first");
        Self::Server(Box::new(link))
    }

    fn hears(&mut self, now: Duration) {
        match self {
            Self::Runner(session) => {
                let heartbeat = Kind::Heartbeat(v1::Heartbeat::default());
                assert_eq!(session.frame(heartbeat.into(), now), Ok(Todo::Nothing));
            }
            Self::Server(link) => {
                let heartbeat = v1::runner_frame::Kind::Heartbeat(v1::Heartbeat::default());
                let kind = Some(heartbeat);
                assert_eq!(link.frame(v1::RunnerFrame { kind }, now), Ok(None));
            }
        }
    }

    fn wake_at(&self) -> Duration {
        match self {
            Self::Runner(session) => session.wake_at(),
            Self::Server(link) => link.wake_at(),
        }
    }

    /// Whether it says that it lives.
    fn beats(&mut self, now: Duration, random: u8) -> bool {
        match self {
            Self::Runner(session) => {
                let beat = session.tick(now, random, None).expect("it was heard");
                beat.is_some()
            }
            Self::Server(link) => {
                link.tick(now, random).expect("it was heard");
                link.next_frame().is_some()
            }
        }
    }
}

proptest! {
    #[test]
    fn both_ends_beat_every_ten_seconds_give_or_take_a_fifth(
        steps in prop::collection::vec((any::<u8>(), 1..1000u64, any::<bool>()), 1..200)
    ) {
        for mut end in End::both() {
            let (mut heard_at, mut beat_at) = (Duration::ZERO, Duration::ZERO);
            for &(random, early, hears) in &steps {
                // Something else may wake it sooner, and that brings no beat sooner.
                let early = end.wake_at().saturating_sub(Duration::from_millis(early));
                if early > beat_at {
                    prop_assert!(!end.beats(early, random), "a beat that is not due");
                }
                let now = end.wake_at();
                // An end that hears nothing at all would end the link and beat no more.
                if hears || now - heard_at + BETWEEN.1 >= LINK_SILENCE {
                    end.hears(now);
                    heard_at = now;
                }
                prop_assert!(end.beats(now, random), "it beats when it wakes");
                let between = now - beat_at;
                prop_assert!(BETWEEN.0 <= between && between <= BETWEEN.1, "{between:?}");
                beat_at = now;
                prop_assert!(end.wake_at() <= beat_at + BETWEEN.1, "the next one is late");
            }
        }
    }
}

#[test]
fn beats_are_spread_evenly_over_all_that_they_may_vary() {
    // Two neighbours, with a byte of chance.
    let apart = (BETWEEN.1 - BETWEEN.0) / 255 + Duration::from_nanos(1);
    for mut end in End::both() {
        let mut between = Vec::new();
        let mut beat_at = end.wake_at();
        end.hears(beat_at);
        assert!(end.beats(beat_at, 0));
        for random in 0..=u8::MAX {
            let now = end.wake_at();
            between.push(now - beat_at);
            end.hears(now);
            assert!(end.beats(now, random.wrapping_add(1)));
            beat_at = now;
        }
        assert_eq!((between[0], between[255]), BETWEEN);
        for pair in between.windows(2) {
            assert!(pair[0] < pair[1] && pair[1] - pair[0] <= apart, "{pair:?}");
        }
    }
}
