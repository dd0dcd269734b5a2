//! Logs, metrics and traces of every binary: set up once, in `main`, before anything else runs.
//!
//! Logs go to stderr, because stdout belongs to a program's output. Metrics are kept here and rendered on demand; the
//! HTTP server that shows them is the binary's own. Two lists, [`server`] and [`runner`], have all metrics. Traces are
//! sent to a collector, if one is named.

mod bounded;
mod logs;
mod metrics;
#[cfg(test)]
mod page;
mod process;
pub mod runner;
pub mod server;
pub mod traces;
mod words;

pub use ::metrics::Counter;
pub use logs::{JOURNAL_STREAM, LogFilter, LogFormat, Logs, init_logs};
pub use metrics::{Metric, MetricKind, MetricUnit, MetricsHandle, OTHER, Series, install_metrics};

/// The reason why logs, metrics or traces could not be set up. Completes "failed to set up telemetry: …".
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// No log format has this name.
    #[error("no log format is called {0:?}; choose text or json")]
    UnknownFormat(String),
    /// The filter is not one.
    #[error(
        "the log filter {filter:?} makes no sense ({reason}); write a level (error, warn, info, debug, trace) or pairs such as info,server_store=debug"
    )]
    Filter {
        /// The text that was given.
        filter: String,
        /// The fault in it.
        reason: String,
    },
    /// Spans cannot be sent there.
    #[error(
        "the collector of traces {endpoint:?} makes no sense ({reason}); write its address for OTLP over gRPC, such as http://127.0.0.1:4317"
    )]
    Endpoint {
        /// The address that was given.
        endpoint: String,
        /// The fault in it.
        reason: &'static str,
    },
    /// This process has done it before.
    #[error("{0} are set up already; set them up once, in main")]
    Repeated(&'static str),
}
