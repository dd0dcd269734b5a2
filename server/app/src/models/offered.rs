//! The models that are offered to a person, and the way from a chosen name to the models that are asked.
//!
//! A name is that of a model (`gpt-6`), of an account and a model (`work/gpt-6`), of a runner and a model
//! (`laptop/qwen3:8b`), of a tier (`balance`) or `auto`. A choice may have several names, separated by commas: where the first model does not answer, the next one does. A
//! model that several accounts offer is asked with each of their keys: the person's own, the tenant's, the operator's.
//! The models of a runner are there for those who may use it, and only where nothing else has the name.

use std::sync::Arc;

use server_llm::{
    ApiKey, Breaker, Catalogue, Health, Limited, Measured, Model, ModelInfo, Models, Named, Offer,
    Profile, Reach, Retry, RetryOptions, ServerOptions, WireFormat,
};
use server_router::links::Links;
use server_store::{AccountOf, ModelAccountRow, RunnerRow, Store};
use shared_types::{Clock, Entropy, PaidBy, TenantId, UserId};
use tokio::sync::watch;

use super::{
    ALLOWED, ListedModel, ModelState, OPERATOR, Probed,
    connections::{Calls, Connections, Of},
    name::{self, AUTO},
    over_link::{OverLink, offline},
    probe::probe,
};
use crate::{
    AppError,
    gate::{Gate, RunnersToUse},
    vault::Vault,
};

mod found;
mod session;

use found::{FoundModel, Places, of_runner};

/// The models of everybody. Clones are the same.
#[derive(Clone)]
pub struct Offered {
    store: Store,
    vault: Vault,
    known: Arc<watch::Sender<OperatorModels>>,
    /// The networks in which the servers of people's accounts may stand.
    reach: Reach,
    connections: Connections,
    links: Links,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

/// The operator's settings of models, which can be replaced.
#[derive(Clone)]
pub struct OperatorModels {
    /// The models that the operator offers.
    pub models: Models,
    /// The providers of models.
    pub catalogue: Arc<Catalogue>,
    /// The operator's text with which the system prompt begins; `None` for Gantry's own.
    pub prompt: Option<Arc<str>>,
}

/// Most runners whose models are offered to a person.
const RUNNERS: u32 = 200;

impl Offered {
    pub(crate) fn new(parts: &crate::Parts, links: &Links) -> Self {
        Self {
            store: parts.store.clone(),
            vault: parts.vault.clone(),
            known: Arc::new(watch::Sender::new(OperatorModels {
                models: parts.models.clone(),
                catalogue: Arc::new(parts.catalogue.clone()),
                prompt: parts.prompt.clone(),
            })),
            reach: parts.reach,
            connections: Connections::new(),
            links: links.clone(),
            clock: parts.clock.clone(),
            entropy: parts.entropy.clone(),
        }
    }

    /// The catalogue as it is now.
    pub(super) fn catalogue(&self) -> Arc<Catalogue> {
        self.known.borrow().catalogue.clone()
    }

    /// The models of the operator as they are now.
    fn operator(&self) -> Models {
        self.known.borrow().models.clone()
    }

    /// The text with which the system prompt begins now.
    fn prompt(&self) -> Option<Arc<str>> {
        self.known.borrow().prompt.clone()
    }

    /// Takes up other settings of the operator. Calls that are made already go on as they began.
    pub(crate) fn replace(&self, known: OperatorModels) {
        self.known.send_replace(known);
        self.connections.forget();
    }

    /// The models that the user may use.
    pub(super) async fn list(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Vec<ListedModel>, AppError> {
        let Places { accounts, runners } = self.places(tenant, user).await?;
        let default = self.default(&accounts);
        let is_default = |name: &str, account: &str| match &default {
            FoundModel::Operator(of, offer) => account == of && offer.info().name == name,
            FoundModel::Account(row, model) => row.terms.name == account && model == name,
            FoundModel::Runner(..) => false,
        };
        let mut listed = Vec::new();
        for row in &accounts {
            for model in self.models_of(row) {
                let connection = self.connections.get(&of(row, &model));
                listed.push(ListedModel {
                    is_default: is_default(&model, &row.terms.name),
                    account: row.terms.name.clone(),
                    paid_by: paid_by(row),
                    practice: false,
                    profile: self.profile(row, &model),
                    state: connection.map_or(Health::Ready, |it| it.health()).into(),
                    name: model,
                });
            }
        }
        listed.extend(self.operator().all().map(|(account, offer)| {
            let info = offer.info();
            let account = account.unwrap_or(OPERATOR);
            ListedModel {
                is_default: is_default(&info.name, account),
                name: info.name,
                account: account.to_owned(),
                paid_by: PaidBy::Operator,
                practice: info.practice,
                profile: info.profile,
                state: match offer {
                    Offer::Whole(_) => Health::Ready,
                    Offer::Vendor(vendor) => vendor.health(),
                }
                .into(),
            }
        }));
        for row in &runners {
            listed.extend(self.list_runner(row));
        }
        Ok(listed)
    }

    /// The models of a runner, as they are listed.
    fn list_runner<'a>(&'a self, row: &'a RunnerRow) -> impl Iterator<Item = ListedModel> + 'a {
        row.models.iter().flat_map(move |report| {
            report.models.iter().map(move |model| ListedModel {
                name: format!("{}/{model}", row.name),
                account: row.name.clone(),
                paid_by: PaidBy::Runner(row.id),
                practice: false,
                profile: runner_profile(row, model),
                is_default: false,
                state: match (row.link, report.problem.as_str()) {
                    (None, _) => ModelState::Away(offline(&row.name)),
                    (Some(_), "") => {
                        let of = of_runner_model(row, model);
                        let connection = self.connections.get(&of);
                        connection.map_or(Health::Ready, |it| it.health()).into()
                    }
                    (Some(_), problem) => {
                        ModelState::Away(format!("runner {}: {problem}", row.name))
                    }
                },
            })
        })
    }

    /// The accounts and runners of a person.
    async fn places(&self, tenant: TenantId, user: UserId) -> Result<Places, AppError> {
        let accounts = self.store.model_accounts(tenant, user).await?;
        let row = self.store.user(tenant, user).await?;
        let of_user = match Gate::runners_to_use(&row) {
            RunnersToUse::All => None,
            RunnersToUse::OwnAndShared => Some(user),
            RunnersToUse::None => {
                let runners = Vec::new();
                return Ok(Places { accounts, runners });
            }
        };
        let runners = self
            .store
            .runners_with_models(tenant, of_user, RUNNERS)
            .await?;
        Ok(Places { accounts, runners })
    }

    /// The places for a choice: runners are looked up only where it may name one.
    async fn places_for(
        &self,
        tenant: TenantId,
        user: UserId,
        choice: &str,
    ) -> Result<Places, AppError> {
        match choice.contains('/') {
            true => self.places(tenant, user).await,
            false => Ok(Places {
                accounts: self.store.model_accounts(tenant, user).await?,
                runners: Vec::new(),
            }),
        }
    }

    /// The model that answers where the user has chosen none.
    pub(crate) async fn default_info(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<ModelInfo, AppError> {
        let accounts = self.store.model_accounts(tenant, user).await?;
        Ok(self.info(&self.default(&accounts)))
    }

    /// The model that a choice means first; `None` if it is not offered.
    pub(crate) async fn named(
        &self,
        tenant: TenantId,
        user: UserId,
        choice: &str,
    ) -> Result<Option<ModelInfo>, AppError> {
        let places = self.places_for(tenant, user, choice).await?;
        let first = name::choices(choice).next();
        let found = first.and_then(|name| self.found(&places, name).into_iter().next());
        Ok(found.map(|found| self.info(&found)))
    }

    /// A choice as it is stored. It names a runner by its id: another runner that gets the name later is not meant.
    ///
    /// # Errors
    /// If one of its names means no model that the user may use; the text says which there are.
    pub(crate) async fn check(
        &self,
        tenant: TenantId,
        user: UserId,
        choice: &str,
    ) -> Result<String, AppError> {
        let places = self.places(tenant, user).await?;
        let mut names = name::choices(choice).peekable();
        if names.peek().is_none() {
            return Err(AppError::Invalid(format!("model is {ALLOWED}")));
        }
        let mut stored = Vec::new();
        for name in names {
            stored.push(match self.typed(&places, name).first() {
                Some(FoundModel::Runner(row, model)) => format!("{}/{model}", row.id),
                Some(_) => name.to_owned(),
                None => {
                    return Err(AppError::Invalid(format!(
                        "no model {name:?} may be used here; gantry models lists those that may: {}",
                        self.some_names(&places)
                    )));
                }
            });
        }
        Ok(stored.join(", "))
    }

    /// A stored choice as people write it: with the names of runners that the user may use.
    pub(crate) async fn shown(
        &self,
        tenant: TenantId,
        user: UserId,
        choice: &str,
    ) -> Result<String, AppError> {
        let places = self.places_for(tenant, user, choice).await?;
        let shown = name::choices(choice).map(|name| match of_runner(&places.runners, name) {
            Some((row, model)) => format!("{}/{model}", row.name),
            None => name.to_owned(),
        });
        Ok(shown.collect::<Vec<_>>().join(", "))
    }

    /// The models of an account.
    pub(super) fn models_of(&self, row: &ModelAccountRow) -> Vec<String> {
        if !row.terms.models.is_empty() {
            return row.terms.models.clone();
        }
        let catalogue = self.catalogue();
        let provider = catalogue.provider(&row.provider);
        let listed = provider.into_iter().flat_map(|provider| &provider.models);
        listed.map(|model| model.model.clone()).collect()
    }

    /// The model that an account offers first.
    pub(super) fn default_of(&self, row: &ModelAccountRow) -> Result<String, AppError> {
        let catalogue = self.catalogue();
        let provider = catalogue.provider(&row.provider);
        let default = provider.and_then(|provider| provider.default.clone());
        let first = row.terms.models.first().cloned();
        first.or(default).ok_or_else(|| {
            AppError::Invalid(
                "the models of that server are not known here; name one or several with --model"
                    .to_owned(),
            )
        })
    }

    /// Asks a model of an account that may not be stored yet, with this key.
    pub(super) async fn probe(
        &self,
        row: &ModelAccountRow,
        model: &str,
        key: Option<&str>,
    ) -> Result<Probed, AppError> {
        let connection = self.connect(row, model, key)?;
        probed(&connection).await
    }

    /// Asks a model, or the default model of an account.
    pub(super) async fn test(
        &self,
        tenant: TenantId,
        user: UserId,
        name: &str,
    ) -> Result<Probed, AppError> {
        let places = self.places(tenant, user).await?;
        let account = places.accounts.iter().find(|row| row.terms.name == name);
        let found = match account {
            Some(row) => Some(FoundModel::Account(row, self.default_of(row)?)),
            None => {
                let of_operator = self.first_of(name);
                of_operator.or_else(|| self.typed(&places, name).into_iter().next())
            }
        };
        match found {
            None => Err(AppError::NotFound("model")),
            Some(FoundModel::Operator(_, Offer::Whole(_))) => Err(AppError::Invalid(
                "that model is part of the server and needs no test".to_owned(),
            )),
            Some(FoundModel::Operator(_, Offer::Vendor(vendor))) => probed(&vendor).await,
            // A connection of its own, so that a key that is valid again is not left alone.
            Some(FoundModel::Account(row, model)) => {
                let key = self.key(tenant, row).await?;
                let connection = self.connect(row, &model, key.as_deref())?;
                self.tested(&of(row, &model), &connection).await
            }
            Some(FoundModel::Runner(row, model)) => {
                let connection = self.connect_runner(row, &model)?;
                self.tested(&of_runner_model(row, &model), &connection)
                    .await
            }
        }
    }

    /// Asks the model on this connection. Where it answers, the failures of the kept connection are past.
    async fn tested(&self, of: &Of, connection: &Breaker) -> Result<Probed, AppError> {
        let probed = probed(connection).await?;
        if let Some(kept) = self.connections.get(of) {
            kept.recovered();
        }
        Ok(probed)
    }

    /// The models to ask for a choice, in their order, each behind the layers of a call.
    async fn chain(
        &self,
        tenant: TenantId,
        user: UserId,
        choice: Option<&str>,
    ) -> Result<Vec<Arc<dyn Model>>, String> {
        let unavailable = |error: AppError| error.to_string();
        let places = self.places_for(tenant, user, choice.unwrap_or(AUTO)).await;
        let places = places.map_err(unavailable)?;
        let found = match choice {
            None => vec![self.default(&places.accounts)],
            Some(choice) => {
                let names = name::choices(choice);
                names.flat_map(|name| self.found(&places, name)).collect()
            }
        };
        if found.is_empty() {
            return Err(format!(
                "the model {:?}, which is chosen, is not offered any more; choose another with: gantry config set \
                 model NAME (offered: {})",
                choice.unwrap_or(AUTO),
                self.some_names(&places)
            ));
        }
        let mut chain = Vec::with_capacity(found.len());
        let (last, mut problem) = (found.len() - 1, None);
        for (place, found) in found.iter().enumerate() {
            let gives_way = place < last;
            match self.model(tenant, found, gives_way).await {
                Ok(model) => chain.push(model),
                Err(error) => problem = Some(unavailable(error)),
            }
        }
        match (chain.is_empty(), problem) {
            (true, Some(problem)) => Err(problem),
            _ => Ok(chain),
        }
    }

    /// A model behind the layers of a call.
    async fn model(
        &self,
        tenant: TenantId,
        found: &FoundModel<'_>,
        gives_way: bool,
    ) -> Result<Arc<dyn Model>, AppError> {
        let vendor = match found {
            FoundModel::Operator(_, Offer::Whole(model)) => return Ok(model.clone()),
            FoundModel::Operator(_, Offer::Vendor(vendor)) => vendor.clone(),
            FoundModel::Account(row, model) => {
                let of = of(row, model);
                match self.connections.get(&of) {
                    Some(known) => known,
                    None => {
                        let key = self.key(tenant, row).await?;
                        let connection = self.connect(row, model, key.as_deref())?;
                        self.connections.keep(of, connection)
                    }
                }
            }
            FoundModel::Runner(row, model) => {
                let of = of_runner_model(row, model);
                match self.connections.get(&of) {
                    Some(known) => known,
                    None => self.connections.keep(of, self.connect_runner(row, model)?),
                }
            }
        };
        let options = RetryOptions {
            gives_way,
            ..RetryOptions::default()
        };
        let calls = match found {
            FoundModel::Operator(..) => Calls::Shared,
            FoundModel::Account(row, _) if row.of == AccountOf::Tenant => Calls::Shared,
            FoundModel::Account(..) => Calls::Own,
            FoundModel::Runner(row, _) => Calls::Runner(row.id),
        };
        let retry = Retry::new(vendor, options, self.entropy.clone());
        let limited = Limited::new(retry, self.connections.places(tenant, calls));
        Ok(Arc::new(Measured::new(limited, self.clock.clone())))
    }

    /// The key of an account, opened.
    async fn key(
        &self,
        tenant: TenantId,
        row: &ModelAccountRow,
    ) -> Result<Option<String>, AppError> {
        let Some(secret) = row.key else {
            return Ok(None);
        };
        let sealed = self.store.secret(tenant, secret).await?;
        let opened = self.vault.open(tenant, &sealed).await;
        let opened = opened.map_err(|error| {
            AppError::Conflict(format!(
                "the key of the model account {} cannot be opened ({error})",
                row.terms.name
            ))
        })?;
        Ok(opened.expose_text().map(str::to_owned))
    }

    /// A connection to the server of an account.
    fn connect(
        &self,
        row: &ModelAccountRow,
        model: &str,
        key: Option<&str>,
    ) -> Result<Breaker, AppError> {
        let catalogue = self.catalogue();
        let provider = catalogue.provider(&row.provider);
        let base_url = row.terms.base_url.clone();
        let base_url = base_url.or(provider.map(|provider| provider.base_url.clone()));
        let base_url = base_url.ok_or_else(|| {
            AppError::Invalid(format!(
                "the provider {} is not known here any more; add the account {} again, with --url",
                row.provider, row.terms.name
            ))
        })?;
        let format = match &row.terms.format {
            Some(format) => format.parse().ok(),
            None => provider.map(|provider| provider.format),
        };
        let name = &row.terms.name;
        let options = ServerOptions {
            key: key.and_then(ApiKey::new),
            paid_by: paid_by(row),
            reach: self.reach,
            named: Named {
                key: format!("the key of the account {name} (gantry models add replaces it)"),
                address: format!("the address of the account {name}"),
                model: format!("gantry models, account {name}"),
            },
            ..ServerOptions::new(base_url, self.profile(row, model))
        };
        let vendor = server_llm::vendor(format.unwrap_or(WireFormat::OpenAiChat), options);
        let vendor = vendor.map_err(|error| AppError::Invalid(error.to_string()))?;
        Ok(Breaker::new(vendor))
    }

    /// A connection to the model server of a runner.
    fn connect_runner(&self, row: &RunnerRow, model: &str) -> Result<Breaker, AppError> {
        let name = &row.name;
        let options = ServerOptions {
            paid_by: PaidBy::Runner(row.id),
            named: Named {
                key: format!("--model-key-file of runner {name}"),
                address: format!("--model-server of runner {name}"),
                model: format!("gantry models, runner {name}"),
            },
            ..ServerOptions::new(format!("runner {name}"), runner_profile(row, model))
        };
        let transport = OverLink {
            links: self.links.clone(),
            runner: row.id,
            name: name.clone(),
        };
        let vendor = server_llm::chat_over(options, Arc::new(transport));
        let vendor = vendor.map_err(|error| AppError::Invalid(error.to_string()))?;
        Ok(Breaker::new(vendor))
    }

    fn profile(&self, row: &ModelAccountRow, model: &str) -> Profile {
        let catalogue = self.catalogue();
        match catalogue.provider(&row.provider) {
            Some(provider) => provider.profile(model),
            None => Profile {
                model: model.to_owned(),
                provider: row.provider.clone(),
                ..Profile::default()
            },
        }
    }
}

async fn probed(model: &Breaker) -> Result<Probed, AppError> {
    let probed = probe(model).await;
    probed.map_err(|error| AppError::Invalid(error.to_string()))
}

fn of(row: &ModelAccountRow, model: &str) -> Of {
    Of::Account(row.id, row.changed_at, model.to_owned())
}

fn of_runner_model(row: &RunnerRow, model: &str) -> Of {
    Of::Runner(row.id, row.name.clone(), model.to_owned())
}

/// A model of a runner: nothing but its name is known, and it has no price.
fn runner_profile(row: &RunnerRow, model: &str) -> Profile {
    Profile {
        model: model.to_owned(),
        provider: row.name.clone(),
        ..Profile::default()
    }
}

fn paid_by(row: &ModelAccountRow) -> PaidBy {
    match row.of {
        AccountOf::Tenant => PaidBy::Tenant(row.id),
        AccountOf::User(_) => PaidBy::Own(row.id),
    }
}
