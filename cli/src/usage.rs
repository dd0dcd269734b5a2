//! The usage of models: what a day, a person, a model or a session cost.

use shared_api::{ModelUsage, UsageBy, UsageKey, UsageRow};
use shared_client::Client;
use shared_types::human::{cost, tokens};

use crate::{args, pick, screen::Screen, style::Style, table::Table};

mod turns;

pub(crate) use turns::{TurnCosts, cost_of_turn};

/// The columns with numbers.
const NUMBERS: &[usize] = &[1, 2, 3, 4, 5, 6, 7];

pub(crate) async fn run(client: &Client, screen: Screen, args: args::Usage) -> anyhow::Result<()> {
    let (usage, by, of) = match &args.session {
        Some(session) => {
            let session = pick::session_id(client, session).await?;
            let usage = client.session_usage(session, None).await?;
            (usage, UsageBy::Model, format!("in session {session}"))
        }
        None => {
            let by = args.by.into();
            let usage = client.usage(args.since.as_deref(), by, args.all).await?;
            let whose = if args.all { "by everyone" } else { "by you" };
            (usage, by, whose.to_owned())
        }
    };
    if args.json {
        return screen.json(&usage);
    }
    if usage.total.calls == 0 {
        screen.note(&nothing(&usage, &of));
        return Ok(());
    }
    screen.print(&shown(&usage, by, &of, screen.style(), screen.columns()))
}

/// The sentence in place of an empty table.
fn nothing(usage: &ModelUsage, of: &str) -> String {
    match usage.since {
        None => format!("no call of a paid model {of}; ask one with: gantry chat \"…\""),
        Some(since) => format!(
            "no call of a paid model {of} since {}; name an earlier day with --since, or ask one with: \
             gantry chat \"…\"",
            since.date()
        ),
    }
}

/// The heading, a row for each property, and the total.
fn shown(
    usage: &ModelUsage,
    by: UsageBy,
    of: &str,
    style: Style,
    columns: Option<usize>,
) -> String {
    let since = usage
        .since
        .map(|since| format!(" since {}", since.date()))
        .unwrap_or_default();
    let heading = match by {
        UsageBy::Model => "MODEL",
        UsageBy::Person => "PERSON",
        UsageBy::Day => "DAY (UTC)",
    };
    let mut table = Table::new([
        heading, "CALLS", "FRESH", "CACHED", "WRITTEN", "OUTPUT", "THOUGHTS", "COST",
    ])
    .right(NUMBERS)
    .whole(NUMBERS)
    .spare(&[6, 4, 3]);
    for row in &usage.rows {
        table.row(cells(key(&row.key), row));
    }
    let total = UsageRow {
        key: UsageKey::default(),
        calls: usage.total.calls,
        tokens: usage.total.tokens,
        cost_micros: usage.total.cost_micros,
        unpriced: usage.total.unpriced,
    };
    if usage.rows.len() > 1 {
        table.row(cells("total".to_owned(), &total));
    }
    let mut out = style.dim(&format!("usage of models {of}{since}"));
    out.push('\n');
    out.push_str(&table.show(style, columns));
    let listed: u64 = usage.rows.iter().map(|row| row.calls).sum();
    if listed < total.calls {
        let note = format!(
            "the first {} are listed; the total has all",
            usage.rows.len()
        );
        out.push_str(&style.dim(&note));
        out.push('\n');
    }
    out
}

fn key(key: &UsageKey) -> String {
    let person = || key.person.map(|id| id.to_string());
    match (&key.model, &key.day) {
        (Some(_), _) => model(key),
        (None, Some(day)) => day.clone(),
        (None, None) => key.name.clone().or_else(person).unwrap_or_default(),
    }
}

/// A row of the table. A kind of tokens that there is none of is left out.
fn cells(of: String, row: &UsageRow) -> [String; 8] {
    let some = |count: u64| match count {
        0 => String::new(),
        count => tokens(count),
    };
    let of_row = &row.tokens;
    [
        of,
        row.calls.to_string(),
        tokens(of_row.fresh),
        some(of_row.cached),
        some(of_row.cache_written),
        tokens(of_row.output),
        some(of_row.thoughts),
        cost(row.calls, row.cost_micros, row.unpriced),
    ]
}

/// A model with its provider: `gpt-5 (openai)`.
fn model(key: &UsageKey) -> String {
    let model = key.model.as_deref().unwrap_or_default();
    match &key.provider {
        None => model.to_owned(),
        Some(provider) => format!("{model} ({provider})"),
    }
}

#[cfg(test)]
mod tests;
