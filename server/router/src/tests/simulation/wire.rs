//! A connection between both ends: frames in order each way, until it is cut. What is in flight
//! then is lost from some frame on; each end notices at once or not at all. A direction may stall for a
//! while.

use std::collections::VecDeque;

use proto::v1;

use super::dice::Dice;

/// Frames that a direction holds before its sender has to wait.
const ROOM: usize = 8;

pub(crate) struct Wire {
    pub(crate) up: Lane<v1::RunnerFrame>,
    pub(crate) down: Lane<v1::ServerFrame>,
}

pub(crate) struct Lane<F> {
    frames: VecDeque<F>,
    /// Nothing comes through for now.
    stalled: bool,
    /// Nothing more comes through.
    dead: bool,
    /// The receiver sees the end behind the last frame.
    ended: bool,
}

pub(crate) enum Received<F> {
    Frame(F),
    End,
    Nothing,
}

impl Wire {
    pub(crate) fn new() -> Self {
        Self {
            up: Lane::new(),
            down: Lane::new(),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.up.has_something() || self.down.has_something()
    }

    /// Each direction stalls, or goes on.
    pub(crate) fn stall(&mut self, up: bool, down: bool) {
        self.up.stall(up);
        self.down.stall(down);
    }

    pub(crate) fn cut(&mut self, dice: &mut Dice) {
        self.up.cut(dice);
        self.down.cut(dice);
    }
}

impl<F> Lane<F> {
    pub(crate) fn new() -> Self {
        Self {
            frames: VecDeque::new(),
            stalled: false,
            dead: false,
            ended: false,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.frames.len() < ROOM
    }

    pub(crate) fn send(&mut self, frame: F) {
        if !self.dead {
            self.frames.push_back(frame);
        }
    }

    /// The sender closed it: what was sent still arrives, and then the end.
    pub(crate) fn close(&mut self) {
        if !self.dead {
            self.dead = true;
            self.ended = true;
        }
    }

    /// It stalls, or goes on.
    pub(crate) fn stall(&mut self, stalled: bool) {
        self.stalled = stalled;
    }

    /// The receiver notices that it was cut.
    pub(crate) fn notice(&mut self) {
        self.ended |= self.dead;
    }

    pub(crate) fn cut(&mut self, dice: &mut Dice) {
        let arrive = dice.below(self.frames.len() as u64 + 1) as usize;
        self.frames.truncate(arrive);
        self.dead = true;
        self.ended |= dice.one_in(2);
    }

    pub(crate) fn receive(&mut self) -> Received<F> {
        if self.stalled {
            return Received::Nothing;
        }
        match self.frames.pop_front() {
            Some(frame) => Received::Frame(frame),
            None if self.ended => Received::End,
            None => Received::Nothing,
        }
    }

    pub(crate) fn has_something(&self) -> bool {
        !self.frames.is_empty() || self.ended
    }
}
