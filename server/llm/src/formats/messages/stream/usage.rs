//! The tokens of an answer, as the vendor counts them.

use serde_json::Value;
use shared_types::event::Usage;

use crate::formats::tokens;

/// The latest counts. Each is of the whole answer so far, and one that is not told again stays.
#[derive(Debug, Default)]
pub(super) struct TokenCounts {
    fresh: u64,
    cached: u64,
    cache_written: u64,
    output: u64,
    thoughts: u64,
}

impl TokenCounts {
    /// Takes the counts that this object has. Some servers tell zero where they do not count.
    pub(super) fn take(&mut self, told: &Value) {
        let thoughts = &told["output_tokens_details"]["thinking_tokens"];
        for (count, told) in [
            (&mut self.fresh, &told["input_tokens"]),
            (&mut self.cached, &told["cache_read_input_tokens"]),
            (
                &mut self.cache_written,
                &told["cache_creation_input_tokens"],
            ),
            (&mut self.output, &told["output_tokens"]),
            (&mut self.thoughts, thoughts),
        ] {
            match tokens(told) {
                0 => {}
                told => *count = told,
            }
        }
    }

    /// The sum. The vendor counts cached tokens beside those that are sent, and not among them.
    pub(super) fn usage(&self) -> Usage {
        let beside = self.cached.saturating_add(self.cache_written);
        Usage {
            input: self.fresh.saturating_add(beside),
            cached: self.cached,
            cache_written: self.cache_written,
            output: self.output,
            thoughts: self.thoughts,
        }
    }
}
