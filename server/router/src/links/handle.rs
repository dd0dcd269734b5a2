//! Requests of other tasks to a link. A caller does its request itself, under the link's lock, and sends its frame to
//! the runner from there. A queue to the link's task would cost a second wake-up of every command.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use proto::v1::{self, server_frame};
use shared_link::server::{self, CancelAnswered, LinkCommand, LinkOver, Linked};
use shared_sandbox::{CancelAnswer, OutputStream};
use shared_types::{
    Epoch, Generation, Incarnation, OperationId, Owner, Refusal, SandboxId, SandboxSpec,
};
use tokio::sync::{
    mpsc::{self, OwnedPermit, error::TrySendError},
    oneshot,
};
use tokio_util::sync::CancellationToken;

use super::asks::Asks;
use crate::mailbox::Post;
use server_records::Operations;

/// The bits of a control's id that tell the controls of one link apart.
const CONTROLS_PER_LINK_BITS: u32 = 32;

/// Operations of one link for which a cancel's answer may be outstanding; beyond it the request counts as recorded.
const MAX_CANCELS: usize = 1024;

/// Callers that may wait for the answer to one operation's cancel.
const MAX_WAITERS: usize = 16;

/// Speaks for one link.
#[derive(Debug, Clone)]
pub(crate) struct LinkHandle(Arc<LinkState>);

/// The link is gone; the operation continues.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LinkGone;

/// A reader of an operation's output on a link.
pub(crate) type OutputReader = shared_link::server::Reader<Post>;

/// Frames on their way to the runner.
pub(super) type Outbound = mpsc::Sender<Box<v1::ServerFrame>>;

type CancelWaiter = oneshot::Sender<Result<CancelAnswer, Refusal>>;

struct LinkState {
    linked: Linked,
    /// Another replica holds the link, and lends it.
    is_borrowed: bool,
    /// Keys that were given so far.
    keys: AtomicU64,
    /// None once the link is over.
    open: Mutex<Option<Open>>,
    /// Sandboxes that the runner needs no more news of over this link.
    settled: Mutex<HashSet<SandboxId>>,
    /// The number of times that sandboxes were changed or removed while the link was there.
    changes: AtomicU64,
    /// Cancelled once the link is over.
    over: CancellationToken,
}

/// A link that is not over.
pub(super) struct Open {
    pub(super) machine: server::Link<Post>,
    outbound: Outbound,
    /// The callers that wait for the answer to a cancel.
    cancels: HashMap<OperationId, Vec<CancelWaiter>>,
    /// The callers that wait for a model's answer.
    pub(super) asks: Asks,
}

impl LinkHandle {
    /// The handle of a link; the task that opens it has to close it.
    pub(super) fn open(linked: Linked, machine: server::Link<Post>, outbound: Outbound) -> Self {
        Self::new(linked, machine, outbound, false)
    }

    /// The handle of a link that another replica lends; likewise.
    pub(super) fn borrow(linked: Linked, outbound: Outbound) -> Self {
        let machine = server::Link::borrowed(linked.incarnation.clone());
        Self::new(linked, machine, outbound, true)
    }

    fn new(
        linked: Linked,
        machine: server::Link<Post>,
        outbound: Outbound,
        is_borrowed: bool,
    ) -> Self {
        Self(Arc::new(LinkState {
            linked,
            is_borrowed,
            keys: AtomicU64::new(0),
            open: Mutex::new(Some(Open {
                machine,
                outbound,
                cancels: HashMap::new(),
                asks: Asks::default(),
            })),
            settled: Mutex::default(),
            changes: AtomicU64::new(0),
            over: CancellationToken::new(),
        }))
    }

    /// Ends the link: readers learn it from their mailboxes, and nothing is sent any more.
    pub(super) fn close(&self) {
        let open = self.lock().take();
        drop(open);
        self.0.over.cancel();
    }

    /// Works on the link.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Open) -> T) -> Result<T, LinkGone> {
        self.lock().as_mut().map(work).ok_or(LinkGone)
    }

    /// True if another replica holds the link. That one keeps the output of its operations, and lets the runner forget
    /// them.
    pub(crate) fn is_borrowed(&self) -> bool {
        self.0.is_borrowed
    }

    /// True if this is the same link, reached in the same way.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Waits until the link is over.
    pub(crate) async fn over(&self) {
        self.0.over.cancelled().await;
    }

    pub(crate) fn linked(&self) -> &Linked {
        &self.0.linked
    }

    pub(crate) fn generation(&self) -> Generation {
        self.0.linked.generation
    }

    pub(crate) fn incarnation(&self) -> &Incarnation {
        &self.0.linked.incarnation
    }

    /// The key of a new reader.
    pub(crate) fn reader(&self) -> u64 {
        self.0.keys.fetch_add(1, Ordering::Relaxed)
    }

    /// The id of a control of a process. It is larger than any before, over this link and over earlier ones, of any
    /// server.
    pub(crate) fn control_id(&self) -> u64 {
        (self.generation().0 << CONTROLS_PER_LINK_BITS) | self.reader()
    }

    /// Sends the operation; its events go to the reader, in place of an earlier one. The frame is made once there is
    /// room for it: it contains the time that the operation may still wait for its start.
    pub(crate) async fn attach(
        &self,
        id: OperationId,
        frame: impl FnOnce() -> v1::Operation,
        reader: OutputReader,
    ) -> Result<(), LinkGone> {
        let attach = || {
            let frame = Box::new(frame());
            LinkCommand::Attach { id, frame, reader }
        };
        self.wish_made(attach, None).await
    }

    /// Grants more room of the reader with this key.
    pub(crate) async fn grant(
        &self,
        id: OperationId,
        reader: u64,
        stream: OutputStream,
        up_to: u64,
    ) -> Result<(), LinkGone> {
        let grant = LinkCommand::Grant {
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
    ) -> Result<(), LinkGone> {
        let frame = Box::new(frame);
        self.wish(LinkCommand::Pass { id, reader, frame }, None)
            .await
    }

    /// Sends a cancel under its owner's epoch, and waits for the answer, which the caller bounds.
    pub(crate) async fn cancel(
        &self,
        id: OperationId,
        owner: Owner,
        epoch: Epoch,
    ) -> Result<Result<CancelAnswer, Refusal>, LinkGone> {
        let (waiter, answer) = oneshot::channel();
        let cancel = LinkCommand::Cancel { id, owner, epoch };
        self.wish(cancel, Some((id, waiter))).await?;
        answer.await.map_err(|_| LinkGone)
    }

    /// Sends a cancel whose answer no caller waits for.
    pub(crate) async fn cancel_unheard(
        &self,
        id: OperationId,
        owner: Owner,
        epoch: Epoch,
    ) -> Result<(), LinkGone> {
        let cancel = LinkCommand::Cancel { id, owner, epoch };
        self.wish(cancel, None).await
    }

    /// Tells the runner that it may drop the operation, unless a reader reads it.
    pub(crate) async fn forget(&self, id: OperationId) -> Result<(), LinkGone> {
        self.wish(LinkCommand::Forget { id }, None).await
    }

    /// Tells the runner to let go of an operation that only reads, because the reader with this key has left.
    pub(crate) async fn let_go(&self, id: OperationId, reader: u64) -> Result<(), LinkGone> {
        self.wish(LinkCommand::LetGo { id, reader }, None).await
    }

    /// Tells if the runner has begun this operation, and let go of it because its reader had left.
    pub(crate) fn has_let_go_of(&self, id: OperationId) -> bool {
        self.with(|open| open.machine.has_let_go_of(id)) == Ok(true)
    }

    /// Sends the runner the specification of a sandbox, before the first operation that goes there over this link. The
    /// store is asked for it once.
    pub(crate) async fn prepare(
        &self,
        sandbox: SandboxId,
        operations: &dyn Operations,
    ) -> Result<(), LinkGone> {
        // The replica that holds the link sends it.
        if self.is_borrowed() || self.settled().contains(&sandbox) {
            return Ok(());
        }
        let mut is_told = false;
        loop {
            let changes = self.changes();
            match operations.sandbox_spec(sandbox).await {
                Ok(Some(spec)) => {
                    self.tell(sandbox, &spec, false).await?;
                    is_told = true;
                }
                // It was removed while the runner received its specification.
                Ok(None) if is_told => return self.remove_sandbox(sandbox).await,
                Ok(None) => {
                    self.settled().insert(sandbox);
                }
                Err(error) => {
                    // The runner refuses an operation in a sandbox that it does not know, and the next operation asks
                    // again.
                    self.settled().remove(&sandbox);
                    tracing::warn!(sandbox.id = %sandbox, %error, "failed to read the specification of a sandbox");
                }
            }
            // A change during the read may have reached the runner before the older specification.
            if self.changes() == changes {
                return Ok(());
            }
        }
    }

    /// Sends the runner the specification that a sandbox has from now on.
    pub(crate) async fn ensure(
        &self,
        sandbox: SandboxId,
        spec: &SandboxSpec,
        start: bool,
    ) -> Result<(), LinkGone> {
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        self.tell(sandbox, spec, start).await
    }

    async fn tell(
        &self,
        sandbox: SandboxId,
        spec: &SandboxSpec,
        start: bool,
    ) -> Result<(), LinkGone> {
        let frame = Box::new(server::ensure_sandbox(sandbox, spec, start));
        self.wish(LinkCommand::Sandbox(frame), None).await?;
        // While policy forbids root, the runner receives the specification again before the next operation: the tenant
        // may allow root at any time. A later ban is sent at once (`Links::ensure_sandbox`).
        match spec.may_sudo {
            true => self.settled().insert(sandbox),
            false => self.settled().remove(&sandbox),
        };
        Ok(())
    }

    fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    /// Has the runner stop a sandbox.
    pub(crate) async fn stop_sandbox(&self, sandbox: SandboxId) -> Result<(), LinkGone> {
        let frame = Box::new(server::stop_sandbox(sandbox));
        self.wish(LinkCommand::Sandbox(frame), None).await
    }

    /// Has the runner remove a sandbox.
    pub(crate) async fn remove_sandbox(&self, sandbox: SandboxId) -> Result<(), LinkGone> {
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        // First, so that an operation that is placed during this sends the specification again, behind this frame.
        self.settled().remove(&sandbox);
        let frame = Box::new(server::remove_sandbox(sandbox));
        self.wish(LinkCommand::Sandbox(frame), None).await
    }

    fn settled(&self) -> MutexGuard<'_, HashSet<SandboxId>> {
        self.0
            .settled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for a frame, then sends the command. Each command sends at most one frame, so the link's own
    /// frames never pile up behind it.
    pub(super) async fn wish(
        &self,
        command: LinkCommand<Post>,
        waiter: Option<(OperationId, CancelWaiter)>,
    ) -> Result<(), LinkGone> {
        self.wish_made(|| command, waiter).await
    }

    async fn wish_made(
        &self,
        command: impl FnOnce() -> LinkCommand<Post>,
        waiter: Option<(OperationId, CancelWaiter)>,
    ) -> Result<(), LinkGone> {
        let outbound = self.with(|open| open.outbound.clone())?;
        let room = self.room(outbound).await?;
        self.with(|open| {
            if let Some((id, waiter)) = waiter {
                open.await_cancel(id, waiter);
            }
            open.machine.command(command());
            open.send_next(|frame| drop(room.send(frame)));
        })
    }

    /// Room for a frame. The end of the link ends the wait as well: the connection behind it may take minutes to notice
    /// that nothing passes any more, and takes no frame until then.
    async fn room(
        &self,
        outbound: Outbound,
    ) -> Result<OwnedPermit<Box<v1::ServerFrame>>, LinkGone> {
        let outbound = match outbound.try_reserve_owned() {
            Ok(room) => return Ok(room),
            Err(TrySendError::Closed(_)) => return Err(LinkGone),
            Err(TrySendError::Full(outbound)) => outbound,
        };
        tokio::select! {
            room = outbound.reserve_owned() => room.map_err(|_| LinkGone),
            () = self.0.over.cancelled() => Err(LinkGone),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Remembers a caller that waits for the answer to a cancel. A waiter that finds no place is dropped, and so learns
    /// at once that there will be no answer.
    fn await_cancel(&mut self, id: OperationId, waiter: CancelWaiter) {
        let outstanding = self.cancels.len();
        if let Some(waiters) = self.cancels.get_mut(&id) {
            waiters.retain(|waiter| !waiter.is_closed());
            if waiters.len() < MAX_WAITERS {
                waiters.push(waiter);
            }
        } else if outstanding < MAX_CANCELS {
            self.cancels.insert(id, vec![waiter]);
        }
    }

    /// Sends the next frame, if there is one. Frames leave here and nowhere else, under the link's
    /// lock: one that was taken and sent later could be overtaken, a welcome by an operation.
    pub(super) fn send_next(&mut self, send: impl FnOnce(Box<v1::ServerFrame>)) {
        if let Some(frame) = self.machine.next_frame() {
            send(Box::new(frame));
        }
    }

    /// Handles a frame from the runner.
    pub(super) fn frame(&mut self, frame: v1::RunnerFrame, now: Duration) -> Result<(), LinkOver> {
        if let Some(CancelAnswered { id, answer }) = self.machine.frame(frame, now)? {
            for waiter in self.cancels.remove(&id).unwrap_or_default() {
                // A caller that stopped waiting knows that its request is recorded.
                let _ = waiter.send(answer.clone());
            }
        }
        match self.machine.take_answered() {
            Some((ask, part)) => self.asks.answered(ask, part),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for LinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("linked", &self.linked)
            .finish_non_exhaustive()
    }
}
