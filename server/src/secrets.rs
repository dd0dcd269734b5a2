//! The master key of the stored secrets: its source, and the verbs of `gantry-server secrets`.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, bail, ensure};
use server_app::vault::{HeldKeys, MasterKeySource, Rotated, rotate};
use server_store::{BackupContent, Schema, StoreError};
use shared_program::say;
use shared_types::{Clock as _, OsEntropy, SystemClock};
use tokio::{io::AsyncReadExt as _, process::Command, time::timeout};

use crate::{
    folder_lock,
    settings::{DatabaseChoice, MasterKeyChoice, SecretsVerb},
};

/// The longest time of the program that prints the master key.
const PRINTED_WITHIN: Duration = Duration::from_secs(10);

/// The most bytes that it may print.
const MAX_PRINTED_BYTES: u64 = 16 * 1024;

/// The table of the keys that a master key wraps.
const DATA_KEYS: &str = "data_keys";

impl MasterKeyChoice {
    /// The source, whose keys are read later; a command runs now.
    ///
    /// # Errors
    /// Fails if the command fails.
    pub(crate) async fn source(&self) -> anyhow::Result<MasterKeySource> {
        Ok(match self {
            Self::Own(path) => MasterKeySource::Own(path.clone()),
            Self::File(path) => MasterKeySource::File(path.clone()),
            Self::Environment(text) => MasterKeySource::given("GANTRY_MASTER_KEY", text.clone()),
            Self::Command(program, arguments) => {
                let text = printed(program, arguments).await.context(
                    "master_key_command under [secrets] in gantry.toml failed; correct it, or run it by hand to see why",
                )?;
                MasterKeySource::given("master_key_command under [secrets] in gantry.toml", text)
            }
        })
    }

    /// Words about the source for `check-config`. The keys must open what is stored.
    ///
    /// # Errors
    /// Fails if they do not, or cannot be read.
    pub(crate) async fn checked(
        &self,
        database: &DatabaseChoice,
        schema: Schema,
    ) -> anyhow::Result<String> {
        let source = self.source().await?;
        let keys = if schema.found == Some(schema.known) {
            let opened = database.open_beside().await;
            let store = opened.context("failed to open the database")?;
            let held = HeldKeys::read(&store, source.clone()).await;
            store.close().await;
            held.context("failed to use the master key")?.len()
        } else {
            let keys = source.read().context("failed to use the master key")?;
            keys.map_or(0, |keys| keys.len())
        };
        let place = match database {
            DatabaseChoice::File(_) => "beside the database",
            DatabaseChoice::Postgres(_) => "in the server's folder",
        };
        Ok(match (&source, keys) {
            (MasterKeySource::Own(path), 0) => format!(
                "no master key yet; the server makes it in {}, {place}",
                path.display()
            ),
            (MasterKeySource::Own(path), _) => format!(
                "master key in {}, {place}; backups are without it, so keep a copy elsewhere",
                path.display()
            ),
            (source, 1) => format!("master key from {source}"),
            (source, keys) => format!("the first of {keys} master keys from {source}"),
        })
    }

    /// A sentence about what it takes to restore the secrets of a backup.
    pub(crate) fn needed_by(&self, content: &BackupContent) -> String {
        let keys = content.tables.iter().find(|table| table.name == DATA_KEYS);
        if keys.is_none_or(|table| table.rows == 0) {
            return "it has no secrets, so a restored server needs no master key".to_owned();
        }
        let key = match self {
            Self::Own(path) => format!("{} of the server that made it", path.display()),
            Self::File(path) => format!("{}, which master_key_file names", path.display()),
            Self::Environment(_) => "GANTRY_MASTER_KEY".to_owned(),
            Self::Command(..) => "the one that master_key_command prints".to_owned(),
        };
        format!(
            "its secrets are sealed, and their master key is not in it: a restored server needs {key}"
        )
    }
}

/// The text that the program prints.
async fn printed(program: &str, arguments: &[String]) -> anyhow::Result<String> {
    let mut running = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{program} cannot be started"))?;
    let output = running.stdout.take().context("its output is not here")?;
    let ended = timeout(PRINTED_WITHIN, async {
        let mut text = String::new();
        let mut output = output.take(MAX_PRINTED_BYTES);
        let read = output.read_to_string(&mut text).await;
        read.with_context(|| format!("{program} prints no text"))?;
        anyhow::Ok((text, running.wait().await?))
    });
    let (text, status) = ended.await.with_context(|| {
        format!(
            "{program} has not ended within {} s",
            PRINTED_WITHIN.as_secs()
        )
    })??;
    ensure!(status.success(), "{program} ended with {status}");
    Ok(text)
}

/// Carries out a verb of `gantry-server secrets`.
///
/// # Errors
/// Fails if the master keys are not those of the database, or it does not answer.
pub(crate) async fn run(
    verb: SecretsVerb,
    database: &DatabaseChoice,
    choice: &MasterKeyChoice,
    folder: &Path,
) -> anyhow::Result<()> {
    match verb {
        SecretsVerb::Rotate => rotate_master_key(database, choice, folder).await,
        SecretsVerb::Forget { master_key } => forget(database, choice, &master_key).await,
    }
}

/// Removes the secrets of a master key that is not here.
async fn forget(
    database: &DatabaseChoice,
    choice: &MasterKeyChoice,
    master_key: &str,
) -> anyhow::Result<()> {
    let keys = choice.source().await?.read();
    let keys = keys.context("failed to use the master key")?;
    if keys.is_some_and(|keys| keys.has(master_key)) {
        bail!(
            "{master_key} is not lost: the source of the master keys has it, so its secrets open"
        );
    }
    let opened = database.open_beside().await;
    let store = opened.context("failed to open the database")?;
    let forgotten = store.forget_master_key(master_key).await;
    store.close().await;
    let secrets = match forgotten {
        Err(StoreError::NotFound) => bail!(
            "{master_key} wraps nothing here: name the id that the server names when it refuses to start"
        ),
        forgotten => forgotten.context("failed to forget the master key")?,
    };
    say!("removed {secrets} secrets, which nothing could open any more: people enter them again")?;
    Ok(())
}

/// Wraps all data keys under a new master key, and prints what the operator does next.
///
/// # Errors
/// Fails if the master keys do not open what is stored, or cannot be written.
async fn rotate_master_key(
    database: &DatabaseChoice,
    choice: &MasterKeyChoice,
    folder: &Path,
) -> anyhow::Result<()> {
    let source = choice.source().await?;
    let opened = database.open_beside().await;
    let store = opened.context("failed to open the database")?;
    if let (MasterKeySource::Own(path), true) = (&source, store.is_shared()) {
        let place = folder_lock::place_of(folder, SystemClock::new().boot())?;
        let others = store.replicas_elsewhere(&place).await;
        let others = others.context("failed to look for other servers")?;
        if others > 0 {
            bail!(
                "{others} servers in other folders use {database}, and would not learn of the new key in {}: set master_key_file or GANTRY_MASTER_KEY on all servers, to that key, and rotate it there",
                path.display()
            );
        }
    }
    let rotated = rotate(&store, &source, &OsEntropy).await;
    store.close().await;
    let rotated = rotated.context("failed to rotate the master key")?;
    say!("{}", told(&source, &rotated))?;
    Ok(())
}

/// The result, and the next step.
fn told(source: &MasterKeySource, rotated: &Rotated) -> String {
    let Rotated {
        master_key,
        data_keys,
        older,
    } = rotated;
    let done = format!("wrapped {data_keys} data keys anew, by the master key {master_key}");
    match (source, older) {
        (MasterKeySource::Own(path), _) => format!(
            "{done}; {} has that key alone, and a running server uses it: replace your copy of the file, and keep the old one as long as backups from before",
            path.display()
        ),
        (_, 0) if *data_keys == 0 => format!(
            "{done}: it is the only one; to replace it, put a new key before it in {source}, and run this again"
        ),
        (_, 0) => done,
        (MasterKeySource::File(_), older) => format!(
            "{done}; the {older} older keys wrap nothing any more: remove them from {source}, and keep them as long as backups from before"
        ),
        (MasterKeySource::Given { .. }, older) => format!(
            "{done}; the {older} older keys wrap nothing any more: remove them from {source} once every server has the first one, and keep them as long as backups from before"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_prints_the_key_and_a_failure_is_told_without_its_output() {
        let printed = |script: &'static str| async move {
            let choice =
                MasterKeyChoice::Command("sh".to_owned(), vec!["-c".to_owned(), script.to_owned()]);
            choice.source().await
        };
        let source = printed("printf '%064d' 7").await.expect("it prints");
        let keys = source.read().expect("it is a key").expect("it is there");
        assert_eq!(keys.len(), 1);
        let failed = printed("echo hush; exit 3").await.expect_err("it fails");
        let failed = format!("{failed:#}");
        assert!(
            failed.contains("master_key_command") && failed.contains('3'),
            "{failed}"
        );
        assert!(!failed.contains("hush"), "{failed}");
        let source = printed("echo hush").await.expect("it prints");
        let none = source.read().expect_err("it is no key").to_string();
        assert!(none.contains("line 1") && !none.contains("hush"), "{none}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_does_not_end_is_given_up() {
        let arguments = ["100".to_owned()];
        let given_up = printed("sleep", &arguments).await.expect_err("it hangs");
        assert!(given_up.to_string().contains("within 10 s"), "{given_up:#}");
    }
}
