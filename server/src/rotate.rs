//! `gantry-server rotate-link-key`: a new key for the access tokens of runners.

use std::path::Path;

use anyhow::{Context as _, bail};
use server_app::keys::{LinkKeys, TokensOfBefore};
use shared_program::say;
use shared_types::OsEntropy;

use crate::{folder_lock, ownership, reload};

/// Makes a new key and has a server that runs use it; with `now`, tokens of the key before are refused at once.
///
/// # Errors
/// Fails if there is no key yet, the folder cannot be written, or the server does not use the new key.
pub(crate) async fn rotate(home: &Path, now: bool) -> anyhow::Result<()> {
    let folder = &*home.join("server");
    let keys = folder.join("keys");
    if !keys.join("link.pem").exists() {
        bail!(
            "{} has no link.pem yet: the server makes it when it first starts",
            keys.display()
        );
    }
    let (before, then) = match now {
        false => (
            TokensOfBefore::Accepted,
            "access tokens of the key before are accepted for 10 more minutes",
        ),
        true => (
            TokensOfBefore::Refused,
            "access tokens of the key before are refused, and every runner signs in again",
        ),
    };
    let rotated = LinkKeys::rotate(&keys, before, &OsEntropy).context(
        "the link key was not rotated; where the keys are a Secret, put the new ones there and run gantry-server reload",
    );
    // Before the server reads it.
    rotated.and(ownership::give_to_owner(home))?;
    if !folder_lock::is_taken(folder)? {
        say!("the link key is new; no server runs here, so it counts from the next start on")?;
        return Ok(());
    }
    reload::reload(folder).await.context(
        "the link key is new, but the server does not use it yet; correct the settings and run gantry-server reload",
    )?;
    say!("the link key is new; {then}")?;
    Ok(())
}
