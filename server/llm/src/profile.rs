//! What is known of a model beside its name.

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
    /// The way in which it is asked for thoughts.
    pub thinking: Thinking,
    /// True if the vendor binds each thought to all that stands before it. Then a thought goes back only while
    /// nothing before it has changed.
    pub binds_thoughts: bool,
    /// Its price, where that is known.
    pub price: Option<Price>,
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
