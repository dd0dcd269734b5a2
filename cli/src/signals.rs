//! The names of signals, as `kill` takes them.

use shared_api::Signal;

const SIGNALS: [(&str, i32, Signal); 9] = [
    ("HUP", 1, Signal::Hangup),
    ("INT", 2, Signal::Interrupt),
    ("QUIT", 3, Signal::Quit),
    ("KILL", 9, Signal::Kill),
    ("USR1", 10, Signal::User1),
    ("USR2", 12, Signal::User2),
    ("TERM", 15, Signal::Terminate),
    ("CONT", 18, Signal::Continue),
    ("STOP", 19, Signal::Stop),
];

/// The name of the signal with this number on Linux, such as `SIGTERM`.
pub(crate) fn name(number: i32) -> String {
    let known = SIGNALS.iter().find(|(_, known, _)| *known == number);
    match known {
        Some((name, ..)) => format!("SIG{name}"),
        None => format!("signal {number}"),
    }
}

/// A signal by its name, with or without `SIG`, or by its number on Linux.
pub(crate) fn named(text: &str) -> Result<Signal, String> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let is_meant = |known: &str, number: i32| known == name || number.to_string() == name;
    let found = SIGNALS
        .iter()
        .find(|(known, number, _)| is_meant(known, *number));
    found.map(|(_, _, signal)| *signal).ok_or_else(|| {
        let names = SIGNALS.map(|(name, ..)| name).join(", ");
        format!("write one of {names}, or its number")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_named_as_for_kill() {
        for name in ["INT", "int", "SIGINT", "2"] {
            assert_eq!(named(name), Ok(Signal::Interrupt));
        }
        assert!(named("WINCH").is_err_and(|words| words.contains("HUP, INT")));
    }
}
