//! What befalls whoever asks the store: it takes its time, refuses for a while, and the process dies before
//! or after what it does.

use std::{
    future::pending,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{task::yield_now, time::sleep};

use super::dice::Dice;
use crate::tests::double::Weather;
use server_records::PortError;

pub(super) struct Storm(Mutex<State>);

struct State {
    dice: Dice,
    /// Nothing fails.
    calm: bool,
    refuses: bool,
    /// It answers nothing at all.
    away: bool,
    /// Now and then what is appended is lost.
    loses: bool,
    /// The process must live.
    spares: bool,
    /// The process has died.
    dies: bool,
    /// Some answer was refused.
    has_refused: bool,
}

impl Storm {
    pub(super) fn new(seed: u64) -> Self {
        Self(Mutex::new(State {
            dice: Dice::new(seed),
            calm: false,
            refuses: false,
            away: false,
            loses: seed.is_multiple_of(8),
            spares: false,
            dies: false,
            has_refused: false,
        }))
    }

    /// A number below this for a task.
    pub(super) fn below(&self, bound: u64) -> u64 {
        self.state().dice.below(bound)
    }

    pub(super) fn one_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Nothing fails from now on.
    pub(super) fn calm_down(&self) {
        let mut state = self.state();
        (state.calm, state.refuses, state.away) = (true, false, false);
    }

    pub(super) fn refuse(&self, refuses: bool) {
        self.state().refuses = refuses;
    }

    pub(super) fn go_away(&self, away: bool) {
        self.state().away = away;
    }

    pub(super) fn has_refused(&self) -> bool {
        self.state().has_refused
    }

    pub(super) fn spare(&self, spares: bool) {
        self.state().spares = spares;
    }

    /// Whether the process has died.
    pub(super) fn dies(&self) -> bool {
        self.state().dies
    }

    /// Another process begins.
    pub(super) fn revive(&self) {
        self.state().dies = false;
    }

    /// Now and then a task has to wait.
    pub(super) async fn pause(&self) {
        for _ in 0..self.below(3) {
            yield_now().await;
        }
        if self.one_in(60) {
            sleep(Duration::from_millis(self.below(40))).await;
        }
    }

    async fn live(&self) {
        if self.state().dies_now() {
            pending().await
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no task panics with it")
    }
}

impl State {
    fn dies_now(&mut self) -> bool {
        self.dies |= !self.calm && !self.spares && self.dice.one_in(200);
        self.dies
    }

    fn answer(&mut self, times: u64) -> Result<(), PortError> {
        if self.away || (self.refuses && self.dice.one_in(times)) {
            self.has_refused = true;
            return Err(PortError::new("the store is busy"));
        }
        Ok(())
    }
}

#[async_trait]
impl Weather for Storm {
    async fn before(&self) -> Result<(), PortError> {
        self.pause().await;
        self.live().await;
        self.state().answer(2)
    }

    async fn after(&self) -> Result<(), PortError> {
        self.live().await;
        let answer = self.state().answer(8);
        self.pause().await;
        answer
    }

    fn loses(&self) -> bool {
        let mut state = self.state();
        let loses = state.loses && !state.calm && state.dice.one_in(4);
        state.has_refused |= loses;
        loses
    }
}
