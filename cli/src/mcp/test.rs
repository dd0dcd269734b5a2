//! A tool server that is started to show what it has.

use std::time::Duration;

use anyhow::bail;
use shared_api::{TestedToolServer, ToolServerEra};
use shared_client::Client;

use crate::{
    extensions::{MAX_CELL, MAX_WHOLE, whence},
    pick::{self, SessionName},
    render::clean::clean_line,
    screen::Screen,
};

/// Has a tool server started where it would run, and shows what it has.
pub(super) async fn test(
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
    show(screen, &tested)
}

/// Shows its tools, prompts and resources.
fn show(screen: Screen, tested: &TestedToolServer) -> anyhow::Result<()> {
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
