//! The rules that a file of a project proposes, and the trust by which they count.

use server_records::{TrustedFile, project_path};
use server_store::{FoundFile, NewTrustedFile, StoreError};
use shared_consent::ProjectRules;
use shared_types::{Digest, RuleId, SessionId};

use super::Permissions;
use crate::{AppError, OpContext, rights::Action};

/// The file with a project's rules that the last look of a session found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedRules {
    /// The file, relative to the root of its workspace.
    pub path: String,
    /// The name of the runner with the file.
    pub runner: String,
    /// The digest of the text.
    pub digest: Digest,
    /// The rules, or the reason why none of them can count.
    pub rules: Result<ProjectRules, String>,
    /// The trust in this file, also where that is for another text.
    pub trusted: Option<TrustedFile>,
}

impl Permissions {
    /// The file with a project's rules that the last look of a session found.
    ///
    /// # Errors
    /// If it found none, the user has no such session, or may not see settings.
    pub async fn proposed(
        &self,
        ctx: &OpContext,
        session: SessionId,
    ) -> Result<ProposedRules, AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        self.gate.session_row(ctx, session).await?;
        let found = self.store.found_file(ctx.tenant, session).await?;
        let found = found.ok_or(AppError::NotFound("file with rules"))?;
        let trusted = self.store.trusted_files(ctx.tenant, ctx.user).await?;
        let trusted = trusted
            .into_iter()
            .find(|file| file.sandbox == found.place.sandbox && file.folder == found.folder);
        Ok(ProposedRules {
            path: project_path(&found.folder),
            runner: found.place.runner_name.clone(),
            digest: found.digest,
            rules: read(&found),
            trusted,
        })
    }

    /// Trusts the file with rules that the last look of a session found, if its text has this digest.
    ///
    /// # Errors
    /// If it has not, its rules cannot be used, the user has no such session, or trusts too many files.
    pub async fn trust(
        &self,
        ctx: &OpContext,
        session: SessionId,
        digest: Digest,
    ) -> Result<TrustedFile, AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        self.gate.session_row(ctx, session).await?;
        let found = self.store.found_file(ctx.tenant, session).await?;
        let found = found.filter(|found| found.digest == digest);
        let Some(found) = found else {
            return Err(AppError::Conflict(
                "the last look of this session did not find the file with this text; look at it again: gantry \
                 permissions trust"
                    .to_owned(),
            ));
        };
        if let Err(wrong) = read(&found) {
            return Err(AppError::Invalid(format!(
                "{} cannot be trusted: {wrong}",
                project_path(&found.folder)
            )));
        }
        let file = NewTrustedFile {
            id: RuleId::generate(&*self.clock, &*self.entropy),
            user: ctx.user,
            sandbox: found.place.sandbox,
            folder: &found.folder,
            text: &found.text,
        };
        let now = self.clock.now();
        Ok(self
            .store
            .trust_file(ctx.tenant, file, &ctx.by(), now)
            .await?)
    }

    /// Trusts a file no more.
    ///
    /// # Errors
    /// If the user trusts no such file, or may not change settings.
    pub async fn untrust(&self, ctx: &OpContext, id: RuleId) -> Result<(), AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        let (by, now) = (ctx.by(), self.clock.now());
        let gone = self.store.untrust_file(ctx.tenant, id, ctx.user, &by, now);
        match gone.await {
            Err(StoreError::NotFound) => Err(AppError::NotFound("rule")),
            gone => Ok(gone?),
        }
    }
}

/// The rules of a file that was found.
fn read(found: &FoundFile) -> Result<ProjectRules, String> {
    match ProjectRules::read(&found.text, &found.folder) {
        Ok(rules) if rules.is_empty() => Err("it has no rules".to_owned()),
        Ok(rules) => Ok(rules),
        Err(wrong) => Err(wrong.to_string()),
    }
}
