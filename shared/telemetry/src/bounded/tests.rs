use std::io;

use shared_types::SystemClock;
use tracing_subscriber::{fmt::layer, layer::SubscriberExt as _};

use super::*;

/// What is written while this is done.
fn written(is_json: bool, logs: impl FnOnce()) -> String {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let writer = {
        let lines = Arc::clone(&lines);
        move || Lines(Arc::clone(&lines))
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let layer: Box<dyn Layer<_> + Send + Sync> = if is_json {
        let layer = layer().json().flatten_event(true).with_writer(writer);
        Box::new(layer.map_event_format(|inner| Bounded::new(inner, true, clock)))
    } else {
        let layer = layer().with_ansi(true).with_writer(writer);
        Box::new(layer.event_format(Bounded::new(people(true), false, clock)))
    };
    let registry = tracing_subscriber::registry().with(layer).with(RunnerSpans);
    tracing::subscriber::with_default(registry, logs);
    let lines = lines.lock().expect("the lines");
    String::from_utf8(lines.clone()).expect("text")
}

struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("the lines").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn words_of_a_peer_forge_no_line_and_drive_no_terminal() {
    let words = "bye\n2026-01-01T00:00:00Z ERROR forged\x1b]0;title\x07\u{202e}\u{9b}2J";
    for is_json in [false, true] {
        let written = written(is_json, || tracing::warn!(reason = words, "the link ended"));
        assert_eq!(written.lines().count(), 1, "{written}");
        let harmful = |letter: &char| !is_harmless(*letter) && !"\n\x1b".contains(*letter);
        assert_eq!(written.chars().find(harmful), None, "{written:?}");
        assert!(!written.contains("\x1b]"), "{written:?}");
    }
}

#[test]
fn a_line_is_cut_where_it_is_too_long() {
    let words = "x".repeat(2_000_000);
    for is_json in [false, true] {
        let written = written(is_json, || tracing::warn!(reason = words, "the link ended"));
        assert!(written.len() < 2 * MAX_LINE_BYTES, "{}", written.len());
        assert!(written.contains("left"), "{written}");
        if is_json {
            serde_json::from_str::<serde_json::Value>(&written).expect("JSON");
        }
    }
}

#[test]
fn a_runner_that_makes_many_lines_is_cut_short_and_others_are_not() {
    let written = written(false, || {
        let span = tracing::info_span!("link", runner.id = "run_1");
        span.in_scope(|| (0..100_000).for_each(|_| tracing::warn!("it broke the protocol")));
        tracing::warn!(runner.id = "run_2", "another one");
        tracing::warn!("the server's own");
    });
    let of = |words: &str| written.lines().filter(|line| line.contains(words)).count();
    assert!(of("broke") < 10_000, "{}", of("broke"));
    assert_eq!((of("another one"), of("the server's own")), (1, 1));
}

#[test]
fn the_next_line_says_how_many_were_left_out() {
    let mut runners = RunnerBounds::default();
    let at = Duration::from_secs;
    let admitted: Vec<_> = (0..1000).map(|_| runners.admit("run_1", at(1))).collect();
    let first = admitted.iter().filter(|one| one.is_some()).count();
    assert_eq!(first, LINES_AT_ONCE as usize);
    assert_eq!(runners.admit("run_2", at(1)), Some(0));
    assert_eq!(runners.admit("run_1", at(2)), Some(1000 - first as u64));
    assert_eq!(runners.admit("run_1", at(2)), Some(0));
}

#[test]
fn however_many_runners_there_are_no_more_are_told_apart() {
    let mut runners = RunnerBounds::default();
    for number in 0..3 * MAX_RUNNERS {
        runners.admit(&format!("run_{number}"), Duration::ZERO);
    }
    assert!(runners.0.len() <= MAX_RUNNERS + 1);
}
