//! The source of a join token: the first of argument, file, environment and standard input that is
//! there. An empty source is an error, never a reason to look further.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use shared_types::{Token, TokenKind, token::TokenError};

/// The variable that may carry a join token.
pub(crate) const VARIABLE: &str = "GANTRY_JOIN_TOKEN";

/// The most that is read of a file or of standard input, in bytes; a token has about 110.
const MAX_TEXT_BYTES: u64 = 4096;

/// The places where a token may be.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a, R> {
    /// The argument; `-` stands for standard input.
    pub(crate) argument: Option<&'a str>,
    pub(crate) file: Option<&'a Path>,
    /// The value of [`VARIABLE`].
    pub(crate) variable: Option<&'a str>,
    pub(crate) stdin: R,
    /// True if a person sits at standard input, who would not know what the program waits for.
    pub(crate) stdin_is_terminal: bool,
}

impl<R: Read> Sources<'_, R> {
    /// The token, from the first place that has one.
    pub(crate) fn token(self) -> Result<Token, SourceError> {
        let text = match self {
            Self {
                argument: Some("-"),
                stdin,
                ..
            } => read(stdin).map_err(SourceError::Stdin)?,
            Self {
                argument: Some(text),
                ..
            } => text.to_owned(),
            Self {
                file: Some(path), ..
            } => File::open(path)
                .and_then(read)
                .map_err(|source| SourceError::File {
                    path: path.to_owned(),
                    source,
                })?,
            Self {
                variable: Some(text),
                ..
            } => text.to_owned(),
            Self {
                stdin_is_terminal: false,
                stdin,
                ..
            } => read(stdin).map_err(SourceError::Stdin)?,
            _ => return Err(SourceError::Absent),
        };
        let token: Token = text.parse()?;
        if token.kind() != TokenKind::Join {
            return Err(SourceError::OtherKind);
        }
        Ok(token)
    }
}

fn read(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(MAX_TEXT_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The reason why there is no join token. It never quotes what was there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error(
        "no join token: give it as the argument, with --token-file, in {VARIABLE}, or on standard input"
    )]
    Absent,
    #[error("cannot read the token file {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot read the token from standard input: {0}")]
    Stdin(io::Error),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(
        "this token is for people or programs: make a join token (it starts with gantry_join_)"
    )]
    OtherKind,
}

#[cfg(test)]
mod tests {
    use shared_types::entropy::SeededEntropy;

    use super::*;

    fn sources<'a>() -> Sources<'a, &'a [u8]> {
        Sources {
            argument: None,
            file: None,
            variable: None,
            stdin: b"",
            stdin_is_terminal: true,
        }
    }

    fn token(seed: u64) -> (Token, String) {
        let token = Token::join([1; 32], &SeededEntropy::new(seed));
        let text = token.reveal();
        (token, text)
    }

    #[test]
    fn the_first_place_that_has_a_token_counts() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        let [argument, file, variable, stdin] = [1, 2, 3, 4].map(token);
        std::fs::write(&path, format!("\u{feff}{}\n", file.1)).expect("a file");
        let mut all = Sources {
            argument: Some(&argument.1),
            file: Some(&path),
            variable: Some(&variable.1),
            stdin: stdin.1.as_bytes(),
            stdin_is_terminal: false,
        };
        assert_eq!(all.token().ok(), Some(argument.0));
        all = Sources {
            argument: None,
            ..all
        };
        assert_eq!(all.token().ok(), Some(file.0));
        all = Sources { file: None, ..all };
        assert_eq!(all.token().ok(), Some(variable.0));
        all = Sources {
            variable: None,
            ..all
        };
        assert_eq!(all.token().ok(), Some(stdin.0.clone()));
        let dash = Sources {
            argument: Some("-"),
            stdin_is_terminal: true,
            ..all
        };
        assert_eq!(dash.token().ok(), Some(stdin.0));
    }

    #[test]
    fn an_empty_place_is_an_error_and_not_a_reason_to_look_further() {
        let (_, later) = token(1);
        let empty = Sources {
            argument: Some(""),
            variable: Some(&later),
            ..sources()
        };
        let error = empty.token().expect_err("an error").to_string();
        assert!(error.contains("empty"), "{error}");
        let empty = Sources {
            variable: Some(" \n"),
            ..sources()
        };
        let error = empty.token().expect_err("an error").to_string();
        assert!(error.contains("empty"), "{error}");
    }

    #[test]
    fn a_person_without_a_token_is_told_where_to_put_it() {
        let error = sources().token().expect_err("an error").to_string();
        assert!(error.contains("--token-file"), "{error}");
        let key = Token::generate(TokenKind::ApiKey, &SeededEntropy::new(1)).reveal();
        let wrong = Sources {
            argument: Some(&key),
            ..sources()
        };
        let error = wrong.token().expect_err("an error").to_string();
        assert!(error.contains("gantry_join_"), "{error}");
        assert!(!error.contains(&key), "{error}");
    }
}
