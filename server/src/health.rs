//! `gantry-server health`: whether the server that runs on this folder can serve requests.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::bail;
use shared_client::{Client, Options, PING_EVERY, Trust};
use shared_program::say;
use shared_types::OsEntropy;
use tokio::time::timeout;

use crate::running::RunningServer;

/// The longest wait for the server's answer: longer than the server waits for its database.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// Asks the server as any client does, and prints its answer. Nothing is changed.
///
/// # Errors
/// Fails if no server runs there, it does not answer, or it is not ready.
pub(crate) async fn health(folder: &Path) -> anyhow::Result<()> {
    let running = RunningServer::of(folder)?;
    let url = &running.url;
    let client = Client::new(Options {
        server: url.parse()?,
        token: None,
        trust: match running.certificate {
            Some(certificate) => Trust::Pinned(*certificate.as_bytes()),
            None => Trust::Platform,
        },
        // The request carries no secret.
        plain_text_allowed: true,
        ping_every: PING_EVERY,
        entropy: Arc::new(OsEntropy),
    })?;
    let Ok(answered) = timeout(ANSWERED_WITHIN, client.not_ready()).await else {
        bail!(
            "{url} did not answer within {} s",
            ANSWERED_WITHIN.as_secs()
        );
    };
    if let Some(why) = answered? {
        bail!("{url} is not ready: {why}");
    }
    say!("{url} is ready")?;
    Ok(())
}
