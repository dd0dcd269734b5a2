//! The messages about the usage of models.

use serde::{Deserialize, Serialize};
use shared_types::{Timestamp, TurnId, UserId};

/// The property by which calls are summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum UsageBy {
    /// The model and its provider.
    #[default]
    Model,
    /// The person or service account.
    Person,
    /// The day, in UTC.
    Day,
}

messages! {
    /// The usage of models.
    pub struct ModelUsage {
        /// The begin of the time that is summed; absent for a session or a turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub since: Option<Timestamp>,
        /// The sums by one property: the newest days first, or the most expensive models or people. At most 1000.
        pub rows: Vec<UsageRow>,
        /// The sum of all calls, also of those in no row.
        pub total: UsageSum,
    }

    /// The sum of the calls with one property.
    pub struct UsageRow {
        /// The property.
        pub key: UsageKey,
        /// The number of calls of models, with those that failed.
        pub calls: u64,
        /// Their tokens.
        pub tokens: Tokens,
        /// The cost of the calls with a known price, in millionths of a US dollar.
        pub cost_micros: u64,
        /// The number of calls without a known price.
        pub unpriced: u64,
    }

    /// A sum of calls.
    pub struct UsageSum {
        /// The number of calls of models, with those that failed.
        pub calls: u64,
        /// Their tokens.
        pub tokens: Tokens,
        /// The cost of the calls with a known price, in millionths of a US dollar.
        pub cost_micros: u64,
        /// The number of calls without a known price.
        pub unpriced: u64,
    }

    /// The common property of calls: a model with its provider, a person, or a day.
    #[derive(Default)]
    pub struct UsageKey {
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// Its provider; absent where the catalogue does not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub provider: Option<String>,
        /// The id of the person or service account.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub person: Option<UserId>,
        /// The person's name, also after the person was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        /// The day in UTC, such as `2026-11-28`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub day: Option<String>,
    }

    /// Tokens, each counted once but for `thoughts`, which are part of `output`.
    #[derive(Copy, Default, Eq)]
    pub struct Tokens {
        /// Tokens that were sent, and that the vendor neither had cached nor cached now.
        pub fresh: u64,
        /// Tokens that were sent and that the vendor had cached.
        pub cached: u64,
        /// Tokens that were sent and that the vendor cached now, where it asks a price of their own for it.
        pub cache_written: u64,
        /// Tokens that came back.
        pub output: u64,
        /// Of those that came back, tokens of thoughts, where the vendor counts them.
        pub thoughts: u64,
    }

    /// The usage of one turn.
    pub struct TurnUsage {
        /// The turn.
        pub turn: TurnId,
        /// The sums by model, the most expensive first.
        pub rows: Vec<UsageRow>,
        /// The sum of all calls.
        pub total: UsageSum,
    }

    /// A page of the usage of a session's turns.
    pub struct TurnUsages {
        /// The turns that asked a model, by id.
        pub turns: Vec<TurnUsage>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}

impl Tokens {
    /// The tokens that were sent.
    pub fn input(&self) -> u64 {
        let of_cache = self.cached.saturating_add(self.cache_written);
        self.fresh.saturating_add(of_cache)
    }
}
