//! API keys and sign-ins: listing, adding and removing them.

use shared_api::Key;
use shared_client::Client;
use shared_types::{
    Clock as _, SystemClock, Timestamp,
    human::{ago, duration},
};

use crate::{
    args::{AddKey, Keys},
    people, pick,
    render::clean::clean_line,
    screen::Screen,
    table::Table,
};

/// Longest name in a list, in characters.
const MAX_NAME: usize = 60;

pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    json: bool,
    command: Option<Keys>,
) -> anyhow::Result<()> {
    match command {
        None => list(client, screen, None, json).await,
        Some(Keys::List {
            service,
            json: also,
        }) => list(client, screen, service.as_deref(), json || also).await,
        Some(Keys::Add(add)) => self::add(client, screen, add).await,
        Some(Keys::Remove { key, service }) => {
            remove(client, screen, &key, service.as_deref()).await
        }
    }
}

/// One's own keys, or those of a service account.
async fn keys_of(client: &Client, service: Option<&str>) -> anyhow::Result<Vec<Key>> {
    Ok(match service {
        None => client.keys().await?,
        Some(name) => {
            client
                .service_keys(people::service(client, name).await?)
                .await?
        }
    })
}

async fn list(
    client: &Client,
    screen: Screen,
    service: Option<&str>,
    json: bool,
) -> anyhow::Result<()> {
    let keys = keys_of(client, service).await?;
    if json {
        return keys.iter().try_for_each(|key| screen.json(key));
    }
    let now = SystemClock::new().now();
    let heading = [
        "",
        "KEY",
        "NAME",
        "KIND",
        "SCOPES",
        "MADE",
        "LAST USED",
        "LAST FROM",
        "EXPIRES",
        "ONLY FROM",
    ];
    let mut table = Table::new(heading).whole(&[0, 1]).spare(&[5, 9, 7, 3]);
    let ids: Vec<_> = keys.iter().map(|key| key.id.to_string()).collect();
    for key in &keys {
        table.row([
            if key.is_this { "*" } else { "" }.to_owned(),
            pick::beginning(&key.id.to_string(), &ids).to_owned(),
            clean_line(&key.name, MAX_NAME),
            key.kind.replace('_', " "),
            scopes(key),
            ago(now.since(key.created_at)),
            key.last_used_at
                .map_or("never".to_owned(), |at| ago(now.since(at))),
            key.last_address.clone().unwrap_or_default(),
            expiry(key, now),
            key.from.clone().unwrap_or_default(),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))?;
    if keys.iter().any(|key| key.is_this) {
        screen.note("* what this command itself is signed in with");
    }
    Ok(())
}

/// A sign-in is good for all that its person may do.
fn scopes(key: &Key) -> String {
    if matches!(key.kind.as_str(), "sign_in" | "browser") {
        return "all".to_owned();
    }
    let words = key
        .scopes
        .iter()
        .map(|scope| format!("{scope:?}").to_lowercase());
    words.collect::<Vec<_>>().join(",")
}

fn expiry(key: &Key, now: Timestamp) -> String {
    match key.expires_at {
        None => String::new(),
        Some(at) if at <= now => "expired".to_owned(),
        Some(at) => format!("in {}", duration(at.since(now))),
    }
}

async fn add(client: &Client, screen: Screen, add: AddKey) -> anyhow::Result<()> {
    let service = add.service.clone();
    let terms = add.terms();
    let (created, acts_as) = match &service {
        None => (client.create_key_with(&terms).await?, "you"),
        Some(name) => {
            let id = people::service(client, name).await?;
            (client.create_service_key(id, &terms).await?, name.as_str())
        }
    };
    screen.note(&format!(
        "this key is shown once; whoever has it acts as {acts_as}, for: {}",
        scopes(&created.entry)
    ));
    screen.line(&created.key)?;
    let of = service.map(|name| format!(" --service {name}"));
    screen.note(&format!(
        "revoke it with: gantry keys remove {}{}",
        created.entry.id,
        of.unwrap_or_default()
    ));
    Ok(())
}

async fn remove(
    client: &Client,
    screen: Screen,
    key: &str,
    service: Option<&str>,
) -> anyhow::Result<()> {
    let keys = keys_of(client, service).await?;
    let key = pick::key(&keys, key)?;
    client.remove_key(key.id).await?;
    let name = clean_line(&key.name, MAX_NAME);
    screen.line(&format!("removed {} ({name})", key.id))
}
