//! The deeds that an agent asks for.

/// One thing that an agent asks for, as rules see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed<'a> {
    /// A script for the shell (bash). More than 64 KiB of it count as unreadable.
    Shell(&'a str),
    /// A program with its arguments, without a shell.
    Argv(&'a [String]),
    /// A look at a path, a search or a list. The path is relative to the sandbox's root and
    /// normalised: `src/a.rs`.
    Read(&'a str),
    /// A look into all files of a folder, such as a search for words. The path has the form of that of `Read`.
    Search(&'a str),
    /// A change of a path, a move or a removal. The path has the form of that of `Read`.
    Write(&'a str),
    /// A request to a URL.
    Fetch(&'a str),
    /// Any other tool, by its name: `web_search`, `mcp__github__create_issue`.
    Tool(&'a str),
}

impl Deed<'_> {
    /// The text of a command, in one form for comparison; `None` if it is no command.
    pub(crate) fn command(&self) -> Option<String> {
        match self {
            Self::Shell(text) => Some(text.trim().to_owned()),
            Self::Argv(argv) => Some(
                argv.iter()
                    .map(|word| quoted(word))
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            _ => None,
        }
    }
}

/// A word as a shell would take it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
