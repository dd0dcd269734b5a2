//! Models, and the accounts at providers that pay for them.

use serde::{Deserialize, Serialize};
use shared_types::{ModelAccountId, Timestamp};

/// The models that the user may use, and the accounts that offer them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Models {
    /// The models: those of the user's own accounts, then the tenant's, then the operator's, then those of runners.
    pub models: Vec<OfferedModel>,
    /// The accounts of the user and of the tenant. A key is never told.
    pub accounts: Vec<ModelAccount>,
    /// The providers that the server knows, by name.
    pub providers: Vec<ModelProvider>,
}

/// A provider that the server knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModelProvider {
    /// Its name.
    pub name: String,
    /// True if its servers ask for a key.
    pub needs_key: bool,
}

/// A model that may be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OfferedModel {
    /// Its name.
    pub name: String,
    /// The name of the account that offers it; `operator` for those of `[model]` itself, and
    /// that of the runner for a runner's.
    pub account: String,
    /// The provider, such as `anthropic`; empty for a server that is none of the catalogue.
    pub provider: String,
    /// Whose account pays.
    pub paid_by: Payer,
    /// True for the practice model, which is no AI.
    pub practice: bool,
    /// True if it answers where the user has chosen no other one.
    pub is_default: bool,
    /// Tokens that fit into one request and its answer, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// True if it can read images.
    pub sees: bool,
    /// Its price, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
    /// Its state.
    pub state: ModelState,
    /// The reason where it is not ready, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Seconds until a model that cools down is asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_in_s: Option<u64>,
}

/// The owner of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Payer {
    /// The user.
    Own,
    /// The tenant, for all of its people.
    Tenant,
    /// The operator, for all tenants.
    Operator,
    /// No one: the model runs on the machine of a runner, which is named as the account.
    Runner,
}

/// The state of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ModelState {
    /// It answers, or was not asked yet.
    Ready,
    /// It failed several times in a row and is left alone for a while.
    CoolingDown,
    /// The provider refuses the account.
    Refused,
    /// Its runner is offline, or the model server there does not answer.
    Away,
}

/// The price of a million tokens, in millionths of a US dollar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModelPrice {
    /// Of fresh tokens that are sent.
    pub input: u64,
    /// Of tokens that the provider had cached.
    pub cached: u64,
    /// Of tokens that the provider caches now.
    pub cache_written: u64,
    /// Of tokens that come back.
    pub output: u64,
    /// The day on which the price was looked up, such as `2026-11-20`.
    pub date: String,
}

/// An account at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModelAccount {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub id: ModelAccountId,
    /// Its name, unique among those of its owner.
    pub name: String,
    /// The provider.
    pub provider: String,
    /// Whose it is.
    pub paid_by: Payer,
    /// The address of its server, where it is not that of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The wire format, where it is not that of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The models that it offers.
    pub models: Vec<String>,
    /// True if it has a key.
    pub has_key: bool,
    /// When it was last changed.
    pub changed_at: Timestamp,
}

/// An account that is to be added, or to replace the one of its name.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddModelAccount {
    /// The provider of the catalogue, such as `anthropic`; or a name of its own, with an address.
    pub provider: String,
    /// The name of the account [default: that of the provider].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The wire format: `openai-chat`, `openai-responses`, `anthropic-messages` or `gemini` [default: that of the
    /// provider].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The address of the server [default: that of the provider].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The models that it offers [default: those that the server knows of the provider].
    #[serde(default)]
    pub models: Vec<String>,
    /// The key. It is stored sealed, and never shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// True for an account of the tenant, for all of its people.
    #[serde(default)]
    pub of_tenant: bool,
}

/// An account that was added, and the answer of its model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddedModelAccount {
    /// The account.
    pub account: ModelAccount,
    /// The answer of its model to a small request.
    pub probe: ModelProbe,
}

/// A model, or an account, that is to be asked a small thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TestModel {
    /// The name of the model or of the account.
    pub name: String,
}

/// The answer of a model to a small request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModelProbe {
    /// The model that was asked.
    pub model: String,
    /// The model that answered, as the provider says; empty if it does not say.
    pub answered: String,
    /// True if the answer came in pieces.
    pub streams: bool,
    /// True if it called a tool.
    pub calls_tools: bool,
    /// True if it told thoughts.
    pub thinks: bool,
    /// True if it can read images, as far as the server knows.
    pub sees: bool,
    /// The time from the request to the end of the answer, in milliseconds.
    pub duration_ms: u64,
}
