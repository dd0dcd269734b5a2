//! Metrics in Prometheus' text form, rendered on demand.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::TelemetryError;

/// Upper bounds of the buckets of every histogram, in seconds: from a local database write to a
/// long command. Fixed buckets, because summaries of several replicas cannot be added up.
const BUCKETS_SECONDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 600.0,
];

/// Reads what this process has measured. Clones read the same.
#[derive(Clone)]
pub struct MetricsHandle(PrometheusHandle);

impl MetricsHandle {
    /// Everything measured so far, in Prometheus' text exposition format 0.0.4.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Folds recorded samples of histograms together. Call it every few seconds for as long as the
    /// process runs, or a histogram that nobody scrapes grows without bound.
    pub fn upkeep(&self) {
        self.0.run_upkeep();
    }
}

/// Starts to keep what the `metrics` macros record.
///
/// # Errors
/// If this process keeps metrics already.
pub fn install_metrics() -> Result<MetricsHandle, TelemetryError> {
    let recorder = PrometheusBuilder::new()
        .set_buckets(&BUCKETS_SECONDS)
        .expect("the list of buckets is not empty")
        .build_recorder();
    let handle = MetricsHandle(recorder.handle());
    metrics::set_global_recorder(recorder).map_err(|_| TelemetryError::Repeated("metrics"))?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_can_be_read_and_is_kept_once_per_process() {
        let handle = install_metrics().expect("the first time works");
        metrics::counter!("turns_total", "outcome" => "completed").increment(2);
        metrics::histogram!("exec_seconds").record(0.003);
        handle.upkeep();
        let text = handle.render();
        assert!(
            text.contains("turns_total{outcome=\"completed\"} 2"),
            "{text}"
        );
        assert!(
            text.contains("exec_seconds_bucket{le=\"0.005\"} 1"),
            "{text}"
        );
        assert!(
            install_metrics().is_err(),
            "a second recorder would hear nothing"
        );
    }
}
