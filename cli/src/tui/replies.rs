//! The answers of the server to what the loop asked.

use cli_screen::compose::CommandHelp;
use shared_api::{Approval, CommandDone, CommandTable, Session, Shown};
use shared_client::ClientError;
use shared_types::{ApprovalId, Clock as _, SessionId, SystemClock, clean::clean_line, human::ago};
use tokio::time::Instant;

use super::{
    ASKS_AGAIN_AFTER, Overlay, Stop, Tui,
    dialog::{Answering, Dialog},
    greeting,
    outbox::OutgoingKind,
    requests::Reply,
    talk::command_name,
};
use crate::exit::Exit;

/// Longest line of an answer, in characters.
const MAX_LINE: usize = 400;

/// The lines of help that only this terminal can say.
const AT_THIS_TERMINAL: &str = "\
Enter sends, also during a turn: the agent reads it before its next step. Tab sends it after the turn.
Alt-Enter, Ctrl-J or \\ at the end begin a new line. Ctrl-G opens your editor. Ctrl-R finds earlier messages.
Esc stops the turn. Esc twice, or /rewind, goes back to an earlier message. Shift-Tab changes the mode.
Ctrl-O shows everything unfolded. /diff shows all changes. !COMMAND runs a command where the session works.
/exit or Ctrl-D leaves; the session stays.";

impl Tui {
    pub(super) fn reply(&mut self, reply: Reply) {
        match reply {
            Reply::Commands(commands) => {
                self.composer.set_commands(helps(&commands));
                self.talk.commands = commands;
            }
            Reply::Sent { client_id, done } => self.sent(&client_id, done),
            Reply::Asked { approval, question } => self.asked(approval, question),
            Reply::Answered { approval, outcome } => self.answered(approval, outcome),
            Reply::Stopped(Ok(_)) => {
                if self.stop == Stop::Asked {
                    self.stop = Stop::Accepted;
                }
            }
            Reply::Stopped(Err(error)) => {
                self.stop = Stop::No;
                let error = self.talk.told(error);
                self.warn(format!("failed to stop the turn; it goes on: {error}"));
            }
            Reply::Facts { session, facts } if session == self.talk.session.id => match facts {
                Ok(facts) => self.facts(facts),
                // The line keeps what it shows; the feed tells of a lost connection.
                Err(_) => self.talk.is_new = false,
            },
            Reply::Tasks { session, tasks } if session == self.talk.session.id => {
                for task in tasks.iter().filter(|task| task.ended.is_none()) {
                    let command = crate::tasks::command(task);
                    self.stage
                        .transcript
                        .task(task.number, task.operation, &command);
                }
                self.follow_tasks();
            }
            Reply::TaskOutput { operation, text } => {
                self.stage.transcript.task_output(operation, &text);
            }
            Reply::Cost { session, line } if session == self.talk.session.id => {
                if let Some(line) = line {
                    self.note(line);
                }
                self.exit = self.once.as_ref().and_then(|once| once.exit);
            }
            Reply::Files { prefix, paths } => self.composer.offer_files(&prefix, paths),
            Reply::Offer(offer) => self.offer(offer),
            Reply::Rewound(rewound) => self.rewound(rewound),
            Reply::Preview { session, events } => self.previewed(session, &events),
            // Of a session that was left meanwhile.
            Reply::Facts { .. } | Reply::Tasks { .. } | Reply::Cost { .. } => {}
        }
    }

    /// A line before a session that was used before; with `is_cut` its beginning is not shown.
    pub(super) fn divide(&mut self, is_cut: bool) {
        let session = &self.talk.session;
        let used = ago(SystemClock::new().now().since(session.updated_at));
        let title = match clean_line(&session.title, 60) {
            title if title.is_empty() => "a session without messages".to_owned(),
            title => title,
        };
        let all = match is_cut {
            true => format!(" · its beginning: gantry show {}", session.id),
            false => String::new(),
        };
        self.note(format!("{title} · {used} · {}{all}", session.id));
    }

    fn facts(&mut self, facts: super::facts::SessionFacts) {
        self.stage.transcript.window(facts.window);
        let is_first = std::mem::take(&mut self.talk.is_new);
        if is_first {
            let lines = greeting::lines(&facts, self.talk.me.model.practice);
            self.stage
                .transcript
                .note(cli_screen::transcript::item::Note::lines(lines));
        }
        self.talk.facts = facts;
    }

    /// A line was taken or refused.
    fn sent(&mut self, client_id: &str, done: Result<CommandDone, ClientError>) {
        let Some(line) = self.outbox.answered(client_id, done.is_ok()) else {
            return;
        };
        let is_command = matches!(line.kind, OutgoingKind::Command { .. });
        if is_command {
            self.talk.is_entering = false;
        }
        match done {
            Ok(done) => {
                self.take(&done);
                if is_command && matches!(command_name(&line.text), "help" | "?") {
                    self.note(AT_THIS_TERMINAL);
                }
                let here = self.talk.session.id;
                match done.session {
                    Some(session) if session.id != here => self.move_to(session),
                    Some(session) => self.talk.session = session,
                    None => {}
                }
                if is_command {
                    self.ask_facts();
                }
            }
            Err(error) => {
                let error = self.talk.told(error);
                self.warn(error);
                if self
                    .once
                    .as_ref()
                    .is_some_and(|once| once.client_id == client_id)
                {
                    self.exit = Some(Exit::Failed);
                    return;
                }
                // A command is quickly typed again; a message may have been long.
                if !is_command {
                    self.put_back(&line.text);
                }
            }
        }
    }

    /// Goes on in another session. The turns of this one go on without a spectator.
    pub(super) fn move_to(&mut self, session: Session) {
        if self.is_working() {
            self.note("the session before this one works on; /back returns to it");
        }
        let is_new = session.title.is_empty() && session.running_turn.is_none();
        self.enter(session, is_new);
    }

    /// Shows the answer to a command.
    fn take(&mut self, done: &CommandDone) {
        if done.sets_mode {
            // The mode of the command line goes before every setting, and would hide this choice.
            self.talk.mode = None;
        }
        if let Some(draft) = done.draft.as_deref().filter(|_| self.composer.is_empty()) {
            self.composer.set_text(draft);
        }
        for shown in &done.shown {
            match shown {
                Shown::Text(text) => self.note(clean_line(text, MAX_LINE)),
                Shown::Table(table) => self.table(table),
            }
        }
    }

    fn table(&mut self, table: &CommandTable) {
        let columns = usize::from(self.stage.size().columns);
        let text = crate::chat::command::table_shown(table, columns);
        self.stage.block(&text, !table.columns.is_empty());
    }

    /// A question has come.
    fn asked(&mut self, id: ApprovalId, question: Result<Approval, ClientError>) {
        if let Overlay::Question(dialog) = &self.overlay
            && dialog.id() == id
        {
            if question.is_ok_and(|question| question.outcome.is_some()) {
                self.question_is_answered(id);
            }
            return;
        }
        // It has its answer.
        if !self.questions.has(id) {
            return self.fetch_question();
        }
        if matches!(self.overlay, Overlay::Page(_)) {
            // It is fetched again when the person leaves the page.
            return self.notify("the agent asks you");
        }
        let agent = self.questions.take(id).and_then(|waits| waits.agent);
        let session = agent
            .as_ref()
            .map_or(self.talk.session.id, |agent| agent.session);
        match question {
            Ok(approval) if approval.outcome.is_none() && approval.session == session => {
                self.close_list();
                self.overlay = Overlay::Question(Box::new(Dialog::new(approval, agent)));
                self.notify("the agent asks you");
            }
            Ok(_) => self.fetch_question(),
            Err(error) => {
                let error = self.talk.told(error);
                self.warn(error);
                self.fetch_question();
            }
        }
    }

    fn answered(&mut self, id: ApprovalId, outcome: Result<Approval, ClientError>) {
        let is_it = matches!(&self.overlay, Overlay::Question(dialog) if dialog.id() == id);
        match outcome {
            Ok(_) => self.question_is_answered(id),
            Err(error) if is_it => {
                let error = self.talk.told(error);
                self.warn(error);
                if let Overlay::Question(dialog) = &mut self.overlay {
                    dialog.answering = Answering::Key;
                }
            }
            Err(_) => {}
        }
    }

    /// The question has its answer: the box has its draft again.
    pub(super) fn question_is_answered(&mut self, id: ApprovalId) {
        self.questions.take(id);
        if let Overlay::Question(dialog) = &self.overlay
            && dialog.id() == id
        {
            if dialog.is_ready {
                let draft = dialog.draft.clone();
                self.composer.set_text(&draft);
            }
            self.overlay = Overlay::None;
            self.fetch_question();
        }
    }

    /// An agent has ended, so that its questions need no answer.
    pub(super) fn agent_asks_no_more(&mut self, session: SessionId) {
        self.questions.agent_ended(session);
        if let Overlay::Question(dialog) = &self.overlay
            && dialog.approval.session == session
        {
            self.question_is_answered(dialog.id());
        }
    }

    /// Looks whether the question of another agent on the screen has its answer by now.
    pub(super) fn look_at_question(&mut self) {
        if let Overlay::Question(dialog) = &mut self.overlay
            && dialog.agent.is_some()
            && dialog.looked_at.elapsed() >= ASKS_AGAIN_AFTER
        {
            dialog.looked_at = Instant::now();
            self.requests.question(dialog.approval.id);
        }
    }

    /// Leaves a question of another agent for later.
    pub(super) fn put_question_aside(&mut self) {
        if let Overlay::Question(dialog) = &self.overlay
            && let Some(agent) = &dialog.agent
        {
            let words = format!(
                "the question of {} waits; answer it with: gantry approvals, or /resume {}",
                clean_line(&agent.name, MAX_LINE),
                agent.session
            );
            self.question_is_answered(dialog.id());
            self.note(words);
        }
    }
}

/// The commands as the box completes them.
fn helps(commands: &[shared_api::Command]) -> Vec<CommandHelp> {
    let own = [
        ("diff", "show all changes of this session"),
        ("exit", "leave; the session stays"),
    ];
    let own = own.map(|(name, description)| CommandHelp {
        name: name.to_owned(),
        argument: String::new(),
        description: description.to_owned(),
    });
    let commands = commands.iter().map(|command| CommandHelp {
        name: command.name.clone(),
        argument: command.arguments.clone(),
        description: command.summary.clone(),
    });
    commands.chain(own).collect()
}
