//! Signing in and out.

use std::{
    io::{BufRead as _, IsTerminal as _, Read as _, Write as _},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use shared_client::{Client, Options, PING_EVERY, Trust};
use shared_types::{Digest, Entropy, clean::without_mark};

use crate::{
    args::Login,
    screen::Screen,
    server::{self, Environment},
    settings::{Settings, SignIn},
};

/// The question for a sign-in code.
const ASKED: &str = "sign-in code (from who invites you; a new server prints one): ";

/// Longest code that is read, in bytes.
const MAX_CODE_BYTES: u64 = 4096;

/// Longest part of the host's name in a sign-in's name, in bytes.
const MAX_HOST_BYTES: usize = 40;

/// Exchanges a code for a token and keeps it.
pub(crate) async fn login(
    settings: &Settings,
    environment: &Environment,
    screen: Screen,
    entropy: Arc<dyn Entropy>,
    args: Login,
) -> anyhow::Result<()> {
    let kept = settings.load()?;
    let server = match args.server {
        Some(server) => server,
        None => server::default_server(kept.as_ref(), environment)?,
    };
    let fingerprint = args.fingerprint.or_else(|| {
        let same = kept.filter(|kept| kept.server == plain(&server))?;
        Digest::from_hex(&same.fingerprint?)
    });
    let client = Client::new(Options {
        server,
        token: None,
        trust: fingerprint.map_or(Trust::Platform, |pin| Trust::Pinned(*pin.as_bytes())),
        plain_text_allowed: args.allow_plain_text,
        ping_every: PING_EVERY,
        entropy: entropy.clone(),
    })?;
    let code = code(args.code.as_deref())?;
    let device = device(&*entropy);
    // The server's error says enough about a wrong code, so the usual advice on signing in is left
    // out.
    let signed_in = match client.sign_in(&code, &device).await {
        Err(error) if error.is_unauthenticated() => bail!("{error}"),
        signed_in => signed_in?,
    };
    settings.store(&SignIn {
        server: client.server(),
        token: signed_in.token,
        device,
        fingerprint: fingerprint.map(|digest| digest.to_string()),
        allow_plain_text: args.allow_plain_text,
    })?;
    let name = crate::render::clean::clean_line(&signed_in.user.name, 80);
    screen.line(&format!("signed in to {} as {name}", client.server()))
}

/// Revokes this terminal's sign-in if the server can be reached. Forgets the sign-in either way.
pub(crate) async fn logout(
    settings: &Settings,
    screen: Screen,
    entropy: Arc<dyn Entropy>,
) -> anyhow::Result<()> {
    let Some(kept) = settings.load()? else {
        return screen.line("you were not signed in");
    };
    let revoked = revoke(&kept, entropy).await;
    settings.remove()?;
    if let Err(error) = revoked {
        screen.note(&format!(
            "{}\nthe token is forgotten here but may still be valid: revoke {:?} with gantry \
             keys from another sign-in",
            crate::render::clean::clean(&format!("{error:#}")),
            kept.device,
        ));
    }
    screen.line(&format!("signed out of {}", kept.server))
}

async fn revoke(kept: &SignIn, entropy: Arc<dyn Entropy>) -> anyhow::Result<()> {
    let client = server::client(Some(kept), &Environment::default(), entropy)?;
    let keys = client.keys().await?;
    let ours = keys
        .iter()
        .find(|key| key.name == kept.device && key.kind == "sign_in")
        .with_context(|| format!("failed to find the sign-in {:?} on the server", kept.device))?;
    Ok(client.remove_key(ours.id).await?)
}

/// The code, as the first line of standard input: asked for where a person sits there. Never from
/// the command line, where other users of the machine see it, and the shell keeps it.
fn code(given: Option<&str>) -> anyhow::Result<String> {
    if given.is_some_and(|given| given != "-") {
        bail!(
            "a code on the command line shows in the list of processes and in the shell's history: \
             run gantry login without it, and type it when asked, or send it to standard input"
        );
    }
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        let mut asking = std::io::stderr().lock();
        let _ = write!(asking, "{ASKED}");
        let _ = asking.flush();
    }
    let mut text = String::new();
    let mut input = stdin.lock().take(MAX_CODE_BYTES);
    input
        .read_line(&mut text)
        .context("failed to read the code")?;
    match without_mark(&text).trim() {
        "" => bail!(
            "there is no code on standard input: ask the person who invites you for one (gantry people \
             invite NAME); a new server prints one, and gantry-server sign-in-code another"
        ),
        code => Ok(code.to_owned()),
    }
}

/// The name of this sign-in in the server's list: the host's name for people, and a few random
/// letters, so that signing out finds exactly this sign-in.
fn device(entropy: &dyn Entropy) -> String {
    let host = ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok())
        .unwrap_or_default();
    let mut random = [0; 4];
    entropy.fill(&mut random);
    format!("{}-{:08x}", label(&host), u32::from_be_bytes(random))
}

fn label(host: &str) -> String {
    let host = host.trim().to_ascii_lowercase();
    let kept: String = host
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
        .take(MAX_HOST_BYTES)
        .collect();
    match kept.trim_matches('-') {
        "" => "terminal".to_owned(),
        kept => kept.to_owned(),
    }
}

fn plain(server: &url::Url) -> String {
    server.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use shared_types::{entropy::SeededEntropy, limits::is_name};

    use super::*;

    #[test]
    fn a_sign_in_has_a_name_of_its_own() {
        let entropy = SeededEntropy::new(1);
        let (one, other) = (device(&entropy), device(&entropy));
        assert_ne!(one, other);
        assert!(is_name(&one) && is_name(&other), "{one} {other}");
        assert_eq!(label("Jane's MacBook.local\n"), "janesmacbooklocal");
        assert_eq!(label("---"), "terminal");
    }
}
