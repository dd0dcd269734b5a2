//! Showing what a session takes of the model's window.

use shared_api::SessionContext;
use shared_client::Client;
use shared_types::{Clock as _, SessionId, SystemClock, human::ago};

use crate::{render::clean::clean_line, screen::Screen, table::Table};

/// Longest line about a change, in characters.
const MAX_CELL: usize = 160;

/// The newest changes that are shown.
const CHANGES_SHOWN: usize = 10;

pub(crate) async fn show(
    client: &Client,
    screen: Screen,
    session: SessionId,
    json: bool,
) -> anyhow::Result<()> {
    let context = client.context(session).await?;
    if json {
        return screen.json(&context);
    }
    screen.line(&headline(&context))?;
    let mut table = Table::new(["PART", "TOKENS", "SHARE"]);
    for part in context.parts.iter().filter(|part| part.tokens > 0) {
        let whole = context.window.unwrap_or(context.tokens);
        let share = part.tokens * 100 / whole.max(1);
        table.row([
            part.name.clone(),
            part.tokens.to_string(),
            format!("{share} %"),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))?;
    if context.excerpts > 0 {
        screen.note(&format!(
            "{} long results are shown to the model as excerpts; it can recall the rest",
            context.excerpts
        ));
    }
    let now = SystemClock::new().now();
    let first = context.changes.len().saturating_sub(CHANGES_SHOWN);
    if first > 0 {
        screen.note(&format!("{first} earlier changes are not shown"));
    }
    for change in &context.changes[first..] {
        let ago = ago(now.since(change.at));
        screen.note(&format!("{ago}: {}", clean_line(&change.what, MAX_CELL)));
    }
    Ok(())
}

/// `m: about 3,306 of 8,000 tokens (41 %); 90 % of the last request came from the vendor's cache`.
fn headline(context: &SessionContext) -> String {
    let SessionContext { model, tokens, .. } = context;
    let model = clean_line(model, MAX_CELL);
    let used = match context.window {
        Some(window) => {
            let share = tokens * 100 / window.max(1);
            format!("{model}: about {tokens} of {window} tokens ({share} %)")
        }
        None => format!("{model}: about {tokens} tokens; its window is not known"),
    };
    match (context.last_input, context.last_cached) {
        (Some(input), Some(cached)) if input > 0 => {
            let share = cached * 100 / input;
            format!("{used}; {share} % of the last request was cached")
        }
        _ => used,
    }
}
