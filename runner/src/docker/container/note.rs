//! The note about a container in its folder: the next daemon goes on with it by this.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use shared_types::{SandboxId, SandboxSpec};

use super::{Container, lock};
use crate::docker::make_folder;

/// The file in the folder of a sandbox that says whose it is, and what it is to be.
pub(super) const NOTE: &str = "sandbox.json";

/// The note about a sandbox in its folder.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(in crate::docker) struct Note {
    /// The sandbox; a spare container is none.
    pub(in crate::docker) sandbox: Option<SandboxId>,
    /// It is being removed with its files.
    #[serde(default)]
    pub(in crate::docker) removed: bool,
    /// Its specification.
    pub(in crate::docker) spec: SandboxSpec,
    /// The reason why it stopped, or did not start; empty where it runs.
    #[serde(default)]
    pub(in crate::docker) why: String,
}

impl Container {
    /// The body in a folder, and what is noted there; `None` where there is none.
    pub(in crate::docker) fn noted(folder: &Path) -> Option<(SandboxId, Note)> {
        let body = folder.file_name()?.to_str()?.parse().ok()?;
        let text = fs::read(folder.join(NOTE)).ok()?;
        Some((body, serde_json::from_slice(&text).ok()?))
    }

    pub(super) fn try_to_note(&self) -> io::Result<()> {
        let _noting = lock(&self.0.noting);
        let note = Note {
            sandbox: Some(self.0.id).filter(|_| !self.0.is_spare && !self.is_gone()),
            removed: self.is_gone(),
            spec: lock(&self.0.spec).clone(),
            why: lock(&self.0.told).clone(),
        };
        make_folder(&self.0.folder)?;
        make_folder(&self.operations())?;
        let new = self.0.folder.join("sandbox.json.new");
        let mut file = fs::File::create(&new)?;
        file.write_all(&serde_json::to_vec(&note)?)?;
        file.sync_data()?;
        fs::rename(new, self.0.folder.join(NOTE))?;
        // A host that dies must not come back with the note before: a spare one's files are removed.
        fs::File::open(&self.0.folder)?.sync_all()
    }

    pub(super) fn note(&self) {
        if let Err(error) = self.try_to_note() {
            tracing::warn!(%error, sandbox.id = %self.0.id, "failed to note a sandbox; the server tells of it again");
        }
    }
}
