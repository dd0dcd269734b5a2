//! One command of a person, from the question where the session works to its end.

use shared_api::{Exec, Operation, OperationCancelled, Session, StartOperation};
use shared_client::{Attach, Attached, Client, ClientError, Controls};
use shared_types::{OperationId, SessionId, clean::clean_line};

use super::{
    super::turn::{Answer, answer},
    RUNS_AT_MOST,
    shown::{Shown, end_in_words},
};
use crate::{
    patience::lost,
    remote::{Stop, left},
    runners,
    style::Style,
};

/// Longest name of a command, in characters.
const MAX_NAME: usize = 80;

/// Longest line about a command, in characters.
const MAX_LINE: usize = 1000;

/// The session of a command, and how to speak of it.
pub(crate) struct Place {
    /// The way to the server.
    pub(crate) client: Client,
    /// The session that tells where the command runs.
    pub(crate) session: SessionId,
    /// The colours of the output.
    pub(crate) style: Style,
    /// The advice for the case that the server refuses the credential.
    pub(crate) advice: &'static str,
}

/// A command that runs.
pub(crate) struct Running {
    client: Client,
    style: Style,
    advice: &'static str,
    script: String,
    /// True if its output is shown as it comes; otherwise it is shown in one block at the end.
    is_live: bool,
    /// The session as it is now: another terminal may have changed where it works.
    session: Option<Answer<Session>>,
    attached: Option<(Attach, Controls)>,
    operation: Option<(OperationId, String)>,
    stop: Stop,
    stopping: Option<Answer<OperationCancelled>>,
    shown: Shown,
    /// The text that waits for the end.
    block: String,
}

/// Text of a command.
pub(crate) struct ToShow {
    /// The text, made harmless.
    pub(crate) text: String,
    /// True if no text of the command follows.
    pub(crate) is_last: bool,
}

enum Heard {
    Session(Result<Session, ClientError>),
    Stopped(Result<OperationCancelled, ClientError>),
    Item(Option<Result<Attached, ClientError>>),
}

impl Running {
    /// Begins a command; with `is_live` its output is told as it comes.
    pub(crate) fn begin(place: Place, script: &str, is_live: bool) -> Self {
        let (asking, session) = (place.client.clone(), place.session);
        Self {
            client: place.client,
            style: place.style,
            advice: place.advice,
            script: script.to_owned(),
            is_live,
            session: Some(Box::pin(async move { asking.session(session).await })),
            attached: None,
            operation: None,
            stop: Stop::No,
            stopping: None,
            shown: Shown::default(),
            block: String::new(),
        }
    }

    /// The command in few words.
    pub(crate) fn name(&self) -> String {
        format!("! {}", clean_line(&self.script, MAX_NAME))
    }

    /// Stops it with everything that it started, once it is known.
    pub(crate) fn stop(&mut self) {
        self.stop = Stop::Wanted;
        if let Some((id, _)) = self.operation {
            let client = self.client.clone();
            self.stop = Stop::Asked;
            self.stopping = Some(Box::pin(async move { client.stop_operation(id).await }));
        }
    }

    /// The last line about a command that the person leaves.
    pub(crate) fn left(&self) -> String {
        let id = self.operation.as_ref().map(|(id, _)| *id);
        format!("{}: {}", self.name(), left(id, self.stop))
    }

    /// The next text to show. A caller may drop the future while it waits.
    pub(crate) async fn next(&mut self) -> ToShow {
        loop {
            let heard = tokio::select! {
                biased;
                session = answer(&mut self.session) => Heard::Session(session),
                stopped = answer(&mut self.stopping) => Heard::Stopped(stopped),
                item = next_item(&mut self.attached) => Heard::Item(item),
            };
            if let Some(shown) = self.handle(heard) {
                return shown;
            }
            // A flood that is only collected must not keep the others from their turn.
            tokio::task::yield_now().await;
        }
    }

    fn handle(&mut self, heard: Heard) -> Option<ToShow> {
        match heard {
            Heard::Session(session) => {
                self.session = None;
                match session {
                    Ok(_) if self.stop != Stop::No => return Some(self.end("not started")),
                    Ok(session) => self.attached = Some(self.start(&session)),
                    Err(error) => return Some(self.failed(error)),
                }
            }
            Heard::Stopped(stopped) => {
                self.stopping = None;
                match stopped {
                    Ok(_) => self.stop = Stop::Accepted,
                    Err(error) => {
                        let error = crate::told(&error.into(), self.advice);
                        return Some(self.note(&error));
                    }
                }
            }
            Heard::Item(None) => return Some(self.end("it ended without a word")),
            Heard::Item(Some(Err(error))) => return Some(self.failed(error)),
            Heard::Item(Some(Ok(item))) => return self.item(item),
        }
        None
    }

    /// Starts it where the session works.
    fn start(&self, session: &Session) -> (Attach, Controls) {
        let runner = session.runner.as_ref();
        let runner = runner
            .map(|pin| runners::with_workspace(&pin.id.to_string(), pin.workspace.as_deref()));
        self.client.start(StartOperation {
            runner,
            exec: Some(Exec {
                script: Some(self.script.clone()),
                directory: session.directory.clone(),
                // So its output is whole in one stream, in its order.
                merged: true,
                ..Exec::default()
            }),
            timeout_ms: u64::try_from(RUNS_AT_MOST.as_millis()).ok(),
            ..StartOperation::default()
        })
    }

    fn item(&mut self, item: Attached) -> Option<ToShow> {
        match item {
            Attached::Operation(operation) => {
                self.began(*operation);
                None
            }
            Attached::Output { data, .. } => {
                let text = self.shown.output(&data);
                self.show(&text)
            }
            Attached::Gap { from, to, .. } => {
                let missing = to.saturating_sub(from);
                let text = self.shown.line(&format!("… {missing} bytes are not kept"));
                self.show(&text)
            }
            Attached::Unreachable { .. } => {
                let runner = self.operation.as_ref().map_or("", |(_, runner)| runner);
                let words = format!("runner {runner} cannot be reached; the command goes on");
                Some(self.note(&words))
            }
            Attached::Reachable => Some(self.note("its runner is back")),
            // During a turn the session says it of its own connection.
            Attached::Lost { reason, is_refused } if self.is_live => {
                Some(self.note(&lost(is_refused.then_some(&*reason))))
            }
            Attached::Recovered if self.is_live => Some(self.note("connected again")),
            Attached::Problem(problem) => Some(self.note(&problem.detail)),
            Attached::Lost { .. }
            | Attached::Recovered
            | Attached::InputTaken { .. }
            | Attached::InputWanted { .. } => None,
            Attached::Ended(operation) => {
                let is_stopped = self.stop != Stop::No;
                let end = operation.end.as_ref();
                let words = end.and_then(|end| end_in_words(end, is_stopped));
                Some(self.end(words.as_deref().unwrap_or_default()))
            }
        }
    }

    fn began(&mut self, operation: Operation) {
        if self.operation.is_some() {
            return;
        }
        self.operation = Some((operation.id, operation.runner.name));
        if self.stop == Stop::Wanted {
            self.stop();
        }
    }

    /// Shows output now or with the end.
    fn show(&mut self, text: &str) -> Option<ToShow> {
        if !self.is_live {
            self.block.push_str(text);
            return None;
        }
        (!text.is_empty()).then(|| ToShow {
            text: self.style.dim(text),
            is_last: false,
        })
    }

    /// A line about the command, which does not wait for its end.
    fn note(&mut self, words: &str) -> ToShow {
        let open = match self.is_live {
            true => self.shown.end_line(),
            false => "",
        };
        let words = clean_line(&format!("{}: {words}", self.name()), MAX_LINE);
        ToShow {
            text: format!("{open}{}\n", self.style.dim(&words)),
            is_last: false,
        }
    }

    fn failed(&mut self, error: ClientError) -> ToShow {
        let error = crate::told(&error.into(), self.advice);
        let words = match &self.operation {
            Some((id, _)) => format!("failed to follow {id} any further: {error}"),
            None => error,
        };
        self.end(&words)
    }

    /// The last text: the rest of the output and these words, if there are any.
    fn end(&mut self, words: &str) -> ToShow {
        let id = self.operation.as_ref().map(|(id, _)| *id);
        let mut text = std::mem::take(&mut self.block);
        text.push_str(self.shown.end_line());
        if let Some((more, id)) = self.shown.more().zip(id) {
            text.push_str(&format!("… {more} more characters: gantry output {id}\n"));
        }
        for line in words.lines() {
            text.push_str(&format!("{}\n", clean_line(line, MAX_LINE)));
        }
        let head = match self.is_live {
            true => String::new(),
            false => format!("{}\n", self.style.bold(&self.name())),
        };
        ToShow {
            text: head + &self.style.dim(&text),
            is_last: true,
        }
    }
}

/// The next item of the operation; never where there is none yet.
async fn next_item(
    attached: &mut Option<(Attach, Controls)>,
) -> Option<Result<Attached, ClientError>> {
    match attached {
        Some((attach, _)) => attach.next().await,
        None => std::future::pending().await,
    }
}
