//! What an operator can do at the server's own machine, also while the server runs: whoever may
//! read the server's folder may already do everything.

use std::{path::Path, sync::Arc};

use anyhow::Context as _;
use server_app::{JoinTerms, Operator, keys::SigningKey};
use shared_types::{Clock, Entropy, OsEntropy, SystemClock};

use crate::settings::Database;

/// Prints a new one-time code for the person of this name, else for the first owner.
pub(crate) async fn sign_in_code(
    database: &Database,
    folder: &Path,
    user: Option<&str>,
) -> anyhow::Result<()> {
    println!(
        "{}",
        operator(database, folder).await?.sign_in_code(user).await?
    );
    Ok(())
}

/// Prints a join token whose runners will be the first owner's.
pub(crate) async fn join_token(
    database: &Database,
    folder: &Path,
    terms: JoinTerms,
) -> anyhow::Result<()> {
    println!(
        "{}",
        operator(database, folder)
            .await?
            .join_token(terms)
            .await?
            .reveal()
    );
    Ok(())
}

async fn operator(database: &Database, folder: &Path) -> anyhow::Result<Operator> {
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
        (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let store = database
        .open_beside()
        .await
        .context("failed to open the database")?;
    let identity = SigningKey::load_or_create(&folder.join("keys/identity.pem"), &*entropy)?;
    Ok(Operator::new(store, &identity, clock, entropy))
}
