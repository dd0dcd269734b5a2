//! Files with a project's rules about what agents may do: those that a user trusts, and the one that a session found.

use serde_json::json;
use server_records::{StoredEvent, TrustedFile, is_in_folder, project_folder};
use shared_consent::ProjectRules;
use shared_types::{
    Digest, Event, RuleId, SandboxId, SessionId, TenantId, Timestamp, UserId,
    event::{Place, ProjectFile},
};

use crate::{
    AuditEntry, By, Store, StoreError, audit,
    columns::{Columns as _, damaged, integer},
    database::{Connection, FromRow, Row, lock_user, query, query_as, retried},
    room::Room,
};

/// The files that a user trusts.
const FILES: Room = Room {
    count: "SELECT COUNT(*) AS used FROM trusted_files WHERE tenant_id = $1 AND user_id = $2",
    has: "you trust",
    at_most: 200,
    what: "files with rules",
    remedy: "trust one no more with: gantry permissions untrust",
};

/// The looks of a session that are read at once.
const LOOKS: i64 = 32;

/// A file to be trusted.
#[derive(Debug, Clone, Copy)]
pub struct NewTrustedFile<'a> {
    /// The id of the trust, where the file was not trusted before.
    pub id: RuleId,
    /// The user.
    pub user: UserId,
    /// The workspace with the file.
    pub sandbox: SandboxId,
    /// The folder of the project, relative to the root of the workspace; empty for the root.
    pub folder: &'a str,
    /// The text, which has the form of such a file.
    pub text: &'a str,
}

/// A file with a project's rules that the last look of a session found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// The runner with the file, and its workspace.
    pub place: Place,
    /// The folder of the project, relative to the root of the workspace; empty for the root.
    pub folder: String,
    /// The digest of the text.
    pub digest: Digest,
    /// The text.
    pub text: String,
}

macro_rules! select_trusted {
    ($rest:literal) => {
        concat!(
            "SELECT trusted_files.id, sandbox_id, folder, digest, text, changed,
                 trusted_files.trusted_at,
                 sandboxes.runner_id, sandboxes.name AS workspace, runners.name AS runner_name
             FROM trusted_files
             JOIN sandboxes ON sandboxes.tenant_id = trusted_files.tenant_id
                 AND sandboxes.id = sandbox_id
             JOIN runners ON runners.tenant_id = trusted_files.tenant_id
                 AND runners.id = sandboxes.runner_id ",
            $rest
        )
    };
}

impl Store {
    /// The files that a user trusts, by runner, workspace and folder.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn trusted_files(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Vec<TrustedFile>, StoreError> {
        let rows = query_as(select_trusted!(
            "WHERE trusted_files.tenant_id = $1 AND trusted_files.user_id = $2
             ORDER BY runners.name, sandboxes.name, folder, trusted_files.id"
        ))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// Trusts a file with this very text. It takes the place of another text of the same file.
    ///
    /// # Errors
    /// [`StoreError::Full`] above 200 files of the user.
    pub async fn trust_file(
        &self,
        tenant: TenantId,
        new: NewTrustedFile<'_>,
        by: &By,
        now: Timestamp,
    ) -> Result<TrustedFile, StoreError> {
        let digest = Digest::of(new.text.as_bytes());
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, new.user).await?;
            let row: Row = query(
                "INSERT INTO trusted_files
                     (tenant_id, id, user_id, sandbox_id, folder, digest, text, changed, trusted_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8)
                 ON CONFLICT (tenant_id, user_id, sandbox_id, folder) DO UPDATE
                     SET digest = excluded.digest, text = excluded.text, changed = 0,
                         trusted_at = excluded.trusted_at
                 RETURNING id",
            )
            .bind(tenant.to_string())
            .bind(new.id.to_string())
            .bind(new.user.to_string())
            .bind(new.sandbox.to_string())
            .bind(new.folder)
            .bind(digest.to_string())
            .bind(new.text)
            .bind(now.as_micros())
            .fetch_one(&mut tx)
            .await?;
            let id: RuleId = row.parsed("id")?;
            FILES
                .must_hold(&mut tx, tenant, &new.user.to_string())
                .await?;
            let file = query_as(select_trusted!(
                "WHERE trusted_files.tenant_id = $1 AND trusted_files.id = $2"
            ))
            .bind(tenant.to_string())
            .bind(id.to_string())
            .fetch_one(&mut tx)
            .await?;
            let entry = entry(by, "permission.file_trusted", &file);
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await?;
            Ok(file)
        })
    }

    /// Trusts a file no more.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user trusts no such file.
    pub async fn untrust_file(
        &self,
        tenant: TenantId,
        id: RuleId,
        user: UserId,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let file = query_as(select_trusted!(
                "WHERE trusted_files.tenant_id = $1 AND trusted_files.id = $2
                     AND trusted_files.user_id = $3"
            ))
            .bind(tenant.to_string())
            .bind(id.to_string())
            .bind(user.to_string())
            .fetch_one(&mut tx)
            .await?;
            let gone = query("DELETE FROM trusted_files WHERE tenant_id = $1 AND id = $2")
                .bind(tenant.to_string())
                .bind(id.to_string())
                .execute(&mut tx)
                .await?;
            if gone == 0 {
                return Err(StoreError::NotFound);
            }
            let entry = entry(by, "permission.file_untrusted", &file);
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await
        })
    }

    /// The file with a project's rules that the last look of the session found; nothing if it found none.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn found_file(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<Option<FoundFile>, StoreError> {
        let mut found: Option<(Place, ProjectFile)> = None;
        let mut before = u64::MAX;
        loop {
            let looks = self.looks(tenant, session, before).await?;
            for look in &looks {
                before = look.event.seq;
                let (place, project) = match look.event.known() {
                    Some(Event::PlaceSurveyed { place, project, .. }) => {
                        (place.as_deref(), project.as_deref())
                    }
                    _ => (None, None),
                };
                if found.is_none() {
                    found = place.cloned().zip(project.cloned());
                }
                let Some((place, file)) = &found else {
                    return Ok(None);
                };
                // Only the first of the looks that found this text has it.
                let same =
                    project.filter(|one| (&one.path, one.digest) == (&file.path, file.digest));
                if let Some(text) = same.and_then(|file| file.text.clone()) {
                    let folder = project_folder(&file.path);
                    return Ok(folder.map(|folder| FoundFile {
                        place: place.clone(),
                        folder: folder.to_owned(),
                        digest: file.digest,
                        text,
                    }));
                }
            }
            if looks.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Looks of the session at its places, the newest first, before the event of this number.
    async fn looks(
        &self,
        tenant: TenantId,
        session: SessionId,
        before: u64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let rows = query_as(
            "SELECT seq, at, body FROM events
             WHERE tenant_id = $1 AND session_id = $2 AND seq < $3 AND kind = 'place.surveyed'
             ORDER BY seq DESC LIMIT $4",
        )
        .bind(tenant.to_string())
        .bind(session.to_string())
        .bind(integer(before))
        .bind(LOOKS)
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }
}

/// Marks which of the trusted files a look of this session did not find as they are trusted. A file that a nearer one
/// hides was not looked for.
pub(crate) async fn looked_for(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    sandbox: SandboxId,
    found: Option<&ProjectFile>,
) -> Result<(), StoreError> {
    let rows: Vec<Row> = query(
        "SELECT trusted_files.id, folder, digest, changed, directory
         FROM sessions JOIN trusted_files ON trusted_files.tenant_id = sessions.tenant_id
             AND trusted_files.user_id = sessions.user_id
         WHERE sessions.tenant_id = $1 AND sessions.id = $2 AND sandbox_id = $3",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(sandbox.to_string())
    .fetch_all(&mut *tx)
    .await?;
    let nearest = found.and_then(|file| project_folder(&file.path));
    for row in &rows {
        let folder = row.text("folder")?;
        let is_hidden = nearest.is_some_and(|nearest| nearest.len() > folder.len());
        if is_hidden || !is_in_folder(&row.text("directory")?, &folder) {
            continue;
        }
        let trusted: Digest = row.digest("digest")?;
        let is_found =
            nearest == Some(&*folder) && found.is_some_and(|file| file.digest == trusted);
        let changed = i64::from(!is_found);
        if row.maybe_integer("changed")? == Some(changed) {
            continue;
        }
        query("UPDATE trusted_files SET changed = $3 WHERE tenant_id = $1 AND id = $2")
            .bind(tenant.to_string())
            .bind(row.text("id")?)
            .bind(changed)
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

fn entry(by: &By, kind: &'static str, file: &TrustedFile) -> AuditEntry {
    by.entry(
        kind,
        file.id,
        json!({
            "runner": file.runner.to_string(), "workspace": file.workspace, "path": file.path(),
            "digest": file.digest.to_string(),
        }),
    )
}

impl FromRow for TrustedFile {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let folder = row.text("folder")?;
        let rules = ProjectRules::read(&row.text("text")?, &folder);
        Ok(Self {
            id: row.parsed("id")?,
            runner: row.parsed("runner_id")?,
            runner_name: row.text("runner_name")?,
            sandbox: row.parsed("sandbox_id")?,
            workspace: row.text("workspace")?,
            digest: row.digest("digest")?,
            rules: rules.map_err(|error| damaged("text", error))?,
            folder,
            changed: row.count("changed")? != 0,
            at: row.time("trusted_at")?,
        })
    }
}
