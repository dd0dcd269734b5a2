//! Metrics in Prometheus' text form, rendered on demand.
//!
//! A program's metrics are a list of [`Metric`]s: [`server::ALL`](crate::server::ALL) and
//! [`runner::ALL`](crate::runner::ALL). Nothing else is recorded. A label has the values of a closed set; all
//! series are there from the start, with 0, so that a query finds them before anything has happened.
//! `docs/metrics.md` is made from the lists.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Unit as Described};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::{TelemetryError, process};

/// Upper bounds of the buckets of every histogram of seconds: from a local database write to a
/// long command. Fixed buckets, because summaries of several replicas cannot be added up.
const BUCKETS_SECONDS: [f64; 16] = [
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0,
    600.0,
];

/// The value of a label that stands for every value outside its set.
pub const OTHER: &str = "other";

/// The type of a metric in Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows, until the process starts again.
    Counter,
    /// The present value.
    Gauge,
    /// Counts of durations.
    Histogram,
}

/// The unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricUnit {
    /// Things.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

/// For each label its values: the series of all their combinations.
pub type Series = &'static [&'static [&'static str]];

/// One metric of a list.
#[derive(Debug)]
pub struct Metric {
    /// Its name, with its unit at the end, and `_total` behind that of a counter.
    pub name: &'static str,
    /// Its type in Prometheus.
    pub kind: MetricKind,
    /// The unit of its values.
    pub unit: MetricUnit,
    /// A sentence or two for people.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Its series; several where not every combination of all values is possible.
    pub series: &'static [Series],
}

/// The origin of the metrics, for the exporter.
const METADATA: Metadata<'static> = Metadata::new("gantry", Level::INFO, None);

impl Metric {
    /// Adds to the series of a counter that has these values, in the order of [`Metric::labels`].
    pub fn add(&self, values: &[&str], count: u64) {
        self.counter(values).increment(count);
    }

    /// Sets a gauge's series.
    pub fn set(&self, values: &[&str], value: f64) {
        self.gauge(values).set(value);
    }

    /// Records a duration, in seconds.
    pub fn record(&self, values: &[&str], seconds: f64) {
        self.histogram(values).record(seconds);
    }

    /// A counter's series, to keep if much is counted: to add to it is one atomic operation. Take it after the metrics
    /// were installed.
    pub fn counter(&self, values: &[&str]) -> Counter {
        let key = self.key(values);
        metrics::with_recorder(|recorder| recorder.register_counter(&key, &METADATA))
    }

    /// A gauge's series, to keep like that of [`Metric::counter`].
    pub fn gauge(&self, values: &[&str]) -> Gauge {
        let key = self.key(values);
        metrics::with_recorder(|recorder| recorder.register_gauge(&key, &METADATA))
    }

    /// A histogram's series, to keep like that of [`Metric::counter`].
    pub fn histogram(&self, values: &[&str]) -> Histogram {
        let key = self.key(values);
        metrics::with_recorder(|recorder| recorder.register_histogram(&key, &METADATA))
    }

    /// The values of all series, in the order of the labels.
    pub fn combinations(&self) -> Vec<Vec<&'static str>> {
        let of = |sets: &Series| {
            sets.iter().fold(vec![Vec::new()], |begun, values| {
                let with = |one: &Vec<&'static str>| {
                    let one = one.clone();
                    values
                        .iter()
                        .map(move |&value| one.iter().copied().chain([value]).collect())
                };
                begun.iter().flat_map(with).collect()
            })
        };
        self.series.iter().flat_map(of).collect()
    }

    /// A value outside its set becomes [`OTHER`]: no peer can make series.
    fn key(&self, values: &[&str]) -> Key {
        debug_assert_eq!(values.len(), self.labels.len(), "{}", self.name);
        let labels = self.labels.iter().zip(values).enumerate();
        let labels = labels.map(|(place, (&label, &value))| {
            Label::from_static_parts(label, self.known(place, value))
        });
        Key::from_parts(self.name, labels.collect::<Vec<_>>())
    }

    /// The value of the label at this place that equals this one; [`OTHER`] if there is none.
    pub fn known(&self, place: usize, value: &str) -> &'static str {
        let mut known = self.series.iter().flat_map(|sets| sets[place]);
        let known = known.find(|known| **known == value);
        known.copied().unwrap_or(OTHER)
    }

    fn describe(&self) {
        let (name, unit) = (KeyName::from(self.name), self.unit.described());
        metrics::with_recorder(|recorder| match self.kind {
            MetricKind::Counter => recorder.describe_counter(name, unit, self.help.into()),
            MetricKind::Gauge => recorder.describe_gauge(name, unit, self.help.into()),
            MetricKind::Histogram => recorder.describe_histogram(name, unit, self.help.into()),
        });
    }

    fn register(&self) {
        for values in self.combinations() {
            match self.kind {
                MetricKind::Counter => drop(self.counter(&values)),
                MetricKind::Gauge => drop(self.gauge(&values)),
                MetricKind::Histogram => drop(self.histogram(&values)),
            }
        }
    }
}

impl MetricKind {
    /// The name of the type in Prometheus.
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl MetricUnit {
    /// The word for the unit at the end of a name, or nothing.
    pub fn word(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
        }
    }

    fn described(self) -> Option<Described> {
        match self {
            Self::Count => None,
            Self::Seconds => Some(Described::Seconds),
            Self::Bytes => Some(Described::Bytes),
        }
    }
}

/// A list of metrics. The comment of each is its help.
macro_rules! list {
    ($($(#[doc = $help:literal])+ $name:ident: $kind:ident $unit:ident $text:literal
        $([$($label:ident),+] $($of:expr),+)?;)+) => {
        $(
            $(#[doc = $help])+
            pub static $name: $crate::Metric = $crate::Metric {
                name: $text,
                kind: $crate::MetricKind::$kind,
                unit: $crate::MetricUnit::$unit,
                help: concat!($($help),+).trim_ascii(),
                labels: &[$($(stringify!($label)),+)?],
                series: $crate::metrics::or_one(&[$($($of),+)?]),
            };
        )+

        /// All of them, in the order of the page for people.
        pub static ALL: &[&$crate::Metric] = &[$(&$name),+];
    };
}
pub(crate) use list;

/// The series of a metric without labels is one.
pub(crate) const fn or_one(series: &'static [Series]) -> &'static [Series] {
    match series {
        [] => &[&[]],
        some => some,
    }
}

/// Reads the metrics of this process. Clones read the same.
#[derive(Clone)]
pub struct MetricsHandle {
    recorded: PrometheusHandle,
    build: String,
}

impl MetricsHandle {
    /// Everything measured so far, in Prometheus' text exposition format 0.0.4.
    pub fn render(&self) -> String {
        let mut text = self.recorded.render();
        text += &self.build;
        text += &process::render();
        text
    }

    /// Folds recorded samples of histograms together. Call it every few seconds for as long as the process runs.
    /// Otherwise a histogram that Prometheus does not scrape grows without bound.
    pub fn upkeep(&self) {
        self.recorded.run_upkeep();
    }
}

/// Starts to keep the metrics of this list, all of them with 0, and records the version of the program.
///
/// # Errors
/// If this process keeps metrics already.
pub fn install_metrics(
    list: &'static [&'static Metric],
    version: &str,
) -> Result<MetricsHandle, TelemetryError> {
    let seconds = Matcher::Suffix(MetricUnit::Seconds.word().to_owned());
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(seconds, &BUCKETS_SECONDS)
        .expect("the list of buckets is not empty")
        .build_recorder();
    let recorded = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|_| TelemetryError::Repeated("metrics"))?;
    for metric in list {
        metric.describe();
        metric.register();
    }
    Ok(MetricsHandle {
        recorded,
        build: build_info(version),
    })
}

fn build_info(version: &str) -> String {
    let (name, help) = BUILD_INFO;
    format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name}{{version=\"{version}\"}} 1\n")
}

/// The metric with the version, and its help.
pub(crate) const BUILD_INFO: (&str, &str) = (
    "gantry_build_info",
    "Always 1; the label says which version runs.",
);

#[cfg(test)]
mod tests;
