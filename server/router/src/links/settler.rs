//! Fetches the outcomes of operations for which nobody waits any more, when their runner links or
//! their call ends: the truth is stored although the turn that asked is long over
//! (docs/internals/contracts.md#a15).

use std::{sync::Arc, time::Duration};

use shared_link::server::{
    Sums, Unsettled, Verdict,
    fetch::{self, Fetched},
    never_started,
};
use shared_sandbox::{CancelAnswer, Outcome, OutputStream};
use shared_types::OperationId;
use tokio::{
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use super::{LinkHandle, LinkIdentity, Reader};
use crate::{
    mailbox::{Mailbox, Post},
    ports::LinkRows,
};

mod keeping;

use keeping::Keeping;

/// Operations that have ended and are read at the same time.
const AT_ONCE: usize = 8;

/// Operations that still run and are followed at the same time: more than a runner runs.
const FOLLOWED: usize = 1024;

/// How often an operation is asked for at once whose owner gets a newer epoch meanwhile.
const EPOCHS: u32 = 8;

/// Reads operations of one link to their end.
#[derive(Clone)]
pub(super) struct Settler {
    pub(super) rows: Arc<dyn LinkRows>,
    pub(super) who: Arc<LinkIdentity>,
    pub(super) link: LinkHandle,
    /// See [`super::LinkOptions`].
    pub(super) keep_again_after: Duration,
    /// Takes the place of a reader that is there, who wants no more, instead of making way for it.
    pub(super) takes_over: bool,
}

/// What is left to do for an operation.
#[derive(Debug, PartialEq)]
enum Left {
    /// Nothing, or nothing over this link.
    Nothing,
    /// Its owner has a newer epoch than it was asked for with.
    Stale,
    /// Its output could not be kept, which is tried again later.
    Output,
}

impl Settler {
    /// Starts a task that ends with its work, or is aborted with its link. Those that have ended
    /// never wait for those that run.
    pub(super) fn start(self, ended: Vec<Unsettled>, running: Vec<Unsettled>) -> JoinHandle<()> {
        tokio::spawn(async move {
            tokio::join!(self.settle_ended(ended), self.settle_running(running));
        })
    }

    async fn settle_ended(&self, mut operations: Vec<Unsettled>) {
        while !operations.is_empty() {
            let (mut reading, mut again) = (JoinSet::new(), Vec::new());
            for operation in operations {
                if reading.len() >= AT_ONCE {
                    again.extend(reading.join_next().await.and_then(Result::ok).flatten());
                }
                let key = self.link.reader();
                reading.spawn(self.clone().settle(operation, key));
            }
            while let Some(read) = reading.join_next().await {
                again.extend(read.ok().flatten());
            }
            if let Some(operation) = again.first() {
                self.until_it_can_be_kept(operation.id).await;
            }
            operations = again;
        }
    }

    async fn settle_running(&self, operations: Vec<Unsettled>) {
        let mut followed = JoinSet::new();
        for operation in operations {
            if followed.len() >= FOLLOWED {
                followed.join_next().await;
            }
            followed.spawn(self.clone().settle_at_last(operation));
        }
        while followed.join_next().await.is_some() {}
    }

    /// Does for one operation whose call has just ended what a link does for those that it finds.
    pub(super) async fn settle_late(self, id: OperationId) {
        if let Some(operation) = self.found(id, true).await {
            self.settle_at_last(operation).await;
        }
    }

    async fn settle_at_last(mut self, mut operation: Unsettled) {
        // One reader's, so that it makes way for others only.
        let key = self.link.reader();
        while let Some(again) = self.clone().settle(operation, key).await {
            operation = again;
            self.takes_over = false;
            self.until_it_can_be_kept(operation.id).await;
        }
    }

    /// Waits until the output of this operation may be kept by now, or the link is gone.
    async fn until_it_can_be_kept(&self, id: OperationId) {
        let outputs = self.rows.outputs(&self.who);
        loop {
            sleep(self.keep_again_after).await;
            if self.link.is_gone() || outputs.resume(id).await.is_ok() {
                return;
            }
        }
    }

    /// Does what can be done now; what comes back is to be asked for again, because its output could
    /// not be kept.
    async fn settle(mut self, mut operation: Unsettled, key: u64) -> Option<Unsettled> {
        for _ in 0..EPOCHS {
            let left = self.read(&operation, key).await;
            // Whoever reads it by now wants to.
            self.takes_over = false;
            match left {
                Left::Nothing => return None,
                Left::Output => return Some(operation),
                Left::Stale => operation = self.found(operation.id, operation.abandoned).await?,
            }
        }
        tracing::warn!(runner.id = %self.who.runner, operation.id = %operation.id, "its session goes on too fast; left to the next link");
        None
    }

    /// What it takes to attach to it by now, where that is still to be done.
    async fn found(&self, id: OperationId, abandoned: bool) -> Option<Unsettled> {
        let verdicts = self.rows.verdicts(&self.who, &[id]).await;
        match verdicts.map(|mut verdicts| verdicts.pop()) {
            Ok(Some((_, Verdict::Settle(attachment) | Verdict::Cancel(attachment)))) => {
                Some(Unsettled {
                    id,
                    attachment,
                    abandoned,
                })
            }
            // It was settled meanwhile, by whoever read it before.
            Ok(Some((_, Verdict::Forget))) => {
                self.forget_kept(id).await;
                None
            }
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(runner.id = %self.who.runner, operation.id = %id, %error, "left to the next link");
                None
            }
        }
    }

    /// What is not told here is said by the next inventory's verdict.
    async fn forget_kept(&self, id: OperationId) {
        if self.rows.outputs(&self.who).synced(id).await.is_ok() {
            let _ = self.link.forget(id).await;
        }
    }

    fn reader(&self, key: u64, post: Post) -> Reader {
        Reader {
            key,
            post,
            // The request is not known here, so neither is how it can end.
            expects: |_| true,
            yields: !self.takes_over,
        }
    }

    /// Reads one operation to its end, keeps its output, and stores the outcome if that is what was
    /// written: also where the output cannot be kept.
    async fn read(&self, operation: &Unsettled, key: u64) -> Left {
        let id = operation.id;
        let (mut keeping, kept) =
            Keeping::begin(self.rows.outputs(&self.who), id, self.keep_again_after).await;
        let mut mailbox = Mailbox::starting_at(kept);
        let (post, _) = mailbox.attach();
        let (frame, reader) = (
            fetch::frame(operation, self.link.incarnation(), kept),
            self.reader(key, post),
        );
        if self.link.attach(id, frame, reader).await.is_err() {
            return Left::Nothing;
        }
        // The runner may wait for what was kept over an earlier link, and need not keep it where nobody
        // will read it.
        let least = match operation.abandoned {
            true => 1,
            false => keeping::COMMIT_EVERY,
        };
        self.commit(operation, key, (kept, least)).await;
        let mut sums = Sums::after(kept);
        loop {
            let Some(mail) = keeping.unless_there_is_room(mailbox.next()).await else {
                return Left::Output;
            };
            match fetch::mail(mail) {
                Fetched::Taken(stream, up_to, data) => {
                    match data.is_empty() {
                        true => sums.miss(stream, up_to),
                        false => sums.add(stream, &data),
                    }
                    if let Some(synced) = keeping.keep(stream, up_to, data).await {
                        let least = keeping::COMMIT_EVERY;
                        self.commit(operation, key, (synced, least)).await;
                    }
                    if let Some(up_to) = mailbox.taken(stream, up_to)
                        && self.link.grant(id, key, stream, up_to).await.is_err()
                    {
                        return Left::Nothing;
                    }
                }
                Fetched::Store(outcome) => {
                    let stored = self.store_held(operation, outcome, sums).await;
                    if !keeping.is_all_kept().await {
                        return Left::Output;
                    }
                    if stored {
                        self.forget(operation).await;
                    }
                    return Left::Nothing;
                }
                Fetched::Fence => {
                    self.fence(operation).await;
                    return Left::Nothing;
                }
                Fetched::Stale => return Left::Stale,
                Fetched::GivenUp => return Left::Nothing,
            }
        }
    }

    /// Tells what is durable, of streams of which at least so much is.
    async fn commit(&self, operation: &Unsettled, reader: u64, (synced, least): ([u64; 2], u64)) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let up_to = synced[stream as usize];
            if up_to >= least {
                let commit = fetch::commit(operation, stream, up_to);
                // If the link is gone, the mailbox says so after what is left in it.
                let _ = self.link.pass(operation.id, reader, commit).await;
            }
        }
    }

    /// What is not told here is said by the next inventory's verdict. Of what was not abandoned when
    /// this began, whoever waits for it says so, unless its call has ended meanwhile.
    async fn forget(&self, operation: &Unsettled) {
        if operation.abandoned {
            let _ = self.link.forget(operation.id).await;
        } else {
            let _ = self.found(operation.id, false).await;
        }
    }

    /// Has the runner say that it never starts what it does not know. The next link settles what it
    /// does not answer.
    async fn fence(&self, operation: &Unsettled) {
        let holder = (operation.attachment.owner, operation.attachment.epoch);
        if let Ok(Ok(CancelAnswer::NeverStarted)) = self.link.cancel(operation.id, holder).await {
            let outcome = Outcome::Refused(never_started());
            if self.store(operation, &outcome).await {
                self.forget(operation).await;
            }
        }
    }

    /// Holds the output to its checksums, what is kept from before included, and stores the end. Says
    /// whether it is stored.
    async fn store_held(&self, operation: &Unsettled, told: Outcome, mut sums: Sums) -> bool {
        let (id, outputs) = (operation.id, self.rows.outputs(&self.who));
        while let Some((stream, from)) = sums.unread(&told) {
            match outputs.read(id, stream, from).await {
                Ok(kept) => sums.read(stream, kept.as_ref().map(|(at, data)| (*at, &data[..]))),
                Err(error) => {
                    tracing::warn!(runner.id = %self.who.runner, operation.id = %id, %error, "its output cannot be read; left to the next link");
                    return false;
                }
            }
        }
        let outcome = sums.held_to(told.clone());
        if outcome != told {
            tracing::error!(runner.id = %self.who.runner, operation.id = %id, ?outcome, "the output of an operation is not what it wrote");
        }
        self.store(operation, &outcome).await
    }

    async fn store(&self, operation: &Unsettled, outcome: &Outcome) -> bool {
        let stored = self.rows.settle(&self.who, operation.id, outcome).await;
        if let Err(error) = &stored {
            tracing::warn!(runner.id = %self.who.runner, operation.id = %operation.id, %error, "failed to store an outcome");
        }
        stored.is_ok()
    }
}
