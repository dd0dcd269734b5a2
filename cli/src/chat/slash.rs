//! A line of a conversation: a message, a command to the server, or one to the shell.

/// A line of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Nothing.
    Empty,
    /// For the model.
    Message(&'a str),
    /// `!SCRIPT`, for the shell of the place where the session works.
    Run(&'a str),
    /// For the server, with its slash.
    Command(&'a str),
}

/// Tells commands from messages. A message that begins with a slash or `!` is written behind
/// a space; a path needs none.
pub(crate) fn parse(line: &str) -> Line<'_> {
    if let Some(script) = line.strip_prefix('!') {
        return Line::Run(script.trim());
    }
    match line.trim() {
        "" => Line::Empty,
        command if line.starts_with('/') && !is_path(command) => Line::Command(command),
        message => Line::Message(message),
    }
}

/// True for a line that begins with a path: no command has another slash in its name.
fn is_path(line: &str) -> bool {
    let name = line.split_whitespace().next().unwrap_or_default();
    name[1..].contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_messages() {
        assert_eq!(parse("  "), Line::Empty);
        assert_eq!(parse(" run ls "), Line::Message("run ls"));
        assert_eq!(parse("/queue  go on "), Line::Command("/queue  go on"));
        assert_eq!(parse("/"), Line::Command("/"));
        assert_eq!(
            parse("/etc/hosts: explain it"),
            Line::Message("/etc/hosts: explain it")
        );
        assert_eq!(
            parse(" /etc/hosts: explain it"),
            Line::Message("/etc/hosts: explain it")
        );
        assert_eq!(parse("!ls -a | wc\n"), Line::Run("ls -a | wc"));
        assert_eq!(parse("!/bin/ls"), Line::Run("/bin/ls"));
        assert_eq!(parse("!"), Line::Run(""));
        assert_eq!(parse(" !important"), Line::Message("!important"));
    }
}
