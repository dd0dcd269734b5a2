//! The models that are offered to a person, and the way from a chosen name to the models that are asked.
//!
//! A name is that of a model (`gpt-6`), of an account and a model (`work/gpt-6`), of a runner and a model
//! (`laptop/qwen3:8b`), of a tier (`balance`) or `auto`. A choice may have several names, separated by commas: where the first model does not answer, the next one does. A
//! model that several accounts offer is asked with each of their keys: the person's own, the tenant's, the operator's.
//! The models of a runner are there for those who may use it, and only where nothing else has the name.

use std::sync::Arc;

use async_trait::async_trait;
use server_agent::{ModelSource, SessionModels};
use server_llm::{
    ApiKey, Breaker, Catalogue, Health, Limited, Measured, Model, ModelInfo, Models, Named, Offer,
    Profile, Reach, Retry, RetryOptions, ServerOptions, Tier, WireFormat,
};
use server_records::SessionKey;
use server_router::links::Links;
use server_store::{AccountOf, ModelAccountRow, RunnerRow, SettingName, Store, StoreError};
use shared_types::{Clock, Entropy, PaidBy, RunnerId, SessionId, TenantId, UserId};
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

/// A model of an account or of the operator.
enum FoundModel<'a> {
    /// The name of its account, and the offer.
    Operator(String, Offer),
    Account(&'a ModelAccountRow, String),
    Runner(&'a RunnerRow, String),
}

/// The accounts that a person may use, and the runners with models.
struct Places {
    accounts: Vec<ModelAccountRow>,
    runners: Vec<RunnerRow>,
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
                        let of = Of::Runner(row.id, model.clone());
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
                self.tested(&Of::Runner(row.id, model), &connection).await
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
                let of = Of::Runner(row.id, model.clone());
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

    /// The models that a stored name means, those of the person's own accounts first.
    fn found<'a>(&self, places: &'a Places, name: &str) -> Vec<FoundModel<'a>> {
        let found = self.found_in_accounts(&places.accounts, name);
        if !found.is_empty() {
            return found;
        }
        let of_runner = of_runner(&places.runners, name);
        let of_runner = of_runner.filter(|(row, model)| reports(row, model));
        let found = of_runner.map(|(row, model)| FoundModel::Runner(row, model.to_owned()));
        found.into_iter().collect()
    }

    /// The models that a name means which a person writes now: it may have the name of a runner.
    fn typed<'a>(&self, places: &'a Places, name: &str) -> Vec<FoundModel<'a>> {
        let found = self.found(places, name);
        if !found.is_empty() {
            return found;
        }
        let of_runner = name.split_once('/').and_then(|(runner, model)| {
            let row = places.runners.iter().find(|row| row.name == runner)?;
            reports(row, model).then(|| FoundModel::Runner(row, model.to_owned()))
        });
        of_runner.into_iter().collect()
    }

    /// The models of accounts and of the operator that a name means.
    fn found_in_accounts<'a>(
        &self,
        accounts: &'a [ModelAccountRow],
        name: &str,
    ) -> Vec<FoundModel<'a>> {
        if name == AUTO {
            return vec![self.default(accounts)];
        }
        if let Ok(tier) = name.parse::<Tier>() {
            let catalogue = self.catalogue();
            let of_account = |row: &'a ModelAccountRow| {
                let provider = catalogue.provider(&row.provider)?;
                let model = provider.tiers.get(&tier)?.clone();
                self.offers(row, &model)
                    .then_some(FoundModel::Account(row, model))
            };
            let operator = self.operator();
            let of_operator = operator.all().filter(|(_, offer)| {
                let profile = offer.info().profile;
                let provider = catalogue.provider(&profile.provider);
                provider.and_then(|it| it.tiers.get(&tier)) == Some(&profile.model)
            });
            let found = accounts.iter().filter_map(of_account);
            return found.chain(of_operator.map(operators)).collect();
        }
        let operator = self.operator();
        let is_account = |name: &str| {
            accounts.iter().any(|row| row.terms.name == name)
                || operator.all().any(|(of, _)| of.unwrap_or(OPERATOR) == name)
        };
        let meant = |account: Option<&str>, model: &str| {
            let is_meant = |of: &str| account.is_none_or(|account| account == of);
            let of_accounts = accounts
                .iter()
                .filter(|row| is_meant(&row.terms.name) && self.offers(row, model))
                .map(|row| FoundModel::Account(row, model.to_owned()));
            let of_operator = operator.all().filter(|(of, offer)| {
                is_meant(of.unwrap_or(OPERATOR)) && offer.info().name == model
            });
            let found: Vec<_> = of_accounts.chain(of_operator.map(operators)).collect();
            found
        };
        let of_account = name.split_once('/');
        let of_account = of_account.filter(|(account, _)| is_account(account));
        let found = of_account.map(|(account, model)| meant(Some(account), model));
        // The name of a model may begin with that of an account.
        let found = found.filter(|found| !found.is_empty());
        found.unwrap_or_else(|| meant(None, name))
    }

    /// The first model of a further account of the operator.
    fn first_of<'a>(&self, account: &str) -> Option<FoundModel<'a>> {
        let operator = self.operator();
        let mut all = operator.all();
        all.find(|(of, _)| *of == Some(account)).map(operators)
    }

    /// True if the account offers the model: it names it, or names none and its provider has it.
    fn offers(&self, row: &ModelAccountRow, model: &str) -> bool {
        if !row.terms.models.is_empty() {
            return row.terms.models.iter().any(|named| named == model);
        }
        let catalogue = self.catalogue();
        let Some(provider) = catalogue.provider(&row.provider) else {
            return false;
        };
        let is_listed = provider.models.iter().any(|known| known.model == model);
        let by_name = catalogue.provider_of(model);
        is_listed || by_name.is_some_and(|by_name| by_name.name == provider.name)
    }

    /// The model that answers where none is chosen: the operator's, unless that is the practice model and there is an
    /// account.
    fn default<'a>(&self, accounts: &'a [ModelAccountRow]) -> FoundModel<'a> {
        let first = self.operator().first().clone();
        if first.info().practice
            && let Some((row, model)) = accounts
                .iter()
                .find_map(|row| Some((row, self.default_of(row).ok()?)))
        {
            return FoundModel::Account(row, model);
        }
        operators((None, &first))
    }

    fn info(&self, found: &FoundModel<'_>) -> ModelInfo {
        match found {
            FoundModel::Operator(_, offer) => offer.info(),
            FoundModel::Account(row, model) => ModelInfo {
                name: model.clone(),
                practice: false,
                origin: Default::default(),
                profile: self.profile(row, model),
                paid_by: paid_by(row),
            },
            FoundModel::Runner(row, model) => ModelInfo {
                name: model.clone(),
                practice: false,
                origin: Default::default(),
                profile: runner_profile(row, model),
                paid_by: PaidBy::Runner(row.id),
            },
        }
    }

    /// The first names of models, for people.
    fn some_names(&self, places: &Places) -> String {
        const NAMED: usize = 8;
        let of_accounts = places.accounts.iter().flat_map(|row| self.models_of(row));
        let of_runners = places.runners.iter();
        let of_runners = of_runners.flat_map(|row| self.list_runner(row).map(|model| model.name));
        let operator = self.operator();
        let of_operator = operator.all().map(|(account, offer)| {
            let name = offer.info().name;
            account.map_or(name.clone(), |account| format!("{account}/{name}"))
        });
        let mut names: Vec<_> = of_accounts.chain(of_operator).chain(of_runners).collect();
        let all = names.len();
        names.truncate(NAMED);
        let more = if all > NAMED { ", …" } else { "" };
        format!("{}{more}", names.join(", "))
    }
}

/// The runner and the model of a stored name, if it names a runner.
fn of_runner<'a, 'n>(runners: &'a [RunnerRow], name: &'n str) -> Option<(&'a RunnerRow, &'n str)> {
    let (runner, model) = name.split_once('/')?;
    let id: RunnerId = runner.parse().ok()?;
    let row = runners.iter().find(|row| row.id == id)?;
    Some((row, model))
}

/// True if the runner has reported a model of this name.
fn reports(row: &RunnerRow, model: &str) -> bool {
    let mut models = row.models.iter().flat_map(|report| &report.models);
    models.any(|reported| reported == model)
}

/// A model of the operator, with the name of its account.
fn operators<'a>((account, offer): (Option<&str>, &Offer)) -> FoundModel<'a> {
    FoundModel::Operator(account.unwrap_or(OPERATOR).to_owned(), offer.clone())
}

async fn probed(model: &Breaker) -> Result<Probed, AppError> {
    let probed = probe(model).await;
    probed.map_err(|error| AppError::Invalid(error.to_string()))
}

fn of(row: &ModelAccountRow, model: &str) -> Of {
    Of::Account(row.id, row.changed_at, model.to_owned())
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
