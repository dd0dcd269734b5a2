//! Models: listing them, and adding, testing and removing the accounts that pay for them.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, IsTerminal as _, Read as _, Write as _},
};

use anyhow::{Context as _, bail};
use shared_api::{
    AddModelAccount, ModelAccount, ModelPrice, ModelProbe, ModelState, OfferedModel, Payer,
};
use shared_client::Client;
use shared_types::human::duration;

use crate::{
    agreed::agreed, args::Models, render::clean::clean_line, screen::Screen, table::Table,
    unechoed::Unechoed,
};

/// Longest key that is read, in bytes.
const MAX_KEY_BYTES: u64 = 4096;

/// Longest reason in a line, in characters.
const MAX_REASON: usize = 300;

/// Carries out a command about models; without one, lists them.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    json: bool,
    command: Option<Models>,
) -> anyhow::Result<()> {
    match command {
        None => list(client, screen, json).await,
        Some(Models::List { json: also }) => list(client, screen, json || also).await,
        Some(Models::Add {
            provider,
            name,
            url,
            format,
            models,
            no_key,
            tenant,
            json: also,
        }) => {
            let account = AddModelAccount {
                provider,
                name,
                format,
                base_url: url,
                models,
                key: None,
                of_tenant: tenant,
            };
            add(client, screen, account, no_key, json || also).await
        }
        Some(Models::Test { name, json: also }) => test(client, screen, &name, json || also).await,
        Some(Models::Remove { name, tenant, yes }) => {
            remove(client, screen, &name, tenant, yes).await
        }
    }
}

/// Lists the models that may be used here.
pub(crate) async fn list(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let models = client.models().await?.models;
    if json {
        return models.iter().try_for_each(|model| screen.json(model));
    }
    let mut table = Table::new([
        "", "MODEL", "PROVIDER", "WINDOW", "PRICE", "ACCOUNT", "STATE",
    ]);
    for model in &models {
        table.row([
            if model.is_default { "*" } else { "" }.to_owned(),
            model.name.clone(),
            provider(model).to_owned(),
            model.window.map_or_else(|| "?".to_owned(), window),
            price(model),
            account(model),
            state(model),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))?;
    let mut away = BTreeSet::new();
    for model in &models {
        let Some(reason) = &model.reason else {
            continue;
        };
        let reason = clean_line(reason, MAX_REASON);
        match model.state {
            // It is the same for all models of a runner.
            ModelState::Away if !away.insert(reason.clone()) => {}
            ModelState::Away => screen.note(&reason),
            _ => screen.note(&format!("{}: {reason}", model.name)),
        }
    }
    screen.note(
        "* answers unless you choose another: gantry config set model NAME. Prices are in dollars for a million \
         tokens: sent / received",
    );
    if models.iter().all(|model| model.practice) {
        screen.note("no AI is set up yet; add your key: gantry models add anthropic");
    }
    Ok(())
}

async fn add(
    client: &Client,
    screen: Screen,
    mut account: AddModelAccount,
    no_key: bool,
    json: bool,
) -> anyhow::Result<()> {
    let providers = client.models().await?.providers;
    let known = providers.iter().find(|it| it.name == account.provider);
    let needs_key = known.is_none_or(|known| known.needs_key) && !no_key;
    if known.is_none() && account.base_url.is_none() {
        let names: Vec<_> = providers.iter().map(|it| it.name.as_str()).collect();
        bail!(
            "no provider is called {}; choose one of {}, or give the address of a server with --url",
            clean_line(&account.provider, 64),
            names.join(", ")
        );
    }
    if needs_key {
        account.key = Some(key(&account.provider)?);
    }
    let added = client.add_model_account(&account).await?;
    if json {
        return screen.json(&added);
    }
    let name = clean_line(&added.account.name, 64);
    let whose = match added.account.paid_by {
        Payer::Tenant => "for all people of the tenant",
        Payer::Own | Payer::Operator | Payer::Runner => "for you",
    };
    screen.line(&format!("added {name} {whose}"))?;
    screen.line(&works(&added.probe))?;
    let models = added.account.models.join(", ");
    screen.note(&format!("models: {}", clean_line(&models, MAX_REASON)));
    let model = clean_line(&added.probe.model, 128);
    screen.note(&format!("to use it: gantry config set model {model}"));
    Ok(())
}

async fn test(client: &Client, screen: Screen, name: &str, json: bool) -> anyhow::Result<()> {
    let probe = client.test_model(name).await?;
    match json {
        true => screen.json(&probe),
        false => screen.line(&works(&probe)),
    }
}

async fn remove(
    client: &Client,
    screen: Screen,
    name: &str,
    tenant: bool,
    yes: bool,
) -> anyhow::Result<()> {
    let accounts = client.models().await?.accounts;
    let is_meant = |account: &&ModelAccount| {
        let of_tenant = account.paid_by == Payer::Tenant;
        account.id.to_string() == name || account.name == name && of_tenant == tenant
    };
    let Some(account) = accounts.iter().find(is_meant) else {
        let mut other = accounts.iter().filter(|account| account.name == name);
        match other.next() {
            Some(_) if tenant => {
                bail!("the tenant has no account {name}; yours is removed without --tenant")
            }
            Some(_) => {
                bail!("you have no account {name}; that of the tenant is removed with --tenant")
            }
            None => bail!(
                "there is no account {name}; gantry models lists the models and their accounts"
            ),
        }
    };
    if !yes && !agreed(&format!("remove the account {name} and its key"))? {
        return screen.line("nothing was removed");
    }
    client.remove_model_account(account.id).await?;
    screen.line(&format!("removed {name}"))
}

/// The key: asked for without echo where a person sits there, else the first line of standard input.
fn key(provider: &str) -> anyhow::Result<String> {
    secret(&format!("key for {}", clean_line(provider, 64)))
}

/// Reads a secret from the terminal, which does not show it, or a line of standard input.
///
/// # Errors
/// There is none.
pub(crate) fn secret(what: &str) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    let unechoed = match stdin.is_terminal() {
        true => {
            let unechoed = Unechoed::enter().context("the terminal cannot hide the key")?;
            let mut asking = std::io::stderr().lock();
            write!(asking, "{what} (it is not shown): ")?;
            asking.flush()?;
            Some(unechoed)
        }
        false => None,
    };
    let mut text = String::new();
    let read = stdin.lock().take(MAX_KEY_BYTES).read_line(&mut text);
    if unechoed.is_some() {
        eprintln_end();
    }
    drop(unechoed);
    read.context("the key cannot be read")?;
    match text.trim() {
        "" => bail!("no key was given; type it when asked, or send it to standard input"),
        key => Ok(key.to_owned()),
    }
}

/// Ends the line that the hidden key did not end.
fn eprintln_end() {
    let _ = std::io::stderr().write_all(b"\n");
}

/// The abilities that a model has shown, in one line.
fn works(probe: &ModelProbe) -> String {
    let mark = |works: bool, what: &str| format!("{} {what}", if works { "✓" } else { "–" });
    let abilities = [
        mark(probe.streams, "streaming"),
        mark(probe.calls_tools, "tools"),
        mark(probe.sees, "images"),
        mark(probe.thinks, "thoughts"),
    ];
    let took = f64::from(u32::try_from(probe.duration_ms).unwrap_or(u32::MAX)) / 1000.0;
    let model = clean_line(&probe.model, 128);
    format!("{model} answers ({took:.1} s): {}", abilities.join("  "))
}

fn provider(model: &OfferedModel) -> &str {
    match model.provider.as_str() {
        "" if model.practice => "no AI",
        "" => "?",
        provider => provider,
    }
}

fn account(model: &OfferedModel) -> String {
    match model.paid_by {
        Payer::Own => format!("{} (yours)", model.account),
        Payer::Tenant => format!("{} (tenant)", model.account),
        Payer::Operator if model.account == "operator" => model.account.clone(),
        Payer::Operator => format!("{} (operator)", model.account),
        Payer::Runner => format!("{} (runner)", model.account),
    }
}

fn price(model: &OfferedModel) -> String {
    match &model.price {
        _ if model.practice => "none".to_owned(),
        None => "unpriced".to_owned(),
        Some(ModelPrice { input, output, .. }) => {
            format!("{} / {}", dollars(*input), dollars(*output))
        }
    }
}

fn state(model: &OfferedModel) -> String {
    match (model.state, model.ready_in_s) {
        (ModelState::Ready, _) => "ready".to_owned(),
        (ModelState::CoolingDown, Some(left)) => {
            let left = duration(std::time::Duration::from_secs(left));
            format!("cooling down, {left}")
        }
        (ModelState::CoolingDown, None) => "cooling down".to_owned(),
        (ModelState::Refused, _) => "refused".to_owned(),
        (ModelState::Away, _) => "away".to_owned(),
    }
}

/// A number of tokens, short: `200k`, `1M`.
fn window(tokens: u64) -> String {
    match tokens {
        1_000_000.. if tokens.is_multiple_of(1_000_000) => format!("{}M", tokens / 1_000_000),
        1_000_000.. => format!("{:.1}M", tokens as f64 / 1_000_000.0),
        1_000.. => format!("{}k", tokens / 1_000),
        few => few.to_string(),
    }
}

/// Millionths of a dollar as dollars, with as many digits as there are: `$3`, `$0.25`.
fn dollars(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    format!("${}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_and_windows_are_short_and_exact() {
        let prices = [
            (3_000_000, "$3"),
            (250_000, "$0.25"),
            (1_050_000, "$1.05"),
            (0, "$0"),
        ];
        for (micros, shown) in prices {
            assert_eq!(dollars(micros), shown);
        }
        for (tokens, shown) in [
            (200_000, "200k"),
            (1_000_000, "1M"),
            (1_048_576, "1.0M"),
            (900, "900"),
        ] {
            assert_eq!(window(tokens), shown);
        }
    }
}
