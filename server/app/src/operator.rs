//! Use cases of the operator at the server's own machine, on behalf of the first owner.

use std::sync::Arc;

use server_store::{Store, StoreError, UserKind};
use shared_types::{Clock, Entropy, Token};

use crate::{
    AppError,
    access::Access,
    allowance::{Allowance, UserLimits},
    gate::Gate,
    keys::SigningKey,
    refusals::Refusals,
    runners::{JoinTerms, JoinTokens},
};

/// The use cases of this file.
pub struct Operator {
    store: Store,
    access: Access,
    join_tokens: JoinTokens,
}

impl Operator {
    /// Over the server's own store and identity key.
    pub fn new(
        store: Store,
        identity: &SigningKey,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let allowance = Allowance::new(UserLimits::default(), clock.clone());
        let gate = Gate::new(store.clone(), Refusals::default());
        let access = Access::new(
            store.clone(),
            gate,
            clock.clone(),
            entropy.clone(),
            allowance,
        );
        let join_tokens = JoinTokens::new(store.clone(), identity.public(), clock, entropy);
        Self {
            store,
            access,
            join_tokens,
        }
    }

    /// A new one-time code for the person of this name, else for the first owner; an older one is worth
    /// nothing from then on.
    ///
    /// # Errors
    /// If there is no such person, or the store does not answer.
    pub async fn sign_in_code(&self, name: Option<&str>) -> Result<String, AppError> {
        let first = self.access.bootstrap().await?;
        let user = match name {
            None => first.owner,
            Some(name) => {
                let stored = name.to_ascii_lowercase();
                let person = self.store.person(first.tenant, &stored);
                match person.await {
                    Ok(person) if person.user.kind == UserKind::Service => {
                        return Err(AppError::Invalid(format!(
                            "{name} is a service account, which does not sign in; an admin makes a key for \
                             it: gantry keys add NAME --service {name}"
                        )));
                    }
                    Ok(person) => person.user.id,
                    Err(StoreError::NotFound) => {
                        return Err(AppError::Invalid(format!(
                            "there is no person {name}; gantry people lists them"
                        )));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        self.access.issue_code(first.tenant, user).await
    }

    /// A join token whose runners will be the first owner's.
    ///
    /// # Errors
    /// If the terms are out of bounds.
    pub async fn join_token(&self, terms: JoinTerms) -> Result<Token, AppError> {
        let first = self.access.bootstrap().await?;
        let made = self
            .join_tokens
            .make(first.tenant, &first.owner.into(), terms, None)
            .await?;
        Ok(made.token)
    }

    /// True if a runner of this name is enrolled, in the first owner's tenant.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn has_runner(&self, name: &str) -> Result<bool, AppError> {
        let first = self.access.bootstrap().await?;
        match self.store.find_runner(first.tenant, name).await {
            Ok(_) => Ok(true),
            Err(StoreError::NotFound) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
