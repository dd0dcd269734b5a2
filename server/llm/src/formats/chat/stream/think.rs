//! Thoughts that stand between tags at the beginning of a text.
//!
//! Servers that do not tell a model's thoughts from its text pass them on as
//! `<think>…</think>` before it. Tags that stand anywhere else are text.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The parts of a piece, by kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::formats::chat) struct DividedPiece {
    /// More of the thoughts.
    pub(in crate::formats::chat) reasoning: String,
    /// More of the text.
    pub(in crate::formats::chat) text: String,
    /// The places of the two among the parts of the answer.
    pub(in crate::formats::chat) places: Places,
}

/// The places of thoughts and text among the parts of an answer, in the order in which they began.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::formats::chat) struct Places {
    /// The place of the thoughts, from 0, once there are any.
    pub(in crate::formats::chat) reasoning: Option<u32>,
    /// The place of the text, from 0, once there is any.
    pub(in crate::formats::chat) text: Option<u32>,
}

impl Places {
    /// Gives a place to what begins with this piece.
    pub(super) fn take(&mut self, said: &DividedPiece) {
        if self.reasoning.is_none() && !said.reasoning.is_empty() {
            self.reasoning = Some(self.text.map_or(0, |text| text + 1));
        }
        if self.text.is_none() && !said.text.is_empty() {
            self.text = Some(self.reasoning.map_or(0, |reasoning| reasoning + 1));
        }
    }
}

/// Divides a text that comes in any pieces.
#[derive(Debug, Default)]
pub(super) struct Divider {
    state: DividerState,
    /// Text that may be the beginning of a tag.
    held: String,
    /// The thoughts before the text, with their tags and the space after them.
    before_text: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum DividerState {
    /// Only white space was seen.
    #[default]
    Beginning,
    Thoughts,
    /// The thoughts have ended; white space may follow.
    Behind,
    Text,
}

impl Divider {
    /// Takes a piece, and returns the parts that are certain.
    pub(super) fn take(&mut self, piece: &str) -> DividedPiece {
        let mut said = DividedPiece::default();
        self.held.push_str(piece);
        while self.step(&mut said) {}
        said
    }

    /// About how many bytes it holds.
    pub(super) fn weight(&self) -> usize {
        self.held.len() + self.before_text.len()
    }

    /// True if thoughts have begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        self.state == DividerState::Thoughts
    }

    /// Returns the thoughts before the text, and the held rest. If the tag was never closed, and
    /// `is_text` says that the answer needs a text, the thoughts are that text.
    pub(super) fn finish(mut self, is_text: bool) -> (String, DividedPiece) {
        let mut said = DividedPiece::default();
        match self.state {
            DividerState::Beginning | DividerState::Text => said.text = self.held,
            DividerState::Thoughts if is_text => {
                said.text = self.before_text.split_off(0) + &self.held
            }
            DividerState::Thoughts => {
                said.reasoning.clone_from(&self.held);
                self.before_text.push_str(&self.held);
            }
            DividerState::Behind => self.before_text.push_str(&self.held),
        }
        (self.before_text, said)
    }

    /// Takes the certain part of the held text; true if it may take more.
    fn step(&mut self, said: &mut DividedPiece) -> bool {
        match self.state {
            DividerState::Beginning => {
                let begun = self.held.trim_start();
                if begun.starts_with(OPEN) {
                    let length = self.held.len() - begun.len() + OPEN.len();
                    self.before_text.extend(self.held.drain(..length));
                    self.state = DividerState::Thoughts;
                } else if OPEN.starts_with(begun) {
                    return false;
                } else {
                    self.state = DividerState::Text;
                }
                true
            }
            DividerState::Thoughts => {
                let end = self.held.find(CLOSE);
                let length = end.unwrap_or_else(|| self.held.len() - torn(&self.held));
                said.reasoning.push_str(&self.held[..length]);
                let length = length + end.map_or(0, |_| CLOSE.len());
                self.before_text.extend(self.held.drain(..length));
                if end.is_some() {
                    self.state = DividerState::Behind;
                }
                end.is_some()
            }
            DividerState::Behind => {
                let length = self.held.len() - self.held.trim_start().len();
                self.before_text.extend(self.held.drain(..length));
                if self.held.is_empty() {
                    return false;
                }
                self.state = DividerState::Text;
                true
            }
            DividerState::Text => {
                said.text.push_str(&self.held);
                self.held.clear();
                false
            }
        }
    }
}

/// The number of bytes at the end that may begin the closing tag.
fn torn(text: &str) -> usize {
    let longest = CLOSE.len() - 1;
    let may_be = |length: &usize| text.ends_with(&CLOSE[..*length]);
    (1..=longest).rev().find(may_be).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn divided(pieces: &[&str], is_text: bool) -> (String, String, String) {
        let mut divider = Divider::default();
        let (mut reasoning, mut text) = (String::new(), String::new());
        for piece in pieces {
            let said = divider.take(piece);
            reasoning += &said.reasoning;
            text += &said.text;
        }
        let (before, said) = divider.finish(is_text);
        (before, reasoning + &said.reasoning, text + &said.text)
    }

    #[test]
    fn thoughts_before_a_text_are_told_from_it_and_what_stood_there_is_kept() {
        for (text, before, reasoning, rest) in [
            (
                "\n<think>\nhm </thin\n</think>\n\nhi",
                "\n<think>\nhm </thin\n</think>\n\n",
                "\nhm </thin\n",
                "hi",
            ),
            ("<think></think>hi", "<think></think>", "", "hi"),
            ("<thinking> hi", "", "", "<thinking> hi"),
            (" <thin", "", "", " <thin"),
            ("hi <think>x</think>", "", "", "hi <think>x</think>"),
            (
                "<think>a</think>b<think>c</think>",
                "<think>a</think>",
                "a",
                "b<think>c</think>",
            ),
            ("<think>cut </thi", "<think>cut </thi", "cut </thi", ""),
        ] {
            let expected = (before.to_owned(), reasoning.to_owned(), rest.to_owned());
            assert_eq!(divided(&[text], false), expected, "{text:?}");
        }
    }

    #[test]
    fn a_tag_that_is_never_closed_is_text_where_nothing_else_is() {
        let (before, _, text) = divided(&["<think> is a tag"], true);
        assert_eq!((before.as_str(), text.as_str()), ("", "<think> is a tag"));
    }

    proptest! {
        #[test]
        fn where_the_pieces_are_cut_makes_no_difference(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("<think>"), Just("</think>"), Just("</thi"), Just(" "), Just("ä"),
                    Just("<th"), Just("ink>"),
                ],
                0..12,
            ),
            cuts in proptest::collection::vec(0usize..60, 0..8),
        ) {
            let text = parts.concat();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            let whole = divided(&[&text], false);
            prop_assert_eq!(&divided(&pieces, false), &whole);
            prop_assert_eq!(format!("{}{}", whole.0, whole.2), text);
        }
    }
}
