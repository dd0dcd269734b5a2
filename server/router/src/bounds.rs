//! The router's bounds on tries, waits and work at once. Values that a deployment may change are in
//! [`crate::links::LinkOptions`]; the protocol's values for resending and for epochs are in `shared-link`'s
//! `server/bounds`.

use std::time::Duration;

/// The longest wait of the caller of a start or a cancel for a runner that is just linking.
pub(crate) const LINKING_WITHIN: Duration = Duration::from_secs(5);

/// The wait before a request is repeated that should succeed soon.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The most tries to place an operation that is refused for now, before anything of it is stored.
pub(crate) const PLACE_ATTEMPTS: u32 = 6;

/// The longest pause between two of these tries. A refusal that asks for more is returned at once.
pub(crate) const PLACE_AGAIN_AFTER_AT_MOST: Duration = Duration::from_secs(10);

/// The time in which the rows should show a new link.
pub(crate) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The pause before a store that did not answer is asked a second time. Each pause is twice the one before.
pub(crate) const STORE_PAUSE: Duration = Duration::from_millis(100);

/// The longest of these pauses. There is no last attempt: the runner keeps what the store does not have.
pub(crate) const STORE_PAUSE_AT_MOST: Duration = Duration::from_secs(5);

/// The longest wait of an end for the reader that may store it. Then its collector stores it alone. If the reader has
/// taken the end, the collector waits until the reader has stored it, or drops it.
pub(crate) const END_TAKEN_WITHIN: Duration = Duration::from_secs(5);

/// The longest time that a borrower has for storing an end that it was told. Then the holder stores the end.
pub(crate) const END_STORED_WITHIN: Duration = Duration::from_secs(10);

/// The pause between two checks of a collector whose runner is away. The end may have been stored because the runner
/// did not come back, or by another server that the runner went to.
pub(crate) const LOOK_WHILE_AWAY_EVERY: Duration = Duration::from_secs(15);

/// The time in which the replica that holds a link has mostly kept output that it has passed on: readers then look once
/// more.
pub(crate) const KEPT_ELSEWHERE_WITHIN: Duration = Duration::from_millis(200);

/// The longest wait of a collector for the last output that the holder of the link keeps.
pub(crate) const KEPT_AT_LAST_WITHIN: Duration = Duration::from_secs(5);

/// The most ended operations that are collected at the same time when their runner links. Also the most whose output is
/// requested once more, because it could not be kept the first time.
pub(crate) const ENDED_AT_ONCE: usize = 8;

/// Operations that still run and are collected at the same time when their runner links: more than a
/// runner runs.
pub(crate) const RUNNING_AT_ONCE: usize = 1024;

/// The longest delay before the number of operations that a runner has accepted is stored. Until then only this process
/// knows it. So a crash of it goes unnoticed if the runner's state went back as well. To store the number at once would
/// make every command wait for one more sync.
pub(crate) const ACCEPTED_STORED_WITHIN: Duration = Duration::from_secs(1);

/// The spread of the runners' next links after a server ends all of them, for each link that it serves, in
/// milliseconds: about 1000 come back in a second.
pub(crate) const RECONNECT_MS_PER_LINK: u32 = 1;

/// The spread of the next link of a runner whose link has reached its greatest age, in milliseconds. It is small,
/// because the ages are spread already.
pub(crate) const RECONNECT_MS_WHEN_AGED: u32 = 500;
