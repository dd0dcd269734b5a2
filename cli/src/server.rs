//! Which server, with which credential: decided once for each run.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use shared_client::{Client, Options, PING_EVERY, Trust};
use shared_types::{Digest, Entropy};
use url::Url;

use crate::settings::SignIn;

/// The default address of a server.
const DEFAULT: &str = "http://127.0.0.1:7000";

/// The variables of the environment that name a server or a credential.
#[derive(Default, Clone)]
pub(crate) struct Environment {
    pub(crate) server: Option<String>,
    pub(crate) token: Option<String>,
}

/// A client with a credential.
pub(crate) fn client(
    kept: Option<&SignIn>,
    environment: &Environment,
    entropy: Arc<dyn Entropy>,
) -> anyhow::Result<Client> {
    Client::new(options(kept, environment, entropy)?).context("failed to set up the connection")
}

/// The server to sign in to, where the command line names none.
pub(crate) fn default_server(
    kept: Option<&SignIn>,
    environment: &Environment,
) -> anyhow::Result<Url> {
    let named = environment.server.as_ref();
    let named = named.or(kept.map(|kept| &kept.server));
    parse(named.map_or(DEFAULT, String::as_str))
}

/// Each token goes only to the server that it belongs to: the kept one to the server of the
/// sign-in, the one from the environment to the server that the environment names.
fn options(
    kept: Option<&SignIn>,
    environment: &Environment,
    entropy: Arc<dyn Entropy>,
) -> anyhow::Result<Options> {
    let server = match (&environment.server, kept) {
        (Some(named), Some(kept))
            if environment.token.is_none() && !is_same(named, &kept.server) =>
        {
            bail!(
                "GANTRY_SERVER names {named}, and you are signed in to {}: unset it, or run \
                 gantry login --server {named}",
                kept.server
            )
        }
        (Some(named), _) => named,
        (None, Some(kept)) => &kept.server,
        (None, None) => DEFAULT,
    };
    let known = kept.filter(|kept| is_same(&kept.server, server));
    let Some(token) = environment
        .token
        .clone()
        .or_else(|| known.map(|kept| kept.token.clone()))
    else {
        bail!("not signed in to {server}\n{HOW_TO_SIGN_IN}");
    };
    Ok(Options {
        server: parse(server)?,
        token: Some(token),
        trust: trust(known.and_then(|kept| kept.fingerprint.as_deref()))?,
        plain_text_allowed: known.is_some_and(|kept| kept.allow_plain_text),
        ping_every: PING_EVERY,
        entropy,
    })
}

/// True if two addresses lead to the same server, also if they are written differently.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |server: &str| {
        Some(
            Url::parse(server)
                .ok()?
                .as_str()
                .trim_end_matches('/')
                .to_owned(),
        )
    };
    one == other || plain(one).is_some_and(|one| Some(one) == plain(other))
}

/// The advice where the server refuses the credential.
pub(crate) fn advice(environment: &Environment) -> &'static str {
    match environment.token {
        Some(_) => WITH_A_TOKEN,
        None => HOW_TO_SIGN_IN,
    }
}

/// The advice where the refused credential is the environment's: a sign-in would not replace it.
const WITH_A_TOKEN: &str = "\
GANTRY_TOKEN holds a key that this server does not take (any more): put a valid one there, or unset it
to use your sign-in; where you were removed, ask the person who invites you";

/// The advice where no sign-in is stored.
const HOW_TO_SIGN_IN: &str = "\
run: gantry login
it asks for a code: ask the person who invites you for one (gantry people invite NAME)
where the server is your own, its machine makes one: gantry-server sign-in-code";

fn parse(server: &str) -> anyhow::Result<Url> {
    Url::parse(server).with_context(|| {
        format!("failed to use the server {server:?}: write it like https://gantry.example.com")
    })
}

fn trust(fingerprint: Option<&str>) -> anyhow::Result<Trust> {
    match fingerprint {
        None => Ok(Trust::Platform),
        Some(hex) => Digest::from_hex(hex)
            .map(|digest| Trust::Pinned(*digest.as_bytes()))
            .context("failed to use the fingerprint in cli.toml: run gantry login again"),
    }
}

#[cfg(test)]
mod tests {
    use shared_types::entropy::SeededEntropy;

    use super::*;

    fn kept() -> SignIn {
        SignIn {
            server: "https://kept.example.com".into(),
            token: "kept".into(),
            device: "laptop".into(),
            fingerprint: Some("ab".repeat(32)),
            allow_plain_text: true,
        }
    }

    fn chosen(
        kept: Option<&SignIn>,
        server: Option<&str>,
        token: Option<&str>,
    ) -> Option<(String, String, bool)> {
        let environment = Environment {
            server: server.map(str::to_owned),
            token: token.map(str::to_owned),
        };
        let options = options(kept, &environment, Arc::new(SeededEntropy::new(1))).ok()?;
        let pinned = matches!(options.trust, Trust::Pinned(_));
        Some((options.server.to_string(), options.token?, pinned))
    }

    #[test]
    fn a_kept_token_never_goes_to_a_server_that_the_environment_names() {
        let there = "https://other.example.com/";
        let at_kept = |token: &str| {
            Some((
                "https://kept.example.com/".to_owned(),
                token.to_owned(),
                true,
            ))
        };
        assert_eq!(chosen(Some(&kept()), None, None), at_kept("kept"));
        assert_eq!(chosen(Some(&kept()), Some(there), None), None);
        let same = Some("https://kept.example.com:443/");
        assert_eq!(chosen(Some(&kept()), same, None), at_kept("kept"));
        assert_eq!(chosen(Some(&kept()), None, Some("env")), at_kept("env"));
        assert_eq!(
            chosen(Some(&kept()), Some(there), Some("env")),
            Some((there.to_owned(), "env".to_owned(), false))
        );
        assert_eq!(chosen(None, Some(there), None), None);
        assert_eq!(
            chosen(None, None, Some("env")),
            Some(("http://127.0.0.1:7000/".to_owned(), "env".to_owned(), false))
        );
    }
}
