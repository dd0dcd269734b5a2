//! A word of a command after quote removal.
//!
//! A word keeps what is certain and what is not. `"$HOME/x"` has a hole and the text `/x`. A hole in
//! quotes stays one word; one without quotes may become several words or none.

/// A word: its pieces in order. Neighbouring texts are one piece.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Word(pub(crate) Vec<WordPiece>);

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WordPiece {
    /// Exactly this text.
    Text(String),
    /// A pattern for file names, as written: `*`, `?` or `[`.
    Glob(char),
    /// A text that only the run decides.
    Hole(Hole),
}

/// A text that only the run decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hole {
    /// Its source.
    pub(crate) of: HoleSource,
    /// True in double quotes: it never becomes several words.
    pub(crate) quoted: bool,
}

/// The source of a hole's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HoleSource {
    /// The variable with this name, without any operator.
    Variable(String),
    /// The output of a command.
    Output,
    /// The name of a pipe from or to a command: `<(…)`.
    Pipe,
    /// Arithmetic, an operator on a variable, a sequence in braces.
    Other,
}

/// Variables that hold one path in every sane shell, so that they may stand without quotes.
const ONE_PATH: [&str; 6] = [
    "HOME",
    "PWD",
    "TMPDIR",
    "VIRTUAL_ENV",
    "CARGO_HOME",
    "GOPATH",
];

impl Word {
    /// A word with exactly this text.
    pub(crate) fn text(text: &str) -> Self {
        Self(vec![WordPiece::Text(text.to_owned())])
    }

    /// Its text, if no part is left to the run.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [WordPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Its text for people and for looks at a beginning: a hole is shown as `$NAME` or `$(…)`.
    pub(crate) fn shown(&self) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                WordPiece::Text(text) => out.push_str(text),
                WordPiece::Glob(c) => out.push(*c),
                WordPiece::Hole(Hole { of, .. }) => match of {
                    HoleSource::Variable(name) => {
                        out.push('$');
                        out.push_str(name);
                    }
                    HoleSource::Output | HoleSource::Other => out.push_str("$(…)"),
                    HoleSource::Pipe => out.push_str("<(…)"),
                },
            }
        }
        out
    }

    /// True if a part is left to the run or to the file names.
    pub(crate) fn open(&self) -> bool {
        self.literal().is_none()
    }

    /// True if it has a pattern for file names.
    pub(crate) fn globs(&self) -> bool {
        self.0
            .iter()
            .any(|piece| matches!(piece, WordPiece::Glob(_)))
    }

    /// The holes in it.
    pub(crate) fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.0.iter().filter_map(|piece| match piece {
            WordPiece::Hole(hole) => Some(hole),
            _ => None,
        })
    }

    /// True if it is the name of a pipe: `<(…)`.
    pub(crate) fn is_pipe(&self) -> bool {
        self.holes().any(|hole| hole.of == HoleSource::Pipe)
    }

    /// The name of the program that this word starts: its last path component, if that is certain.
    /// The holes before it must not become words of their own.
    pub(crate) fn program(&self) -> Option<String> {
        if let Some(text) = self.literal() {
            return Some(base(text).to_owned());
        }
        let one_word = self.holes().all(|hole| {
            hole.quoted
                || matches!(&hole.of, HoleSource::Variable(name) if ONE_PATH.contains(&name.as_str()))
        });
        match self.0.last() {
            Some(WordPiece::Text(tail)) if one_word && !self.globs() && tail.contains('/') => {
                Some(base(tail).to_owned()).filter(|name| !name.is_empty())
            }
            _ => None,
        }
    }

    /// The name and the value of a word like `NAME=VALUE`.
    pub(crate) fn assignment(&self) -> Option<(&str, Self)> {
        let (WordPiece::Text(text), rest) = self.0.split_first()? else {
            return None;
        };
        let (name, value) = text.split_once('=')?;
        let mut word = Self::default();
        word.push(WordPiece::Text(value.to_owned()));
        word.0.extend_from_slice(rest);
        Some((name, word))
    }

    /// Appends a piece; texts grow together, and empty ones leave no trace.
    pub(crate) fn push(&mut self, piece: WordPiece) {
        match (self.0.last_mut(), piece) {
            (_, WordPiece::Text(text)) if text.is_empty() => {}
            (Some(WordPiece::Text(text)), WordPiece::Text(more)) => text.push_str(&more),
            (_, piece) => self.0.push(piece),
        }
    }

    /// The words of a command line as one text, if all are certain. `eval`, `watch` and `ssh` join
    /// their arguments like this.
    pub(crate) fn joined(words: &[Self]) -> Option<String> {
        let texts: Option<Vec<_>> = words.iter().map(Self::literal).collect();
        texts.map(|texts| texts.join(" "))
    }
}

/// The last component of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
