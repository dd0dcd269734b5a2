//! The hints that follow a commit.

use async_trait::async_trait;
use shared_types::{RunnerId, SessionEvent, SessionId, TenantId};

use crate::{Change, SessionKey};

/// Hears of each commit that others may wait for. All of it is a hint: the rows are the truth, and a hint that is lost
/// costs time only.
#[async_trait]
pub trait CommitListener: Send + Sync {
    /// These events are in the session's log now.
    async fn appended(&self, tenant: TenantId, session: SessionId, events: Vec<SessionEvent>);

    /// An operation's end, a runner's link or the wait of a turn was stored: a wait may be over, or is due sooner.
    fn waits_changed(&self);

    /// A runner has another link, or none, or was removed or locked.
    fn link_changed(&self, runner: RunnerId);

    /// An operation is to stop.
    fn cancels_requested(&self);

    /// A turn of the session waits for a worker, and this replica begins none.
    fn unclaimed(&self, of: SessionKey);

    /// Someone's rights may be different in this tenant, or in any: a credential or runner was revoked, a runner was
    /// locked or is shared with other people, or a role has changed.
    fn rights_changed(&self, tenant: Option<TenantId>);

    /// These lists may be different now.
    fn changed(&self, changes: Vec<Change>);
}
