//! Keys and pasted text: who takes them.

use cli_screen::{
    compose::Action,
    key::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    surface::{Input, Paged, Picked},
};
use shared_types::{Mode, event::Answer};
use tokio::time::Instant;

use super::{
    Armed, ArmedKey, Overlay, Stop, TWICE_WITHIN, Tui,
    dialog::{Answering, Choice},
    say::Way,
};
use crate::exit::Exit;

impl Tui {
    /// Takes in what the person did at the terminal.
    pub(super) fn input(&mut self, input: Input) -> anyhow::Result<()> {
        match input {
            Input::Key(key) if key.kind == KeyEventKind::Release => {}
            Input::Key(key) => self.key(key)?,
            Input::Paste(paste) => self.paste(&paste)?,
            Input::Resize(size) => self.stage.resize(size),
            Input::Focus(has_focus) => self.stage.has_focus = has_focus,
            // The terminal is gone: the session goes on at the server.
            Input::End => self.exit = Some(Exit::Left),
        }
        Ok(())
    }

    fn paste(&mut self, paste: &cli_screen::surface::Paste) -> anyhow::Result<()> {
        if matches!(self.overlay, Overlay::List(..) | Overlay::Page(_)) {
            return Ok(());
        }
        if let Overlay::Question(dialog) = &mut self.overlay
            && dialog.is_ready
            && dialog.answering == Answering::Key
        {
            // A paste never answers a question.
            dialog.answering = Answering::Words;
        }
        if paste.is_cut {
            self.warn("the pasted text is too large: put it into a file, and name the file");
            return Ok(());
        }
        let action = self.composer.paste(&paste.text);
        self.composed(action)
    }

    fn key(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        self.key_at = Some(Instant::now());
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let has_page = matches!(self.overlay, Overlay::Page(_));
        if is_control && key.code == KeyCode::Char('c') && !has_page {
            return self.interrupt();
        }
        if is_control && key.code == KeyCode::Char('z') {
            return self.stage.suspend();
        }
        match &mut self.overlay {
            Overlay::Page(pager) => {
                if pager.key(key) == Paged::Left {
                    self.overlay = Overlay::None;
                    self.stage.page_ends()?;
                    self.fetch_question();
                }
                return Ok(());
            }
            Overlay::List(picker, _) => {
                let picked = picker.key(key);
                let at = picker.highlighted();
                self.picked(picked, at);
                return Ok(());
            }
            Overlay::Question(dialog) if dialog.is_ready => match dialog.answering {
                Answering::Key => return self.question_key(key),
                Answering::Always => {
                    self.always(key);
                    return Ok(());
                }
                // Esc still stops the turn.
                Answering::Sent => return self.unused(key),
                Answering::Words | Answering::Command => {}
            },
            _ => {}
        }
        let action = self.composer.key(key);
        match action {
            Action::Ignored => self.unused(key),
            action => {
                self.armed = None;
                self.composed(action)
            }
        }
    }

    /// Does what the box says.
    fn composed(&mut self, action: Action) -> anyhow::Result<()> {
        match action {
            Action::Ignored | Action::Changed => {}
            Action::Submit(text) if !self.answer_of_box(&text) => self.say(&text, Way::Now)?,
            Action::Queue(text) if !self.answer_of_box(&text) => self.say(&text, Way::Queue)?,
            Action::Submit(_) | Action::Queue(_) => {}
            Action::Editor => self.edit(),
            Action::WantFiles(prefix) => {
                self.requests.files(self.talk.session.clone(), prefix);
            }
            Action::Refused(why) => self.warn(why),
        }
        Ok(())
    }

    /// Takes a text of the box as the answer to the question on the screen. False if there is none.
    fn answer_of_box(&mut self, text: &str) -> bool {
        let Overlay::Question(dialog) = &mut self.overlay else {
            return false;
        };
        match dialog.text(text) {
            _ if !dialog.is_ready || dialog.answering == Answering::Key => return false,
            Some(answer) => self.give(answer),
            None => dialog.answering = Answering::Key,
        }
        true
    }

    fn question_key(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        let Overlay::Question(dialog) = &mut self.overlay else {
            return Ok(());
        };
        if key.code == KeyCode::Esc {
            match dialog.agent {
                Some(_) => self.put_question_aside(),
                None => self.ask_to_stop(),
            }
            return Ok(());
        }
        match dialog.key(key) {
            Choice::Answer(answer) => self.give(answer),
            Choice::Edit(command) => {
                dialog.answering = Answering::Command;
                self.composer.set_text(&command);
            }
            Choice::Words(words) => {
                dialog.answering = Answering::Words;
                self.composer.set_text(&words);
            }
            Choice::Scroll(rows) => {
                dialog.scrolled = dialog.scrolled.saturating_add_signed(rows);
            }
            Choice::Always => dialog.answering = Answering::Always,
            Choice::Other => return self.unused(key),
        }
        Ok(())
    }

    /// A second `a` makes the rule; every other key goes back.
    fn always(&mut self, key: KeyEvent) {
        let Overlay::Question(dialog) = &mut self.overlay else {
            return;
        };
        dialog.answering = Answering::Key;
        let rule = dialog.rule();
        if let (KeyCode::Char('a' | 'A'), Some(rule)) = (key.code, rule) {
            self.give(Answer::Allowed {
                command: None,
                rule: Some(rule),
                mode: None,
            });
        }
    }

    /// Sends an answer to the question on the screen.
    fn give(&mut self, answer: Answer) {
        let Overlay::Question(dialog) = &mut self.overlay else {
            return;
        };
        dialog.answering = Answering::Sent;
        self.composer.set_text("");
        self.requests.answer(dialog.id(), dialog.digest(), answer);
    }

    /// A key that neither the box nor a list uses.
    fn unused(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => self.escape(),
            KeyCode::BackTab => self.next_mode(),
            KeyCode::Char('d') if is_control && self.composer.is_empty() => self.leave(),
            KeyCode::Char('o') if is_control => return self.show_unfolded(),
            KeyCode::Char('l') if is_control => self.stage.redraw(),
            _ => {}
        }
        Ok(())
    }

    /// Esc: leaves the words of an answer, stops the turn, or pressed twice goes back to an earlier message.
    fn escape(&mut self) {
        if let Overlay::Question(dialog) = &mut self.overlay {
            if dialog.is_ready && dialog.may_be_answered_by_key() {
                dialog.answering = Answering::Key;
                self.composer.set_text("");
                return;
            }
            return match dialog.agent {
                Some(_) if dialog.is_ready => self.put_question_aside(),
                _ => self.ask_to_stop(),
            };
        }
        if self.is_working() {
            return self.ask_to_stop();
        }
        if !self.own.is_empty() {
            self.own.stop();
            return self.note("stopping…");
        }
        if self.is_again(ArmedKey::Escape) {
            self.offer_messages();
        }
    }

    /// Ctrl-C: stops the turn; where none works, clears the box; pressed twice leaves.
    fn interrupt(&mut self) -> anyhow::Result<()> {
        if matches!(self.overlay, Overlay::List(..)) {
            self.overlay = Overlay::None;
            return Ok(());
        }
        if !self.own.is_empty() && !self.is_working() {
            match self.is_again(ArmedKey::CtrlC) {
                true => {
                    for line in self.own.leave() {
                        self.note(line);
                    }
                }
                false => {
                    self.own.stop();
                    self.note("stopping…");
                }
            }
            return Ok(());
        }
        if !self.is_working() && !self.outbox.is_empty() {
            self.forget();
            if self.is_again(ArmedKey::CtrlC) {
                let session = self.talk.session.id;
                self.note(format!(
                    "left before the message was accepted, see: gantry show {session}"
                ));
                self.exit = Some(Exit::Left);
            }
            return Ok(());
        }
        if self.is_working() {
            let armed = Armed {
                key: ArmedKey::CtrlC,
                at: Instant::now(),
            };
            let before = self.armed.replace(armed);
            // The first one may have come after Esc; only the second one leaves, however late.
            if self.stop != Stop::No && before.is_some_and(|key| key.key == ArmedKey::CtrlC) {
                let words = self.left();
                self.note(words);
                self.exit = Some(Exit::Left);
                return Ok(());
            }
            self.forget();
            self.ask_to_stop();
            return Ok(());
        }
        if !self.composer.is_empty() {
            self.composer.set_text("");
            return Ok(());
        }
        if self.is_again(ArmedKey::CtrlC) {
            self.leave_idle();
        }
        Ok(())
    }

    /// Ctrl-D on an empty box: the session goes on at the server.
    fn leave(&mut self) {
        if self.is_working() {
            let words = format!(
                "the turn goes on; see it with: gantry chat --session {}",
                self.talk.session.id
            );
            self.note(words);
        }
        self.leave_idle();
    }

    /// Ends the conversation, and says how to come back to it.
    pub(super) fn leave_idle(&mut self) {
        if !self.is_working() && !self.talk.session.title.is_empty() {
            let words = format!(
                "to go on here: gantry chat --session {}",
                self.talk.session.id
            );
            self.note(words);
        }
        self.exit = Some(Exit::Done);
    }

    /// True if the key was pressed a moment ago already.
    fn is_again(&mut self, key: ArmedKey) -> bool {
        let now = Instant::now();
        let is_again = self
            .armed
            .is_some_and(|armed| armed.key == key && now - armed.at < TWICE_WITHIN);
        self.armed = (!is_again).then_some(Armed { key, at: now });
        is_again
    }

    /// The last note about a turn that the person leaves.
    fn left(&self) -> String {
        let session = self.talk.session.id;
        match self.stop {
            Stop::Accepted => {
                format!("left; the server goes on stopping it, see: gantry show {session}")
            }
            Stop::Asked | Stop::No => format!(
                "left; the server did not answer the wish to stop it, so it may still run: gantry cancel {session}"
            ),
        }
    }

    /// Asks the server to stop the turn, once.
    pub(super) fn ask_to_stop(&mut self) {
        if self.stop == Stop::No && self.is_working() {
            self.stop = Stop::Asked;
            self.stage.transcript.stopping();
            self.requests.stop(self.talk.session.id);
        }
    }

    /// Shift-Tab: the next mode. The one that never asks is no key away: it takes `/mode full`.
    fn next_mode(&mut self) {
        let next = match self.talk.mode.or(self.talk.facts.mode) {
            Some(Mode::Ask) => Mode::Auto,
            Some(Mode::Auto) => Mode::Plan,
            Some(Mode::Plan | Mode::Full) => Mode::Ask,
            None => return,
        };
        self.talk.mode = Some(next);
        self.talk.facts.mode = Some(next);
        self.ask_facts();
    }

    /// Does what a key in a list says; this row stands out.
    fn picked(&mut self, picked: Picked, highlighted: Option<usize>) {
        match picked {
            Picked::None => {}
            Picked::Moved => {
                if let Some(at) = highlighted {
                    self.preview(at);
                }
            }
            Picked::Cancelled => self.overlay = Overlay::None,
            Picked::Chosen(at) => self.choose(at),
        }
    }
}
