//! The model behind a session: one contract, the wire formats that fulfil it, and the layers
//! around a wire format.
//!
//! [`Model`] is the engine's view of a model. A vendor's wire format ([`OpenAi`]) makes one attempt
//! and knows nothing of repetition; [`Retry`] turns it into a model that repeats passing failures.
//! [`Practice`] is a model without a vendor.
//!
//! This crate knows no tenants, sessions or tools. A call's arguments are a string that the model
//! wrote, and the tool's runner checks it.

mod error;
mod key;
mod measured;
mod model;
mod models;
pub mod openai;
pub mod practice;
pub mod retry;
mod sse;

pub use error::ModelError;
pub use key::ApiKey;
pub use measured::Measured;
pub use model::{
    Answer, CallTrace, Message, Model, ModelEvent, ModelInfo, ModelRequest, Piece, ToolSpec, Voice,
};
pub use models::Models;
pub use openai::{OpenAi, OpenAiOptions};
pub use practice::Practice;
pub use retry::{Retry, RetryOptions};
