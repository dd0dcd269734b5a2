//! The look for the extensions of a turn, before the model is asked.

use std::sync::Arc;

use server_records::StandingExtensions;
use shared_sandbox::{Instructions, Outcome};
use shared_types::{
    Event, SandboxId,
    event::{Extensions, Place},
};

use super::{Turn, TurnError};
use crate::{extensions::gathered, tools::ToolSet};

impl Turn<'_> {
    /// Records the extensions that count with this outcome of a look, before the outcome is stored.
    pub(super) async fn extended_by_look(
        &mut self,
        place: &Place,
        outcome: &Outcome,
    ) -> Result<(), TurnError> {
        let Outcome::Surveyed(seen) = outcome else {
            return Ok(());
        };
        let standing = self.ports.log.extensions().await?;
        self.found_extensions(&standing, &seen.extensions, Some(place.sandbox))
            .await
    }

    /// Brings the extensions up to date where the place was not looked at: those that it had before still count there, as
    /// far as people trust them.
    pub(super) async fn extended_without_look(&mut self) -> Result<(), TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        if turn.is_surveyed {
            return Ok(());
        }
        let standing = self.ports.log.extensions().await?;
        let mut now = gathered(&standing, &[], None);
        // Without a look nothing tells if a file is still the one that people trust: only what gives no rights stays.
        if self.transcript.survey_of(turn.runner()).is_some() {
            keep_of_place(&turn.extensions, &mut now);
        }
        self.record_extensions(now).await
    }

    async fn found_extensions(
        &mut self,
        standing: &StandingExtensions,
        found: &[Instructions],
        sandbox: Option<SandboxId>,
    ) -> Result<(), TurnError> {
        let now = gathered(standing, found, sandbox);
        self.record_extensions(now).await
    }

    async fn record_extensions(&mut self, now: Extensions) -> Result<(), TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        if *turn.extensions == now {
            return Ok(());
        }
        let found = Event::ExtensionsFound {
            turn: self.id,
            extensions: Box::new(now),
        };
        self.record(found).await?;
        self.choose_tools();
        Ok(())
    }

    /// Chooses the tools by what the log says.
    pub(super) fn choose_tools(&mut self) {
        let tools = ToolSet::of_turn(&self.engine.sources, &self.transcript, self.id);
        self.tools = Arc::new(tools);
    }
}

/// Takes over the skills and roles of the place that have no name of another one.
fn keep_of_place(before: &Extensions, now: &mut Extensions) {
    for skill in before
        .skills
        .iter()
        .filter(|skill| skill.from.layer.is_on_runner())
    {
        now.skills.retain(|known| known.name != skill.name);
        now.skills.push(skill.clone());
    }
    let of_place = |role: &&shared_types::event::Role| {
        role.from
            .as_ref()
            .is_some_and(|from| from.layer.is_on_runner())
    };
    for role in before.roles.iter().filter(of_place) {
        now.roles.retain(|known| known.name != role.name);
        now.roles.push(role.clone());
    }
    now.skills.sort_by(|one, other| one.name.cmp(&other.name));
    now.roles.sort_by(|one, other| one.name.cmp(&other.name));
}
