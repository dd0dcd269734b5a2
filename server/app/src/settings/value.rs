//! The allowed values of settings. Each refusal names them.

use server_store::{SettingName, SettingsOf};
use shared_types::{
    Isolation, Mode,
    clean::is_clean_line,
    limits::{MAX_LANGUAGE_LETTERS, MAX_STEPS},
};

use super::Settings;
use crate::{AppError, OpContext, rights::Action};

/// The languages that are allowed, in words.
pub(super) const ALLOWED_LANGUAGE: &str =
    "the name of a language on one line, such as German, of at most 40 characters";

/// The isolation that can be demanded of a place, in words.
pub(super) const ALLOWED_ISOLATION: &str = "none, or properties with + between them: file_writes, file_reads, \
    credential, sockets, network, processes, resources, kill_tree, kernel";

/// The modes of agents, in words.
pub(super) const ALLOWED_MODE: &str = "plan, ask, auto or full";

/// The values that tell if commands may be root, in words.
pub(super) const ALLOWED_SUDO: &str = "allow, or forbid";

/// Most runners that a refusal names.
const RUNNERS_NAMED: u32 = 8;

/// The operator's settings for all tenants, beside the models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorSettings {
    /// The language of the answers.
    pub(super) language: Option<String>,
    /// The most model calls in a turn.
    pub(super) steps: Option<u32>,
    /// The isolation that a place must have.
    pub(super) isolation: Isolation,
    /// True if no command may be root.
    pub(super) forbids_sudo: bool,
    /// The mode of agents.
    pub(super) mode: Option<Mode>,
    /// The most freedom of agents.
    pub(super) max_mode: Option<Mode>,
}

impl OperatorSettings {
    /// These values, checked as everybody's are.
    ///
    /// # Errors
    /// If one is not allowed.
    pub fn new(language: Option<&str>, steps: Option<u32>) -> Result<Self, AppError> {
        if let Some(steps) = steps {
            within_bounds(Some(steps))?;
        }
        Ok(Self {
            language: language.map(language_of).transpose()?,
            steps,
            isolation: Isolation::none(),
            forbids_sudo: false,
            mode: None,
            max_mode: None,
        })
    }

    /// The same with what a place must keep apart.
    #[must_use]
    pub fn demanding(self, isolation: Isolation) -> Self {
        Self { isolation, ..self }
    }

    /// The same with the mode of agents where no person has set one, and with their most freedom.
    #[must_use]
    pub fn in_mode(self, mode: Option<Mode>, max_mode: Option<Mode>) -> Self {
        Self {
            mode,
            max_mode,
            ..self
        }
    }

    /// The same with whether no command may be root in its sandbox.
    #[must_use]
    pub fn forbidding_sudo(self, forbids_sudo: bool) -> Self {
        Self {
            forbids_sudo,
            ..self
        }
    }
}

impl Settings {
    /// The value as it is stored.
    pub(super) async fn checked(
        &self,
        ctx: &OpContext,
        of: SettingsOf,
        name: SettingName,
        value: &str,
    ) -> Result<String, AppError> {
        match name {
            SettingName::Runner => self.runner(ctx, of, value).await,
            SettingName::Model => self.offered.check(ctx.tenant, ctx.user, value).await,
            SettingName::Language => language_of(value),
            SettingName::Steps => Ok(within_bounds(value.parse().ok())?.to_string()),
            SettingName::MaxMode if of != SettingsOf::Tenant => Err(AppError::Invalid(
                "the most freedom of agents is set for the whole tenant: gantry config set --tenant max_mode MODE"
                    .to_owned(),
            )),
            SettingName::Mode | SettingName::MaxMode => mode_of(value),
            SettingName::Isolation if of != SettingsOf::Tenant => Err(AppError::Invalid(
                "what a place must keep apart is set for the whole tenant: gantry config set --tenant isolation VALUE"
                    .to_owned(),
            )),
            SettingName::Isolation => isolation_of(value),
            SettingName::Sudo if of != SettingsOf::Tenant => Err(AppError::Invalid(
                "whether commands may be root is set for the whole tenant: gantry config set --tenant sudo VALUE"
                    .to_owned(),
            )),
            SettingName::Sudo => match value {
                "allow" if self.operator.forbids_sudo => Err(AppError::Invalid(
                    "the operator forbids sudo for all tenants, in gantry.toml".to_owned(),
                )),
                "allow" | "forbid" => Ok(value.to_owned()),
                _ => Err(AppError::Invalid(format!("write {ALLOWED_SUDO}"))),
            },
        }
    }

    /// The id of a runner that the user may use; the tenant's is one that all of its people may use.
    async fn runner(
        &self,
        ctx: &OpContext,
        of: SettingsOf,
        name_or_id: &str,
    ) -> Result<String, AppError> {
        let place = match self.gate.place(ctx, Action::UseRunner, name_or_id).await {
            Err(AppError::NotFound(_)) => return Err(self.no_such_runner(ctx).await),
            found => found?,
        };
        let choice = place.choice();
        let row = place.runner;
        if of == SettingsOf::Tenant {
            if choice.sandbox.is_some() {
                return Err(AppError::Invalid(format!(
                    "the tenant's runner is set without a workspace: {}",
                    row.name
                )));
            }
            let shares = self.store.shares_of_runner(ctx.tenant, row.id).await?;
            if !shares.everyone {
                let name = row.name;
                return Err(AppError::Invalid(format!(
                    "the tenant's runner is one that everyone may use, and {name} is not shared with \
                     everyone; first: gantry runners share {name} --with everyone"
                )));
            }
        }
        Ok(choice.to_string())
    }

    async fn no_such_runner(&self, ctx: &OpContext) -> AppError {
        // A credential that may not list runners gets no names.
        let known = self.gate.runners(ctx, "", RUNNERS_NAMED).await;
        let names: Vec<_> = known.into_iter().flatten().map(|row| row.name).collect();
        AppError::Invalid(match names.is_empty() {
            true => "you have no such runner; add one with: gantry runners add".to_owned(),
            false => format!(
                "you have no such runner; gantry runners lists yours, such as: {}",
                names.join(", ")
            ),
        })
    }
}

fn within_bounds(steps: Option<u32>) -> Result<u32, AppError> {
    let within = steps.filter(|steps| (1..=MAX_STEPS).contains(steps));
    within.ok_or_else(|| AppError::Invalid(format!("steps is a number from 1 to {MAX_STEPS}")))
}

fn language_of(text: &str) -> Result<String, AppError> {
    let letters = text.chars().count();
    match (1..=MAX_LANGUAGE_LETTERS).contains(&letters) && is_clean_line(text) {
        true => Ok(text.to_owned()),
        false => Err(AppError::Invalid(format!("language is {ALLOWED_LANGUAGE}"))),
    }
}

fn mode_of(value: &str) -> Result<String, AppError> {
    match value.parse::<Mode>() {
        Ok(mode) => Ok(mode.to_string()),
        Err(_) => Err(AppError::Invalid(format!("the modes are {ALLOWED_MODE}"))),
    }
}

fn isolation_of(value: &str) -> Result<String, AppError> {
    match value.parse::<Isolation>() {
        Ok(isolation) => Ok(isolation.to_string()),
        Err(_) => Err(AppError::Invalid(format!("write {ALLOWED_ISOLATION}"))),
    }
}
