//! `[metrics]`: a listener for the metrics alone.

use serde::Deserialize;

use super::listen::Listen;

/// The section of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MetricsSection {
    /// Where `GET /metrics` is answered without a key [default: nowhere].
    pub(super) listen: Option<Listen>,
}
