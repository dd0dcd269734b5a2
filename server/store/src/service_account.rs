//! Service accounts: users that are no persons. They have keys, and never sign in.

use serde_json::json;
use shared_types::{TenantId, Timestamp};

use crate::{
    By, NewUser, Role, Store, StoreError, UserKind, UserRow,
    database::retried,
    person::{record, require_room},
    user,
};

impl Store {
    /// Makes a service account.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the name is taken; [`StoreError::Full`] if the tenant has
    /// [`crate::PEOPLE_AT_MOST`] people and service accounts.
    pub async fn add_service_account(
        &self,
        tenant: TenantId,
        new: &NewUser,
        role: Role,
        by: &By,
        now: Timestamp,
    ) -> Result<UserRow, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            user::insert(&mut tx, tenant, new, UserKind::Service, role, now).await?;
            let detail = json!({ "name": new.name, "role": role });
            let kind = "service_account.added";
            record(&mut tx, tenant, by, kind, new.id, detail, now).await?;
            require_room(&mut tx, tenant).await?;
            let added = user::find(&mut tx, tenant, new.id).await?;
            tx.commit().await?;
            Ok(added)
        })
    }
}
