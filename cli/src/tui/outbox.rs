//! The lines that a person said and the server has not taken yet. They are sent one after the other, in their order, so
//! that a line behind `/new` goes to the new session.

use std::{collections::VecDeque, sync::Arc};

use shared_types::{Mode, WhileWorking};

/// Most lines that wait.
const LINES_AT_MOST: usize = 64;

/// A line on its way to the server.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    /// The idempotency key, so that a line that is sent again counts once.
    pub(super) client_id: String,
    /// The line as it was typed.
    pub(super) text: String,
    /// Its kind, which decides where it goes.
    pub(super) kind: OutgoingKind,
    /// The mode that was chosen when the line was said.
    pub(super) mode: Option<Mode>,
}

/// The kind of a line.
#[derive(Debug, Clone)]
pub(super) enum OutgoingKind {
    /// A message to the model.
    Message {
        /// Its fate while a turn works.
        while_working: WhileWorking,
        /// The bytes of its images.
        images: Arc<[Vec<u8>]>,
    },
    /// A command of the person's own, behind a `!`: it goes to the runner.
    Own,
    /// A command behind a slash.
    Command {
        /// True if it may lead to another session, so that it waits for the end of the turn.
        between_turns: bool,
    },
}

/// The lines, of which at most one is under way.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    under_way: Option<Outgoing>,
    waiting: VecDeque<Outgoing>,
    /// Messages that the server has taken and the feed has not shown.
    taken: Vec<Outgoing>,
    /// The last message that the feed has shown: its answer may come later.
    seen: Option<String>,
    /// True if the turn for whose end the first line waited has ended. A queued turn may have begun since.
    is_due: bool,
}

/// More lines than may wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{LINES_AT_MOST} lines wait already; wait until the server takes them"
        )
    }
}

impl std::error::Error for Full {}

impl Outbox {
    /// Adds a line.
    ///
    /// # Errors
    /// Refuses more than [`LINES_AT_MOST`] lines.
    pub(super) fn push(&mut self, line: Outgoing) -> Result<(), Full> {
        if self.waiting.len() >= LINES_AT_MOST {
            return Err(Full);
        }
        self.waiting.push_back(line);
        Ok(())
    }

    /// The line that is to be sent now; it counts as under way until [`answered`](Self::answered).
    pub(super) fn next(&mut self, is_working: bool) -> Option<Outgoing> {
        if self.under_way.is_some() {
            return None;
        }
        let leaves = |line: &Outgoing| {
            matches!(
                line.kind,
                OutgoingKind::Command {
                    between_turns: true
                }
            )
        };
        let at = match self.waiting.front() {
            Some(first) if leaves(first) && is_working && !self.is_due => {
                // A command that stays in this session is for it, and answers at once.
                let stays = |line: &Outgoing| {
                    let is_command =
                        matches!(line.kind, OutgoingKind::Command { .. } | OutgoingKind::Own);
                    is_command && !leaves(line)
                };
                self.waiting.iter().position(stays)?
            }
            _ => {
                self.is_due = false;
                0
            }
        };
        self.under_way = self.waiting.remove(at);
        self.under_way.clone()
    }

    /// Takes the line off that was under way, once the server has answered.
    pub(super) fn answered(&mut self, client_id: &str, is_taken: bool) -> Option<Outgoing> {
        let line = self.under_way.take_if(|line| line.client_id == client_id)?;
        let is_message = matches!(line.kind, OutgoingKind::Message { .. });
        if is_taken && is_message && self.seen.as_deref() != Some(client_id) {
            self.taken.push(line.clone());
        }
        Some(line)
    }

    /// The feed has shown the message with this key.
    pub(super) fn seen(&mut self, client_id: Option<&str>) {
        if let Some(client_id) = client_id {
            self.taken.retain(|line| line.client_id != client_id);
            let under_way = self.under_way.as_ref();
            if under_way.is_some_and(|line| line.client_id == client_id) {
                self.seen = Some(client_id.to_owned());
            }
        }
    }

    /// The messages that the server has taken and the feed has not shown.
    pub(super) fn taken(&self) -> impl Iterator<Item = &Outgoing> {
        self.taken.iter()
    }

    /// Another session is shown from now on: its feed does not show these.
    pub(super) fn moved(&mut self) {
        self.taken.clear();
    }

    /// The turn that worked has ended: a command that waited for that goes next.
    pub(super) fn turn_ended(&mut self) {
        self.is_due = !self.waiting.is_empty();
    }

    /// Forgets the lines that wait; the one under way may have arrived.
    pub(super) fn forget(&mut self) -> Vec<Outgoing> {
        self.is_due = false;
        self.waiting.drain(..).collect()
    }

    /// The line whose answer is under way.
    pub(super) fn under_way(&self) -> Option<&Outgoing> {
        self.under_way.as_ref()
    }

    /// The lines that the server has not taken, the oldest first. One that the feed has shown is taken, although its
    /// answer is still under way.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Outgoing> {
        let lines = self.under_way.iter().chain(&self.waiting);
        lines.filter(|line| self.seen.as_ref() != Some(&line.client_id))
    }

    /// True if all lines are taken.
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_none() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Outgoing {
        let kind = match text.strip_prefix('/') {
            Some(name) => OutgoingKind::Command {
                between_turns: name == "new",
            },
            None => OutgoingKind::Message {
                while_working: WhileWorking::Steer,
                images: Arc::new([]),
            },
        };
        Outgoing {
            client_id: text.to_owned(),
            text: text.to_owned(),
            kind,
            mode: None,
        }
    }

    fn sent(outbox: &mut Outbox, is_working: bool) -> Option<String> {
        let text = outbox.next(is_working)?.text;
        outbox.answered(&text, true);
        Some(text)
    }

    #[test]
    fn lines_go_one_after_the_other_and_a_change_of_session_holds_those_behind_it() {
        let mut outbox = Outbox::default();
        for text in ["one", "/new", "two", "/status"] {
            outbox.push(line(text)).expect("there is room");
        }
        assert_eq!(
            outbox.next(true).map(|line| line.text).as_deref(),
            Some("one")
        );
        assert!(outbox.next(true).is_none(), "one is under way");
        outbox.answered("one", true);
        assert_eq!(sent(&mut outbox, true).as_deref(), Some("/status"));
        assert_eq!(sent(&mut outbox, true), None);
        outbox.turn_ended();
        // A queued turn works by now.
        assert_eq!(sent(&mut outbox, true).as_deref(), Some("/new"));
        assert_eq!(sent(&mut outbox, true).as_deref(), Some("two"));
        assert!(outbox.is_empty());
        assert_eq!(outbox.taken().count(), 2, "two messages");
        outbox.seen(Some("one"));
        outbox.seen(Some("two"));
        assert_eq!(outbox.taken().count(), 0);
    }

    #[test]
    fn a_message_is_not_shown_as_waiting_once_the_feed_has_it() {
        let mut outbox = Outbox::default();
        outbox.push(line("one")).expect("there is room");
        outbox.next(false);
        outbox.seen(Some("one"));
        assert_eq!(outbox.lines().count(), 0);
        outbox.answered("one", true);
        assert_eq!(outbox.taken().count(), 0);
    }

    #[test]
    fn a_bounded_number_of_lines_waits_and_all_can_be_forgotten() {
        let mut outbox = Outbox::default();
        for _ in 0..LINES_AT_MOST {
            outbox.push(line("x")).expect("there is room");
        }
        assert_eq!(outbox.push(line("x")), Err(Full));
        assert_eq!(outbox.forget().len(), LINES_AT_MOST);
        assert!(outbox.is_empty());
    }
}
