//! A request under way: what comes out of it, and the wish to end it.

use shared_sandbox::{ExitCause, Input, Outcome};
use tokio::sync::{mpsc, watch};

use crate::{Announced, HeldTurn, OpenFile, files};

/// Events that wait for a slow reader: a change is announced once, and then there is the end.
pub(crate) const EVENTS_WAITING: usize = 2;

/// A request that is being performed. Dropping it stops nothing.
#[derive(Debug)]
pub struct Performing {
    /// Its events; the last one is [`HostEvent::Ended`].
    pub events: mpsc::Receiver<HostEvent>,
    /// Ends it early.
    pub stop: StopRequest,
}

/// An upload that is being performed.
#[derive(Debug)]
pub struct Uploading {
    /// It, as any request.
    pub performing: Performing,
    /// Takes the pieces of its input, in order and without holes. An event tells how much is taken.
    pub pieces: mpsc::Sender<Input>,
}

impl Performing {
    /// One that begins once it is there to be begun; where it never is, it ends like that. Needs the
    /// context of a tokio runtime.
    pub fn later(begun: impl Future<Output = Result<Self, Outcome>> + Send + 'static) -> Self {
        let (events, receiver) = mpsc::channel(EVENTS_WAITING);
        let (stop, stopping) = Stopping::pair();
        tokio::spawn(async move {
            let begun = tokio::select! {
                biased;
                _ = stopped(stopping.clone()) => Err(files::stopped().into()),
                begun = begun => begun,
            };
            match begun {
                Ok(performing) => pass_on(performing, stopping, &events).await,
                Err(end) => {
                    // The receiver may be gone, and that changes nothing.
                    let _ = events
                        .send(HostEvent::Ended(end, HeldTurn::default()))
                        .await;
                }
            }
        });
        Self {
            events: receiver,
            stop,
        }
    }
}

impl Uploading {
    /// Begins later, as [`Performing::later`]; pieces wait until then.
    pub fn later(begun: impl Future<Output = Result<Self, Outcome>> + Send + 'static) -> Self {
        let (pieces, mut waiting) = mpsc::channel::<Input>(1);
        let performing = Performing::later(async move {
            let Self { performing, pieces } = begun.await?;
            tokio::spawn(async move {
                while let Some(piece) = waiting.recv().await {
                    if pieces.send(piece).await.is_err() {
                        break;
                    }
                }
            });
            Ok(performing)
        });
        Self { performing, pieces }
    }
}

/// Passes on the events, and a request to stop.
async fn pass_on(mut performing: Performing, stopping: Stopping, events: &mpsc::Sender<HostEvent>) {
    let mut wish = Some(Box::pin(stopped(stopping)));
    loop {
        tokio::select! {
            event = performing.events.recv() => match event {
                Some(event) => {
                    let _ = events.send(event).await;
                }
                None => return,
            },
            cause = async {
                match &mut wish {
                    Some(wish) => wish.await,
                    None => std::future::pending().await,
                }
            } => {
                wish = None;
                performing.stop.wish(cause);
            }
        }
    }
}

async fn stopped(mut stopping: Stopping) -> ExitCause {
    stopping.wanted().await
}

/// An event of a request that is being performed.
#[derive(Debug)]
pub enum HostEvent {
    /// A file is about to be changed, and waits for the answer.
    Changing(Announced),
    /// A download's file is open.
    Opened(OpenFile),
    /// So many bytes of an upload are taken.
    InputTaken(u64),
    /// It ended; nothing follows. Sent exactly once. Changes that meet it wait until what is held
    /// is dropped. Drop it once the end is written down.
    Ended(Outcome, HeldTurn),
}

/// Ends a request early. Asking again, or after the end, does nothing; the first call counts.
#[derive(Debug, Clone)]
pub struct StopRequest(watch::Sender<Option<ExitCause>>);

impl StopRequest {
    /// Ends it because a caller asked: the cause is [`ExitCause::Cancelled`].
    pub fn cancel(&self) {
        self.wish(ExitCause::Cancelled);
    }

    /// Ends it because the runner stops: the cause is [`ExitCause::Orphaned`].
    pub fn orphan(&self) {
        self.wish(ExitCause::Orphaned);
    }

    fn wish(&self, cause: ExitCause) {
        self.0.send_if_modified(|wish| {
            let first = wish.is_none();
            wish.get_or_insert(cause);
            first
        });
    }
}

/// The other side of [`StopRequest`].
#[derive(Debug, Clone)]
pub(crate) struct Stopping(watch::Receiver<Option<ExitCause>>);

impl Stopping {
    /// A sender of the request to stop, and its receiver.
    pub(crate) fn pair() -> (StopRequest, Self) {
        let (wish, heard) = watch::channel(None);
        (StopRequest(wish), Self(heard))
    }

    /// The request to stop so far.
    pub(crate) fn now(&self) -> Option<ExitCause> {
        *self.0.borrow()
    }

    /// Waits for a request to stop; for ever, once no sender is left.
    pub(crate) async fn wanted(&mut self) -> ExitCause {
        let wish = self.0.wait_for(Option::is_some).await.map(|wish| *wish);
        match wish {
            Ok(Some(cause)) => cause,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}
