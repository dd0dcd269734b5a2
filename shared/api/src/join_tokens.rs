//! The messages about enrolling runners.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared_types::{JoinTokenId, Timestamp};

messages! {
    /// Makes a token with which one runner, or a fleet of them, may enrol.
    #[serde(deny_unknown_fields)]
    pub struct CreateJoinToken {
        /// The name of the runner; empty to let the runner choose.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(max_length = 63, pattern = r"^([a-z0-9]([a-z0-9._-]*[a-z0-9])?)?$"))]
        pub name: String,
        /// The validity of the token, in seconds, from 1 to 2592000 (30 days); absent for 600.
        // Left out where it is absent: a server that does not know it yet would refuse the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 2592000))]
        pub valid_for_s: Option<u32>,
        /// The number of runners that may enrol with it, from 1 to 1000; absent for 1. With more than one, each runner
        /// needs a name of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
        pub uses: Option<u32>,
        /// True if the server removes those runners once they leave for good or stay away.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub ephemeral: bool,
        /// Labels of those runners, at most 32. They win over the labels that a runner reports.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub labels: BTreeMap<String, String>,
        /// The addresses that runners may enrol from, as the server sees them, such as `10.0.0.0/8`; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
    }

    /// A join token; shown once.
    pub struct JoinToken {
        /// Its id.
        pub id: JoinTokenId,
        /// The token.
        pub token: String,
        /// The time at which it expires.
        pub expires_at: Timestamp,
        /// The archives with a runner's programs that the server offers, one for each kind of machine.
        #[serde(default)]
        pub archives: Vec<RunnerArchive>,
    }

    /// A join token with which runners can still enrol. The token itself was shown when it was made.
    pub struct ListedJoinToken {
        /// Its id.
        pub id: JoinTokenId,
        /// The name of the runner; empty where the runner chooses.
        pub name: String,
        /// When it was made.
        pub created_at: Timestamp,
        /// The time at which it expires.
        pub expires_at: Timestamp,
        /// The number of runners that may enrol with it.
        pub uses: u32,
        /// The number of runners that have enrolled with it.
        pub used: u32,
        /// True if the server removes those runners once they leave for good or stay away.
        pub ephemeral: bool,
        /// Labels of those runners. They win over the labels that a runner reports.
        #[serde(default)]
        pub labels: BTreeMap<String, String>,
        /// The addresses that runners may enrol from; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
    }

    /// A page of the user's join tokens with which runners can still enrol.
    pub struct JoinTokens {
        /// The tokens, the newest first.
        pub join_tokens: Vec<ListedJoinToken>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// An archive with a runner's programs. It needs no key: `GET /install/{sha256}/{name}`.
    pub struct RunnerArchive {
        /// The kind of machine, as `uname -m` calls it.
        pub arch: String,
        /// Its SHA-256, in hexadecimal.
        pub sha256: String,
        /// The file's name.
        pub name: String,
        /// Its size.
        pub bytes: u64,
    }

    /// The server's signed statement about the archive with a runner's programs for one kind of machine.
    pub struct SignedArchive {
        /// The archive.
        pub archive: RunnerArchive,
        /// The server's signature over the nonce of the caller, in hexadecimal.
        pub signature: String,
    }
}

impl CreateJoinToken {
    /// A token for one runner of this name, for ten minutes. With an empty name the runner chooses its own.
    pub fn one(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            valid_for_s: None,
            uses: None,
            ephemeral: false,
            labels: BTreeMap::new(),
            from: None,
        }
    }
}
