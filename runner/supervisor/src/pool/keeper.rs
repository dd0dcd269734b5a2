//! The thread that keeps supervisors waiting.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender},
    time::Duration,
};

use super::{PoolError, starter::Starter};
use crate::{Waiting, recover};

/// While at least half of the supervisors wait, others are started only after nobody has taken one
/// for this long: a command that has just begun has the host to itself.
const REFILL_AFTER: Duration = Duration::from_millis(10);

/// How often it is looked for supervisors that were not wanted again and have ended, or should have.
const CLEAR_EVERY: Duration = Duration::from_secs(1);

/// What the pool's thread is told.
#[derive(Debug)]
pub(super) enum Wish {
    /// One was taken.
    Taken,
    /// One can serve another command, or is to end.
    Look,
    /// Start no more.
    Close,
}

/// What the pool's thread holds.
pub(super) struct Keeper {
    starter: Starter,
    heard: Receiver<Wish>,
    made: Sender<Result<Waiting, PoolError>>,
    /// How many wait to be taken; a failure is one of them, so that nothing is tried in vain until
    /// somebody asks.
    waiting: usize,
    open: bool,
}

impl Keeper {
    /// `waiting` of them were made already.
    pub(super) fn new(
        starter: Starter,
        heard: Receiver<Wish>,
        made: Sender<Result<Waiting, PoolError>>,
        waiting: usize,
    ) -> Self {
        Self {
            starter,
            heard,
            made,
            waiting,
            open: true,
        }
    }

    /// Until the pool is gone.
    pub(super) fn run(mut self) {
        let mut calm = true;
        loop {
            let wanted = self.wanted();
            let missing = self.open && self.waiting < wanted;
            let mut patience = self.starter.spent.are_left().then_some(CLEAR_EVERY);
            if missing && (calm || self.waiting * 2 < wanted) {
                let again = self.starter.again().map(Ok);
                let started = again.unwrap_or_else(|| self.starter.start());
                self.waiting += 1;
                self.open = self.made.send(started).is_ok();
                patience = Some(Duration::ZERO);
            } else if missing {
                patience = Some(REFILL_AFTER);
            }
            let heard = match patience {
                Some(patience) => self.heard.recv_timeout(patience),
                None => self.heard.recv().map_err(RecvTimeoutError::from),
            };
            calm = heard.is_err();
            match heard {
                Ok(wish) => self.hear(wish),
                Err(RecvTimeoutError::Timeout) => self.clear(patience == Some(CLEAR_EVERY)),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Ok(wish) = self.heard.try_recv() {
                self.hear(wish);
            }
        }
    }

    fn wanted(&self) -> usize {
        self.starter.server.options().waiting
    }

    /// Removes what nobody wanted to use again.
    fn clear(&self, quiet: bool) {
        for directory in self.starter.spent.ended(quiet) {
            // What stays is found by the next daemon.
            let _ = recover::remove(directory);
        }
    }

    fn hear(&mut self, wish: Wish) {
        match wish {
            Wish::Taken => self.waiting = self.waiting.saturating_sub(1),
            Wish::Look => {}
            Wish::Close => self.open = false,
        }
    }
}
