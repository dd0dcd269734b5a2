//! The abilities and the price of a model.

use shared_types::event::Usage;

/// A model as its server knows it, and its abilities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// The name under which its server knows it.
    pub model: String,
    /// The provider, such as `anthropic`; empty for a server that is none of the catalogue.
    pub provider: String,
    /// Tokens that fit into one request and its answer, where that is known.
    pub window: Option<usize>,
    /// Most tokens of one answer, where that is known.
    pub output: Option<u32>,
    /// True if it can read images.
    pub sees: bool,
    /// The way in which it calls tools.
    pub tools: ToolCalls,
    /// The way in which it is asked for thoughts.
    pub thinking: Thinking,
    /// True if the vendor binds each thought to all that stands before it. Then a thought goes back only while
    /// nothing before it has changed.
    pub binds_thoughts: bool,
    /// Its price, where that is known.
    pub price: Option<Price>,
}

/// The way in which a model calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolCalls {
    /// It is not known: tools are sent natively, and calls are also taken from the text of an answer.
    #[default]
    Unknown,
    /// By the wire format alone.
    Native,
    /// In the text of its answers: its server is sent no tools.
    Text,
}

/// The way in which a model is asked for thoughts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Thinking {
    /// It is not asked; it may think all the same.
    #[default]
    Unasked,
    /// It decides itself how long it thinks.
    Adaptive,
}

/// The price of a model's tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// The day on which it was looked up, such as `2026-11-20`.
    pub date: String,
    /// Of a million fresh tokens that are sent, in millionths of a US dollar.
    pub input: u64,
    /// Of a million tokens that the vendor had cached, in the same unit.
    pub cached: u64,
    /// Of a million tokens that the vendor caches now, in the same unit.
    pub cache_written: u64,
    /// Of a million tokens that come back, thoughts included, in the same unit.
    pub output: u64,
}

impl Price {
    /// The cost of these tokens, in millionths of a US dollar, rounded up. A call is never free where it has a price.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let of_cache = usage.cached.saturating_add(usage.cache_written);
        let fresh = usage.input.saturating_sub(of_cache);
        let parts = [
            (fresh, self.input),
            (usage.cached, self.cached),
            (usage.cache_written, self.cache_written),
            (usage.output, self.output),
        ];
        let of_a_million: u128 = parts
            .into_iter()
            .map(|(tokens, price)| u128::from(tokens) * u128::from(price))
            .sum();
        u64::try_from(of_a_million.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_costs_its_own_price_and_a_fraction_is_rounded_up() {
        let price = Price {
            date: "2026-11-20".to_owned(),
            input: 3_000_000,
            cached: 300_000,
            cache_written: 3_750_000,
            output: 15_000_000,
        };
        let usage = Usage {
            input: 1_000_000,
            cached: 400_000,
            cache_written: 100_000,
            output: 10_000,
            thoughts: 4_000,
        };
        // 500,000 fresh, 400,000 cached, 100,000 written and 10,000 that came back.
        assert_eq!(price.cost(&usage), 1_500_000 + 120_000 + 375_000 + 150_000);
        let one = Usage {
            output: 0,
            input: 1,
            cached: 1,
            ..Usage::default()
        };
        assert_eq!(price.cost(&one), 1, "0.3 of a millionth");
        let damaged = Usage {
            input: u64::MAX,
            cached: u64::MAX,
            cache_written: u64::MAX,
            output: u64::MAX,
            thoughts: 0,
        };
        assert_eq!(price.cost(&damaged), u64::MAX);
    }
}
