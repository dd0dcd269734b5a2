//! The escapes of a terminal, as `ssh` has them: a `~` at the beginning of a line.

/// The meaning of typed bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// They go to the program.
    Bytes(Vec<u8>),
    /// `~.`
    Leave,
    /// `~?`
    Help,
}

/// The state before the next byte.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Escape {
    /// No byte of this line has come.
    #[default]
    LineBegins,
    /// A `~` at the beginning of the line; it is held back.
    Tilde,
    /// Something else.
    InLine,
}

impl Escape {
    /// Takes typed bytes, wherever they are cut. After [`Typed::Leave`] nothing follows.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Typed> {
        let (mut typed, mut plain) = (Vec::new(), Vec::new());
        for byte in bytes {
            match (*self, byte) {
                (Self::LineBegins, b'~') => *self = Self::Tilde,
                (Self::Tilde, b'.') => {
                    flush(&mut plain, &mut typed);
                    typed.push(Typed::Leave);
                    return typed;
                }
                (Self::Tilde, b'?') => {
                    flush(&mut plain, &mut typed);
                    typed.push(Typed::Help);
                    *self = Self::LineBegins;
                }
                (Self::Tilde, b'~') => {
                    plain.push(b'~');
                    *self = Self::InLine;
                }
                (before, byte) => {
                    if matches!(before, Self::Tilde) {
                        plain.push(b'~');
                    }
                    plain.push(*byte);
                    *self = match byte {
                        b'\r' | b'\n' => Self::LineBegins,
                        _ => Self::InLine,
                    };
                }
            }
        }
        flush(&mut plain, &mut typed);
        typed
    }
}

fn flush(plain: &mut Vec<u8>, typed: &mut Vec<Typed>) {
    if !plain.is_empty() {
        typed.push(Typed::Bytes(std::mem::take(plain)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(pieces: &[&str]) -> Vec<Typed> {
        let mut escape = Escape::default();
        pieces
            .iter()
            .flat_map(|piece| escape.take(piece.as_bytes()))
            .collect()
    }

    fn bytes(text: &str) -> Typed {
        Typed::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn a_tilde_at_the_beginning_of_a_line_is_an_escape_and_elsewhere_it_is_typed() {
        assert_eq!(take(&["~."]), [Typed::Leave]);
        assert_eq!(take(&["ls\r~", ".more"]), [bytes("ls\r"), Typed::Leave]);
        assert_eq!(take(&["cd ~.\r"]), [bytes("cd ~.\r")]);
        assert_eq!(take(&["~?~."]), [Typed::Help, Typed::Leave]);
    }

    #[test]
    fn every_other_tilde_reaches_the_program() {
        assert_eq!(take(&["~~.\r"]), [bytes("~.\r")]);
        assert_eq!(take(&["~", "/bin\r"]), [bytes("~/bin\r")]);
        assert_eq!(take(&["~\r~."]), [bytes("~\r"), Typed::Leave]);
    }
}
