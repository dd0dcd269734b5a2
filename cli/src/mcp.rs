//! `gantry mcp`: tool servers.

mod sign_in;
mod test;
mod values;

use anyhow::bail;
use serde_json::{Map, Value};
use shared_api::{ExtensionKind, PutExtension, ToolServerSignIn};
use shared_client::Client;

use crate::{
    args::{AddToolServer, Mcp, Transport},
    browser::Opener,
    exit::Exit,
    extensions::{MAX_CELL, described, none_is_registered, remove},
    models,
    render::clean::clean_line,
    screen::Screen,
    table::Table,
};

/// Carries out a command about tool servers; without one, lists them.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    browser: Option<Opener>,
    command: Option<Mcp>,
) -> anyhow::Result<Exit> {
    match command.unwrap_or(Mcp::List { json: false }) {
        Mcp::List { json } => list(client, screen, json).await?,
        Mcp::Add(new) => add(client, screen, new).await?,
        Mcp::Test {
            name,
            session,
            json,
        } => test::test(client, screen, &name, &session, json).await?,
        Mcp::Remove { name, tenant } => {
            remove(client, screen, ExtensionKind::Mcp, &name, tenant).await?;
        }
        Mcp::Values { command } => values::run(client, screen, command).await?,
        Mcp::Login {
            name,
            session,
            paste,
        } => {
            let server = sign_in::named(client, name, session).await?;
            return sign_in::login(client, screen, browser, &server, paste).await;
        }
        Mcp::Logout { name, session } => {
            let server = sign_in::named(client, name, session).await?;
            sign_in::logout(client, screen, &server).await?;
        }
    }
    Ok(Exit::Done)
}

async fn add(client: &Client, screen: Screen, new: AddToolServer) -> anyhow::Result<()> {
    let server = declaration(&new)?;
    let text = serde_json::json!({ "mcpServers": { (new.name.as_str()): server } });
    let new = PutExtension {
        kind: ExtensionKind::Mcp,
        name: new.name,
        text: text.to_string(),
        packed: None,
        source: String::new(),
        for_everyone: new.tenant,
        replaces: None,
    };
    let put = client.put_extension(&new).await?;
    screen.line(&format!("registered: {}", described(&put)))
}

/// The declaration of a tool server, as it stands in a file `.mcp.json`. Asks for values that are not given.
fn declaration(new: &AddToolServer) -> anyhow::Result<Value> {
    let name = &new.name;
    let url = match new.address.as_slice() {
        [] => new.url.as_ref(),
        [one] if is_address(one) => Some(one),
        words => bail!(
            "an address begins with https://; a command stands behind --, as in: gantry mcp add {name} -- {}",
            words.join(" ")
        ),
    };
    let named = new.transport;
    if named.is_some_and(|named| (named == Transport::Http) != url.is_some()) {
        bail!("--transport http goes with an address, and stdio with a command behind --");
    }
    let mut server = match (url, new.command.split_first()) {
        (Some(url), None) => {
            let headers = pairs(&new.header, ':')?;
            serde_json::json!({ "type": "http", "url": url, "headers": headers })
        }
        (None, Some((program, args))) => {
            let env = pairs(&new.env, '=')?;
            serde_json::json!({ "command": program, "args": args, "env": env })
        }
        _ => bail!(
            "tell its address or its command: gantry mcp add {name} https://ADDRESS, or gantry mcp add {name} -- COMMAND"
        ),
    };
    if let Some(id) = &new.client_id {
        server["oauth"]["clientId"] = id.as_str().into();
    }
    if let Some(issuer) = &new.issuer {
        server["oauth"]["issuer"] = issuer.as_str().into();
    }
    if new.client_secret {
        server["oauth"]["clientSecret"] = models::secret("client secret")?.into();
    }
    if let Some(seconds) = new.startup_timeout {
        server["startup_timeout"] = seconds.into();
    }
    Ok(server)
}

fn is_address(word: &str) -> bool {
    word.starts_with("https://") || word.starts_with("http://")
}

/// Names and values, each as `NAME`, the separator and the value. The value of a name alone is asked for.
fn pairs(written: &[String], separator: char) -> anyhow::Result<Map<String, Value>> {
    let mut pairs = Map::new();
    for pair in written {
        let (name, value) = match pair.split_once(separator) {
            Some((name, value)) => (name, value.trim_start().to_owned()),
            None => (pair.as_str(), models::secret(&clean_line(pair, 64))?),
        };
        pairs.insert(name.trim().to_owned(), value.into());
    }
    Ok(pairs)
}

/// Lists the registered tool servers, with the person's sign-ins.
async fn list(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let rows = client.tool_servers().await?;
    if json {
        return rows.iter().try_for_each(|row| screen.json(row));
    }
    if rows.is_empty() {
        screen.note(&none_is_registered(ExtensionKind::Mcp));
        return Ok(());
    }
    let mut table = Table::new(["NAME", "LAYER", "AT", "VALUES", ""]).whole(&[0, 4]);
    for row in &rows {
        let name = clean_line(&row.name, MAX_CELL);
        let at = row.url.as_ref().or(row.command.as_ref());
        let values: Vec<_> = row.env.iter().chain(&row.headers).cloned().collect();
        let state = match row.sign_in {
            ToolServerSignIn::None => String::new(),
            ToolServerSignIn::Needed => format!("sign in: gantry mcp login {name}"),
            ToolServerSignIn::SignedIn => "signed in".to_owned(),
        };
        table.row([
            name,
            row.layer.word().to_owned(),
            at.map_or_else(String::new, |at| clean_line(at, MAX_CELL)),
            clean_line(&values.join(", "), MAX_CELL),
            state,
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))
}
