//! The models that a name means, among those that a person may use.

use server_llm::{ModelInfo, Offer, Tier};
use server_store::{ModelAccountRow, RunnerRow};
use shared_types::{PaidBy, RunnerId};

use super::{Offered, paid_by, runner_profile};
use crate::models::{OPERATOR, name::AUTO};

/// A model of an account or of the operator.
pub(super) enum FoundModel<'a> {
    /// The name of its account, and the offer.
    Operator(String, Offer),
    Account(&'a ModelAccountRow, String),
    Runner(&'a RunnerRow, String),
}

/// The accounts that a person may use, and the runners with models.
pub(super) struct Places {
    pub(super) accounts: Vec<ModelAccountRow>,
    pub(super) runners: Vec<RunnerRow>,
}

impl Offered {
    /// The models that a stored name means, those of the person's own accounts first.
    pub(super) fn found<'a>(&self, places: &'a Places, name: &str) -> Vec<FoundModel<'a>> {
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
    pub(super) fn typed<'a>(&self, places: &'a Places, name: &str) -> Vec<FoundModel<'a>> {
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
    pub(super) fn found_in_accounts<'a>(
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
            return found
                .chain(of_operator.map(|(account, offer)| operators(account, offer)))
                .collect();
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
            let found: Vec<_> = of_accounts
                .chain(of_operator.map(|(account, offer)| operators(account, offer)))
                .collect();
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
    pub(super) fn first_of<'a>(&self, account: &str) -> Option<FoundModel<'a>> {
        let operator = self.operator();
        let mut all = operator.all();
        all.find(|(of, _)| *of == Some(account))
            .map(|(account, offer)| operators(account, offer))
    }

    /// True if the account offers the model: it names it, or names none and its provider has it.
    pub(super) fn offers(&self, row: &ModelAccountRow, model: &str) -> bool {
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
    pub(super) fn default<'a>(&self, accounts: &'a [ModelAccountRow]) -> FoundModel<'a> {
        let first = self.operator().first().clone();
        if first.info().practice
            && let Some((row, model)) = accounts
                .iter()
                .find_map(|row| Some((row, self.default_of(row).ok()?)))
        {
            return FoundModel::Account(row, model);
        }
        operators(None, &first)
    }

    pub(super) fn info(&self, found: &FoundModel<'_>) -> ModelInfo {
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
    pub(super) fn some_names(&self, places: &Places) -> String {
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
pub(super) fn of_runner<'a, 'n>(
    runners: &'a [RunnerRow],
    name: &'n str,
) -> Option<(&'a RunnerRow, &'n str)> {
    let (runner, model) = name.split_once('/')?;
    let id: RunnerId = runner.parse().ok()?;
    let row = runners.iter().find(|row| row.id == id)?;
    Some((row, model))
}

/// True if the runner has reported a model of this name.
pub(super) fn reports(row: &RunnerRow, model: &str) -> bool {
    let mut models = row.models.iter().flat_map(|report| &report.models);
    models.any(|reported| reported == model)
}

/// A model of the operator, with the name of its account.
pub(super) fn operators<'a>(account: Option<&str>, offer: &Offer) -> FoundModel<'a> {
    FoundModel::Operator(account.unwrap_or(OPERATOR).to_owned(), offer.clone())
}
