//! Commands to the terminal itself, in the middle of a conversation.

/// A line of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Nothing.
    Empty,
    /// For the model.
    Message(&'a str),
    /// `/runner`, `/runner NAME`, `/runner -`
    Runner(Option<&'a str>),
    /// `/model`, `/model NAME`, `/model -`
    Model(Option<&'a str>),
    /// `/mode`, `/mode MODE`, `/mode -`
    Mode(Option<&'a str>),
    /// `/sessions`
    Sessions,
    /// `/new`
    New,
    /// `/queue MESSAGE`
    Queue(&'a str),
    /// `/interrupt MESSAGE`
    Interrupt(&'a str),
    /// `/stop`
    Stop,
    /// `/tasks`
    Tasks,
    /// `/context`
    Context,
    /// `/compact`, `/compact WHAT MATTERS`
    Compact(&'a str),
    /// `/stop N`
    StopTask(u32),
    /// `/help`
    Help,
    /// Another word behind a slash.
    Unknown(&'a str),
}

/// The output of `/help`.
pub(super) const HELP: &str = "\
/runner [NAME]  show the runners, or pin this session to one; - lifts the pin
/model [NAME]   show the models, or choose one for this session; - goes back to yours
/mode [MODE]    show the mode, or set it for this session; - goes back to yours
/sessions       list your sessions
/new            begin a new session
/context        show how full the model's window is, and of what
/compact [WHAT] make room in it now; WHAT says what matters most
/tasks          list what goes on in the background
/stop [N]       stop what this session is doing, or task N
/help           this list
During a turn, a line is sent at once: the agent reads it before its next step.
/queue TEXT     sends it once the turn is over
/interrupt TEXT stops the turn, and sends it
Other commands but /stop wait for the end of the turn.
Ctrl-C stops a turn and forgets those · Ctrl-D ends the conversation";

/// Tells commands from messages. A message that begins with a slash is written behind a space.
pub(super) fn parse(line: &str) -> Line<'_> {
    if line.trim().is_empty() {
        return Line::Empty;
    }
    let Some(command) = line.strip_prefix('/') else {
        return Line::Message(line.trim());
    };
    let mut words = command.split_whitespace();
    match (words.next().unwrap_or_default(), words.next(), words.next()) {
        ("runner" | "runners", name, None) => Line::Runner(name),
        ("model" | "models", None, _) => Line::Model(None),
        // A choice may be several names with commas, and spaces behind them.
        ("model", Some(_), _) => Line::Model(Some(command["model".len()..].trim())),
        ("mode", mode, None) => Line::Mode(mode),
        ("sessions", None, _) => Line::Sessions,
        ("new", None, _) => Line::New,
        ("queue", Some(_), _) => Line::Queue(command["queue".len()..].trim()),
        ("interrupt", Some(_), _) => Line::Interrupt(command["interrupt".len()..].trim()),
        ("stop", None, _) => Line::Stop,
        ("stop", Some(number), None) => match number.parse() {
            Ok(number) => Line::StopTask(number),
            Err(_) => Line::Unknown(line.trim()),
        },
        ("tasks", None, _) => Line::Tasks,
        ("context", None, _) => Line::Context,
        ("compact", _, _) => Line::Compact(command["compact".len()..].trim()),
        ("help" | "?", None, _) => Line::Help,
        _ => Line::Unknown(line.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_messages() {
        assert_eq!(parse("  "), Line::Empty);
        assert_eq!(parse(" run ls "), Line::Message("run ls"));
        assert_eq!(parse("/runner"), Line::Runner(None));
        assert_eq!(parse("/runner laptop"), Line::Runner(Some("laptop")));
        assert_eq!(parse("/model"), Line::Model(None));
        assert_eq!(parse("/model swift"), Line::Model(Some("swift")));
        assert_eq!(parse("/model a/b, c "), Line::Model(Some("a/b, c")));
        assert_eq!(parse("/mode"), Line::Mode(None));
        assert_eq!(parse("/mode plan"), Line::Mode(Some("plan")));
        assert_eq!(parse("/new"), Line::New);
        assert_eq!(
            parse(" /etc/hosts: explain it"),
            Line::Message("/etc/hosts: explain it")
        );
        assert_eq!(parse("/tasks"), Line::Tasks);
        assert_eq!(parse("/queue  go on "), Line::Queue("go on"));
        assert_eq!(parse("/interrupt no, a b"), Line::Interrupt("no, a b"));
        assert_eq!(parse("/stop"), Line::Stop);
        assert_eq!(parse("/context"), Line::Context);
        assert_eq!(parse("/compact"), Line::Compact(""));
        assert_eq!(parse("/compact  the port "), Line::Compact("the port"));
        assert_eq!(parse("/stop 2"), Line::StopTask(2));
        for unknown in [
            "/etc/hosts",
            "/new session",
            "/runner a b",
            "/mode a b",
            "/",
            "/queue",
            "/stop it",
            "/stop 1 2",
        ] {
            assert_eq!(parse(unknown), Line::Unknown(unknown));
        }
    }
}
