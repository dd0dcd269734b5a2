//! `gantry-server check-config`: what `run` would use, and what would stop it.

use std::{fs, path::Path, sync::Arc};

use anyhow::Context as _;
use server_api::Archives;
use server_app::keys::SigningKey;
use server_store::Schema;
use server_web::{Web, WebOptions};
use shared_program::say;
use shared_tls::ServerTls;
use shared_types::{Clock, OsEntropy, SystemClock};

use crate::settings::{ModelChoice, ModelServer, ServerSettings, Tls};

/// The keys of a server that are Ed25519.
const KEYS: [&str; 3] = ["identity.pem", "link.pem", "link.previous.pem"];

/// Prints the resolved settings, without a secret. It makes and changes nothing.
///
/// # Errors
/// Fails for every mistake that would stop the server from starting, except a port that is taken:
/// the server may be running.
pub(crate) async fn check(
    settings: ServerSettings,
    file: &Path,
    folder: &Path,
) -> anyhow::Result<()> {
    let from = match file.exists() {
        true => file.display().to_string(),
        false => format!(
            "none at {}: flags, environment and defaults",
            file.display()
        ),
    };
    say!("settings: {from}")?;
    say!("folder:   {}", folder.display())?;
    say!("keys:     {}", keys(folder)?)?;
    let schema = settings
        .database
        .schema()
        .await
        .context("failed to open the database")?;
    say!("database: {}: {}", settings.database, words(schema))?;
    let secrets = settings
        .master_key
        .checked(&settings.database, schema)
        .await?;
    say!("secrets:  {secrets}")?;
    let (scheme, how) = tls(&settings.tls, folder)?;
    say!("listen:   {scheme}://{}{how}", settings.listen)?;
    match settings.metrics {
        Some(address) => say!("metrics:  http://{address}/metrics, without a key")?,
        None => say!(
            "metrics:  {scheme}://{}/metrics, with a key",
            settings.listen
        )?,
    }
    if let Some(peers) = &settings.peers {
        say!("peers:    {}", peers.listen)?;
    }
    match &settings.traces {
        Some(traces) => say!("traces:   to {}, sample {}", traces.endpoint, traces.sample)?,
        None => say!("traces:   none")?,
    }
    let archives = Archives::in_folder(&settings.downloads)?.list();
    let folder = settings.downloads.display();
    match archives.is_empty() {
        true => say!("programs: no archives of runners in {folder}")?,
        false => {
            for archive in archives {
                say!("programs: {} in {folder}", archive.name)?;
            }
        }
    }
    if !settings.names.is_empty() {
        say!("names:    {}", settings.names.join(", "))?;
    }
    let names = match &settings.app.model {
        ModelChoice::Practice => vec!["practice, which is no AI".to_owned()],
        ModelChoice::Servers { first, accounts } => {
            let servers = std::iter::once(&**first).chain(accounts);
            servers.map(model_server).collect()
        }
    };
    // Refuses an address that is none.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    crate::models(settings.app.model, &clock)?;
    for name in names {
        say!("model:    {name}")?;
    }
    say!("web:      {}", web(&settings.app.web))?;
    // Refuses an address and a key that are none.
    Web::new(settings.app.web)?;
    settings.logs.init(clock)?;
    say!("log:      {}", settings.logs.format)?;
    Ok(())
}

/// The models of a server, and how it is asked.
fn model_server(server: &ModelServer) -> String {
    let ModelServer {
        format,
        options,
        others,
    } = server;
    let key = if options.key.is_some() {
        "a key"
    } else {
        "no key"
    };
    let account = options.account.as_ref();
    let account = account.map(|name| format!("{name}/")).unwrap_or_default();
    let all = std::iter::once(&options.profile).chain(others);
    let all: Vec<_> = all.map(|it| format!("{account}{}", it.model)).collect();
    format!("{}, in {format}, with {key}", all.join(", or "))
}

/// The parts of the web that the model may ask for.
fn web(options: &WebOptions) -> String {
    let pages = options.fetch.as_ref().map(|fetch| match fetch.allow.len() {
        0 => "pages of the public internet".to_owned(),
        _ => {
            let allowed: Vec<_> = fetch.allow.iter().map(ToString::to_string).collect();
            format!("pages of the public internet and of {}", allowed.join(", "))
        }
    });
    let searches = options.search.as_ref();
    let searches = searches.map(|search| format!("searches at {}", search.provider.name()));
    let parts: Vec<_> = pages.into_iter().chain(searches).collect();
    match parts.is_empty() {
        true => "nothing of it".to_owned(),
        false => parts.join("; "),
    }
}

fn words(schema: Schema) -> String {
    match schema.found {
        None => format!(
            "none yet; the server makes it, with schema {}",
            schema.known
        ),
        Some(found) if found == schema.known => format!("schema {found}, up to date"),
        Some(found) => format!("schema {found}; the server brings it to {}", schema.known),
    }
}

/// Which keys there are; the server makes the others.
fn keys(folder: &Path) -> anyhow::Result<String> {
    let mut found = Vec::new();
    for name in KEYS {
        let path = folder.join("keys").join(name);
        if fs::exists(&path).with_context(|| format!("{} cannot be read", path.display()))? {
            // It exists, so it is read and not made.
            SigningKey::load_or_create(&path, &OsEntropy)?;
            found.push(name);
        }
    }
    Ok(match found.is_empty() {
        true => "none yet; the server makes them".to_owned(),
        false => found.join(", "),
    })
}

/// The scheme, and where its certificate comes from.
fn tls(tls: &Tls, folder: &Path) -> anyhow::Result<(&'static str, String)> {
    Ok(match tls {
        Tls::Off => ("http", String::new()),
        Tls::SelfSigned { names } => {
            let keys = folder.join("keys");
            if keys.join("certificate.pem").exists() {
                ServerTls::self_signed(&keys, names)?;
            }
            ("https", ", with a certificate of its own".to_owned())
        }
        Tls::Files { certificate, key } => {
            ServerTls::from_files(certificate, key)?;
            ("https", format!(", with {}", certificate.display()))
        }
    })
}
