//! `docs/metrics.md`: the lists as a page for people.

use crate::{Metric, metrics::BUILD_INFO, process, runner, server};

const HEAD: &str = "\
# Metrics

This page lists every metric. It is made from the lists in the code; `cargo test -p shared-telemetry -- \
--ignored` writes it anew.

The server has its metrics at two places. `GET /metrics` on its port asks for a key of the scope `metrics` \
(`gantry keys add prometheus --scope metrics`). With `[metrics] listen = \"127.0.0.1:9464\"` in `gantry.toml`, \
or `--metrics 127.0.0.1:9464`, the same page is on a listener of its own, without a key: choose an address \
that only Prometheus reaches. A runner has its page at `127.0.0.1:9465`, which `gantry-runner run --metrics` \
changes; `--metrics off` turns it off.

Rules for all of them: seconds and bytes, never parts or multiples of them; labels have few values, of closed \
sets, and never an id or a name of a session, a user, a runner or a tenant; every series is there from the \
start, with 0. A value outside its set is counted as `other`.

Dashboards for Grafana are in `deploy/grafana`, alerts for Prometheus in `deploy/prometheus`, and what to do \
about each alert is in the [runbooks](runbooks.md).
";

/// The page.
pub(crate) fn page() -> String {
    let mut text = HEAD.to_owned();
    text += "\n## Server\n\n";
    text += "What the database knows (queued turns, open operations, runners) is read when the page is asked \
             for, at most once a second. Every server of one database tells the same of it: take the maximum, \
             not the sum.\n\n";
    text += &table(server::ALL);
    text += "\n## Runner\n\n";
    text += &table(runner::ALL);
    text += "\n## Both\n\n| name | type | labels | meaning |\n|---|---|---|---|\n";
    let (name, help) = BUILD_INFO;
    text += &format!("| `{name}` | gauge | version | {help} |\n");
    for (name, kind, help) in process::ALL {
        text += &format!("| `{name}` | {kind} | – | {help} |\n");
    }
    text
}

fn table(list: &[&Metric]) -> String {
    let mut text = "| name | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for metric in list {
        let labels = match metric.labels {
            [] => "–".to_owned(),
            labels => labels
                .iter()
                .enumerate()
                .map(|(place, label)| format!("{label}: {}", values(metric, place)))
                .collect::<Vec<_>>()
                .join("; "),
        };
        let (name, kind, help) = (metric.name, metric.kind.word(), metric.help);
        text += &format!("| `{name}` | {kind} | {labels} | {help} |\n");
    }
    text
}

/// The values of the label at this place, each once.
fn values(metric: &Metric, place: usize) -> String {
    let mut values: Vec<&str> = Vec::new();
    for value in metric.series.iter().flat_map(|sets| sets[place]) {
        if !values.contains(value) {
            values.push(value);
        }
    }
    values.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");

    #[test]
    fn the_page_has_the_metrics_of_the_lists() {
        let page = std::fs::read_to_string(PAGE).expect("docs/metrics.md");
        let remedy = "write it anew: cargo test -p shared-telemetry -- --ignored";
        assert!(
            page == super::page(),
            "docs/metrics.md is out of date; {remedy}"
        );
    }

    #[test]
    #[ignore = "it writes docs/metrics.md"]
    fn write_the_page() {
        std::fs::write(PAGE, page()).expect("docs/metrics.md can be written");
    }
}
