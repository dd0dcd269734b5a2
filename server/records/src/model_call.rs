//! A call of a model, as the ledger of usage keeps it.

use std::time::Duration;

use shared_types::{Epoch, ModelCallId, PaidBy, TurnId, event::Usage};

/// A call of a model that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCall {
    /// Its turn.
    pub turn: TurnId,
    /// Its step, from 1.
    pub step: u32,
    /// The epoch of the worker that sent it.
    pub epoch: Epoch,
    /// Its number among those of the worker for this step, from 1.
    pub attempt: u32,
    /// The model.
    pub model: String,
    /// The provider, such as `openai`; empty for a server that is none of the catalogue.
    pub provider: String,
    /// The payer.
    pub paid_by: PaidBy,
    /// Its tokens.
    pub usage: Usage,
    /// Its cost, where a price is known.
    pub cost: Option<ModelCost>,
    /// The time until it ended.
    pub duration: Duration,
    /// The time until the first byte of the answer, if there was any.
    pub first_byte: Option<Duration>,
    /// Its end in one word, such as `ok`, `cancelled` or `rate_limited`.
    pub outcome: &'static str,
}

/// The cost of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCost {
    /// In millionths of a US dollar.
    pub micros: u64,
    /// The date of the list of prices, such as `2026-11-01`.
    pub price_date: String,
}

impl ModelCall {
    /// The id of the call. A call that is recorded twice has the same one.
    pub fn id(&self) -> ModelCallId {
        ModelCallId::of(self.turn, self.step, self.epoch, self.attempt)
    }
}
