//! Join tokens with which machines can still enrol: listing and ending them.

use shared_api::ListedJoinToken;
use shared_client::Client;
use shared_types::{
    Clock as _, SystemClock,
    human::{ago, duration},
};

use super::MAX_WORDS;
use crate::{args::JoinTokens, pick, render::clean::clean_line, screen::Screen, table::Table};

pub(super) async fn run(
    client: &Client,
    screen: Screen,
    json: bool,
    command: Option<JoinTokens>,
) -> anyhow::Result<()> {
    match command {
        None => list(client, screen, json).await,
        Some(JoinTokens::List { json: also }) => list(client, screen, json || also).await,
        Some(JoinTokens::Remove { id }) => remove(client, screen, &id).await,
    }
}

async fn list(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let tokens = client.join_tokens().await?;
    if json {
        return tokens.iter().try_for_each(|token| screen.json(token));
    }
    if tokens.is_empty() {
        screen.note("no machine can enrol now; add one with: gantry runners add");
        return Ok(());
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["TOKEN", "MADE", "EXPIRES", "USED", "FROM", "RUNNER"])
        .whole(&[0])
        .spare(&[1]);
    let ids: Vec<_> = tokens.iter().map(|token| token.id.to_string()).collect();
    for token in &tokens {
        table.row([
            pick::beginning(&token.id.to_string(), &ids).to_owned(),
            ago(now.since(token.created_at)),
            format!("in {}", duration(token.expires_at.since(now))),
            format!("{} of {}", token.used, token.uses),
            token.from.clone().unwrap_or_default(),
            runner(token),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))
}

/// The name that the token fixes, if any, and the other facts about its runners.
fn runner(token: &ListedJoinToken) -> String {
    let name = match token.name.as_str() {
        "" => "any name",
        name => name,
    };
    let labels = token.labels.iter();
    let labels = labels.map(|(label, value)| format!(" {label}={value}"));
    let ephemeral = if token.ephemeral { " ephemeral" } else { "" };
    clean_line(
        &format!("{name}{ephemeral}{}", labels.collect::<String>()),
        MAX_WORDS,
    )
}

async fn remove(client: &Client, screen: Screen, id: &str) -> anyhow::Result<()> {
    let tokens = client.join_tokens().await?;
    let id = pick::join_token(&tokens, id)?;
    client.end_join_token(id).await?;
    screen.line(&format!("ended {id}: no machine enrols with it any more"))
}
