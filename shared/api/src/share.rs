//! The messages about links that show a session to readers who are not signed in.

use serde::{Deserialize, Serialize};
use shared_types::Timestamp;

messages! {
    /// Makes a link that shows a session to readers who are not signed in.
    #[serde(deny_unknown_fields)]
    pub struct ShareSession {
        /// The validity of the link, in seconds; absent for no expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 60, maximum = 316_224_000))]
        pub valid_for_s: Option<u32>,
    }

    /// A link to a session. It is the only proof that its readers need.
    pub struct SessionLink {
        /// The page of the session, relative to the server's address; shown once.
        pub path: String,
        /// The time at which the link expires; absent for no expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires_at: Option<Timestamp>,
    }

    /// The answer after all links to a session were revoked.
    pub struct LinksEnded {
        /// The number of links that were revoked.
        pub links: u64,
    }

    /// A session, as a link to it shows it.
    pub struct SharedSession {
        /// Its title.
        pub title: String,
        /// When it began.
        pub created_at: Timestamp,
        /// When its newest event happened.
        pub updated_at: Timestamp,
        /// The number of the newest event.
        pub last_seq: u64,
    }
}
