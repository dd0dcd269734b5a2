//! The lines of a person: messages, commands to the server, commands to the shell, and those that only this terminal knows.

use std::sync::Arc;

use shared_types::WhileWorking;
use tokio::time::Instant;

use super::{
    Overlay, Tui,
    outbox::{Outgoing, OutgoingKind},
    status::WaitingLine,
    talk::command_name,
};
use crate::{
    chat::{
        bang::{self, Place, Running, ToShow},
        check,
        images::read_chosen,
        slash::{self, Line},
    },
    style::Style,
};

/// The fate of a message while a turn works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It joins the turn.
    Now,
    /// It waits for the end of the turn.
    Queue,
}

impl Tui {
    /// Does what a line says.
    pub(super) fn say(&mut self, text: &str, way: Way) -> anyhow::Result<()> {
        match slash::parse(text) {
            Line::Empty => {}
            Line::Run("") => self.note(bang::HELP),
            // In its order: a line before it may change where the session works.
            Line::Run(script) => {
                self.post(script, OutgoingKind::Own);
            }
            Line::Command(line) => return self.command(line),
            Line::Message(message) => self.message(message, way),
        }
        Ok(())
    }

    /// Sends a message to the model.
    fn message(&mut self, message: &str, way: Way) {
        let chosen = match check(message).and_then(|()| read_chosen(message, &[])) {
            Ok(chosen) => chosen,
            Err(error) => return self.give_back(message, &error),
        };
        for note in chosen.notes {
            self.note(note);
        }
        let while_working = match way {
            Way::Now => WhileWorking::Steer,
            Way::Queue => WhileWorking::Queue,
        };
        let images = Arc::from(chosen.images);
        let kind = OutgoingKind::Message {
            while_working,
            images,
        };
        self.post(message, kind);
    }

    /// Puts a refused text back into the box, and says why it was refused.
    pub(super) fn give_back(&mut self, text: &str, error: &anyhow::Error) {
        let words = crate::told(error, self.talk.advice);
        self.warn(words);
        self.put_back(text);
    }

    /// Puts a text into the box, if that is empty.
    pub(super) fn put_back(&mut self, text: &str) {
        match &mut self.overlay {
            Overlay::Question(dialog) if dialog.is_ready && dialog.draft.is_empty() => {
                text.clone_into(&mut dialog.draft);
            }
            Overlay::Question(dialog) if dialog.is_ready => {}
            _ if self.composer.is_empty() => {
                self.composer.set_text(text);
            }
            _ => {}
        }
    }

    /// A command: one that only this terminal knows, a list to choose from, or one of the server.
    fn command(&mut self, line: &str) -> anyhow::Result<()> {
        let has_argument = line.trim().contains(char::is_whitespace);
        match (command_name(line), has_argument) {
            ("exit" | "quit", false) => self.leave_idle(),
            ("stop", false) => match self.is_working() {
                true => self.ask_to_stop(),
                false => self.note("no turn works"),
            },
            ("diff", false) => return self.show_changes(),
            ("rewind", false) => self.offer_messages(),
            ("resume", false) => {
                self.list_asked_at = Some(Instant::now());
                self.requests.sessions();
            }
            ("model", false) => {
                self.list_asked_at = Some(Instant::now());
                self.requests.models();
            }
            ("runner", false) => {
                self.list_asked_at = Some(Instant::now());
                self.requests.runners();
            }
            _ => {
                let between_turns = self.talk.is_between_turns(line);
                self.post(line, OutgoingKind::Command { between_turns });
            }
        }
        Ok(())
    }

    /// Puts a line into the outbox. Returns its idempotency key.
    pub(super) fn post(&mut self, text: &str, kind: OutgoingKind) -> String {
        let client_id = self.talk.client.new_client_id();
        let line = Outgoing {
            client_id: client_id.clone(),
            text: text.to_owned(),
            kind,
            mode: self.talk.mode,
        };
        if let Err(full) = self.outbox.push(line) {
            self.give_back(text, &full.into());
        }
        if self.talk.follow.is_none() && !self.talk.is_entering {
            // The feed has failed; perhaps it is back.
            self.talk.follow_from(self.talk.seq);
        }
        client_id
    }

    /// Sends what can be sent now.
    pub(super) fn say_what_waits(&mut self) {
        // A new session is greeted before its first message.
        if self.talk.is_entering || self.talk.is_new {
            return;
        }
        while let Some(line) = self.outbox.next(self.is_working()) {
            if let OutgoingKind::Own = line.kind {
                self.outbox.answered(&line.client_id, true);
                self.run(&line.text);
                continue;
            }
            if let OutgoingKind::Command {
                between_turns: true,
            } = line.kind
            {
                // What is typed from now on is for the session that it leads to.
                self.talk.is_entering = true;
            }
            let terms = self.talk.terms(line.mode);
            self.requests.send(self.talk.session.id, line, terms);
        }
    }

    /// Forgets what waits for the end of the turn.
    pub(super) fn forget(&mut self) {
        for line in self.outbox.forget() {
            self.note(format!("not sent: {}", line.text));
        }
    }

    /// The lines that are not in the conversation yet.
    pub(super) fn waiting(&self) -> Vec<WaitingLine> {
        let lines = self.outbox.lines().map(|line| WaitingLine {
            text: line.text.clone(),
            why: match &line.kind {
                _ if self.talk.is_entering => "for the next session",
                OutgoingKind::Command {
                    between_turns: true,
                } => "waits for the end of the turn",
                _ if self.stage.transcript.facts().is_lost => "waits for the server",
                _ => "sending",
            },
        });
        let taken = self.outbox.taken().map(|line| WaitingLine {
            text: line.text.clone(),
            why: "sending",
        });
        taken.chain(lines).collect()
    }

    /// `!SCRIPT`: runs a command of the person, where the session works.
    fn run(&mut self, script: &str) {
        let place = Place {
            client: self.talk.client.clone(),
            session: self.talk.session.id,
            style: Style::new(false),
            advice: self.talk.advice,
        };
        // Beside a turn, its output is one block at its end.
        let is_live = !self.is_working();
        let command = Running::begin(place, script, is_live);
        let name = command.name();
        match self.own.add(command) {
            Ok(()) if is_live => self.stage.head(&name),
            Ok(()) => self.note(format!("{name} runs beside the turn")),
            Err(error) => self.give_back(&format!("!{script}"), &error),
        }
    }

    /// Shows the output of a command of the person.
    pub(super) fn own_output(&mut self, shown: &ToShow) {
        self.stage.own_output(&shown.text, shown.is_last);
        if shown.is_last {
            // A key that was meant for the command means nothing else now.
            self.armed = None;
            self.ask_facts();
        }
    }

    /// Fetches the next question, unless one is on the screen.
    pub(super) fn fetch_question(&mut self) {
        if matches!(self.overlay, Overlay::Question(_)) {
            return;
        }
        if let Some(approval) = self.questions.first() {
            self.requests.question(approval);
        }
    }
}
