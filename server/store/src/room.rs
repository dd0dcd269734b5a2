//! The room of one owner: the most rows of one kind that a user, or the tenant, may have.

use shared_types::TenantId;

use crate::{
    Full, StoreError,
    columns::Columns as _,
    database::{Connection, Row, query},
};

/// The room for one kind of row, in words for people ([`Full`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Counts the owner's rows as `used`. `$1` is the tenant, and `$2` is the user; it is empty for the tenant's own rows.
    pub(crate) count: &'static str,
    /// The owner with a verb, such as `you have`.
    pub(crate) has: &'static str,
    /// The most rows.
    pub(crate) at_most: u64,
    /// The rows.
    pub(crate) what: &'static str,
    /// The remedy.
    pub(crate) remedy: &'static str,
}

impl Room {
    /// Refuses the row that was written last if it is one too many.
    ///
    /// # Errors
    /// [`StoreError::Full`].
    pub(crate) async fn must_hold(
        &self,
        tx: &mut Connection,
        tenant: TenantId,
        owner: &str,
    ) -> Result<(), StoreError> {
        let row: Row = query(self.count)
            .bind(tenant.to_string())
            .bind(owner)
            .fetch_one(tx)
            .await?;
        let used = row.count("used")?;
        if used <= self.at_most {
            return Ok(());
        }
        Err(StoreError::Full(Full {
            has: self.has,
            used: used - 1,
            at_most: self.at_most,
            what: self.what,
            remedy: self.remedy,
        }))
    }
}
