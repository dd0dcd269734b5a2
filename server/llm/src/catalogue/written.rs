//! The catalogue as it is written: each key optional, so that a file can replace single keys.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::Price;

/// Providers by their names, as they are written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Providers(pub(super) BTreeMap<String, WrittenProvider>);

/// A provider, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenProvider {
    /// Other names of the provider.
    pub(super) aliases: Option<Vec<String>>,
    /// The wire format of its servers: openai-chat, openai-responses, anthropic-messages or gemini.
    pub(super) format: Option<String>,
    /// The base address of its servers.
    pub(super) base_url: Option<String>,
    /// The environment variable that holds the key.
    pub(super) key: Option<String>,
    /// The model that answers where none is named.
    pub(super) default: Option<String>,
    /// The most able model.
    pub(super) vanguard: Option<String>,
    /// The model for most work.
    pub(super) balance: Option<String>,
    /// The quickest model.
    pub(super) swift: Option<String>,
    /// The beginnings of the names of its models.
    pub(super) names: Option<Vec<String>>,
    /// True if its models that are not listed can read images.
    pub(super) sees: Option<bool>,
    /// The way in which its models that are not listed call tools: native, text, or unknown.
    pub(super) tools: Option<String>,
    /// Its models.
    pub(super) models: Vec<WrittenModel>,
}

/// A model, as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenModel {
    /// The name under which the server knows it.
    pub(super) name: String,
    /// Tokens that fit into one request and its answer.
    pub(super) window: Option<usize>,
    /// Most tokens of one answer.
    pub(super) output: Option<u32>,
    /// True if it can read images.
    pub(super) sees: Option<bool>,
    /// The way in which it calls tools: native, text (its server is sent no tools), or unknown.
    pub(super) tools: Option<String>,
    /// The way in which it is asked for thoughts: adaptive, or unasked.
    pub(super) thinking: Option<String>,
    /// True if each thought is bound to all that stands before it.
    pub(super) binds_thoughts: Option<bool>,
    /// The price of its tokens.
    pub(super) price: Option<WrittenPrice>,
}

/// A price in US dollars per million tokens, as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPrice {
    /// Of fresh tokens that are sent.
    pub(super) input: f64,
    /// Of tokens that the vendor had cached [default: the price of fresh ones].
    pub(super) cached: Option<f64>,
    /// Of tokens that the vendor caches now [default: the price of fresh ones].
    pub(super) cache_written: Option<f64>,
    /// Of tokens that come back.
    pub(super) output: f64,
    /// The day on which it was looked up, such as 2026-11-20.
    pub(super) date: String,
}

/// The highest price per million tokens, in US dollars.
const DEAREST: f64 = 1_000_000.0;

impl TryFrom<WrittenPrice> for Price {
    type Error = String;

    fn try_from(written: WrittenPrice) -> Result<Self, Self::Error> {
        let micros = |dollars: f64| match (0.0..=DEAREST).contains(&dollars) {
            // Within the bounds no digit before the point is lost.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            true => Ok((dollars * 1_000_000.0).round() as u64),
            false => Err(format!(
                "is {dollars} dollars for a million tokens: it is a number from 0 to {DEAREST}"
            )),
        };
        if chrono::NaiveDate::parse_from_str(&written.date, "%Y-%m-%d").is_err() {
            return Err(format!(
                "has the date {:?}: write it like 2026-11-20",
                written.date
            ));
        }
        Ok(Self {
            input: micros(written.input)?,
            cached: micros(written.cached.unwrap_or(written.input))?,
            cache_written: micros(written.cache_written.unwrap_or(written.input))?,
            output: micros(written.output)?,
            date: written.date,
        })
    }
}
