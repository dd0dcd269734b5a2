use std::collections::BTreeSet;

use super::*;
use crate::{runner, server};

fn all() -> impl Iterator<Item = &'static Metric> {
    server::ALL.iter().chain(runner::ALL).copied()
}

#[test]
fn names_say_their_unit_and_kind_and_every_metric_has_help() {
    let mut names = BTreeSet::new();
    for metric in all() {
        let name = metric.name;
        assert!(names.insert(name), "{name} is there twice");
        assert!(name.starts_with("gantry_"), "{name}");
        assert!(metric.help.ends_with('.'), "{name}: {}", metric.help);
        assert!(!metric.help.contains('\n'), "{name}");
        let of_counter = name.strip_suffix("_total");
        assert_eq!(
            of_counter.is_some(),
            metric.kind == MetricKind::Counter,
            "{name}"
        );
        let base = of_counter.unwrap_or(name);
        for unit in [MetricUnit::Seconds, MetricUnit::Bytes] {
            assert_eq!(base.ends_with(unit.word()), metric.unit == unit, "{name}");
        }
    }
}

#[test]
fn labels_are_bounded_and_no_series_is_there_twice() {
    for metric in all() {
        let series = metric.combinations();
        let different: BTreeSet<_> = series.iter().collect();
        assert_eq!(series.len(), different.len(), "{}", metric.name);
        assert!((1..=200).contains(&series.len()), "{}", metric.name);
        for values in &series {
            assert_eq!(values.len(), metric.labels.len(), "{}", metric.name);
        }
    }
}

#[test]
fn every_series_is_there_from_the_start_and_counts_what_is_recorded() {
    let handle = install_metrics(server::ALL, "1.2.3").expect("the first time works");
    let text = handle.render();
    assert!(
        text.contains("gantry_build_info{version=\"1.2.3\"} 1\n"),
        "{text}"
    );
    for metric in server::ALL {
        let name = metric.name;
        let (kind, help) = (metric.kind.word(), metric.help);
        assert!(text.contains(&format!("# HELP {name} {help}\n")), "{name}");
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name}");
        let value = match metric.kind {
            MetricKind::Histogram => format!("{name}_count"),
            _ => name.to_owned(),
        };
        let lines = text.lines().filter(|line| {
            let rest = line.strip_prefix(&value);
            rest.is_some_and(|rest| rest.starts_with([' ', '{']) && rest.ends_with(" 0"))
        });
        assert_eq!(lines.count(), metric.combinations().len(), "{name}: {text}");
    }

    server::TURNS_ENDED.add(&["completed"], 2);
    server::REQUEST_DURATION.record(&["rest"], 0.003);
    server::TOOL_CALLS.add(&["rm -rf /", "completed"], 1);
    handle.upkeep();
    let text = handle.render();
    for line in [
        "gantry_turns_ended_total{outcome=\"completed\"} 2",
        "gantry_request_duration_seconds_bucket{surface=\"rest\",le=\"0.005\"} 1",
        "gantry_tool_calls_total{tool=\"other\",outcome=\"completed\"} 1",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(
        install_metrics(server::ALL, "1.2.3").is_err(),
        "a second recorder would hear nothing"
    );
}
