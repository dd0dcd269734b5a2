//! The person's browser, where this terminal is on a desktop.

use std::process::{Command, Stdio};

/// The program that opens an address in a browser; nothing without a desktop. `text` reads the environment.
pub(crate) fn opener(text: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let is_remote = text("SSH_CONNECTION").is_some();
    let has_display = text("DISPLAY")
        .or_else(|| text("WAYLAND_DISPLAY"))
        .is_some();
    match (is_remote, cfg!(target_os = "macos")) {
        (true, _) => None,
        (false, true) => Some("open"),
        (false, false) => has_display.then_some("xdg-open"),
    }
}

/// Begins to open an address of the web. False where that cannot be done: the person opens it then.
pub(crate) fn open(opener: &str, address: &str) -> bool {
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    let mut program = Command::new(opener);
    program
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    is_web && program.spawn().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &'static [&'static str]) -> Option<&'static str> {
        opener(|name| set.contains(&name).then(|| "1".to_owned()))
    }

    #[test]
    #[cfg(not(target_os = "macos"))]
    fn a_browser_is_opened_on_a_desktop_and_not_at_the_end_of_a_remote_line() {
        assert_eq!(of(&["DISPLAY"]), Some("xdg-open"));
        assert_eq!(of(&["WAYLAND_DISPLAY"]), Some("xdg-open"));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["DISPLAY", "SSH_CONNECTION"]), None);
    }

    #[test]
    fn only_an_address_of_the_web_is_opened() {
        for address in ["file:///etc/passwd", "vscode://x", "-h", ""] {
            assert!(!open("true", address), "{address}");
        }
        assert!(open("true", "https://login.example.org/authorize"));
        assert!(!open("no-such-program", "https://login.example.org/"));
    }
}
