//! `gantry-server drain` and `undrain`: a server among several on one database gives its work to the others, and takes
//! work again. The wish is in the server's row, so the command runs wherever the database is reached.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use server_app::{Drain, DrainProgress};
use shared_program::{note, say};
use shared_types::{Clock as _, SystemClock, human};
use tokio::time::{Instant, sleep};

use crate::{folder_lock, settings::DatabaseChoice};

/// The pause between two looks at the server's row.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The longest wait.
const WAIT_AT_MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// Lets a server drain, and waits until it has neither links nor turns.
///
/// # Errors
/// Fails if there is no such server, or it has links or turns after the wait; it drains on then.
pub(crate) async fn drain(
    database: &DatabaseChoice,
    folder: &Path,
    replica: Option<&str>,
    wait: Duration,
) -> anyhow::Result<()> {
    let (drains, place) = open(database, folder, replica).await?;
    let emptied = emptied(&drains, (replica, &place), wait.min(WAIT_AT_MOST)).await;
    drains.close().await;
    emptied
}

/// Has a server that drains work again.
///
/// # Errors
/// Fails if there is no such server.
pub(crate) async fn undrain(
    database: &DatabaseChoice,
    folder: &Path,
    replica: Option<&str>,
) -> anyhow::Result<()> {
    let (drains, place) = open(database, folder, replica).await?;
    let asked = async {
        let found = drains.find(replica, &place).await?;
        drains.ask(found.id, false).await?;
        anyhow::Ok(found.id)
    };
    let asked = asked.await;
    drains.close().await;
    say!("server {} takes links and turns again", asked?)?;
    Ok(())
}

/// The use cases, and the place of the server that runs on this folder.
async fn open(
    database: &DatabaseChoice,
    folder: &Path,
    replica: Option<&str>,
) -> anyhow::Result<(Drain, String)> {
    let clock = SystemClock::new();
    let place = match replica {
        Some(_) => String::new(),
        None => folder_lock::place_of(folder, clock.boot())
            .context("no server has run on this home; name one with --replica ID")?,
    };
    let store = database.open_beside().await;
    let store = store.context("failed to open the database")?;
    Ok((Drain::new(store, Arc::new(clock)), place))
}

async fn emptied(
    drains: &Drain,
    (replica, place): (Option<&str>, &str),
    wait: Duration,
) -> anyhow::Result<()> {
    let until = Instant::now() + wait;
    let id = drains.find(replica, place).await?.id;
    drains.ask(id, true).await?;
    note!("server {id} drains: its links and turns go to other servers");
    // Its renewals are counted from the wish on.
    let asked = drains.find(Some(&id.to_string()), place).await?;
    loop {
        let left = match drains.progress(&asked).await? {
            DrainProgress::Gone => {
                say!("server {id} has stopped")?;
                return Ok(());
            }
            DrainProgress::Has { links: 0, turns: 0 } => {
                say!(
                    "server {id} is empty: no links, no turns; stop it, or gantry-server undrain"
                )?;
                return Ok(());
            }
            DrainProgress::Has { links, turns } => {
                format!("{} and {}", counted(links, "link"), counted(turns, "turn"))
            }
            DrainProgress::Unheard => String::new(),
        };
        if Instant::now() >= until {
            if left.is_empty() {
                bail!(
                    "server {id} has not answered the request to drain for {}: check that it runs (gantry status \
                     --replicas). It drains once it reads its row; to withdraw the request: gantry-server undrain \
                     --replica {id}",
                    human::duration(wait)
                );
            }
            bail!(
                "server {id} has {left} after {}, and drains on; wait longer with --wait, or take it back with gantry-server undrain",
                human::duration(wait)
            );
        }
        sleep(LOOK_EVERY).await;
    }
}

fn counted(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}
