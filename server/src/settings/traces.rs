//! `[traces]`: the collector for spans, and the share of traces that is sent.

use anyhow::bail;
use schemars::JsonSchema;
use serde::Deserialize;

/// The section of the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TracesSection {
    /// The address of the collector, for OTLP over gRPC, as `--traces` [default: none, and no traces].
    #[schemars(example = &"http://127.0.0.1:4317")]
    endpoint: Option<String>,
    /// The share of traces that is collected, 0.0 to 1.0 [default: 1.0].
    sample: Option<f64>,
}

/// The collector for spans, and the share that is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TraceSettings {
    /// The collector.
    pub(crate) endpoint: String,
    /// The share of the traces begun here that is collected.
    pub(crate) sample: f64,
}

impl TracesSection {
    /// The settings that count, with the address of a flag; `None` if no collector is named.
    pub(super) fn settings(self, flag: Option<String>) -> anyhow::Result<Option<TraceSettings>> {
        let sample = self.sample.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&sample) {
            bail!(
                "sample under [traces] in gantry.toml is the part of the traces, from 0.0 to 1.0"
            );
        }
        // A variable that is set to nothing names nothing.
        let endpoint = flag
            .or(self.endpoint)
            .filter(|endpoint| !endpoint.is_empty());
        let Some(endpoint) = endpoint else {
            return Ok(None);
        };
        shared_telemetry::traces::collector(&endpoint)?;
        Ok(Some(TraceSettings { endpoint, sample }))
    }
}
