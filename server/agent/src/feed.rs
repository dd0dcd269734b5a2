//! The feed of a session: its events and what is under way, by one cursor.
//!
//! A subscription gives every event after a cursor, says once that it has caught up, and from then on gives what
//! happens (docs/internals/contracts.md#c6). The events are the truth and come in order, without gaps. What is under
//! way is a hint for people: a piece may be missing, and its offset shows that.

mod here;
mod hub;
mod subscription;

pub use here::HereFeed;
pub use hub::{LiveHub, Signal, Watch};
pub use subscription::{EventSource, Followed, Subscription};
