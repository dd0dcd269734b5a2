//! `gantry extensions`, `gantry agents`, `gantry mcp` and `gantry hooks`: what people bring, where it comes from, and trust in files on
//! runners.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use anyhow::{Context as _, bail};
use shared_api::{
    Extension, ExtensionKind, NamedToolServer, PutExtension, ToolServerEra, ToolServerSignIn,
};
use shared_client::Client;
use shared_types::{
    Clock as _, SystemClock, Timestamp,
    event::{Hook, Layer, Provenance, ShownValue, ToolServer, ToolServerTransport},
    human::ago,
};

use crate::{
    agreed::says_yes,
    args::{Extensions, Mcp, Registered, Values},
    models,
    pick::{self, SessionName},
    render::clean::clean_line,
    screen::Screen,
    table::Table,
};

/// Longest text of a cell, in characters.
const MAX_CELL: usize = 100;

/// The pause between two looks whether the person has signed in.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Longest action that is shown whole before it is trusted, in characters.
const MAX_WHOLE: usize = 8 * 1024;

/// Carries out a command about the extensions of a session; without one, lists them.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    command: Option<Extensions>,
) -> anyhow::Result<()> {
    match command.unwrap_or(Extensions::List {
        session: SessionName::Last,
        json: false,
    }) {
        Extensions::List { session, json } => list(client, screen, &session, json).await,
        Extensions::Trust { file, session, yes } => {
            trust(client, screen, &session, file.as_deref(), yes).await
        }
        Extensions::Untrust { file, session } => {
            let session = pick::session(client, &session).await?;
            client.trust_extension(session.id, &file, None).await?;
            screen.line(&format!("trusted no more: {}", clean_line(&file, MAX_CELL)))
        }
    }
}

async fn list(
    client: &Client,
    screen: Screen,
    session: &SessionName,
    json: bool,
) -> anyhow::Result<()> {
    let session = pick::session(client, session).await?;
    let found = client.found_extensions(session.id).await?;
    if json {
        return screen.json(&found);
    }
    if found.is_none() {
        screen.note("the last turn of this session found no extension");
        return Ok(());
    }
    let mut table = Table::new(["KIND", "NAME", "FOR", "FROM", ""]).whole(&[0]);
    let mut row = |kind: &str, name: &str, what: &str, from: &Provenance| {
        let state = if from.trusted {
            ""
        } else {
            "does nothing: not trusted"
        };
        table.row([
            kind.to_owned(),
            clean_line(name, MAX_CELL),
            clean_line(what, MAX_CELL),
            whence(from),
            state.to_owned(),
        ]);
    };
    for skill in &found.skills {
        row("skill", &skill.name, &skill.description, &skill.from);
    }
    for role in &found.roles {
        if let Some(from) = &role.from {
            row("agent", &role.name, &role.description, from);
        }
    }
    for hook in &found.hooks {
        row("hook", hook.on.word(), &action(hook), &hook.from);
    }
    for server in &found.servers {
        row("tool server", &server.name, &way(server), &server.from);
    }
    for plugin in &found.plugins {
        row(
            "plugin",
            &plugin.name,
            &plugin.command.join(" "),
            &plugin.from,
        );
    }
    screen.print(&table.show(screen.style(), screen.columns()))?;
    for why in &found.unread {
        screen.note(&format!("not used: {}", clean_line(why, 300)));
    }
    Ok(())
}

/// Shows what files would do, and trusts them if the person agrees.
async fn trust(
    client: &Client,
    screen: Screen,
    session: &SessionName,
    only: Option<&str>,
    yes: bool,
) -> anyhow::Result<()> {
    let session = pick::session(client, session).await?;
    let found = client.found_extensions(session.id).await?;
    let mut files = found.untrusted();
    files.retain(|file| only.is_none_or(|only| only == file.at));
    if files.is_empty() {
        bail!(
            "the last turn of session {} found no such file that you do not trust; each turn looks when it begins",
            session.id
        );
    }
    for file in files {
        screen.line(&clean_line(&file.at, MAX_WHOLE))?;
        let here = |from: &Provenance| from.at == file.at;
        for hook in found.hooks.iter().filter(|hook| here(&hook.from)) {
            let shown = clean_line(&action(hook), MAX_WHOLE);
            let of = if hook.matcher.is_empty() {
                "all"
            } else {
                &hook.matcher
            };
            screen.line(&format!(
                "  at {} of {}: {shown}",
                hook.on.word(),
                clean_line(of, MAX_CELL)
            ))?;
        }
        for server in found.servers.iter().filter(|server| here(&server.from)) {
            let shown = clean_line(&way(server), MAX_WHOLE);
            screen.line(&format!(
                "  tool server {}: {shown}",
                clean_line(&server.name, MAX_CELL)
            ))?;
        }
        for plugin in found.plugins.iter().filter(|plugin| here(&plugin.from)) {
            let shown = clean_line(&plugin.command.join(" "), MAX_WHOLE);
            screen.line(&format!(
                "  plugin {}: {shown}",
                clean_line(&plugin.name, MAX_CELL)
            ))?;
            if !plugin.prompt.is_empty() {
                let told = clean_line(&plugin.prompt, MAX_WHOLE);
                screen.line(&format!("    tells the model: {told}"))?;
            }
        }
        if !yes && !says_yes("trust this file as it is now?", "trust it")? {
            screen.line("  not trusted")?;
            continue;
        }
        client
            .trust_extension(session.id, &file.at, Some(file.digest))
            .await?;
        screen.line("  trusted from the next turn on, until the file changes")?;
    }
    Ok(())
}

/// Carries out a command about registered agents or hooks; without one, lists them.
pub(crate) async fn registered(
    client: &Client,
    screen: Screen,
    kind: ExtensionKind,
    command: Option<Registered>,
) -> anyhow::Result<()> {
    match command.unwrap_or(Registered::List { json: false }) {
        Registered::List { json } => list_registered(client, screen, kind, json).await,
        Registered::Show { name } => {
            let row = find(client, kind, &name, None).await?;
            screen.print(&client.extension(row.id).await?.text)
        }
        Registered::Add { file, name, tenant } => {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("failed to read {}", file.display()))?;
            let name = match name {
                Some(name) => name,
                None => stem(&file)?,
            };
            let new = PutExtension {
                kind,
                name,
                text,
                packed: None,
                source: file.display().to_string(),
                for_everyone: tenant,
                replaces: None,
            };
            let put = client.put_extension(&new).await?;
            screen.line(&format!("registered: {}", described(&put)))
        }
        Registered::Remove { name, tenant } => remove(client, screen, kind, &name, tenant).await,
    }
}

/// Carries out a command about tool servers; without one, lists them.
pub(crate) async fn mcp(
    client: &Client,
    screen: Screen,
    command: Option<Mcp>,
) -> anyhow::Result<()> {
    match command.unwrap_or(Mcp::List { json: false }) {
        Mcp::List { json } => list_servers(client, screen, json).await,
        Mcp::Add {
            name,
            url,
            env,
            header,
            client_id,
            client_secret,
            startup_timeout,
            tenant,
            command,
        } => {
            let mut server = match (url, command.split_first()) {
                (Some(url), None) => {
                    let headers = pairs(&header, ':')?;
                    let mut server =
                        serde_json::json!({ "type": "http", "url": url, "headers": headers });
                    if let Some(id) = client_id {
                        server["oauth"]["clientId"] = id.into();
                    }
                    if client_secret {
                        server["oauth"]["clientSecret"] = models::secret("client secret")?.into();
                    }
                    server
                }
                (None, Some((program, args))) => {
                    let env = pairs(&env, '=')?;
                    serde_json::json!({ "command": program, "args": args, "env": env })
                }
                _ => bail!("name --url URL, or a command behind --"),
            };
            if let Some(seconds) = startup_timeout {
                server["startup_timeout"] = seconds.into();
            }
            let text = serde_json::json!({ "mcpServers": { (name.as_str()): server } });
            let new = PutExtension {
                kind: ExtensionKind::Mcp,
                name,
                text: text.to_string(),
                packed: None,
                source: String::new(),
                for_everyone: tenant,
                replaces: None,
            };
            let put = client.put_extension(&new).await?;
            screen.line(&format!("registered: {}", described(&put)))
        }
        Mcp::Test {
            name,
            session,
            json,
        } => test(client, screen, &name, &session, json).await,
        Mcp::Remove { name, tenant } => {
            remove(client, screen, ExtensionKind::Mcp, &name, tenant).await
        }
        Mcp::Values { command } => values(client, screen, command).await,
        Mcp::Login {
            name,
            session,
            paste,
        } => {
            let server = named(client, name, session).await?;
            login(client, screen, &server, paste).await
        }
        Mcp::Logout { name, session } => {
            let server = named(client, name, session).await?;
            client.sign_out_of_tool_server(&server).await?;
            screen.line(&format!(
                "signed out of {}",
                clean_line(&server.server, MAX_CELL)
            ))
        }
    }
}

/// Names and values, each as `NAME`, the separator and the value. The value of a name alone is asked for.
fn pairs(
    written: &[String],
    separator: char,
) -> anyhow::Result<serde_json::Map<String, serde_json::Value>> {
    let mut pairs = serde_json::Map::new();
    for pair in written {
        let (name, value) = match pair.split_once(separator) {
            Some((name, value)) => (name, value.trim_start().to_owned()),
            None => (pair.as_str(), models::secret(&clean_line(pair, 64))?),
        };
        pairs.insert(name.trim().to_owned(), value.into());
    }
    Ok(pairs)
}

/// Carries out a command about the person's values for tool servers; without one, lists their names.
async fn values(client: &Client, screen: Screen, command: Option<Values>) -> anyhow::Result<()> {
    match command {
        None => {
            let rows = client.tool_values().await?;
            if rows.is_empty() {
                screen.note("you have set none");
                return Ok(());
            }
            let now = SystemClock::new().now();
            let mut table = Table::new(["NAME", "HOST", "SINCE"]).whole(&[0]);
            for row in &rows {
                table.row([
                    clean_line(&row.name, MAX_CELL),
                    clean_line(&row.host, MAX_CELL),
                    ago(now.since(row.since)),
                ]);
            }
            screen.print(&table.show(screen.style(), screen.columns()))
        }
        Some(Values::Set { name, host }) => {
            let value = models::secret(&clean_line(&name, 64))?;
            client.put_tool_value(&name, Some((host, value))).await?;
            screen.line(&format!("set: {}", clean_line(&name, MAX_CELL)))
        }
        Some(Values::Remove { name }) => {
            client.put_tool_value(&name, None).await?;
            screen.line(&format!("removed: {}", clean_line(&name, MAX_CELL)))
        }
    }
}

async fn named(
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
async fn login(
    client: &Client,
    screen: Screen,
    server: &NamedToolServer,
    paste: bool,
) -> anyhow::Result<()> {
    let before = signed_in_since(client, &server.server).await?;
    let begun = client.sign_in_to_tool_server(server).await?;
    screen.line("open this address in a browser that is signed in to Gantry as you:")?;
    screen.line(&clean_line(&begun.url, MAX_WHOLE))?;
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

/// Lists the registered tool servers, with the person's sign-ins.
async fn list_servers(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let rows = client.tool_servers().await?;
    if json {
        return rows.iter().try_for_each(|row| screen.json(row));
    }
    if rows.is_empty() {
        screen.note("none is registered");
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

/// Has a tool server started where it would run, and shows what it has.
async fn test(
    client: &Client,
    screen: Screen,
    name: &str,
    session: &SessionName,
    json: bool,
) -> anyhow::Result<()> {
    let session = pick::session(client, session).await?;
    let tested = client.test_tool_server(session.id, name).await?;
    if json {
        return screen.json(&tested);
    }
    let era = match tested.era {
        Some(ToolServerEra::Modern) => " It speaks MCP 2026-07-28.",
        Some(ToolServerEra::Legacy) => " It speaks MCP up to 2025-11-25.",
        None => "",
    };
    let server = match clean_line(&tested.server, MAX_CELL).as_str() {
        "" => String::new(),
        server => format!(", {server}"),
    };
    if let Some(why) = &tested.failed {
        bail!(
            "tool server {name} ({}) does not work{}: {}",
            whence(&tested.from),
            server,
            clean_line(why, MAX_WHOLE)
        );
    }
    screen.line(&format!(
        "{name} ({}){server}: works, after {:.1} s.{era}",
        whence(&tested.from),
        Duration::from_millis(tested.took_ms).as_secs_f64()
    ))?;
    let tokens: u64 = tested.tools.iter().map(|tool| tool.tokens).sum();
    screen.line(&format!(
        "tools: {}, of about {tokens} tokens",
        tested.tools.len()
    ))?;
    for tool in &tested.tools {
        screen.line(&format!(
            "  {}  {}",
            clean_line(&tool.name, MAX_CELL),
            tool.tokens
        ))?;
    }
    for why in &tested.left_out {
        screen.note(&format!("not offered: {}", clean_line(why, 300)));
    }
    if !tested.prompts.is_empty() {
        screen.line(&format!("prompts: {}", tested.prompts.len()))?;
    }
    for prompt in &tested.prompts {
        let usage = format!("{} {}", prompt.command, prompt.arguments);
        let usage = clean_line(usage.trim_end(), MAX_CELL);
        screen.line(&format!(
            "  /{usage}  {}",
            clean_line(&prompt.description, MAX_CELL)
        ))?;
    }
    if !tested.resources.is_empty() {
        screen.line(&format!("resources: {}", tested.resources.len()))?;
    }
    for resource in &tested.resources {
        let mention = clean_line(&resource.mention, MAX_CELL);
        screen.line(&format!(
            "  {mention}  {}",
            clean_line(&resource.name, MAX_CELL)
        ))?;
    }
    Ok(())
}

/// Lists the registered extensions of one kind.
pub(crate) async fn list_registered(
    client: &Client,
    screen: Screen,
    kind: ExtensionKind,
    json: bool,
) -> anyhow::Result<()> {
    let mut rows = client.extensions().await?;
    rows.retain(|row| row.kind == kind);
    if json {
        return rows.iter().try_for_each(|row| screen.json(row));
    }
    if rows.is_empty() {
        screen.note("none is registered");
        return Ok(());
    }
    let now = SystemClock::new().now();
    let mut table =
        Table::new(["NAME", "LAYER", "DIGEST", "SOURCE", "SET BY", "SINCE"]).whole(&[0]);
    for row in &rows {
        table.row([
            clean_line(&row.name, MAX_CELL),
            row.layer.word().to_owned(),
            row.digest.to_string()[..12].to_owned(),
            clean_line(&row.source, MAX_CELL),
            clean_line(&row.set_by, MAX_CELL),
            ago(now.since(row.since)),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))
}

/// Removes the registered extension of this name: the person's own, or the tenant's.
pub(crate) async fn remove(
    client: &Client,
    screen: Screen,
    kind: ExtensionKind,
    name: &str,
    tenant: bool,
) -> anyhow::Result<()> {
    let layer = if tenant { Layer::Tenant } else { Layer::User };
    let row = find(client, kind, name, Some(layer)).await?;
    client.remove_extension(row.id).await?;
    screen.line(&format!("removed: {}", described(&row)))
}

/// The registered extension of this name; of two layers the narrower one, unless one is named.
pub(crate) async fn find(
    client: &Client,
    kind: ExtensionKind,
    name: &str,
    layer: Option<Layer>,
) -> anyhow::Result<Extension> {
    let rows = client.extensions().await?;
    let is_it = |row: &Extension| {
        row.kind == kind && row.name == name && layer.is_none_or(|layer| layer == row.layer)
    };
    let found = rows.into_iter().filter(is_it).max_by_key(|row| row.layer);
    found.with_context(|| match layer {
        Some(Layer::Tenant) => {
            format!("the tenant has no {name}; for your own one leave out --tenant")
        }
        Some(_) => format!("you have registered no {name}; for the tenant's one add --tenant"),
        None => format!("no {name} is registered"),
    })
}

/// An extension in a few words.
pub(crate) fn described(row: &Extension) -> String {
    let digest = &row.digest.to_string()[..12];
    let name = clean_line(&row.name, MAX_CELL);
    match row.layer {
        Layer::Tenant => format!("{name} for everyone ({digest})"),
        _ => format!("{name} ({digest})"),
    }
}

fn stem(file: &Path) -> anyhow::Result<String> {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    stem.map(str::to_owned).with_context(|| {
        format!(
            "{} has no name that can be used; add --name",
            file.display()
        )
    })
}

fn whence(from: &Provenance) -> String {
    match from.layer.is_on_runner() {
        true => clean_line(&from.at, MAX_CELL),
        false => from.layer.word().to_owned(),
    }
}

fn action(hook: &Hook) -> String {
    hook.handler.words()
}

fn way(server: &ToolServer) -> String {
    match &server.transport {
        ToolServerTransport::Stdio { command, args, env } => {
            let words = std::iter::once(command).chain(args);
            let words: Vec<_> = words.map(String::as_str).collect();
            words.join(" ") + &given(env)
        }
        ToolServerTransport::Http { url, headers, .. } => url.clone() + &given(headers),
    }
}

/// The variables or headers that a tool server is given.
fn given(values: &BTreeMap<String, ShownValue>) -> String {
    let values: Vec<_> = values
        .iter()
        .map(|(name, value)| format!("{name}={}", String::from(value.clone())))
        .collect();
    match values.is_empty() {
        true => String::new(),
        false => format!("  with {}", values.join(" ")),
    }
}
