//! What the scenarios in `tests/` are made of: the real binaries as processes, and the doubles at
//! the outer edges.

// Its feature for tests, see Cargo.toml.
use shared_link as _;

pub mod asked;
mod before;
pub mod browser;
pub mod collector;
pub mod docker;
pub mod door;
pub mod enrolment_double;
pub mod fleet;
pub mod footprint;
pub mod front;
pub mod gantry;
pub mod gateway;
pub mod http1_proxy;
pub mod interposer;
pub mod meddler;
pub mod model_server;
pub mod network;
pub mod openapi;
pub mod ordinary;
pub mod other_server;
pub mod peer;
pub mod postgres;
pub mod proxy;
pub mod report;
pub mod socket;
pub mod stage;
pub mod work;
pub mod workstation;
