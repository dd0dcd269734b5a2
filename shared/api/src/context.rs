//! The messages about the use of the model's window.

use serde::{Deserialize, Serialize};
use shared_types::Timestamp;

messages! {
    /// The use of the model's window by a session. Numbers of tokens are estimates, calibrated by what the vendor counted.
    pub struct SessionContext {
        /// The model that answers next.
        pub model: String,
        /// Its window in tokens, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub window: Option<u64>,
        /// The tokens of the next request, before its message.
        pub tokens: u64,
        /// The parts of these, in the order in which they are sent.
        pub parts: Vec<ContextPart>,
        /// The tokens of the last request, as the vendor counted them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_input: Option<u64>,
        /// Those of them that the vendor had cached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_cached: Option<u64>,
        /// The number of results that the model sees as excerpts; it can recall the rest.
        pub excerpts: u64,
        /// The newest changes of what was sent before, the last one last. With each the vendor's cache broke.
        pub changes: Vec<ContextChange>,
    }

    /// A part of the window.
    pub struct ContextPart {
        /// Its name: tools, system, compacted, instructions, messages or results.
        pub name: String,
        /// Its tokens.
        pub tokens: u64,
    }

    /// A change of what was sent before.
    pub struct ContextChange {
        /// The time of it.
        pub at: Timestamp,
        /// The change in words.
        pub what: String,
    }
}
