//! The rules of a project's file. They count because the session's user trusts the file, and in full only while it is
//! found as the user trusted it: else its rules that ask and deny still count, and those that allow do not.

use server_records::{SetRule, TrustedFile, is_in_folder, project_folder};
use shared_sandbox::{MAX_PROJECT_FILE_BYTES, Outcome, ProjectFile as Found};
use shared_types::{
    Digest, RunnerId, SandboxId,
    clean::clean_line,
    event::{Place, ProjectFile},
};

use super::{Turn, TurnError, survey::MAX_NAME};
use crate::transcript::TurnLog;

impl Turn<'_> {
    /// The rules of the files that the user trusts, of the projects in which this turn works.
    pub(super) async fn project_rules(&self) -> Result<Vec<SetRule>, TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        let Some(runner) = turn.runner() else {
            return Ok(Vec::new());
        };
        // What an earlier turn found may be gone.
        let survey = turn.survey.as_ref().filter(|_| turn.is_surveyed);
        let place = survey.and_then(|survey| survey.place.as_ref());
        // A place that was not looked at may be each workspace of the runner, unless one was chosen.
        let sandbox = match place {
            Some(place) => Some(place.sandbox),
            None => chosen_sandbox(turn, runner),
        };
        let found = survey.and_then(|survey| survey.project.as_ref());
        let mut rules = Vec::new();
        for file in self.trusted_here(runner, sandbox).await? {
            let is_as_trusted =
                found.is_some_and(|(path, digest)| *path == file.path() && *digest == file.digest);
            rules.extend(file.counting(is_as_trusted));
        }
        Ok(rules)
    }

    /// The file with the project's rules that a look found, as it is recorded. The path and the text come from a runner:
    /// what is no such file of this place counts as none.
    pub(super) async fn project_found(
        &self,
        place: &Place,
        outcome: &Outcome,
    ) -> Result<Option<ProjectFile>, TurnError> {
        let Outcome::Surveyed(seen) = outcome else {
            return Ok(None);
        };
        let directory = self.transcript.directory();
        let Some(Found { path, text }) = seen.project.as_deref().filter(|file| {
            let folder = project_folder(&file.path);
            folder.is_some_and(|folder| is_in_folder(directory, folder))
                && clean_line(&file.path, MAX_NAME) == file.path
                && file.text.len() as u64 <= MAX_PROJECT_FILE_BYTES
        }) else {
            return Ok(None);
        };
        let digest = Digest::of(text.as_bytes());
        let trusted = self
            .trusted_here(place.runner, Some(place.sandbox))
            .await?
            .into_iter()
            .any(|file| file.path() == *path && file.digest == digest);
        let before = self.transcript.survey_of(Some(place.runner));
        let known = before.and_then(|before| before.project.as_ref());
        let is_known = known.is_some_and(|(known, of)| known == path && *of == digest);
        Ok(Some(ProjectFile {
            path: path.clone(),
            digest,
            text: (!is_known).then(|| text.clone()),
            trusted,
        }))
    }

    /// The files that the user trusts in the folder of the session and above it.
    async fn trusted_here(
        &self,
        runner: RunnerId,
        sandbox: Option<SandboxId>,
    ) -> Result<Vec<TrustedFile>, TurnError> {
        let mut files = self.ports.log.trusted_files(runner).await?;
        files.retain(|file| {
            sandbox.is_none_or(|sandbox| sandbox == file.sandbox)
                && is_in_folder(self.transcript.directory(), &file.folder)
        });
        Ok(files)
    }
}

/// The workspace that was chosen by its name.
fn chosen_sandbox(turn: &TurnLog, runner: RunnerId) -> Option<SandboxId> {
    let workspace = turn.choice.as_ref()?.workspace()?;
    Some(SandboxId::derive(runner, workspace))
}
