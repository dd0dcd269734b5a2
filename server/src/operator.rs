//! The operator's actions on the server's own machine, also while the server runs. A person who may read the server's
//! folder may already do everything.

use std::{fs, io, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path, sync::Arc};

use anyhow::Context as _;
use server_app::{JoinTerms, Operator, keys::SigningKey};
use shared_program::{files, say};
use shared_types::{Clock, Entropy, OsEntropy, SystemClock};

use crate::settings::DatabaseChoice;

/// Prints a new one-time code for the person of this name, else for the first owner.
pub(crate) async fn sign_in_code(
    database: &DatabaseChoice,
    folder: &Path,
    user: Option<&str>,
) -> anyhow::Result<()> {
    say!(
        "{}",
        operator(database, folder).await?.sign_in_code(user).await?
    )?;
    Ok(())
}

/// Makes a join token whose runners will be the first owner's, and prints it, or writes it to the file. With `once`, if
/// a runner of the token's name is enrolled, it makes no token and removes the file.
pub(crate) async fn join_token(
    database: &DatabaseChoice,
    folder: &Path,
    terms: JoinTerms,
    once: bool,
    file: Option<&Path>,
) -> anyhow::Result<()> {
    let operator = operator(database, folder).await?;
    let needless = once && operator.has_runner(&terms.name).await?;
    let Some(file) = file else {
        if !needless {
            say!("{}", operator.join_token(terms).await?.reveal())?;
        }
        return Ok(());
    };
    let failed = || format!("{} cannot be written", file.display());
    if needless {
        return remove(file).with_context(failed);
    }
    let into = files::replaced(file).with_context(failed)?;
    let token = operator.join_token(terms).await?;
    write_secret(&into, &token.reveal()).with_context(failed)
}

/// Replaces the file by one that its user alone may read. A reader finds the old text or the new one.
fn write_secret(file: &Path, text: &str) -> io::Result<()> {
    let unfinished = file.with_added_extension("unfinished");
    remove(&unfinished)?;
    let mut options = fs::OpenOptions::new();
    let mut opened = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)?;
    writeln!(opened, "{text}")?;
    fs::rename(&unfinished, file)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn operator(database: &DatabaseChoice, folder: &Path) -> anyhow::Result<Operator> {
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
        (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let store = database
        .open_beside()
        .await
        .context("failed to open the database")?;
    let identity = SigningKey::load_or_create(&folder.join("keys/identity.pem"), &*entropy)?;
    Ok(Operator::new(store, &identity, clock, entropy))
}
