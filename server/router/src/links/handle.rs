//! What others want of a link: the handle to its task.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use proto::v1::{self, server_frame};
use shared_link::server::{Command, Linked};
use shared_sandbox::{CancelAnswer, OutputStream};
use shared_types::{Epoch, Generation, Incarnation, OperationId, Refusal};
use tokio::sync::{mpsc, oneshot};

use crate::mailbox::Post;

/// Wishes to one link that may wait; whoever has one more waits itself.
const WISHES: usize = 256;

/// How many bits of a control's id tell those of one link apart.
const CONTROLS_PER_LINK_BITS: u32 = 32;

/// Speaks to one link's task.
#[derive(Debug, Clone)]
pub(crate) struct LinkHandle {
    linked: Arc<Linked>,
    /// Keys that were given so far.
    keys: Arc<AtomicU64>,
    wishes: mpsc::Sender<Box<Wish>>,
}

/// The link is gone; the operation goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// Who reads an operation's output.
pub(crate) type Reader = shared_link::server::Reader<Post>;

/// A command, and whoever waits for what becomes of a cancel.
pub(super) struct Wish {
    pub(super) command: Command<Post>,
    pub(super) answer: Option<CancelWaiter>,
}

pub(super) type CancelWaiter = oneshot::Sender<Result<CancelAnswer, Refusal>>;

impl LinkHandle {
    /// A handle and the queue of what is wanted through it.
    pub(super) fn new(linked: Linked) -> (Self, mpsc::Receiver<Box<Wish>>) {
        let (wishes, queue) = mpsc::channel(WISHES);
        let handle = Self {
            linked: Arc::new(linked),
            keys: Arc::default(),
            wishes,
        };
        (handle, queue)
    }

    pub(crate) fn linked(&self) -> &Linked {
        &self.linked
    }

    pub(crate) fn generation(&self) -> Generation {
        self.linked.generation
    }

    pub(crate) fn incarnation(&self) -> &Incarnation {
        &self.linked.incarnation
    }

    /// The key of a new reader.
    pub(crate) fn reader(&self) -> u64 {
        self.keys.fetch_add(1, Ordering::Relaxed)
    }

    /// The id of something that is to be done to a process: larger than any before, over this
    /// link and over earlier ones, whichever server's they were.
    pub(crate) fn control_id(&self) -> u64 {
        let key = self.keys.fetch_add(1, Ordering::Relaxed);
        (self.linked.generation.0 << CONTROLS_PER_LINK_BITS) | key
    }

    /// Sends the operation; what comes back goes to the reader, in place of an earlier one's.
    pub(crate) async fn attach(
        &self,
        id: OperationId,
        frame: v1::Operation,
        reader: Reader,
    ) -> Result<(), Gone> {
        let frame = Box::new(frame);
        self.wish(Command::Attach { id, frame, reader }, None).await
    }

    /// The reader with this key has more room.
    pub(crate) async fn grant(
        &self,
        id: OperationId,
        reader: u64,
        stream: OutputStream,
        up_to: u64,
    ) -> Result<(), Gone> {
        let grant = Command::Grant {
            id,
            reader,
            stream,
            up_to,
        };
        self.wish(grant, None).await
    }

    /// Sends a frame on behalf of the reader with this key.
    pub(crate) async fn pass(
        &self,
        id: OperationId,
        reader: u64,
        frame: server_frame::Kind,
    ) -> Result<(), Gone> {
        let frame = Box::new(frame);
        self.wish(Command::Pass { id, reader, frame }, None).await
    }

    /// Sends a cancel and waits for the answer, which the caller bounds.
    pub(crate) async fn cancel(
        &self,
        id: OperationId,
        epoch: Epoch,
    ) -> Result<Result<CancelAnswer, Refusal>, Gone> {
        let (waiter, answer) = oneshot::channel();
        self.wish(Command::Cancel { id, epoch }, Some(waiter))
            .await?;
        answer.await.map_err(|_| Gone)
    }

    /// Sends a cancel whose answer nobody needs.
    pub(crate) async fn cancel_unheard(&self, id: OperationId, epoch: Epoch) -> Result<(), Gone> {
        self.wish(Command::Cancel { id, epoch }, None).await
    }

    /// Tells the runner that it may drop the operation, unless somebody reads it.
    pub(crate) async fn forget(&self, id: OperationId) -> Result<(), Gone> {
        self.wish(Command::Forget { id }, None).await
    }

    async fn wish(&self, command: Command<Post>, answer: Option<CancelWaiter>) -> Result<(), Gone> {
        let wish = Box::new(Wish { command, answer });
        self.wishes.send(wish).await.map_err(|_| Gone)
    }
}
