//! One link as the runner sees it: challenge, hello, welcome, then orders and signs of life both
//! ways, until one end falls silent or says goodbye.

use std::time::Duration;

use proto::{
    OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION,
    v1::{self, server_frame},
};
use shared_types::limits::{HEARTBEAT_EVERY, HELLO_WITHIN, LINK_SILENCE};

use super::orders::{self, Order, ReceivedFrame};
use crate::{
    pulse::{Beat, Pulse},
    wire::{self, Figures, ModelOrder},
};

/// The most that a server may have a runner stay away.
const RECONNECT_WITHIN_AT_MOST: Duration = Duration::from_secs(60);

/// The shortest and the longest time that a server may choose for a link.
const TIMES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(300));

/// See the module.
#[derive(Debug)]
pub struct Session {
    stage: SessionStage,
    pulse: Pulse,
}

#[derive(Debug)]
enum SessionStage {
    /// Waits for the challenge.
    Called,
    /// Waits for the welcome.
    Introduced,
    Linked,
}

/// The next task of the driver after a frame.
#[derive(Debug, PartialEq)]
pub enum Todo {
    /// Answer the challenge with a proof and the hello.
    Introduce,
    /// It serves from now on.
    Linked {
        /// The link's generation.
        generation: u64,
    },
    /// Hand it to the table.
    Order(Order),
    /// Hand it to the asks of the machine's model server.
    Model(ModelOrder),
    /// Send it.
    Answer(Box<v1::RunnerFrame>),
    /// Nothing.
    Nothing,
}

/// The reason why the link is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkEndReason {
    /// The server ended it on purpose.
    #[error("the server ended the link: {reason}")]
    Goodbye {
        /// Its words.
        reason: String,
        /// The next attempt comes after a random part of this time.
        reconnect_within: Duration,
    },
    /// The link has reached the greatest age that the server allows. The server goes on.
    #[error("the link has reached its greatest age; the server asks for a new one")]
    Aged {
        /// The next attempt comes after a random part of this time.
        reconnect_within: Duration,
    },
    /// The runner's memory is older than what the server has seen of it: the table must begin a new
    /// journal.
    #[error("the server has seen more of this runner's journal than there is: it begins a new one")]
    NewJournal,
    /// No frame came for this long.
    #[error("the server was silent for {} s", .0.as_secs())]
    Silent(Duration),
    /// The server sent something else than this first.
    #[error("the server did not send {0} when it should have: it may be of another version")]
    OutOfTurn(&'static str),
    /// The server chose a version that this build does not speak.
    #[error(
        "the server speaks version {0} of the link protocol, this runner {OLDEST_PROTOCOL_VERSION} to {PROTOCOL_VERSION}: install the gantry-runner that fits the server"
    )]
    Version(u32),
}

impl Session {
    /// A link that has just been called, at `now`.
    pub fn new(now: Duration) -> Self {
        Self {
            stage: SessionStage::Called,
            pulse: Pulse::new(now, Duration::MAX, HELLO_WITHIN),
        }
    }

    /// A frame came; that it is the server's was looked at before.
    ///
    /// # Errors
    /// The link is over.
    pub fn frame(&mut self, frame: v1::ServerFrame, now: Duration) -> Result<Todo, LinkEndReason> {
        use server_frame::Kind;
        self.pulse.heard(now);
        match (&self.stage, frame.kind) {
            (SessionStage::Introduced, Some(Kind::NewJournal(_))) => Err(LinkEndReason::NewJournal),
            (_, Some(Kind::Goodbye(goodbye))) => Err(ended(goodbye)),
            (SessionStage::Called, Some(Kind::Challenge(_))) => {
                self.stage = SessionStage::Introduced;
                Ok(Todo::Introduce)
            }
            (SessionStage::Called, _) => Err(LinkEndReason::OutOfTurn("a challenge")),
            (SessionStage::Introduced, Some(Kind::Welcome(welcome))) => self.welcome(welcome, now),
            (SessionStage::Introduced, _) => Err(LinkEndReason::OutOfTurn("a welcome")),
            (SessionStage::Linked, kind) => Ok(match orders::received(kind) {
                ReceivedFrame::Order(order) => Todo::Order(order),
                ReceivedFrame::Model(order) => Todo::Model(order),
                ReceivedFrame::Answer(answer) => Todo::Answer(Box::new(answer)),
                ReceivedFrame::Nothing => Todo::Nothing,
            }),
        }
    }

    /// When [`Session::tick`] is to be called, at the latest.
    pub fn wake_at(&self) -> Duration {
        self.pulse.wake_at()
    }

    /// The runner is not ready to hear the server, so that its silence up to `now` says nothing.
    pub fn is_busy(&mut self, now: Duration) {
        self.pulse.heard(now);
    }

    /// Time has passed: returns a sign of life, where it is time for one. `random` spreads them; `figures`
    /// go with it.
    ///
    /// # Errors
    /// The server was silent for too long.
    pub fn tick(
        &mut self,
        now: Duration,
        random: u8,
        figures: Option<Figures>,
    ) -> Result<Option<v1::RunnerFrame>, LinkEndReason> {
        match self.pulse.tick(now, random) {
            Beat::Silent => Err(LinkEndReason::Silent(self.pulse.silence())),
            Beat::Due => Ok(Some(wire::heartbeat(figures))),
            Beat::Nothing => Ok(None),
        }
    }

    /// The longest time for which the server may be silent, or take no frame.
    pub fn silence(&self) -> Duration {
        self.pulse.silence()
    }

    fn welcome(&mut self, welcome: v1::Welcome, now: Duration) -> Result<Todo, LinkEndReason> {
        if !(OLDEST_PROTOCOL_VERSION..=PROTOCOL_VERSION).contains(&welcome.protocol_version) {
            return Err(LinkEndReason::Version(welcome.protocol_version));
        }
        self.stage = SessionStage::Linked;
        let every = millis_or(welcome.heartbeat_every_ms, HEARTBEAT_EVERY);
        let silence = millis_or(welcome.silence_ms, LINK_SILENCE);
        self.pulse = Pulse::new(now, every, silence);
        Ok(Todo::Linked {
            generation: welcome.generation,
        })
    }
}

/// The end of the link that the server's goodbye means.
fn ended(goodbye: v1::Goodbye) -> LinkEndReason {
    let asked = Duration::from_millis(goodbye.reconnect_within_ms.into());
    let reconnect_within = asked.min(RECONNECT_WITHIN_AT_MOST);
    match goodbye.aged {
        true => LinkEndReason::Aged { reconnect_within },
        false => LinkEndReason::Goodbye {
            reason: goodbye.reason,
            reconnect_within,
        },
    }
}

/// A time that the server chose, held to what makes sense.
fn millis_or(millis: u32, default: Duration) -> Duration {
    match millis {
        0 => default,
        millis => Duration::from_millis(millis.into()).clamp(TIMES.0, TIMES.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_stops_keeps_its_runners_away_for_a_minute_at_most() {
        for (asked, kept) in [(0, 0), (1500, 1500), (u32::MAX, 60_000)] {
            let goodbye = v1::Goodbye {
                reason: "the server stops".to_owned(),
                reconnect_within_ms: asked,
                ..v1::Goodbye::default()
            };
            let mut session = Session::new(Duration::ZERO);
            let frame = server_frame::Kind::Goodbye(goodbye).into();
            let Err(LinkEndReason::Goodbye {
                reconnect_within, ..
            }) = session.frame(frame, Duration::ZERO)
            else {
                panic!("the server ended the link");
            };
            assert_eq!(reconnect_within, Duration::from_millis(kept));
        }
    }
}
