//! Both ends of the link, fed with frames that nobody has checked: in any order, of any content.
//!
//! Nothing panics, each link ends with a reason or serves on, and what is held stays within a
//! bound. `tests/corpus` holds links as they are, one in each file; `corpus` makes them.

mod corpus;
mod frames;
mod runner;
mod server;

use shared_fuzz::Measured;

#[global_allocator]
static MEMORY: Measured = Measured;
