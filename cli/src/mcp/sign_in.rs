//! The person's sign-ins to tool servers.

use std::{io::IsTerminal as _, time::Duration};

use anyhow::{Context as _, bail};
use shared_api::{NamedToolServer, ToolServerSignIn};
use shared_client::Client;
use shared_types::{Clock as _, SystemClock, Timestamp};
use tokio::task::spawn_blocking;

use crate::{
    browser::Opener,
    exit::Exit,
    extensions::{MAX_CELL, MAX_WHOLE},
    models,
    pick::{self, SessionName},
    remote::Signals,
    render::clean::clean_line,
    screen::Screen,
    unechoed::Unechoed,
};

/// The pause between two looks whether the person has signed in.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The tool server of this name, of a session or registered.
pub(super) async fn named(
    client: &Client,
    server: String,
    session: Option<SessionName>,
) -> anyhow::Result<NamedToolServer> {
    let session = match session {
        Some(session) => Some(pick::session(client, &session).await?.id),
        None => None,
    };
    Ok(NamedToolServer { server, session })
}

/// Signs in to a tool server by the person's browser.
pub(super) async fn login(
    client: &Client,
    screen: Screen,
    browser: Option<Opener>,
    server: &NamedToolServer,
    paste: bool,
) -> anyhow::Result<Exit> {
    let before = signed_in_since(client, &server.server).await?;
    let begun = client.sign_in_to_tool_server(server).await?;
    screen.line("open this address in a browser that is signed in to Gantry as you:")?;
    screen.line(&clean_line(&begun.url, MAX_WHOLE))?;
    // A signal that ends the command ends it here, so that the page is removed.
    let mut signals = Signals::listen().context("failed to listen for signals")?;
    let browser = browser.filter(|_| std::io::stdout().is_terminal());
    let page = browser.and_then(|opener| opener.open(&begun.url));
    if page.is_some() {
        screen.note("it opens in your browser");
    }
    let signing_in = async {
        if paste || server.session.is_some() {
            return pasted(client).await;
        }
        screen.note("waiting until you have signed in there; Ctrl+C leaves");
        wait(client, &server.server, before, begun.ends_at).await?;
        Ok(server.server.clone())
    };
    let signed_in = tokio::select! {
        signed_in = signing_in => signed_in?,
        code = signals.ended() => return Ok(Exit::Code(code)),
    };
    screen.line(&format!(
        "signed in to {}",
        clean_line(&signed_in, MAX_CELL)
    ))?;
    Ok(Exit::Done)
}

/// Reads the address at which the browser ended, and sends it. Returns the name of the tool server.
async fn pasted(client: &Client) -> anyhow::Result<String> {
    // The thread below may be left with its line unread; the terminal echoes again all the same.
    let _unechoed = Unechoed::enter();
    let reading = spawn_blocking(|| models::secret("the address at which the browser ends"));
    let address = reading.await.context("failed to read the address")??;
    Ok(client.answer_tool_server_sign_in(address).await?.server)
}

/// Waits for a sign-in later than the one of `before`.
///
/// # Errors
/// Fails when the sign-in is over at `ends_at`, or when the server does not answer.
async fn wait(
    client: &Client,
    server: &str,
    before: Option<Timestamp>,
    ends_at: Timestamp,
) -> anyhow::Result<()> {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let since = signed_in_since(client, server).await?;
        if since.is_some() && since != before {
            return Ok(());
        }
        if SystemClock::new().now() > ends_at {
            bail!("you did not sign in within 15 minutes; begin again");
        }
    }
}

/// Signs out of a tool server.
pub(super) async fn logout(
    client: &Client,
    screen: Screen,
    server: &NamedToolServer,
) -> anyhow::Result<()> {
    client.sign_out_of_tool_server(server).await?;
    screen.line(&format!(
        "signed out of {}",
        clean_line(&server.server, MAX_CELL)
    ))
}

/// The time of the person's sign-in to the registered tool server of this name, if there is any.
async fn signed_in_since(client: &Client, name: &str) -> anyhow::Result<Option<Timestamp>> {
    let servers = client.tool_servers().await?;
    let named = servers.into_iter().filter(|server| server.name == name);
    let counts = named.max_by_key(|server| server.layer);
    Ok(counts.and_then(|server| match server.sign_in {
        ToolServerSignIn::SignedIn => server.since,
        _ => None,
    }))
}
