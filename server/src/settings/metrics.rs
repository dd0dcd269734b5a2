//! `[metrics]`: a listener for the metrics alone.

use schemars::JsonSchema;
use serde::Deserialize;

use super::listen::Listen;

/// The section of the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MetricsSection {
    /// The address to answer `GET /metrics` on without a key, over plain HTTP, as `--metrics` [default: none].
    #[schemars(with = "Option<String>", example = &"127.0.0.1:9464")]
    pub(super) listen: Option<Listen>,
}
