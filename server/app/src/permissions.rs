//! Permissions: the rules about what agents may do, who set them, and what they say about a command.

mod project;

use std::sync::Arc;

use server_records::{RuleRow, SetRule, TrustedFile};
use server_store::{Store, StoreError};
use shared_consent::{Decision, Deed, Rule, Terms, judge};
use shared_types::{Clock, Entropy, Isolation, Mode, Risk, RuleId};

use crate::{AppError, OpContext, Parts, gate::Gate, rights::Action, settings::Settings};

/// Longest command that is tried, in bytes.
const MAX_PROBE_BYTES: usize = 64 * 1024;

pub use project::ProposedRules;

/// The rules that count for a user's agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRules {
    /// Those of the operator.
    pub operator: Vec<SetRule>,
    /// Those of the tenant and of the user.
    pub stored: Vec<RuleRow>,
    /// The files with rules of projects that the user trusts.
    pub files: Vec<TrustedFile>,
}

/// A rule to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    /// The rule, as people write it.
    pub rule: String,
    /// The decision that the rule gives.
    pub decision: Decision,
    /// True for all people of the tenant.
    pub for_everyone: bool,
}

/// A question for the decision on a deed that is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The command, the path or the address.
    pub text: String,
    /// The deed.
    pub deed: ProbeDeed,
    /// The mode; absent for the one that counts for the user.
    pub mode: Option<Mode>,
    /// The isolation of the place; absent for none.
    pub isolation: Isolation,
}

/// The deed of a probe, which its text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeDeed {
    /// It is run by a shell.
    Shell,
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is fetched from the web.
    Fetch,
}

/// The answer to a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// The decision.
    pub decision: Decision,
    /// The risk.
    pub risk: Risk,
    /// The reason for the decision, for people.
    pub why: String,
    /// The reasons for the risk.
    pub reasons: Vec<String>,
    /// The rule that decided.
    pub rule: Option<SetRule>,
    /// The rule that would allow it without a question.
    pub suggestion: Option<Rule>,
    /// The mode that was looked at.
    pub mode: Mode,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Permissions {
    store: Store,
    gate: Gate,
    settings: Settings,
    operator: Arc<[SetRule]>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl Permissions {
    pub(crate) fn of(parts: &Parts, gate: &Gate, settings: &Settings) -> Self {
        Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            settings: settings.clone(),
            operator: parts.rules.clone().into(),
            clock: parts.clock.clone(),
            entropy: parts.entropy.clone(),
        }
    }

    /// The rules that count for the user's agents.
    ///
    /// # Errors
    /// If the user may not see settings.
    pub async fn list(&self, ctx: &OpContext) -> Result<KnownRules, AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        Ok(KnownRules {
            operator: self.operator.to_vec(),
            stored: self.store.rules(ctx.tenant, ctx.user).await?,
            files: self.store.trusted_files(ctx.tenant, ctx.user).await?,
        })
    }

    /// Sets a rule.
    ///
    /// # Errors
    /// If it cannot be read, the user may not set it, or there are too many.
    pub async fn add(&self, ctx: &OpContext, new: NewRule) -> Result<RuleRow, AppError> {
        self.may_change(ctx, new.for_everyone)?;
        let rule = rule(&new.rule)?.to_string();
        let id = RuleId::generate(&*self.clock, &*self.entropy);
        let user = (!new.for_everyone).then_some(ctx.user);
        let new = server_store::NewRuleRow {
            id,
            user,
            decision: new.decision,
            rule: &rule,
        };
        Ok(self
            .store
            .add_rule(ctx.tenant, &new, &ctx.by(), self.clock.now())
            .await?)
    }

    /// Removes a rule of the user's, or of the tenant's.
    ///
    /// # Errors
    /// If there is none, or the user may not remove it.
    pub async fn remove(&self, ctx: &OpContext, id: RuleId) -> Result<(), AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        let rules = self.store.rules(ctx.tenant, ctx.user).await?;
        let row = rules.into_iter().find(|row| row.id == id);
        let row = row.ok_or(AppError::NotFound("rule"))?;
        self.may_change(ctx, row.user.is_none())?;
        match self
            .store
            .remove_rule(ctx.tenant, id, row.user, &ctx.by(), self.clock.now())
            .await
        {
            Err(StoreError::NotFound) => Err(AppError::NotFound("rule")),
            removed => Ok(removed?),
        }
    }

    /// Tells what would be decided about a command of the user's agent, and why.
    ///
    /// # Errors
    /// If the text is too long, or the user may not see settings.
    pub async fn probe(&self, ctx: &OpContext, probe: Probe) -> Result<ProbeAnswer, AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        if probe.text.len() > MAX_PROBE_BYTES {
            return Err(AppError::Invalid(format!(
                "the text has {} bytes; at most {MAX_PROBE_BYTES} are judged",
                probe.text.len()
            )));
        }
        let stored = self.store.rules(ctx.tenant, ctx.user).await?;
        let mut rules: Vec<_> = stored.into_iter().map(RuleRow::set).collect();
        rules.extend(self.operator.iter().cloned());
        let usual = match probe.isolation == Isolation::none() {
            true => Mode::Ask,
            false => Mode::Auto,
        };
        let in_effect = self.settings.mode(ctx, None).await?;
        let mode = in_effect.named(probe.mode.or(in_effect.set).unwrap_or(usual));
        let ceiling = in_effect.ceiling;
        let deed = match probe.deed {
            ProbeDeed::Shell => Deed::Shell(&probe.text),
            ProbeDeed::Read => Deed::Read(&probe.text),
            ProbeDeed::Write => Deed::Write(&probe.text),
            ProbeDeed::Fetch => Deed::Fetch(&probe.text),
        };
        let verdict = judge(
            &deed,
            &Terms {
                mode,
                ceiling,
                isolation: &probe.isolation,
                folder: "",
                rules: &rules,
            },
        );
        Ok(ProbeAnswer {
            decision: verdict.decision,
            risk: verdict.risk,
            rule: verdict.by.cloned(),
            why: verdict.why,
            reasons: verdict.reasons,
            suggestion: verdict.suggestion,
            mode,
        })
    }

    fn may_change(&self, ctx: &OpContext, for_everyone: bool) -> Result<(), AppError> {
        let action = match for_everyone {
            true => Action::ChangeTenantSettings,
            false => Action::ChangeSettings,
        };
        self.gate.own(ctx, action)
    }
}

/// Reads a rule that a person wrote.
pub(crate) fn rule(text: &str) -> Result<Rule, AppError> {
    text.parse()
        .map_err(|wrong| AppError::Invalid(format!("the rule {text:?} cannot be used: {wrong}")))
}
