//! The audit log, line by line.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use shared_api::{AuditEntry, AuditLog, AuditOutcome};
use shared_client::Client;
use shared_types::{Clock as _, SystemClock, Timestamp};

use crate::{
    args::Audit,
    patience::patiently,
    render::{card::hanging, clean::clean_line},
    screen::Screen,
};

/// Entries of one page.
const PAGE: u32 = 200;

/// The interval between requests for new entries.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Longest line, in characters.
const MAX_LINE: usize = 400;

/// The spaces before the words that do not fit on the first row of an entry.
const INDENT: usize = 4;

pub(crate) async fn run(client: &Client, screen: Screen, args: Audit) -> anyhow::Result<()> {
    let since = args.since.map(|ago| before(SystemClock::new().now(), ago));
    let who = args.who.as_deref();
    let mut page = match since {
        None => client.audit(None, who, None, args.limit).await?,
        Some(_) => client.audit(Some(0), who, since, PAGE).await?,
    };
    let mut last = 0;
    loop {
        show(screen, &page, args.json)?;
        last = page.entries.last().map_or(last, |entry| entry.seq);
        if page.next.is_none() {
            if !args.follow {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let next = async || client.audit(Some(last), who, since, PAGE).await;
        page = match args.follow {
            true => patiently(client, screen, next).await?,
            false => next().await?,
        };
    }
}

fn before(now: Timestamp, ago: Duration) -> Timestamp {
    let ago = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(ago))
}

fn show(screen: Screen, page: &AuditLog, json: bool) -> anyhow::Result<()> {
    for entry in &page.entries {
        match json {
            true => screen.json(entry)?,
            false => {
                let line = clean_line(&line(entry, &page.names), MAX_LINE);
                screen.line(&hanging(&line, 0, INDENT, screen.columns()))?;
            }
        }
    }
    Ok(())
}

/// An entry in words, with names instead of ids where they are known.
fn line(entry: &AuditEntry, names: &BTreeMap<String, String>) -> String {
    let mut words = vec![
        format!("{:.0}", entry.at),
        entry.who.clone(),
        entry.what.clone(),
    ];
    if !entry.to.is_empty() {
        words.push(entry.to.clone());
    }
    if entry.outcome == AuditOutcome::Refused {
        words.push("REFUSED".to_owned());
    }
    words.extend(
        entry
            .address
            .as_ref()
            .map(|address| format!("from {address}")),
    );
    words.extend(details(&entry.detail, names));
    words.join("  ")
}

/// A detail in words; for a changed setting, its old and its new value.
fn details(detail: &Value, names: &BTreeMap<String, String>) -> Option<String> {
    let fields = detail.as_object()?;
    let mut said = Vec::new();
    for (name, value) in fields {
        let said_of = match (name.as_str(), value) {
            ("before", Value::Object(_)) | (_, Value::Null) => continue,
            ("values", Value::Object(values)) => {
                let before = fields.get("before");
                let changes = values.iter().map(|(name, value)| {
                    let was = before.map(|before| &before[name]);
                    let was = was.map_or(String::new(), |was| format!("{} → ", word(was, names)));
                    format!("{name}: {was}{}", word(value, names))
                });
                changes.collect::<Vec<_>>().join(", ")
            }
            ("count", Value::Number(count)) if count.as_u64() == Some(1) => continue,
            _ => format!("{name}: {}", word(value, names)),
        };
        said.push(said_of);
    }
    (!said.is_empty()).then(|| said.join(", "))
}

fn word(value: &Value, names: &BTreeMap<String, String>) -> String {
    let named = |part: &str| names.get(part).cloned().unwrap_or_else(|| part.to_owned());
    match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => text.split('/').map(named).collect::<Vec<_>>().join("/"),
        Value::Array(items) => {
            let words: Vec<_> = items.iter().map(|item| word(item, names)).collect();
            words.join(" ")
        }
        Value::Object(fields) => {
            let words = fields.iter();
            let words = words.map(|(name, value)| format!("{name} {}", word(value, names)));
            words.collect::<Vec<_>>().join(", ")
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_has_names_and_fits_the_terminal() {
        let (runner, other) = ("run_1", "run_2");
        let names = [(runner, "laptop"), (other, "a-machine-with-a-name")];
        let names = names.map(|(id, name)| (id.to_owned(), name.to_owned()));
        let entry = json!({
            "seq": 7, "at": "2026-11-28T12:00:00Z", "who": "ann", "who_id": "usr_1",
            "what": "settings.changed", "to": "ann", "to_id": "usr_1", "outcome": "done",
            "address": "192.0.2.1",
            "detail": { "values": { "runner": other, "steps": null },
                "before": { "runner": format!("{runner}/api"), "steps": "5" }, "generation": 9 },
        });
        let entry: AuditEntry = serde_json::from_value(entry).expect("an entry");
        let line = line(&entry, &names.into_iter().collect());
        assert_eq!(
            line,
            "2026-11-28T12:00:00Z  ann  settings.changed  ann  from 192.0.2.1  generation: 9, \
             runner: laptop/api → a-machine-with-a-name, steps: 5 → unset"
        );
        let rows = hanging(&line, 0, INDENT, Some(80));
        assert!(rows.lines().count() == 2, "{rows}");
        assert!(rows.lines().all(|row| row.chars().count() < 80), "{rows}");
    }
}
