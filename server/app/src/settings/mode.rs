//! The mode of the next turn before it begins: a setting counts, else the isolation of the place, and no mode is freer
//! than the ceilings of the operator, the tenant and the machine. A turn decides by the isolation that it finds
//! (`server-agent`); this is its account in advance.

use server_store::{SettingName, StoreError, StoredSettings};
use shared_types::{Isolation, Mode, RunnerChoice};

use super::Settings;
use crate::{AppError, OpContext};

/// The mode in which an agent works next, and the most freedom that it can have there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeInEffect {
    /// The mode that is set; absent where the isolation of the place decides.
    pub set: Option<Mode>,
    /// The mode that counts.
    pub mode: Mode,
    /// The most freedom; absent where no ceiling is.
    pub ceiling: Option<Mode>,
}

impl ModeInEffect {
    /// The mode of a message that names this one.
    pub fn named(self, mode: Mode) -> Mode {
        self.ceiling.map_or(mode, |ceiling| mode.min(ceiling))
    }
}

/// The facts of a place that decide about the mode there.
struct ModeFacts {
    ceiling: Option<Mode>,
    /// True if its isolation is believed and there is some.
    is_isolated: bool,
}

impl Settings {
    /// The mode under settings that were read.
    pub(super) async fn mode_under(
        &self,
        ctx: &OpContext,
        stored: &StoredSettings,
    ) -> Result<ModeInEffect, AppError> {
        let mode = |name| {
            let row = stored.in_effect(name).map(|row| row.value.parse::<Mode>());
            row.transpose().map_err(AppError::unavailable)
        };
        let set = mode(SettingName::Mode)?.or(self.operator.mode);
        let of_tenant = mode(SettingName::MaxMode)?;
        let place = self.facts(ctx, stored).await?;
        let ceilings = [of_tenant, self.operator.max_mode, place.ceiling];
        let ceiling = ceilings.into_iter().flatten().min();
        let usual = match place.is_isolated {
            true => Mode::Auto,
            false => Mode::Ask,
        };
        let mut in_effect = ModeInEffect {
            set,
            mode: usual,
            ceiling,
        };
        in_effect.mode = in_effect.named(set.unwrap_or(usual));
        Ok(in_effect)
    }

    async fn facts(&self, ctx: &OpContext, stored: &StoredSettings) -> Result<ModeFacts, AppError> {
        let nowhere = ModeFacts {
            ceiling: None,
            is_isolated: false,
        };
        let Some(row) = stored.in_effect(SettingName::Runner) else {
            return Ok(nowhere);
        };
        let choice = row.value.parse::<RunnerChoice>();
        let RunnerChoice { runner, sandbox } = choice.map_err(AppError::unavailable)?;
        let runner = match self.store.runner(ctx.tenant, runner).await {
            Err(StoreError::NotFound) => return Ok(nowhere),
            runner => runner?,
        };
        let sandboxes = self
            .store
            .sandboxes_of_runner(ctx.tenant, runner.id)
            .await?;
        let chosen = sandboxes
            .iter()
            .find(|one| sandbox.is_none_or(|sandbox| sandbox == one.id));
        let isolation = match (&runner.pool, chosen) {
            (Some(pool), _) => pool.isolation.clone(),
            (None, Some(chosen)) => chosen.isolation.clone(),
            (None, None) => Isolation::none(),
        };
        let is_believed = runner.trusted.is_some() || self.believed.believed.contains(&runner.id);
        Ok(ModeFacts {
            ceiling: runner.ceiling,
            is_isolated: is_believed && isolation != Isolation::none(),
        })
    }
}
