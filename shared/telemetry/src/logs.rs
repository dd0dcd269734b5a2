//! Logs as lines on stderr, for people or for programs.

use std::{io::IsTerminal, str::FromStr};

use tracing_subscriber::{EnvFilter, Registry, layer::SubscriberExt, util::SubscriberInitExt};

use crate::TelemetryError;

/// What is logged where nobody says otherwise.
const DEFAULT_FILTER: &str = "info";

/// The names of the levels, and `off`.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The form of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: coloured where stderr is a terminal.
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

/// Starts to log to stderr. `filter` is a level or pairs of target and level with commas between
/// them (`info,server_store=debug`); without one, everything from `info` up is logged.
///
/// # Errors
/// If the filter makes no sense, or if this process logs already.
pub fn init_logs(format: LogFormat, filter: Option<&str>) -> Result<(), TelemetryError> {
    let registry = Registry::default().with(parse_filter(filter)?);
    let started = match format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal();
            let lines = tracing_subscriber::fmt::layer().with_ansi(colours);
            registry.with(lines.with_writer(std::io::stderr)).try_init()
        }
        LogFormat::Json => {
            let lines = tracing_subscriber::fmt::layer().json().flatten_event(true);
            registry.with(lines.with_writer(std::io::stderr)).try_init()
        }
    };
    started.map_err(|_| TelemetryError::Repeated("logs"))
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
    fn logs_are_set_up_once_per_process() {
        init_logs(LogFormat::Json, Some("off")).expect("the first time works");
        let error = init_logs(LogFormat::Text, None).expect_err("the second does not");
        assert!(matches!(error, TelemetryError::Repeated("logs")));
    }
}
