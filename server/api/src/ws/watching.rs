//! The lists that a client watches on its connection. A task tells it of their changes; while it waits for a slow
//! client, more changes only add to one set.

use std::collections::BTreeSet;

use server_app::{ChangeHint, Changes, OpContext, Watch};
use shared_api::ServerMessage;
use shared_types::Topic;
use tokio_util::task::AbortOnDropHandle;

use super::outbox::Outbox;
use crate::Doors;

/// See the module.
pub(super) struct Watching {
    changes: Changes,
    outbox: Outbox,
    begun: Option<Begun>,
}

struct Begun {
    asked: BTreeSet<Topic>,
    readable: BTreeSet<Topic>,
    _task: AbortOnDropHandle<()>,
}

impl Watching {
    pub(super) fn new(doors: &Doors, outbox: Outbox) -> Self {
        Self {
            changes: doors.app.changes.clone(),
            outbox,
            begun: None,
        }
    }

    /// Watches these lists, as far as the client may read them, in place of earlier ones.
    pub(super) fn begin(&mut self, ctx: &OpContext, asked: BTreeSet<Topic>) {
        // The earlier task has its last message in the queue, or none, before the new one begins.
        self.begun = None;
        let watch = self.changes.watch(ctx, &asked);
        let task = tokio::spawn(tell(watch, self.outbox.clone()));
        self.begun = Some(Begun {
            readable: self.changes.readable(ctx, &asked),
            asked,
            _task: AbortOnDropHandle::new(task),
        });
    }

    /// Begins again if the client may read other lists than before.
    pub(super) fn may_go_on(&mut self, ctx: &OpContext) {
        let Some(begun) = &self.begun else {
            return;
        };
        if self.changes.readable(ctx, &begun.asked) != begun.readable {
            let asked = begun.asked.clone();
            self.begin(ctx, asked);
        }
    }
}

/// Tells of changes until the client leaves.
async fn tell(mut watch: Watch, outbox: Outbox) {
    loop {
        let ChangeHint { topics, sessions } = watch.next().await;
        if !outbox
            .send(&ServerMessage::Changed { topics, sessions })
            .await
        {
            return;
        }
    }
}
