//! A command on a runner as this terminal shows it: its output appears here, and typed or piped
//! input goes there.
//!
//! Standard output belongs to the command; notes of this client go to standard error. The command
//! does not depend on this process, and continues if this process ends. Only Ctrl-C and a closed
//! pipe stop it, as they would stop a local command.

use std::{
    io::{self, IsTerminal as _},
    pin::Pin,
    time::Duration,
};

use anyhow::{Context as _, bail};
use shared_api::{Operation, OperationEnd};
use shared_client::{Attach, Attached, Client, ClientError, Controls};
use shared_types::OperationId;
use tokio::time::{Instant, sleep, timeout};

use crate::{exit::Exit, patience::lost, screen::Screen};

mod asking;
mod code;
mod escape;
mod interrupts;
pub(crate) mod keyboard;
mod modes;
mod notes;
mod printer;
mod signals;
mod typing;

use asking::{Asking, Came, Wished};
pub(crate) use code::UNKNOWN;
use code::exit_code;
use interrupts::{Interrupts, Wish};
use keyboard::RawMode;
use notes::Notes;
use printer::Printer;
use signals::Signalled;
pub(crate) use signals::Signals;
use typing::{Key, Typing};

/// The longest wait, when the person leaves, for the arrival of the last typed keys.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// The wait for the start of a command, before the client notes that it waits.
const STARTS_WITHIN: Duration = Duration::from_secs(1);

/// A runner that is away for less is not told of: its link has gone to another server, or a network was gone for a moment.
const AWAY_TOLD_AFTER: Duration = Duration::from_secs(3);

/// The status with which the server refuses what an operation cannot take.
const UNPROCESSABLE: u16 = 422;

/// The bonds between a command and this terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ties {
    /// True if standard input goes to the command.
    pub(crate) input: bool,
    /// True if the command runs in a terminal, which this one shows.
    pub(crate) terminal: bool,
    /// True if the command is stopped once the reader of its output is gone.
    pub(crate) is_ours: bool,
}

/// Shows a command to its end; the exit code is the command's.
pub(crate) async fn run(
    client: Client,
    screen: Screen,
    attach: Attach,
    controls: Controls,
    ties: Ties,
) -> anyhow::Result<Exit> {
    let remote = Remote {
        client,
        notes: Notes {
            screen,
            is_raw: false,
        },
        attach,
        controls,
        ties,
        signals: Signals::listen().context("failed to listen for signals")?,
        printer: Printer::start(ties.terminal).context("failed to use standard output")?,
        typing: None,
        interrupts: Interrupts::default(),
        stop: Stop::No,
        asked: None,
        leaving: None,
        starting: io::stderr()
            .is_terminal()
            .then(|| Box::pin(sleep(STARTS_WITHIN)) as Wait),
        away: None,
        is_away_told: false,
        operation: None,
        raw: None,
    };
    remote.until_over().await
}

/// The progress of a person's wish to stop the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    /// The request is sent as soon as the operation is known.
    Wanted,
    /// The server has not answered yet.
    Asked,
    Accepted,
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Remote {
    client: Client,
    notes: Notes,
    attach: Attach,
    controls: Controls,
    ties: Ties,
    signals: Signals,
    printer: Printer,
    typing: Option<Typing>,
    interrupts: Interrupts,
    stop: Stop,
    asked: Option<Asking>,
    /// Ends when everything that was typed has arrived, or that takes too long.
    leaving: Option<Wait>,
    /// Ends where a person waits for the start.
    starting: Option<Wait>,
    /// Ends where the runner has been away for a while.
    away: Option<Wait>,
    /// A person knows that the runner is away.
    is_away_told: bool,
    operation: Option<(OperationId, String)>,
    /// Declared last: the terminal is restored after everything else.
    raw: Option<RawMode>,
}

enum ExecEvent {
    Heard(Option<Result<Attached, ClientError>>),
    /// Standard output takes nothing any more.
    Unread,
    /// The input ended, or could not be read; or a person asked for something.
    Typed(io::Result<Key>),
    Signal(Signalled),
    Came(Came),
    StartsLate,
    /// The runner has been away for a while.
    StaysAway,
    /// A person wants to leave, and nothing stands against it any more.
    Leaves,
}

/// The way in which this process is done.
enum Over {
    Ended(Box<Operation>),
    /// The command continues without this process.
    Left(u8),
    Unread,
}

impl Remote {
    async fn until_over(mut self) -> anyhow::Result<Exit> {
        let over = loop {
            let happened = self.next().await;
            match self.handle(happened) {
                Ok(Some(over)) => break over,
                Ok(None) => {}
                Err(error) => {
                    self.printer.abandon().await;
                    return Err(error);
                }
            }
        };
        match over {
            Over::Ended(operation) => self.ended(*operation).await,
            Over::Left(code) => {
                let id = self.operation.as_ref().map(|(id, _)| *id);
                let (notes, words) = (self.notes, left(id, self.stop));
                self.printer.abandon().await;
                notes.say(&words);
                Ok(Exit::Code(code))
            }
            Over::Unread => self.unread().await,
        }
    }

    async fn next(&mut self) -> ExecEvent {
        tokio::select! {
            signal = self.signals.next() => ExecEvent::Signal(signal),
            came = came(&mut self.asked) => ExecEvent::Came(came),
            () = end_of(&mut self.leaving) => ExecEvent::Leaves,
            () = end_of(&mut self.starting) => ExecEvent::StartsLate,
            () = end_of(&mut self.away) => ExecEvent::StaysAway,
            key = typing::key(&mut self.typing, &self.controls) => ExecEvent::Typed(key),
            heard = heard(&mut self.attach, &self.printer) => heard,
        }
    }

    fn handle(&mut self, happened: ExecEvent) -> anyhow::Result<Option<Over>> {
        match happened {
            ExecEvent::Heard(item) => return self.heard(item),
            ExecEvent::Unread => return Ok(Some(Over::Unread)),
            ExecEvent::Typed(key) => return self.key(key),
            ExecEvent::Signal(signal) => return Ok(self.signal(&signal)),
            ExecEvent::Leaves => return Ok(Some(Over::Left(0))),
            ExecEvent::StartsLate => {
                self.starting = None;
                self.notes
                    .say("it has not started yet; waiting for its runner");
            }
            ExecEvent::StaysAway => {
                (self.away, self.is_away_told) = (None, true);
                self.notes.say(&format!(
                    "runner {} cannot be reached; its commands go on, and so does this",
                    self.runner()
                ));
            }
            ExecEvent::Came(Came::Late) => self
                .notes
                .say("Ctrl-C has not reached the server; it is sent again until it has"),
            ExecEvent::Came(Came::Answered(answer)) => return Ok(self.answered(answer)),
        }
        Ok(None)
    }

    fn answered(&mut self, answer: Result<(), ClientError>) -> Option<Over> {
        let asked = self.asked.take();
        match answer {
            // A person watches something that takes no signals: Ctrl-C can only mean to leave.
            Err(ClientError::Refused(problem))
                if problem.status == UNPROCESSABLE && !self.ties.is_ours =>
            {
                return Some(Over::Left(128 + 2));
            }
            Err(error) => self.notes.say(&error.to_string()),
            Ok(()) if asked.is_some_and(|asked| asked.wished == Wished::Stop) => {
                self.stop = Stop::Accepted;
            }
            Ok(()) => {}
        }
        None
    }

    fn heard(
        &mut self,
        item: Option<Result<Attached, ClientError>>,
    ) -> anyhow::Result<Option<Over>> {
        let item = match item.context("the operation ended without a word")? {
            Ok(item) => item,
            Err(error) => return Err(self.gone(error)),
        };
        match item {
            Attached::Operation(operation) => self.began(&operation)?,
            // Both are written as they are heard.
            Attached::Output { .. } => {}
            Attached::Gap { stream, from, to } => {
                let stream = format!("{stream:?}").to_lowercase();
                self.notes.say(&format!(
                    "{} bytes of {stream} from {from} on are not kept",
                    to - from
                ));
            }
            Attached::Unreachable { .. } => {
                if self.away.is_none() && !self.is_away_told {
                    self.away = Some(Box::pin(sleep(AWAY_TOLD_AFTER)));
                }
            }
            Attached::Reachable => {
                self.away = None;
                if std::mem::take(&mut self.is_away_told) {
                    self.notes.say(&format!("runner {} is back", self.runner()));
                }
            }
            Attached::InputTaken { .. } => {}
            Attached::InputWanted { from } => {
                bail!(
                    "failed to pass on the input: the runner lost what it had of it from byte {from} on"
                )
            }
            Attached::Problem(problem) if !self.ties.terminal => self.notes.say(&problem.detail),
            Attached::Problem(_) => {}
            Attached::Lost { reason, is_refused } => {
                self.notes.say(&lost(is_refused.then_some(&*reason)));
            }
            Attached::Recovered => {
                self.notes.say("connected again");
                self.resize(true);
            }
            Attached::Ended(operation) => return Ok(Some(Over::Ended(operation))),
        }
        Ok(None)
    }

    /// The first word of a connection.
    fn began(&mut self, operation: &Operation) -> anyhow::Result<()> {
        if self.operation.is_some() {
            return Ok(());
        }
        self.starting = None;
        self.operation = Some((operation.id, operation.runner.name.clone()));
        if self.stop == Stop::Wanted {
            self.ask(operation.id, Wished::Stop);
        }
        if self.ties.terminal && self.ties.input {
            let raw = RawMode::enter(io::stdin()).context("failed to use the terminal")?;
            self.raw = Some(raw);
            self.notes.is_raw = true;
        }
        if !self.ties.is_ours {
            self.resize(true);
        }
        if self.ties.input {
            self.typing = Some(Typing::start(self.ties.terminal));
        }
        Ok(())
    }

    fn key(&mut self, key: io::Result<Key>) -> anyhow::Result<Option<Over>> {
        match key.context("failed to read standard input")? {
            Key::End => self.typing = None,
            Key::Leave => {
                self.typing = None;
                let controls = self.controls.clone();
                self.leaving = Some(Box::pin(async move {
                    // If the server is away, the command continues without the last keys.
                    let _ = timeout(LEAVE_WITHIN, controls.all_taken()).await;
                }));
            }
            Key::Help => self.notes.lines(typing::ESCAPES),
        }
        Ok(None)
    }

    fn signal(&mut self, signal: &Signalled) -> Option<Over> {
        match signal {
            Signalled::Interrupt => self.interrupt(),
            Signalled::Resize => {
                self.resize(false);
                None
            }
            signal => signal.exit_code().map(Over::Left),
        }
    }

    fn interrupt(&mut self) -> Option<Over> {
        let Some((id, _)) = &self.operation else {
            if std::mem::replace(&mut self.stop, Stop::Wanted) == Stop::Wanted {
                return Some(Over::Left(128 + 2));
            }
            self.notes.say("stopping it as soon as it has started");
            return None;
        };
        let id = *id;
        match self.interrupts.press(Instant::now()) {
            Wish::Interrupt => self.ask(id, Wished::Interrupt),
            Wish::Stop => {
                self.notes
                    .say("stopping it with everything that it started");
                self.ask(id, Wished::Stop);
            }
            Wish::Leave => return Some(Over::Left(128 + 2)),
        }
        None
    }

    fn ask(&mut self, id: OperationId, wished: Wished) {
        if wished == Wished::Stop {
            self.stop = Stop::Asked;
        }
        self.asked = Some(Asking::begin(&self.client, id, wished));
    }

    fn resize(&self, redraw: bool) {
        if self.ties.terminal {
            self.controls.resize(keyboard::window(io::stdin()), redraw);
        }
    }

    async fn ended(mut self, operation: Operation) -> anyhow::Result<Exit> {
        if !ended_by_itself(&operation) {
            self.printer.restore();
        }
        let printed = tokio::select! {
            printed = self.printer.finish() => printed,
            code = self.signals.ended() => return Ok(Exit::Code(code)),
        };
        self.raw = None;
        self.notes.is_raw = false;
        match printed {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::ReaderGone),
            printed => printed.context("failed to write to standard output")?,
        }
        let end = operation
            .end
            .context("the operation ended without a word")?;
        let (code, words) = exit_code(&end);
        if let Some(words) = words {
            self.notes.say(words);
        }
        Ok(Exit::Code(code))
    }

    /// Handles a closed pipe: the command is stopped if it was started for this output, as a closed
    /// pipe stops a program.
    async fn unread(mut self) -> anyhow::Result<Exit> {
        self.restore();
        let error = self.printer.finish().await.err();
        if let Some((id, _)) = &self.operation
            && self.ties.is_ours
        {
            tokio::select! {
                stopped = self.client.stop_operation(*id) => drop(stopped?),
                code = self.signals.ended() => return Ok(Exit::Code(code)),
            }
        }
        match error {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(error).context("failed to write to standard output")
            }
            _ => Ok(Exit::ReaderGone),
        }
    }

    /// Makes the error for a connection that cannot be restored.
    fn gone(&mut self, error: ClientError) -> anyhow::Error {
        self.restore();
        let error = anyhow::Error::from(error);
        match &self.operation {
            Some((id, _)) => error.context(format!("failed to follow {id} any further")),
            None => error,
        }
    }

    /// Restores the usual mode of the terminal. The next note begins on a line of its own.
    fn restore(&mut self) {
        if self.raw.take().is_some() {
            self.notes.screen.note("");
        }
        self.notes.is_raw = false;
    }

    fn runner(&self) -> &str {
        self.operation.as_ref().map_or("", |(_, runner)| runner)
    }
}

/// The last note about a command that the person leaves.
pub(crate) fn left(operation: Option<OperationId>, stop: Stop) -> String {
    match (operation, stop) {
        (None, _) => "left before it was known whether it started, see: gantry ps".to_owned(),
        (Some(id), Stop::Accepted) => {
            format!("left; it is being stopped, see: gantry attach {id}")
        }
        (Some(id), Stop::Asked | Stop::Wanted) => format!(
            "left; the server did not answer the wish to stop it, so it may still run: gantry kill {id}"
        ),
        (Some(id), Stop::No) => format!("left; it goes on, come back with: gantry attach {id}"),
    }
}

/// True if nothing stopped the command: it then leaves the terminal in the state that it wants.
fn ended_by_itself(operation: &Operation) -> bool {
    match &operation.end {
        Some(OperationEnd::Exited { cause, signal, .. }) => cause == "exited" && signal.is_none(),
        _ => false,
    }
}

/// The next item that is no output; output is printed.
async fn heard(attach: &mut Attach, printer: &Printer) -> ExecEvent {
    loop {
        let Some(room) = printer.room().await else {
            return ExecEvent::Unread;
        };
        let item = tokio::select! {
            item = attach.next() => item,
            () = printer.closed() => return ExecEvent::Unread,
        };
        match item {
            Some(Ok(Attached::Output { stream, data, .. })) => room.fill(stream, data),
            item => return ExecEvent::Heard(item),
        }
    }
}

/// Waits for the outcome of the wish; for ever if there is none.
async fn came(asked: &mut Option<Asking>) -> Came {
    match asked {
        Some(asked) => asked.next().await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of the wait; for ever if there is none.
async fn end_of(waited: &mut Option<Wait>) {
    match waited {
        Some(waited) => waited.await,
        None => std::future::pending().await,
    }
}
