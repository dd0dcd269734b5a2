//! Logs as lines on stderr, for people or for programs.

use std::{
    fs::File,
    io::{IsTerminal, stderr},
    os::{fd::AsFd, unix::fs::MetadataExt},
    str::FromStr,
    sync::Arc,
};

use shared_types::Clock;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, fmt::layer, layer::SubscriberExt, reload, util::SubscriberInitExt,
};

use crate::{
    TelemetryError,
    bounded::{Bounded, RunnerSpans, people},
    traces,
};

/// The filter if none is given.
const DEFAULT_FILTER: &str = "info";

/// The variable in which systemd says which stream leads to its journal (systemd.exec(5)).
pub const JOURNAL_STREAM: &str = "JOURNAL_STREAM";

/// The names of the levels, and `off`.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The form of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: coloured if stderr is a terminal, and without the time if it is systemd's journal, which has its
    /// own.
    #[default]
    Text,
    /// For programs: one JSON object per line.
    Json,
}

impl FromStr for LogFormat {
    type Err = TelemetryError;

    fn from_str(text: &str) -> Result<Self, TelemetryError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(TelemetryError::UnknownFormat(other.to_owned())),
        }
    }
}

/// A choice of lines to log: a level, or pairs of target and level.
#[derive(Debug)]
pub struct LogFilter(EnvFilter);

impl LogFilter {
    /// Reads a filter; without one, everything from `info` up is logged.
    ///
    /// # Errors
    /// If the filter makes no sense.
    pub fn parse(filter: Option<&str>) -> Result<Self, TelemetryError> {
        parse_filter(filter).map(Self)
    }
}

/// Changes the filter while the program runs.
#[derive(Debug, Clone)]
pub struct Logs(reload::Handle<EnvFilter, Registry>);

impl Logs {
    /// Logs by this filter from now on.
    pub fn use_filter(&self, filter: LogFilter) {
        // An error says only that nothing logs any more, as at the end of the process.
        let _ = self.0.reload(filter.0);
    }
}

/// Starts to log to stderr. `filter` is a level or pairs of target and level with commas between them
/// (`info,server_store=debug`); without one, everything from `info` up is logged. Lines are cleaned, cut and, about one
/// runner, counted by `clock` (see `bounded`). `journal_stream` is the value of [`JOURNAL_STREAM`].
///
/// # Errors
/// If the filter makes no sense, or if this process logs already.
pub fn init_logs(
    format: LogFormat,
    filter: Option<&str>,
    journal_stream: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<Logs, TelemetryError> {
    let (filter, handle) = reload::Layer::new(parse_filter(filter)?);
    let colours = stderr().is_terminal();
    let text = || layer().with_ansi(colours).with_writer(stderr);
    let lines = match format {
        LogFormat::Text if leads_to(journal_stream, stderr()) => {
            let format = people(colours).without_time();
            text()
                .event_format(Bounded::new(format, false, clock))
                .boxed()
        }
        LogFormat::Text => {
            let format = people(colours);
            text()
                .event_format(Bounded::new(format, false, clock))
                .boxed()
        }
        LogFormat::Json => {
            let lines = layer().json().flatten_event(true).with_writer(stderr);
            let bounded = |format| Bounded::new(format, true, clock);
            lines.map_event_format(bounded).boxed()
        }
    };
    // The filter holds for lines only. Spans of requests go to the collector also where their lines are left out.
    let lines = lines.and_then(RunnerSpans).with_filter(filter);
    let registry = Registry::default().with(lines).with(traces::layer());
    registry
        .try_init()
        .map_err(|_| TelemetryError::Repeated("logs"))?;
    Ok(Logs(handle))
}

/// Tells if a descriptor is the stream that is named by its device and inode, as `8:1234`. A child of a service
/// inherits the name, but may have another stream.
fn leads_to(named: Option<&str>, stream: impl AsFd) -> bool {
    let named = named.and_then(|named| named.split_once(':'));
    let Some((device, inode)) = named else {
        return false;
    };
    let stream = stream.as_fd().try_clone_to_owned().map(File::from);
    stream
        .and_then(|stream| stream.metadata())
        .is_ok_and(|is| device.parse() == Ok(is.dev()) && inode.parse() == Ok(is.ino()))
}

fn parse_filter(filter: Option<&str>) -> Result<EnvFilter, TelemetryError> {
    let text = match filter.map(str::trim) {
        None | Some("") => DEFAULT_FILTER,
        Some(text) => text,
    };
    let wrong = |reason: String| TelemetryError::Filter {
        filter: text.to_owned(),
        reason,
    };
    // The library takes a lone unknown word for the name of a target and would then log next to
    // nothing: a misspelt level must not silence a server.
    let misspelt = text.split(',').map(str::trim).find(|part| {
        part.chars().all(|letter| letter.is_ascii_alphabetic())
            && !LEVELS.contains(&part.to_ascii_lowercase().as_str())
    });
    if let Some(part) = misspelt {
        return Err(wrong(format!("no level is called {part:?}")));
    }
    EnvFilter::try_new(text).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_has_one_of_two_names() {
        assert_eq!("json".parse::<LogFormat>().ok(), Some(LogFormat::Json));
        assert_eq!("text".parse::<LogFormat>().ok(), Some(LogFormat::Text));
        let error = "xml".parse::<LogFormat>().expect_err("there is no xml");
        assert_eq!(
            error.to_string(),
            "no log format is called \"xml\"; choose text or json"
        );
    }

    #[test]
    fn without_a_filter_everything_from_info_up_is_logged() {
        for filter in [None, Some(""), Some("  ")] {
            let filter = parse_filter(filter).expect("the default is a filter");
            assert_eq!(filter.to_string(), "info");
        }
    }

    #[test]
    fn a_misspelt_level_is_refused_and_not_taken_for_a_target() {
        for wrong in ["inof", "info,debgu", "server=loud", "info,,"] {
            let error = parse_filter(Some(wrong)).expect_err("it makes no sense");
            assert!(error.to_string().contains("write a level"), "{error}");
        }
        for right in ["warn", "INFO", "info,server_store=debug", "off"] {
            parse_filter(Some(right)).expect("it makes sense");
        }
    }

    #[test]
    fn a_stream_is_the_journal_where_that_says_its_device_and_inode() {
        let [(_, this), (_, other)] = [(); 2].map(|()| std::io::pipe().expect("a pipe"));
        let file = File::from(this.as_fd().try_clone_to_owned().expect("a descriptor"));
        let is = file.metadata().expect("it is there");
        let name = format!("{}:{}", is.dev(), is.ino());
        assert!(leads_to(Some(&name), &this));
        assert!(!leads_to(Some(&name), &other));
        assert!(!leads_to(None, &this));
        let wrong = [
            "",
            ":",
            "8",
            &format!("{name}1"),
            &format!("1{name}"),
            "a:b",
        ];
        for wrong in wrong {
            assert!(!leads_to(Some(wrong), &this), "{wrong}");
        }
    }

    #[test]
    fn logs_are_set_up_once_per_process() {
        let clock = || Arc::new(shared_types::SystemClock::new());
        init_logs(LogFormat::Json, Some("off"), None, clock()).expect("the first time works");
        let error =
            init_logs(LogFormat::Text, None, None, clock()).expect_err("the second does not");
        assert!(matches!(error, TelemetryError::Repeated("logs")));
    }
}
