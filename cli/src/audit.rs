//! The audit log, line by line.

use std::time::Duration;

use shared_api::{AuditEntry, AuditLog, AuditOutcome};
use shared_client::Client;
use shared_types::{Clock as _, SystemClock, Timestamp};

use crate::{args::Audit, patience::patiently, render::clean::clean_line, screen::Screen};

/// Entries of one page.
const PAGE: u32 = 200;

/// How often it is looked for new entries.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Longest line, in characters.
const MAX_LINE: usize = 400;

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
            false => screen.line(&clean_line(&line(entry), MAX_LINE))?,
        }
    }
    Ok(())
}

fn line(entry: &AuditEntry) -> String {
    let outcome = match entry.outcome {
        AuditOutcome::Done => "done",
        AuditOutcome::Refused => "REFUSED",
    };
    let address = entry.address.as_ref();
    let from = address.map_or(String::new(), |address| format!("  from {address}"));
    let (at, who, what, to) = (entry.at, &entry.who, &entry.what, &entry.to);
    format!(
        "{at:.0}  {who}  {what}  {to}  {outcome}{from}  {}",
        entry.detail
    )
}
