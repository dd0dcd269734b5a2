//! How often the router tries something again, how long it waits, and how much it does at once. What a
//! deployment may change is in [`crate::links::LinkOptions`]; what the protocol says of resending and of
//! epochs is in `shared-link`'s `server/bounds`.

use std::time::Duration;

/// How long the caller of a start or a cancel waits for a runner that is just linking.
pub(crate) const LINKING_WITHIN: Duration = Duration::from_secs(5);

/// After how long something may be tried again that is as it should be soon.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How often an operation is placed that is refused for now, before anything of it is stored.
pub(crate) const PLACE_ATTEMPTS: u32 = 6;

/// The longest pause between two of these attempts. A refusal that asks for more is told at once.
pub(crate) const PLACE_AGAIN_AFTER_AT_MOST: Duration = Duration::from_secs(10);

/// How long the rows may take to show a link that is there.
pub(crate) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The pause before a store that did not answer is asked a second time. Each pause is twice the one before.
pub(crate) const STORE_PAUSE: Duration = Duration::from_millis(100);

/// The longest of these pauses. There is no last attempt: the runner keeps what the store does not have.
pub(crate) const STORE_PAUSE_AT_MOST: Duration = Duration::from_secs(5);

/// How long an end waits for the reader that may store it. Then its collector stores it alone. A reader
/// that has taken the end is waited for until it has stored it, or drops it.
pub(crate) const END_TAKEN_WITHIN: Duration = Duration::from_secs(5);

/// How often the collector of an operation whose runner is away looks whether its end was stored meanwhile:
/// because the runner did not come back, or by another server, to which it went.
pub(crate) const LOOK_WHILE_AWAY_EVERY: Duration = Duration::from_secs(15);

/// Operations that have ended and are collected at the same time when their runner links; and those whose
/// output is asked for once more, because it could not be kept the first time.
pub(crate) const ENDED_AT_ONCE: usize = 8;

/// Operations that still run and are collected at the same time when their runner links: more than a
/// runner runs.
pub(crate) const RUNNING_AT_ONCE: usize = 1024;

/// How soon it is stored what a runner has accepted. Until then only this process knows, so that a
/// crash of it together with a runner whose state went back would go unnoticed; storing it at once
/// would make every command wait for one more sync.
pub(crate) const ACCEPTED_STORED_WITHIN: Duration = Duration::from_secs(1);

/// How far a server that ends all links spreads its runners' next ones, for each link that it serves, in
/// milliseconds: about 1000 come back in a second.
pub(crate) const RECONNECT_MS_PER_LINK: u32 = 1;

/// How far the next link of a runner is spread whose link has reached its greatest age, in milliseconds.
/// Little, because the ages are spread already.
pub(crate) const RECONNECT_MS_WHEN_AGED: u32 = 500;
