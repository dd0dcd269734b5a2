//! The messages about API keys and sign-ins.

use serde::{Deserialize, Serialize};
use shared_types::{CredentialId, Timestamp};

use crate::ScopeName;

messages! {
    /// Makes an API key.
    #[serde(deny_unknown_fields)]
    pub struct CreateKey {
        /// The name of the key in lists.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
        pub name: String,
        /// The scopes of the key; absent for those of chat, runners, exec and read that its maker has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_items = 1))]
        pub scopes: Option<Vec<ScopeName>>,
        /// The validity of the key, in seconds, from 1 to 316224000; absent for no expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 316224000))]
        pub valid_for_s: Option<u32>,
        /// The addresses that may use it, as the server sees them, such as `10.0.0.0/8`; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
    }

    /// An API key; the key itself is shown once.
    pub struct CreatedKey {
        /// The bearer key.
        pub key: String,
        /// Its entry in the list.
        pub entry: Key,
    }

    /// A key or sign-in in a list.
    pub struct Key {
        /// Its id.
        pub id: CredentialId,
        /// Its name.
        pub name: String,
        /// `api_key`, `sign_in` or `browser`.
        pub kind: String,
        /// When it was made.
        pub created_at: Timestamp,
        /// The key or sign-in that made it, where the server knows it. A key ends together with the key that made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub made_by: Option<CredentialId>,
        /// When it was last used, to the minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_used_at: Option<Timestamp>,
        /// The address from which it was last used, as the server sees it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_address: Option<String>,
        /// Its scopes.
        #[serde(default)]
        pub scopes: Vec<ScopeName>,
        /// The time at which it expires; absent for no expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires_at: Option<Timestamp>,
        /// The addresses that may use it; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
        /// True if the request for this list used it.
        #[serde(default)]
        pub is_this: bool,
    }

    /// A page of a user's keys and sign-ins.
    pub struct Keys {
        /// The keys, the newest first.
        pub keys: Vec<Key>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}
