//! What others want of a link: the handle to its task.

use std::sync::Arc;

use proto::v1;
use shared_sandbox::{CancelAnswer, OutputStream};
use shared_types::{Epoch, Generation, Incarnation, OperationId, Refusal};
use tokio::sync::{mpsc, oneshot};

use crate::{convert::Expects, mailbox::Post};

/// Wishes to one link that may wait; whoever has one more waits itself.
const COMMANDS: usize = 256;

/// Speaks to one link's task.
#[derive(Debug, Clone)]
pub(crate) struct LinkHandle {
    generation: Generation,
    incarnation: Arc<Incarnation>,
    commands: mpsc::Sender<Command>,
}

/// The link is gone; the operation goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// What others want of a link.
pub(super) enum Command {
    Attach {
        id: OperationId,
        frame: Box<v1::Operation>,
        reader: Reader,
    },
    Grant {
        id: OperationId,
        stream: OutputStream,
        up_to: u64,
    },
    Cancel {
        id: OperationId,
        epoch: Epoch,
        answer: Option<CancelWaiter>,
    },
    Forget {
        id: OperationId,
    },
}

pub(super) type CancelWaiter = oneshot::Sender<Result<CancelAnswer, Refusal>>;

/// Who reads an operation's output.
pub(crate) struct Reader {
    pub(crate) post: Post,
    /// How an operation of this kind can end.
    pub(crate) expects: Expects,
    /// Makes way for a reader that is there already.
    pub(crate) yields: bool,
}

impl LinkHandle {
    /// A handle and the queue of what is wanted through it.
    pub(super) fn new(
        generation: Generation,
        incarnation: Arc<Incarnation>,
    ) -> (Self, mpsc::Receiver<Command>) {
        let (commands, queue) = mpsc::channel(COMMANDS);
        let handle = Self {
            generation,
            incarnation,
            commands,
        };
        (handle, queue)
    }

    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    pub(crate) fn incarnation(&self) -> &Incarnation {
        &self.incarnation
    }

    /// Sends the operation; what comes back goes to the reader, in place of an earlier one's.
    pub(crate) async fn attach(
        &self,
        id: OperationId,
        frame: v1::Operation,
        reader: Reader,
    ) -> Result<(), Gone> {
        let frame = Box::new(frame);
        self.command(Command::Attach { id, frame, reader }).await
    }

    pub(crate) async fn grant(
        &self,
        id: OperationId,
        stream: OutputStream,
        up_to: u64,
    ) -> Result<(), Gone> {
        self.command(Command::Grant { id, stream, up_to }).await
    }

    /// Sends a cancel and waits for the answer, which the caller bounds.
    pub(crate) async fn cancel(
        &self,
        id: OperationId,
        epoch: Epoch,
    ) -> Result<Result<CancelAnswer, Refusal>, Gone> {
        let (sender, answer) = oneshot::channel();
        let answer_to = Some(sender);
        self.command(Command::Cancel {
            id,
            epoch,
            answer: answer_to,
        })
        .await?;
        answer.await.map_err(|_| Gone)
    }

    /// Sends a cancel whose answer nobody needs.
    pub(crate) async fn cancel_unheard(&self, id: OperationId, epoch: Epoch) -> Result<(), Gone> {
        let answer = None;
        self.command(Command::Cancel { id, epoch, answer }).await
    }

    /// Tells the runner that it may drop the operation, unless somebody reads it.
    pub(crate) async fn forget(&self, id: OperationId) -> Result<(), Gone> {
        self.command(Command::Forget { id }).await
    }

    async fn command(&self, command: Command) -> Result<(), Gone> {
        self.commands.send(command).await.map_err(|_| Gone)
    }
}
