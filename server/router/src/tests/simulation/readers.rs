//! Whoever asks the router: calls of the engine, which write input, store ends and conclude from them, and
//! those who only read.

use std::{future::pending, sync::Arc, time::Duration};

use shared_sandbox::{
    CancelAnswer, Control, Controls, Events, Input, Operation, OperationEvent, Outcome,
    OutputStream, Running, Sandbox as _, TerminalSize,
};
use shared_types::{Epoch, OperationId, Refusal};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, yield_now},
    time::sleep,
};

use super::{host::bytes_at, oracle::Reading, passing::input_length, storm::Storm};
use crate::{SandboxRouter, links::LinkEnd, tests::double::Store};
use server_records::is_kept_nowhere;

/// What the world learns of the server's tasks.
pub(crate) enum News {
    Told(u64, Told),
    LinkEnded(u64, LinkEnd),
    Cancelled(OperationId, Result<CancelAnswer, Refusal>),
}

/// What one reader was told, or did.
pub(crate) enum Told {
    Refused(Refusal),
    Event(OperationEvent),
    /// The end, which is this reader's to store.
    Offered(OperationEvent),
    /// It has stored that.
    Stored(Outcome),
    /// It says that it has the stream up to here.
    Confirms(OutputStream, u64),
    Resized(TerminalSize),
    Over,
}

/// One of them.
pub(crate) struct Reader {
    pub(crate) id: OperationId,
    /// A call of the engine, which writes input.
    pub(crate) calls: bool,
    /// The epoch under which it asks.
    pub(crate) epoch: Epoch,
    pub(crate) reading: Reading,
    pub(crate) task: AbortHandle,
}

/// What its task has.
pub(crate) struct Asker {
    pub(crate) key: u64,
    pub(crate) store: Store,
    pub(crate) sandbox: SandboxRouter,
    pub(crate) storm: Arc<Storm>,
    pub(crate) news: mpsc::UnboundedSender<News>,
}

impl Asker {
    /// A call of the engine starts an operation, or goes on with it.
    pub(crate) async fn call(self, operation: Operation) {
        match self.sandbox.start(operation.clone()).await {
            Err(refusal) => self.tell(Told::Refused(refusal)),
            Ok(running) => {
                let Running {
                    events, controls, ..
                } = running;
                let confirms = is_kept_nowhere(&operation.request).then_some(controls.as_ref());
                tokio::select! {
                    () = self.read(operation.id, operation.epoch, events, confirms) => {}
                    () = self.pass(&operation, controls.as_ref()) => {}
                }
                self.tell(Told::Over);
            }
        }
    }

    /// Somebody reads along.
    pub(crate) async fn watch(self, id: OperationId, from: [u64; 2]) {
        match self.sandbox.read(id, from).await {
            Err(refusal) => self.tell(Told::Refused(refusal)),
            Ok(running) => {
                // It stores nothing.
                self.read(id, Epoch(0), running.events, None).await;
                self.tell(Told::Over);
            }
        }
    }

    /// A call has ended, with its operation's end or without.
    pub(crate) async fn close(self, operation: Operation) {
        let id = operation.id;
        match self.store.close_call(id).await {
            Err(_) => {}
            Ok(false) => self.sandbox.leave(id).await,
            Ok(true) if is_kept_nowhere(&operation.request) => self.sandbox.forget(id).await,
            Ok(true) => {}
        }
    }

    async fn read(
        &self,
        id: OperationId,
        epoch: Epoch,
        mut events: Box<dyn Events>,
        confirms: Option<&dyn Controls>,
    ) {
        while let Some(event) = events.recv().await {
            self.hesitate().await;
            let confirmed = match &event {
                OperationEvent::Output {
                    stream,
                    offset,
                    data,
                } => Some((*stream, offset + data.len() as u64)),
                _ => None,
            };
            let token = events.end_token();
            let ended = match &event {
                OperationEvent::Ended(outcome) => Some(outcome.clone()),
                _ => None,
            };
            self.tell(match token {
                Some(_) => Told::Offered(event),
                None => Told::Event(event),
            });
            if let (Some((stream, up_to)), Some(controls)) = (confirmed, confirms) {
                self.tell(Told::Confirms(stream, up_to));
                controls.commit(stream, up_to).await;
            }
            if let (Some(outcome), Some(token)) = (ended, token)
                && self.keep(id, epoch, &outcome).await
            {
                token.spend();
                self.tell(Told::Stored(outcome));
            }
        }
    }

    /// Stores the end of the call with that of its operation, or lets the collector store that.
    async fn keep(&self, id: OperationId, epoch: Epoch, outcome: &Outcome) -> bool {
        if self.storm.one_in(4) {
            return false;
        }
        let stored = self.store.end_call(id, epoch, outcome).await;
        stored.unwrap_or(false)
    }

    /// Writes all of the input, and sizes a terminal now and then; does not end.
    async fn pass(&self, operation: &Operation, controls: &dyn Controls) {
        let id = operation.id;
        let request = &operation.request;
        let (takes_input, has_terminal) = (request.takes_input(), request.has_terminal());
        let feeds = async {
            if takes_input {
                self.feed(id, controls).await;
            }
        };
        let sizes = async {
            if has_terminal {
                loop {
                    self.size(controls).await;
                }
            }
        };
        tokio::join!(feeds, sizes);
        pending().await
    }

    async fn feed(&self, id: OperationId, controls: &dyn Controls) {
        let (length, mut offset) = (input_length(id), 0);
        loop {
            let len = self.storm.below(200_000).min(length - offset).min(65_536);
            let piece = Input {
                offset,
                data: bytes_at(id, OutputStream::Stderr, offset, len as usize).into(),
                end: offset + len == length,
            };
            match controls.input(piece).await {
                // Where what it is written to begins anew, all of it is wanted once more.
                Ok(next) if next == length => {
                    offset = next;
                    sleep(Duration::from_millis(300)).await;
                }
                Ok(next) => offset = next,
                // It has ended.
                Err(_) => return,
            }
            yield_now().await;
        }
    }

    async fn size(&self, controls: &dyn Controls) {
        sleep(Duration::from_millis(self.storm.below(400))).await;
        // One that only this wish has.
        let key = self.storm.below(u64::from(u32::MAX));
        let size = TerminalSize {
            rows: (key >> 16) as u16,
            columns: key as u16,
        };
        match controls.control(Control::Resize(size)).await {
            Ok(()) => self.tell(Told::Resized(size)),
            Err(_) => sleep(Duration::from_secs(1)).await,
        }
    }

    /// Some read slowly.
    async fn hesitate(&self) {
        if self.key.is_multiple_of(3) {
            self.storm.pause().await;
        }
    }

    fn tell(&self, told: Told) {
        let _ = self.news.send(News::Told(self.key, told));
    }
}
