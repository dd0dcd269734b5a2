//! Settings: the values that count for a user or a session, their layers, and their changes.
//!
//! The narrowest layer counts: session, user, tenant, operator, default. A turn runs with the values that
//! count when it is first claimed, so a change is in effect from the next message on.

use std::sync::Arc;

use server_llm::{ModelInfo, Models};
use server_store::{
    SettingChange, SettingLayer, SettingName, SettingRow, SettingsChanged, SettingsOf, Store,
    StoredSettings,
};
use shared_types::{
    Clock, Isolation, Mode, PaidBy, RunnerChoice, SessionId, Timestamp,
    event::{Origin, TurnSettings},
    limits::{MAX_STEPS, USUAL_STEPS},
};
use tokio::sync::Notify;

mod mode;
mod value;

pub use mode::ModeInEffect;
pub use value::OperatorSettings;

use crate::{
    AppError, OpContext, Parts,
    gate::Gate,
    isolation::IsolationPolicy,
    models::{self, Offered},
    rights::Action,
};

/// The layer that has set the value that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetBy {
    /// No one.
    Default,
    /// The operator, for all tenants.
    Operator,
    /// A layer that is stored.
    Layer(SettingLayer),
}

/// A setting as it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: SettingName,
    /// The value; none for no runner, and for a language that the model chooses.
    pub value: Option<String>,
    /// The layer that has set it.
    pub set_by: SetBy,
    /// The name of the person who set it.
    pub who: Option<String>,
    /// Since when, where that is known.
    pub since: Option<Timestamp>,
    /// The value under which the next turn works, where settings alone do not decide it: of the mode, and of the most
    /// freedom.
    pub in_effect: Option<String>,
    /// The reason that turns cannot run with it, in a few words.
    pub note: Option<&'static str>,
    /// The values that may be set, in words.
    pub allowed: String,
}

/// All settings as they count for a user or a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentSettings {
    /// The number of changes to settings of the tenant, its users and its sessions.
    pub generation: u64,
    /// Each setting once.
    pub settings: Vec<Setting>,
}

/// A change of settings: all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSettings {
    /// In which layer.
    pub layer: SettingLayer,
    /// The session of that layer; with no other one.
    pub session: Option<SessionId>,
    /// The new values; none where the wider layers are to count.
    pub values: Vec<(SettingName, Option<String>)>,
    /// The generation to which the change applies; any, if absent.
    pub generation: Option<u64>,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Settings {
    store: Store,
    gate: Gate,
    models: Models,
    offered: Offered,
    operator: Arc<OperatorSettings>,
    believed: Arc<IsolationPolicy>,
    clock: Arc<dyn Clock>,
    /// Notified when the setting changes that tells if commands may be root.
    policy_changed: Arc<Notify>,
}

impl Settings {
    pub(crate) fn of(parts: &Parts, gate: &Gate, offered: &Offered) -> Self {
        Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            models: parts.models.clone(),
            offered: offered.clone(),
            operator: Arc::new(parts.operator.clone()),
            believed: parts.isolation.clone(),
            clock: parts.clock.clone(),
            policy_changed: Arc::default(),
        }
    }

    /// Notified when the setting changes that tells if commands may be root.
    pub(crate) fn policy_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.policy_changed)
    }

    /// The settings that count for the user, or for one of the user's sessions.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn list(
        &self,
        ctx: &OpContext,
        session: Option<SessionId>,
    ) -> Result<CurrentSettings, AppError> {
        match session {
            Some(id) => self.gate.session(ctx, Action::SeeSettings, id).await?,
            None => self.gate.own(ctx, Action::SeeSettings)?,
        }
        self.current(ctx, session).await
    }

    /// The settings that count for users of the tenant who have set none.
    ///
    /// # Errors
    /// If the user may not see settings.
    pub async fn list_without_own(&self, ctx: &OpContext) -> Result<CurrentSettings, AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        let mut stored = self.store.settings(ctx.tenant, ctx.user, None).await?;
        stored.rows.retain(|row| row.layer == SettingLayer::Tenant);
        self.told(ctx, stored).await
    }

    /// Changes values of one layer, and answers with what counts then.
    ///
    /// # Errors
    /// If the user may not change that layer, a value is not allowed (the text says what is), or the
    /// settings were changed since the generation that is named.
    pub async fn change(
        &self,
        ctx: &OpContext,
        change: ChangeSettings,
    ) -> Result<CurrentSettings, AppError> {
        let of = self.layer(ctx, &change).await?;
        if change.values.is_empty() {
            return Err(AppError::Invalid(format!(
                "no setting is named; there are: {}",
                SettingName::ALL.map(|name| name.to_string()).join(", ")
            )));
        }
        let mut changes = Vec::with_capacity(change.values.len());
        for (name, value) in change.values {
            let value = match value {
                Some(value) => Some(self.checked(ctx, of, name, &value).await?),
                None => None,
            };
            changes.push(SettingChange { name, value });
        }
        let is_policy = changes.iter().any(|one| one.name == SettingName::Sudo);
        let (by, now) = (ctx.by(), self.clock.now());
        let changed = self
            .store
            .change_settings(ctx.tenant, of, &changes, change.generation, &by, now)
            .await?;
        match changed {
            SettingsChanged::Stale { generation } => Err(AppError::Conflict(format!(
                "the settings were changed meanwhile (generation {generation}); look at them, and change \
                 them again"
            ))),
            SettingsChanged::Changed { .. } | SettingsChanged::Unchanged { .. } => {
                if is_policy {
                    self.policy_changed.notify_one();
                }
                self.current(ctx, change.session).await
            }
        }
    }

    /// Changes the runner of the user, or of one of the user's sessions, as [`Settings::change`] does. Without a name,
    /// the runner of the next wider layer counts.
    ///
    /// # Errors
    /// If the user may not change that layer, or has no such runner or session.
    pub(crate) async fn choose_runner(
        &self,
        ctx: &OpContext,
        session: Option<SessionId>,
        named: Option<&str>,
    ) -> Result<(), AppError> {
        let change = ChangeSettings {
            layer: match session {
                Some(_) => SettingLayer::Session,
                None => SettingLayer::User,
            },
            session,
            values: vec![(SettingName::Runner, named.map(str::to_owned))],
            generation: None,
        };
        self.change(ctx, change).await.map(drop)
    }

    /// A choice of models for one of the user's sessions, as it is stored.
    ///
    /// # Errors
    /// If the user may not choose, or has no such model; the text says which there are.
    pub(crate) async fn model_choice(
        &self,
        ctx: &OpContext,
        named: &str,
    ) -> Result<String, AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        self.offered.check(ctx.tenant, ctx.user, named).await
    }

    /// The model that answers in the user's new sessions.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn model(&self, ctx: &OpContext) -> Result<ModelInfo, AppError> {
        let stored = self.store.settings(ctx.tenant, ctx.user, None).await?;
        let chosen = stored.in_effect(SettingName::Model);
        Ok(match chosen {
            None => self.offered.default_info(ctx.tenant, ctx.user).await?,
            Some(row) => match (self.offered)
                .named(ctx.tenant, ctx.user, &row.value)
                .await?
            {
                Some(model) => model,
                None => ModelInfo {
                    name: row.value.clone(),
                    practice: false,
                    profile: server_llm::Profile::default(),
                    paid_by: PaidBy::default(),
                    origin: Origin::default(),
                },
            },
        })
    }

    /// The mode in which the agent works next, of the user or in one of the user's sessions.
    ///
    /// # Errors
    /// If the store does not answer.
    pub(crate) async fn mode(
        &self,
        ctx: &OpContext,
        session: Option<SessionId>,
    ) -> Result<ModeInEffect, AppError> {
        let stored = self.store.settings(ctx.tenant, ctx.user, session).await?;
        self.mode_under(ctx, &stored).await
    }

    /// The settings of turns if no tenant, user or session has set any.
    pub(crate) fn of_operator(&self) -> TurnSettings {
        TurnSettings {
            model: self.models.first().info().name,
            language: self.operator.language.clone(),
            steps: self.operator.steps.unwrap_or(USUAL_STEPS),
            machine: None,
            own_runner: false,
            mode: self.operator.mode,
            ceiling: self.operator.max_mode,
            machine_ceiling: None,
        }
    }

    /// The layer to change, if the user may change it.
    async fn layer(
        &self,
        ctx: &OpContext,
        change: &ChangeSettings,
    ) -> Result<SettingsOf, AppError> {
        let own = Action::ChangeSettings;
        match (change.layer, change.session) {
            (SettingLayer::Tenant, None) => {
                self.gate.own(ctx, Action::ChangeTenantSettings)?;
                Ok(SettingsOf::Tenant)
            }
            (SettingLayer::User, None) => {
                self.gate.own(ctx, own)?;
                Ok(SettingsOf::User(ctx.user))
            }
            (SettingLayer::Session, Some(id)) => {
                self.gate.session(ctx, own, id).await?;
                Ok(SettingsOf::Session(id))
            }
            (_, session) => {
                self.gate.own(ctx, own)?;
                let wrong = match session {
                    None => "the layer is session, and no session is named",
                    Some(_) => {
                        "a session is named, and the layer is another; the layer is session then"
                    }
                };
                Err(AppError::Invalid(wrong.to_owned()))
            }
        }
    }

    async fn current(
        &self,
        ctx: &OpContext,
        session: Option<SessionId>,
    ) -> Result<CurrentSettings, AppError> {
        let stored = self.store.settings(ctx.tenant, ctx.user, session).await?;
        self.told(ctx, stored).await
    }

    /// Each setting as it counts by these values.
    async fn told(
        &self,
        ctx: &OpContext,
        stored: StoredSettings,
    ) -> Result<CurrentSettings, AppError> {
        let mode = self.mode_under(ctx, &stored).await?;
        let mut settings = Vec::with_capacity(SettingName::ALL.len());
        for name in SettingName::ALL {
            let mut setting = match stored.in_effect(name) {
                Some(row) => self.stored(ctx, row).await?,
                None => self.not_stored(ctx, name).await?,
            };
            setting.in_effect = match name {
                SettingName::Mode => word(Some(mode.mode)),
                SettingName::MaxMode => word(mode.ceiling),
                _ => None,
            };
            settings.push(setting);
        }
        let StoredSettings { generation, .. } = stored;
        Ok(CurrentSettings {
            generation,
            settings,
        })
    }

    async fn stored(&self, ctx: &OpContext, row: &SettingRow) -> Result<Setting, AppError> {
        let (value, note) = match row.name {
            SettingName::Runner => {
                let choice = row.value.parse::<RunnerChoice>();
                let choice = choice.map_err(AppError::unavailable)?;
                let runner = self.store.runner(ctx.tenant, choice.runner).await?;
                let name = match choice.sandbox {
                    Some(sandbox) => {
                        let workspace = self.store.sandbox_name(ctx.tenant, sandbox).await?;
                        format!("{}/{workspace}", runner.name)
                    }
                    None => runner.name,
                };
                (name, runner.revoked_at.map(|_| "removed"))
            }
            SettingName::Model => {
                let named = self.offered.named(ctx.tenant, ctx.user, &row.value);
                let note = named.await?.is_none().then_some("not offered any more");
                let shown = self.offered.shown(ctx.tenant, ctx.user, &row.value);
                (shown.await?, note)
            }
            SettingName::Language
            | SettingName::Steps
            | SettingName::Mode
            | SettingName::MaxMode
            | SettingName::Isolation
            | SettingName::Sudo => (row.value.clone(), None),
        };
        // The name of a person who was removed ends with an @ and the id.
        let who = match row.by.split_once('@') {
            Some((name, _)) => format!("{name}, removed"),
            None => row.by.clone(),
        };
        Ok(Setting {
            name: row.name,
            value: Some(value),
            set_by: SetBy::Layer(row.layer),
            who: Some(who),
            since: row.at,
            in_effect: None,
            note,
            allowed: self.allowed(row.name),
        })
    }

    async fn not_stored(&self, ctx: &OpContext, name: SettingName) -> Result<Setting, AppError> {
        let first = self.offered.default_info(ctx.tenant, ctx.user).await?;
        let by_operator = |is_set| match is_set {
            true => SetBy::Operator,
            false => SetBy::Default,
        };
        let OperatorSettings {
            language,
            steps,
            isolation,
            forbids_sudo,
            mode,
            max_mode,
        } = &*self.operator;
        let (value, set_by) = match name {
            SettingName::Runner => (None, SetBy::Default),
            // The practice model answers where the operator has set none and there is no account.
            SettingName::Model => {
                let by = by_operator(!first.practice && first.paid_by == PaidBy::Operator);
                (Some(first.name), by)
            }
            SettingName::Language => (language.clone(), by_operator(language.is_some())),
            SettingName::Steps => {
                let value = steps.unwrap_or(USUAL_STEPS);
                (Some(value.to_string()), by_operator(steps.is_some()))
            }
            SettingName::Mode => (word(*mode), by_operator(mode.is_some())),
            SettingName::MaxMode => (word(*max_mode), by_operator(max_mode.is_some())),
            SettingName::Isolation => {
                let demands = *isolation != Isolation::none();
                (Some(isolation.to_string()), by_operator(demands))
            }
            SettingName::Sudo => {
                let word = if *forbids_sudo { "forbid" } else { "allow" };
                (Some(word.to_owned()), by_operator(*forbids_sudo))
            }
        };
        Ok(Setting {
            name,
            value,
            set_by,
            who: None,
            since: None,
            in_effect: None,
            note: None,
            allowed: self.allowed(name),
        })
    }

    fn allowed(&self, name: SettingName) -> String {
        match name {
            SettingName::Runner => "a runner that you may use, or RUNNER/WORKSPACE".to_owned(),
            SettingName::Model => models::ALLOWED.to_owned(),
            SettingName::Language => value::ALLOWED_LANGUAGE.to_owned(),
            SettingName::Steps => format!("a number from 1 to {MAX_STEPS}"),
            SettingName::Mode | SettingName::MaxMode => value::ALLOWED_MODE.to_owned(),
            SettingName::Isolation => value::ALLOWED_ISOLATION.to_owned(),
            SettingName::Sudo => value::ALLOWED_SUDO.to_owned(),
        }
    }
}

fn word(mode: Option<Mode>) -> Option<String> {
    mode.map(|mode| mode.to_string())
}

#[cfg(test)]
mod tests;
