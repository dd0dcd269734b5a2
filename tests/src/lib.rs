//! What the scenarios in `tests/` are made of: the doubles at the outer edges.

pub mod model_server;
