//! The models of one session, as its turns ask for them.

use std::sync::Arc;

use async_trait::async_trait;
use server_agent::{ModelSource, SessionModels};
use server_llm::Model;
use server_records::SessionKey;
use server_store::{SettingName, StoreError};
use shared_types::{SessionId, TenantId};

use super::Offered;
use crate::AppError;

impl SessionModels for Offered {
    fn of(&self, SessionKey { tenant, session }: SessionKey) -> Arc<dyn ModelSource> {
        Arc::new(OfSession {
            offered: self.clone(),
            tenant,
            session,
        })
    }
}

/// The models of one session: those that count when the model is asked, so that a change is in effect from the next
/// step on.
struct OfSession {
    offered: Offered,
    tenant: TenantId,
    session: SessionId,
}

#[async_trait]
impl ModelSource for OfSession {
    fn base_prompt(&self) -> Option<Arc<str>> {
        self.offered.prompt()
    }

    async fn offers(&self, model: &str) -> bool {
        let of = &self.offered;
        let user = of.store.session_owner(self.tenant, self.session).await;
        match user {
            Ok(user) => of.chain(self.tenant, user, Some(model)).await.is_ok(),
            Err(_) => false,
        }
    }

    async fn chain(&self, _of_turn: Option<&str>) -> Result<Vec<Arc<dyn Model>>, String> {
        let Self {
            offered,
            tenant,
            session,
        } = self;
        let unavailable = |error: StoreError| AppError::from(error).to_string();
        let user = offered.store.session_owner(*tenant, *session).await;
        let user = user.map_err(unavailable)?;
        let stored = offered.store.settings(*tenant, user, Some(*session)).await;
        let stored = stored.map_err(unavailable)?;
        let chosen = stored.in_effect(SettingName::Model);
        offered
            .chain(*tenant, user, chosen.map(|row| row.value.as_str()))
            .await
    }
}
