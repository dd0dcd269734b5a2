//! Fetches the outcomes of operations for which nobody waits any more, when their runner links or
//! their call ends: the truth is stored although the turn that asked is long over (contract A15).

use std::sync::Arc;

use shared_link::server::{
    Sums, Unsettled, Verdict,
    fetch::{self, Fetched},
    never_started,
};
use shared_sandbox::{CancelAnswer, Outcome, OutputStream};
use shared_types::{OperationId, limits::SPOOL_BYTES_PER_STREAM};
use tokio::task::{JoinHandle, JoinSet};

use super::{LinkHandle, LinkIdentity, Reader};
use crate::{mailbox::Mailbox, ports::LinkRows};

/// Operations that are read at the same time.
const AT_ONCE: usize = 8;

/// How much of an operation's output is kept before the runner is told that it is durable: less
/// than what makes a command wait, and rarely enough that waiting for the disk costs little.
const COMMIT_EVERY: u64 = SPOOL_BYTES_PER_STREAM / 2;

/// Reads operations of one link to their end.
#[derive(Clone)]
pub(super) struct Settler {
    pub(super) rows: Arc<dyn LinkRows>,
    pub(super) who: Arc<LinkIdentity>,
    pub(super) link: LinkHandle,
}

impl Settler {
    /// Starts a task that ends with its work, or is aborted with its link.
    pub(super) fn start(self, unsettled: Vec<Unsettled>) -> JoinHandle<()> {
        tokio::spawn(async move {
            let mut running = JoinSet::new();
            for operation in unsettled {
                if running.len() >= AT_ONCE {
                    running.join_next().await;
                }
                let settler = self.clone();
                running.spawn(async move { settler.settle(operation).await });
            }
            while running.join_next().await.is_some() {}
        })
    }

    /// Does for one operation whose call has just ended what a link does for those that it finds.
    pub(super) async fn settle_late(self, id: OperationId) {
        let verdicts = self.rows.verdicts(&self.who, &[id]).await;
        let verdict = verdicts.map(|mut verdicts| verdicts.pop());
        match verdict {
            Ok(Some((_, Verdict::Settle(attachment) | Verdict::Cancel(attachment)))) => {
                let abandoned = true;
                self.settle(Unsettled {
                    id,
                    attachment,
                    abandoned,
                })
                .await;
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(operation.id = %id, %error, "left to the next link");
            }
        }
    }

    /// Reads one operation to its end, keeps its output, and stores the outcome if that is what was
    /// written.
    async fn settle(&self, operation: Unsettled) {
        let id = operation.id;
        let outputs = self.rows.outputs(&self.who);
        let Ok(kept) = outputs.synced(id).await else {
            return;
        };
        let mut mailbox = Mailbox::starting_at(kept);
        let (post, _) = mailbox.attach();
        let key = self.link.reader();
        let reader = Reader {
            key,
            post,
            // The request is not known here, so neither is how it can end.
            expects: |_| true,
            yields: true,
        };
        let frame = fetch::frame(&operation, self.link.incarnation(), kept);
        if self.link.attach(id, frame, reader).await.is_err() {
            return;
        }
        // The runner may wait for what was kept over an earlier link.
        self.commit(&operation, key, kept).await;
        let (mut uncommitted, mut sums) = (0, Sums::after(kept));
        loop {
            match fetch::mail(mailbox.next().await) {
                Fetched::Taken(stream, up_to, data) => {
                    match data.is_empty() {
                        true => sums.miss(stream),
                        false => sums.add(stream, &data),
                    }
                    uncommitted += data.len() as u64;
                    let offset = up_to - data.len() as u64;
                    if outputs.append(id, stream, offset, data).await.is_err() {
                        return;
                    }
                    if uncommitted >= COMMIT_EVERY {
                        uncommitted = 0;
                        let Ok(synced) = outputs.synced(id).await else {
                            return;
                        };
                        self.commit(&operation, key, synced).await;
                    }
                    if let Some(up_to) = mailbox.taken(stream, up_to)
                        && self.link.grant(id, key, stream, up_to).await.is_err()
                    {
                        return;
                    }
                }
                Fetched::Store(outcome) => {
                    return self.store_held(&operation, outcome, sums).await;
                }
                Fetched::Fence => return self.fence(&operation).await,
                Fetched::GivenUp => return,
            }
        }
    }

    /// Tells what is durable, of streams that are so long that a command may wait for it.
    async fn commit(&self, operation: &Unsettled, reader: u64, synced: [u64; 2]) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let up_to = synced[stream as usize];
            if up_to >= COMMIT_EVERY {
                let commit = fetch::commit(operation, stream, up_to);
                // If the link is gone, the mailbox says so after what is left in it.
                let _ = self.link.pass(operation.id, reader, commit).await;
            }
        }
    }

    /// What is not told here is said by the next inventory's verdict.
    async fn forget(&self, id: OperationId) {
        match self.rows.outputs(&self.who).synced(id).await {
            Ok(_) => drop(self.link.forget(id).await),
            Err(error) => {
                tracing::error!(operation.id = %id, %error, "the output cannot be kept; the runner is to keep it");
            }
        }
    }

    /// Has the runner say that it never starts what it does not know. The next link settles what it
    /// does not answer.
    async fn fence(&self, operation: &Unsettled) {
        let holder = (operation.attachment.owner, operation.attachment.epoch);
        if let Ok(Ok(CancelAnswer::NeverStarted)) = self.link.cancel(operation.id, holder).await {
            let outcome = Outcome::Refused(never_started());
            self.store(operation, &outcome).await;
        }
    }

    /// Holds the output to its checksums, what is kept from before included, and stores the end.
    async fn store_held(&self, operation: &Unsettled, told: Outcome, mut sums: Sums) {
        let (id, outputs) = (operation.id, self.rows.outputs(&self.who));
        while let Some((stream, from)) = sums.unread(&told) {
            match outputs.read(id, stream, from).await {
                Ok(kept) => sums.read(stream, kept.as_ref().map(|(at, data)| (*at, &data[..]))),
                Err(error) => {
                    tracing::warn!(operation.id = %id, %error, "its output cannot be read; left to the next link");
                    return;
                }
            }
        }
        let outcome = sums.held_to(told.clone());
        if outcome != told {
            tracing::error!(operation.id = %id, ?outcome, "the output of an operation is not what it wrote");
        }
        self.store(operation, &outcome).await;
    }

    async fn store(&self, operation: &Unsettled, outcome: &Outcome) {
        let id = operation.id;
        match self.rows.settle(&self.who, id, outcome).await {
            Ok(()) if operation.abandoned => self.forget(id).await,
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(operation.id = %id, %error, "failed to store an outcome");
            }
        }
    }
}
