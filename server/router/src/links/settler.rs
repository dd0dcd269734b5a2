//! Fetches the outcomes of operations for which nobody waits any more, when their runner links:
//! the truth is stored although the turn that asked is long over (contract A15).

use std::sync::Arc;

use proto::v1;
use shared_sandbox::Outcome;
use shared_types::OperationId;
use tokio::task::{JoinHandle, JoinSet};

use super::{LinkHandle, LinkIdentity, Reader};
use crate::{
    mailbox::{Mail, Mailbox},
    ports::{Attachment, LinkRows},
};

/// Operations that are read at the same time.
const AT_ONCE: usize = 8;

/// Reads operations of one link to their end.
#[derive(Clone)]
pub(super) struct Settler {
    pub(super) rows: Arc<dyn LinkRows>,
    pub(super) who: Arc<LinkIdentity>,
    pub(super) link: LinkHandle,
}

/// An operation whose outcome is not stored.
pub(super) struct Unsettled {
    pub(super) id: OperationId,
    pub(super) attachment: Attachment,
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

    /// Reads one operation to its end, throws its output away and stores the outcome.
    async fn settle(&self, operation: Unsettled) {
        let id = operation.id;
        let mut mailbox = Mailbox::new();
        let (post, _) = mailbox.attach();
        let reader = Reader {
            post,
            // The request is not known here, so neither is how it can end.
            expects: |_| true,
            yields: true,
        };
        let frame = self.attach_only(&operation);
        if self.link.attach(id, frame, reader).await.is_err() {
            return;
        }
        loop {
            let (stream, up_to) = match mailbox.next().await {
                Mail::Output {
                    stream,
                    offset,
                    data,
                } => (stream, offset + data.len() as u64),
                Mail::Gap { stream, to, .. } => (stream, to),
                Mail::Ended(outcome) => {
                    return self.store(id, &outcome).await;
                }
                Mail::Refused(_) | Mail::Detached | Mail::Superseded => return,
            };
            if let Some(up_to) = mailbox.taken(stream, up_to)
                && self.link.grant(id, stream, up_to).await.is_err()
            {
                return;
            }
        }
    }

    async fn store(&self, id: OperationId, outcome: &Outcome) {
        match self.rows.settle(&self.who, id, outcome).await {
            // A link that is gone is no loss: the next inventory's verdict says it again.
            Ok(()) => drop(self.link.forget(id).await),
            Err(error) => {
                tracing::warn!(operation.id = %id, %error, "failed to store an outcome");
            }
        }
    }

    fn attach_only(&self, operation: &Unsettled) -> v1::Operation {
        let attachment = &operation.attachment;
        v1::Operation {
            operation: operation.id.to_string(),
            digest: attachment.digest.as_bytes().to_vec(),
            sandbox: attachment.sandbox.to_string(),
            owner: attachment.owner.to_string(),
            epoch: attachment.epoch.0,
            incarnation: Some(self.link.incarnation().into()),
            ..v1::Operation::default()
        }
    }
}
