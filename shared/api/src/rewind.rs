//! The messages about a step back in a conversation.

use serde::{Deserialize, Serialize};
use shared_types::TurnId;

messages! {
    /// The body of `POST /api/v1/sessions/{id}/rewind`.
    #[serde(deny_unknown_fields)]
    pub struct Rewind {
        /// The turn of the message: it and all later ones are no part of the conversation from then on.
        #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^trn_[0-7][0-9a-hjkmnp-tv-z]{25}$", example = "trn_00000000000000000000000000"))]
        pub turn: TurnId,
        /// True if the conversation goes back; this is the default.
        #[serde(default = "yes")]
        #[cfg_attr(feature = "openapi", schema(default = true))]
        pub conversation: bool,
        /// True if the files go back that calls of agents wrote or edited since the message, also those of turns that are
        /// no part of the conversation any more. Changes by commands stay.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(default = false))]
        pub files: bool,
    }

    /// The outcome of a step back.
    pub struct Rewound {
        /// The words of the message before which it went, to be changed and sent again.
        pub text: String,
        /// The files that calls wrote or edited since, 200 of which are put back at most; empty where they were not asked
        /// for.
        pub files: Vec<RewoundFile>,
    }

    /// A file that calls of agents wrote or edited.
    pub struct RewoundFile {
        /// Its path, relative to the root of the sandbox.
        pub path: String,
        /// The name of its runner.
        pub runner: String,
        /// True if it is as it was before the message: its content, or that there was none.
        pub restored: bool,
        /// The reason why it was left as it is; absent where it was restored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
    }
}

/// The default of what is done unless a request says otherwise.
fn yes() -> bool {
    true
}
