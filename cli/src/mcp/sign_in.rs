//! The person's sign-ins to tool servers.

use std::{io::IsTerminal as _, time::Duration};

use anyhow::bail;
use shared_api::{NamedToolServer, ToolServerSignIn};
use shared_client::Client;
use shared_types::{Clock as _, SystemClock, Timestamp};

use crate::{
    extensions::{MAX_CELL, MAX_WHOLE},
    models,
    pick::{self, SessionName},
    render::clean::clean_line,
    screen::Screen,
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
    browser: Option<&str>,
    server: &NamedToolServer,
    paste: bool,
) -> anyhow::Result<()> {
    let before = signed_in_since(client, &server.server).await?;
    let begun = client.sign_in_to_tool_server(server).await?;
    screen.line("open this address in a browser that is signed in to Gantry as you:")?;
    screen.line(&clean_line(&begun.url, MAX_WHOLE))?;
    let browser = browser.filter(|_| std::io::stdout().is_terminal());
    if browser.is_some_and(|opener| crate::browser::open(opener, &begun.url)) {
        screen.note("it opens in your browser");
    }
    if paste || server.session.is_some() {
        let address = models::secret("the address at which the browser ends")?;
        let signed_in = client.answer_tool_server_sign_in(address).await?;
        return screen.line(&format!(
            "signed in to {}",
            clean_line(&signed_in.server, MAX_CELL)
        ));
    }
    screen.note("waiting until you have signed in there; Ctrl+C leaves");
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let since = signed_in_since(client, &server.server).await?;
        if since.is_some() && since != before {
            return screen.line(&format!(
                "signed in to {}",
                clean_line(&server.server, MAX_CELL)
            ));
        }
        if SystemClock::new().now() > begun.ends_at {
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
