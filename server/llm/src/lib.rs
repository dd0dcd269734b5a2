//! The model behind a session: one contract, the wire formats that fulfil it, and the layers
//! around a call.
//!
//! [`Model`] is the engine's view of a model. A [`Vendor`] makes one attempt, in a wire format ([`formats`]), and knows
//! nothing of repetition; [`Retry`] turns it into a model that repeats passing failures. [`Practice`] is a model
//! without a vendor.
//!
//! This crate knows no tenants, sessions or tools. A call's arguments are a string that the model
//! wrote, and the tool's runner checks it.

mod catalogue;
mod client;
mod error;
mod formats;
mod key;
mod layers;
mod model;
mod models;
pub mod practice;
mod profile;
mod sse;
mod vendor;

pub use catalogue::{Catalogue, CatalogueError, Provider, Providers, Tier, UnknownTier};
pub use client::{
    DEFAULT_BASE_URL, Named, Reach, Reply, ReplyBody, ServerOptions, ServerOptionsError, Transport,
};
pub use error::ModelError;
pub use formats::{UnknownFormat, WireFormat, chat_over, vendor};
pub use key::ApiKey;
pub use layers::{
    breaker::{Breaker, Health},
    limit::Limited,
    measured::Measured,
    retry::{Retry, RetryOptions},
};
pub use model::{
    Answer, Attempted, CallTrace, Images, Message, Model, ModelEvent, ModelInfo, ModelRequest,
    Piece, ToolSpec, Voice,
};
pub use models::{Models, Offer, OperatorAccount};
pub use practice::Practice;
pub use profile::{Price, Profile, Thinking, ToolCalls};
pub use vendor::{Failure, Vendor};
