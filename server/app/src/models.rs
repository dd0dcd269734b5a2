//! The models that a person may use, and the accounts at providers that pay for them.
//!
//! An account belongs to a person, to the tenant or to the operator, and they count in this order. The key of an
//! account is sealed by the vault and is never shown again. [`Offered`] tells which models there are and asks them.

mod connections;
mod name;
mod offered;
mod over_link;
mod probe;

use std::sync::Arc;

pub use server_llm::Health;
use server_llm::{Profile, WireFormat};
pub use server_store::AccountOf;
use server_store::{AccountTerms, ModelAccountRow, NewModelAccount, SealedSecret, Store};
use shared_types::{Clock, Entropy, ModelAccountId, SecretId, TenantId, clean::is_clean_line};

pub use name::account as check_account_name;
pub use offered::{Offered, OperatorModels as KnownModels};
pub use probe::Probed;
pub use shared_types::PaidBy;

use crate::{
    AppError, OpContext,
    gate::Gate,
    rights::Action,
    vault::{Plain, Vault},
};

/// Longest key, in bytes.
const MAX_KEY_BYTES: usize = 4096;

/// The allowed values of the setting `model`, in words.
pub(crate) const ALLOWED: &str = "a model that gantry models lists, a tier (vanguard, balance, swift) or auto; several, with commas \
    between them, answer in place of one another";

/// The account under which the operator's models are listed.
const OPERATOR: &str = "operator";

/// A model that may be used.
#[derive(Debug, Clone)]
pub struct ListedModel {
    /// Its name.
    pub name: String,
    /// The name of the account; `operator` for those of `[model]` itself, and
    /// that of the runner for a runner's.
    pub account: String,
    /// Whose account pays.
    pub paid_by: PaidBy,
    /// True for the practice model.
    pub practice: bool,
    /// Its abilities and its price.
    pub profile: Profile,
    /// Its state.
    pub state: ModelState,
    /// True if it answers where the person has chosen no other one.
    pub is_default: bool,
}

/// The state of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelState {
    /// That of its vendor.
    Vendor(Health),
    /// The runner is offline, or its model server does not answer, for this reason.
    Away(String),
}

impl From<Health> for ModelState {
    fn from(health: Health) -> Self {
        Self::Vendor(health)
    }
}

/// An account that a person may use; its key is not told.
#[derive(Debug, Clone)]
pub struct Account {
    /// The account.
    pub row: ModelAccountRow,
    /// The models that it names, or those that the catalogue lists for its provider.
    pub models: Vec<String>,
}

/// An account that is to be added or replaced.
#[derive(Clone)]
pub struct NewAccount {
    /// The provider of the catalogue; or a name of its own, with an address.
    pub provider: String,
    /// The name of the account; that of the provider if it is absent.
    pub name: Option<String>,
    /// The wire format, where it is not that of the provider.
    pub format: Option<String>,
    /// The address, where it is not that of the provider.
    pub base_url: Option<String>,
    /// The models that it offers; those of the catalogue if there are none.
    pub models: Vec<String>,
    /// The key; absent for servers without keys.
    pub key: Option<String>,
    /// True for an account of the tenant, for all of its people.
    pub of_tenant: bool,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct ModelAccounts {
    store: Store,
    gate: Gate,
    vault: Vault,
    offered: Offered,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl ModelAccounts {
    pub(crate) fn new(parts: &crate::Parts, gate: &Gate, offered: &Offered) -> Self {
        Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            vault: parts.vault.clone(),
            offered: offered.clone(),
            clock: parts.clock.clone(),
            entropy: parts.entropy.clone(),
        }
    }

    /// Takes up other settings of the operator.
    pub(crate) fn replace(&self, known: KnownModels) {
        self.offered.replace(known);
    }

    /// The models that the user may use, those of the user's own accounts first.
    ///
    /// # Errors
    /// If the user may not see settings, or the store does not answer.
    pub async fn list(&self, ctx: &OpContext) -> Result<Vec<ListedModel>, AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        self.offered.list(ctx.tenant, ctx.user).await
    }

    /// The accounts that the user may use: the user's own, then the tenant's.
    ///
    /// # Errors
    /// If the user may not see settings, or the store does not answer.
    pub async fn accounts(&self, ctx: &OpContext) -> Result<Vec<Account>, AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        let rows = self.store.model_accounts(ctx.tenant, ctx.user).await?;
        Ok(rows.into_iter().map(|row| self.account(row)).collect())
    }

    /// Adds an account, or replaces the one of this name, once its model answers a small request. Nothing is stored
    /// where it does not.
    ///
    /// # Errors
    /// If the user may not add it, a value is not allowed, or the provider refuses the key; the text says what to do.
    pub async fn add(
        &self,
        ctx: &OpContext,
        new: NewAccount,
    ) -> Result<(Account, Probed), AppError> {
        let of = self.owner(ctx, new.of_tenant)?;
        let key = new.key.as_deref().map(key).transpose()?;
        let (provider, terms) = self.terms(&new)?;
        let known = self.own(ctx, of, &terms.name).await?;
        let id = match &known {
            Some(row) => row.id,
            None => ModelAccountId::generate(&*self.clock, &*self.entropy),
        };
        let now = self.clock.now();
        let row = ModelAccountRow {
            id,
            of,
            provider: provider.clone(),
            terms: terms.clone(),
            key: None,
            created_by: ctx.user,
            created_at: now,
            changed_at: now,
        };
        let model = self.offered.default_of(&row)?;
        let given = key
            .as_ref()
            .map(|key| key.expose_text().unwrap_or_default());
        let probed = self.offered.probe(&row, &model, given).await?;
        let sealed = match &key {
            Some(key) => Some(self.sealed(ctx.tenant, known.as_ref(), key).await?),
            None => None,
        };
        let by = ctx.by();
        let row = match known {
            Some(known) => {
                let key = sealed.as_ref();
                let store = &self.store;
                store
                    .change_model_account(ctx.tenant, known.id, &terms, key, &by, now)
                    .await?
            }
            None => {
                let account = NewModelAccount {
                    id,
                    of,
                    provider,
                    terms,
                    key: sealed,
                };
                self.store
                    .add_model_account(ctx.tenant, &account, &by, now)
                    .await?
            }
        };
        Ok((self.account(row), probed))
    }

    /// Asks a model, or the default model of an account, one small thing.
    ///
    /// # Errors
    /// If the user has no such model or account, or it does not answer; the text says what to do.
    pub async fn test(&self, ctx: &OpContext, name: &str) -> Result<Probed, AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        self.offered.test(ctx.tenant, ctx.user, name).await
    }

    /// The providers that the server knows, by name, and whether their servers ask for a key.
    pub fn providers(&self) -> Vec<(String, bool)> {
        let catalogue = self.offered.catalogue();
        let providers = catalogue.providers();
        providers
            .map(|it| (it.name.clone(), it.key.is_some()))
            .collect()
    }

    /// Removes an account, with its key.
    ///
    /// # Errors
    /// If the user has no such account, or may not remove it.
    pub async fn remove(&self, ctx: &OpContext, id: ModelAccountId) -> Result<(), AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        let rows = self.store.model_accounts(ctx.tenant, ctx.user).await?;
        let row = rows.into_iter().find(|row| row.id == id);
        let row = row.ok_or(AppError::NotFound("model account"))?;
        self.owner(ctx, row.of == AccountOf::Tenant)?;
        let by = ctx.by();
        let removed = self
            .store
            .remove_model_account(ctx.tenant, row.id, &by, self.clock.now());
        Ok(removed.await?)
    }

    fn owner(&self, ctx: &OpContext, of_tenant: bool) -> Result<AccountOf, AppError> {
        match of_tenant {
            true => {
                self.gate.own(ctx, Action::ChangeTenantSettings)?;
                Ok(AccountOf::Tenant)
            }
            false => {
                self.gate.own(ctx, Action::ChangeSettings)?;
                Ok(AccountOf::User(ctx.user))
            }
        }
    }

    /// The account of this name and owner.
    async fn own(
        &self,
        ctx: &OpContext,
        of: AccountOf,
        name: &str,
    ) -> Result<Option<ModelAccountRow>, AppError> {
        let rows = self.store.model_accounts(ctx.tenant, ctx.user).await?;
        let mut rows = rows.into_iter();
        Ok(rows.find(|row| row.of == of && row.terms.name == name))
    }

    /// The provider of a new account, and the rest of it, checked.
    fn terms(&self, new: &NewAccount) -> Result<(String, AccountTerms), AppError> {
        let catalogue = self.offered.catalogue();
        let known = catalogue.provider(&new.provider);
        let name = new.name.as_deref().unwrap_or(&new.provider);
        name::account(name)?;
        if let Some(format) = &new.format {
            format
                .parse::<WireFormat>()
                .map_err(|error| AppError::Invalid(error.to_string()))?;
        }
        if known.is_none() && new.base_url.is_none() {
            let names: Vec<_> = catalogue.providers().map(|it| it.name.as_str()).collect();
            return Err(AppError::Invalid(format!(
                "no provider is called {:?}; there are {}; or give the address of a server with --url",
                new.provider,
                names.join(", ")
            )));
        }
        for model in &new.models {
            name::model(model)?;
        }
        let provider = known.map_or(new.provider.as_str(), |known| &known.name);
        let terms = AccountTerms {
            name: name.to_owned(),
            format: new.format.clone(),
            base_url: new.base_url.clone(),
            models: new.models.clone(),
        };
        Ok((provider.to_owned(), terms))
    }

    /// The key, sealed: the next version of the secret where the account has one.
    async fn sealed(
        &self,
        tenant: TenantId,
        known: Option<&ModelAccountRow>,
        key: &Plain,
    ) -> Result<SealedSecret, AppError> {
        let (id, version) = match known.and_then(|row| row.key) {
            Some(id) => (id, self.store.secret(tenant, id).await?.version + 1),
            None => (SecretId::generate(&*self.clock, &*self.entropy), 1),
        };
        let sealed = self.vault.seal(tenant, id, version, key).await;
        sealed.map_err(|error| AppError::Conflict(error.to_string()))
    }

    fn account(&self, row: ModelAccountRow) -> Account {
        Account {
            models: self.offered.models_of(&row),
            row,
        }
    }
}

/// The key as it is sealed.
fn key(text: &str) -> Result<Plain, AppError> {
    let key = text.trim();
    match !key.is_empty() && key.len() <= MAX_KEY_BYTES && is_clean_line(key) {
        true => Ok(Plain::new(key.to_owned())),
        false => Err(AppError::Invalid(format!(
            "a key is one line of 1 to {MAX_KEY_BYTES} bytes; copy it again"
        ))),
    }
}
