//! The model behind a session: one contract, the wire formats that fulfil it, and the layers
//! around a wire format.
//!
//! [`Model`] is what the engine sees. A vendor's wire format ([`OpenAi`]) makes one attempt and
//! knows nothing of repetition; [`Retry`] turns it into a model that repeats what is worth
//! repeating. [`Practice`] is a model without a vendor. Nothing here knows tenants, sessions or
//! tools: a call's arguments are a string that the model wrote, and whoever runs the tool
//! judges it.

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
pub use model::{Answer, CallTrace, Message, Model, ModelEvent, ModelInfo, ModelRequest, ToolSpec};
pub use models::Models;
pub use openai::{OpenAi, OpenAiOptions};
pub use practice::Practice;
pub use retry::{Retry, RetryOptions};
