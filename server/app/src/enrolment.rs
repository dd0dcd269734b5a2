//! How a runner comes to belong to a tenant, and how it proves that it does (contract B1–B3).
//!
//! The server proves itself first: `identify` is signed by the key that the join token pins, over
//! the runner's nonce and the certificate that this server presents. A runner that was removed,
//! one that never was, and a wrong signature get the same answer.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use proto::{signing, v1};
use server_router::links::{LinkIdentity, Links};
use server_store::{
    Actor, AttemptKind, AuditEntry, EnrolRefusal, JoinState, NewRunner, RunnerRow, Store,
};
use shared_types::{
    Clock, Digest, Entropy, RunnerId, TenantId, Timestamp, Token, TokenKind, limits::is_name,
};

use crate::{
    AppError,
    keys::{Challenges, SigningKey, verifies},
    link_token::{LinkClaims, LinkTokens},
    tickets::{LinkChallenge, Tickets},
    whole::whole,
};

/// Failed enrolments that one address may make in [`ATTEMPTS_WITHIN`].
const ATTEMPTS: u64 = 10;
/// See [`ATTEMPTS`].
const ATTEMPTS_WITHIN: Duration = Duration::from_secs(60);

const STRANGER: AppError =
    AppError::Unauthenticated("this runner is not known here; enrol it with a new join token");

const LOCKED: AppError = AppError::Forbidden(
    "this runner is locked, because its folder was copied: find the copy, remove the runner \
     (gantry runners remove), and enrol it anew",
);

/// The use cases of this file.
#[derive(Clone)]
pub struct Enrolment {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    links: Links,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    identity: Arc<SigningKey>,
    challenges: Challenges,
    tokens: LinkTokens,
    certificate: Option<[u8; 32]>,
}

/// The server's proof of who it is.
pub struct Identity {
    /// Its Ed25519 identity key.
    pub identity_key: [u8; 32],
    /// A challenge for the runner's next request.
    pub challenge: Vec<u8>,
    /// SHA-256 of the certificate that it presents; absent where it does not end TLS.
    pub certificate: Option<[u8; 32]>,
    /// What link tokens are for.
    pub audience: String,
    /// By the identity key, over all of it and the runner's nonce.
    pub signature: Vec<u8>,
}

/// What a runner sends to be enrolled.
pub struct EnrolRequest {
    /// The join token's text.
    pub join_token: String,
    /// The runner's Ed25519 public key.
    pub public_key: Vec<u8>,
    /// From [`Enrolment::identify`].
    pub challenge: Vec<u8>,
    /// By the runner's key; see [`proto::signing::enrol`].
    pub signature: Vec<u8>,
    /// The name that it wants; empty where it does not care.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its host's name.
    pub hostname: String,
    /// The version of its software.
    pub version: String,
    /// Where it asks from.
    pub address: Option<IpAddr>,
}

/// A runner that is enrolled.
pub struct Enrolled {
    /// Its id.
    pub runner: RunnerId,
    /// Its name.
    pub name: String,
}

impl Enrolment {
    /// `identity` signs what join tokens pin; `link_keys` sign link tokens, the first of them.
    pub(crate) fn new(
        store: Store,
        links: Links,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        identity: SigningKey,
        link_keys: &[SigningKey],
        certificate: Option<[u8; 32]>,
    ) -> Self {
        // The same on every replica, and whatever address the server is reached by.
        let audience = format!(
            "gantry:{}",
            &Digest::of(&identity.public()).to_string()[..32]
        );
        let tokens = LinkTokens::new(audience, link_keys);
        let challenges = Challenges::new(&identity);
        Self {
            inner: Arc::new(Inner {
                store,
                links,
                clock,
                entropy,
                identity: Arc::new(identity),
                challenges,
                tokens,
                certificate,
            }),
        }
    }

    /// The key that join tokens pin.
    pub(crate) fn identity_key(&self) -> [u8; 32] {
        self.inner.identity.public()
    }

    /// Proves who this server is.
    ///
    /// # Errors
    /// If the nonce does not have 32 bytes.
    pub fn identify(&self, nonce: &[u8]) -> Result<Identity, AppError> {
        let inner = &*self.inner;
        if nonce.len() != 32 {
            return Err(AppError::Invalid("a nonce has 32 bytes".to_owned()));
        }
        let challenge = inner.challenges.issue(&*inner.clock, &*inner.entropy);
        let audience = inner.tokens.audience().to_owned();
        let certificate = inner
            .certificate
            .as_ref()
            .map_or(&[][..], |digest| digest.as_slice());
        let signature = inner.identity.sign(&signing::identify(
            nonce,
            &challenge,
            certificate,
            &audience,
        ));
        Ok(Identity {
            identity_key: inner.identity.public(),
            challenge,
            certificate: inner.certificate,
            audience,
            signature,
        })
    }

    /// Spends a join token and makes the runner known. Where its owner has chosen no runner yet,
    /// this one becomes the choice.
    ///
    /// # Errors
    /// If the token is wrong, spent or expired, the signature does not hold, the name is taken, or
    /// the address has failed too often.
    pub async fn enrol(&self, ask: EnrolRequest) -> Result<Enrolled, AppError> {
        let inner = &*self.inner;
        let now = inner.clock.now();
        let address = ask
            .address
            .map(|address| address.to_string())
            .unwrap_or_default();
        let window = Timestamp::from_micros(now.as_micros() - ATTEMPTS_WITHIN.as_micros() as i64);
        if inner
            .store
            .count_attempts(AttemptKind::Enrol, &address, window)
            .await?
            >= ATTEMPTS
        {
            return Err(AppError::TooMany {
                retry_after_s: ATTEMPTS_WITHIN.as_secs(),
            });
        }
        let enrolled = self.spend(&ask, now).await;
        if let Err(AppError::Unauthenticated(reason)) = &enrolled {
            inner
                .store
                .record_attempt(AttemptKind::Enrol, &address, now)
                .await?;
            tracing::warn!(%address, reason, "an enrolment was refused");
        }
        let row = enrolled?;
        let owner = inner.store.user(row.tenant, row.owner).await?;
        if owner.active_runner.is_none() {
            inner
                .store
                .set_active_runner(row.tenant, row.owner, Some(row.id))
                .await?;
        }
        tracing::info!(runner.id = %row.id, runner.name = row.name, "runner enrolled");
        Ok(Enrolled {
            runner: row.id,
            name: row.name,
        })
    }

    async fn spend(&self, ask: &EnrolRequest, now: Timestamp) -> Result<RunnerRow, AppError> {
        let inner = &*self.inner;
        let token: Token = ask.join_token.parse().map_err(|_| {
            AppError::Unauthenticated(
                "the join token is not valid; make a new one: gantry runners add",
            )
        })?;
        if token.kind() != TokenKind::Join || token.pin() != Some(&inner.identity.public()) {
            return Err(AppError::Unauthenticated(
                "this is not a join token of this server; make one: gantry runners add",
            ));
        }
        let signed = signing::enrol(&ask.challenge, &ask.join_token);
        if !inner.challenges.holds(&ask.challenge, &*inner.clock)
            || !verifies(&ask.public_key, &signed, &ask.signature)
        {
            return Err(AppError::Unauthenticated(
                "the enrolment's signature does not hold; try again",
            ));
        }
        let row = inner
            .store
            .enrol(
                &token.hash(),
                &new_runner(ask, &*inner.clock, &*inner.entropy)?,
                now,
            )
            .await;
        row.map_err(|refusal| match refusal {
            EnrolRefusal::Unknown => AppError::Unauthenticated("the join token is not known; make a new one: gantry runners add"),
            EnrolRefusal::Spent => AppError::Unauthenticated("the join token was used already; make a new one: gantry runners add"),
            EnrolRefusal::Expired => AppError::Unauthenticated("the join token has expired; make a new one: gantry runners add"),
            EnrolRefusal::NameTaken(name) => AppError::Conflict(format!("a runner called {name} exists; choose another name with --name, or remove that one: gantry runners remove {name}")),
            EnrolRefusal::Store(error) => error.into(),
        })
    }

    /// A link token, and the next join state, for a runner that signs the challenge. A copy of a
    /// runner betrays itself by an old join state: then the runner is locked, and its link ends.
    ///
    /// # Errors
    /// If the runner is not known (any more), the signature does not hold, or it is locked.
    pub async fn authenticate(
        &self,
        runner: RunnerId,
        challenge: &[u8],
        signature: &[u8],
        join_state: u64,
    ) -> Result<(String, u64), AppError> {
        let inner = &*self.inner;
        let row = self.living(runner).await?;
        let audience = inner.tokens.audience();
        let signed = signing::authenticate(challenge, audience, runner, join_state);
        if !inner.challenges.holds(challenge, &*inner.clock)
            || !verifies(&row.public_key, &signed, signature)
        {
            return Err(STRANGER);
        }
        let renewing = self.clone().renew_join_state(runner, join_state);
        let JoinState::Renewed(next) = whole(renewing).await? else {
            return Err(LOCKED);
        };
        let claims = LinkClaims {
            tenant: row.tenant,
            runner,
            key: Digest::of(&row.public_key),
            join_state: next,
        };
        Ok((inner.tokens.issue(&claims, &*inner.clock), next))
    }

    async fn renew_join_state(self, runner: RunnerId, shown: u64) -> Result<JoinState, AppError> {
        let Inner {
            store,
            links,
            clock,
            ..
        } = &*self.inner;
        let renewed = store.renew_join_state(runner, shown, clock.now()).await?;
        if !matches!(renewed, JoinState::Renewed(_)) {
            tracing::error!(runner.id = %runner, "the runner is locked: its folder was copied");
            links.revoke(runner).await;
        }
        Ok(renewed)
    }

    /// Whom a link token speaks for, if it holds.
    pub fn check_link_token(&self, token: &str) -> Option<LinkClaims> {
        self.inner.tokens.check(token, &*self.inner.clock)
    }

    /// What the runner of a new link must sign, and what makes the link's tickets once it has. To
    /// be sent at once.
    pub fn challenge_link(&self) -> (LinkChallenge, Tickets) {
        LinkChallenge::issue(self.inner.clock.clone(), &*self.inner.entropy)
    }

    /// The identity of a link whose runner has signed the nonce with the key that its token names.
    ///
    /// # Errors
    /// If it has not, if its ephemeral key makes no secret, or if the runner was removed in the
    /// meantime.
    pub async fn prove_link(
        &self,
        claims: &LinkClaims,
        challenge: LinkChallenge,
        token: &str,
        hello: &v1::Hello,
    ) -> Result<LinkIdentity, AppError> {
        let row = self.living(claims.runner).await?;
        let bound = row.tenant == claims.tenant && Digest::of(&row.public_key) == claims.key;
        let signed = signing::link(challenge.nonce(), token, &hello.ephemeral_key);
        if !bound || !verifies(&row.public_key, &signed, &hello.signature) {
            self.refused(row.tenant, row.id).await?;
            return Err(STRANGER);
        }
        let Inner {
            store,
            identity,
            entropy,
            ..
        } = &*self.inner;
        challenge
            .agree(row.id, &hello.ephemeral_key, identity.clone(), &**entropy)
            .map_err(|error| AppError::Invalid(error.to_string()))?;
        if !store
            .use_join_state(row.tenant, row.id, claims.join_state)
            .await?
        {
            // Not a lock by itself: the token may be from before the runner's newest one.
            return Err(AppError::Unavailable(
                "the access token was replaced by a newer one".into(),
            ));
        }
        Ok(LinkIdentity {
            tenant: row.tenant,
            runner: row.id,
            name: row.name,
        })
    }

    async fn living(&self, runner: RunnerId) -> Result<RunnerRow, AppError> {
        match self.inner.store.runner_for_authentication(runner).await {
            Ok(Some(row)) if row.revoked_at.is_some() => Err(STRANGER),
            Ok(Some(row)) if row.locked_at.is_some() => Err(LOCKED),
            Ok(Some(row)) => Ok(row),
            Ok(None) => Err(STRANGER),
            Err(error) => Err(error.into()),
        }
    }

    /// Somebody had a link token of this runner, but not its key.
    async fn refused(&self, tenant: TenantId, runner: RunnerId) -> Result<(), AppError> {
        tracing::warn!(runner.id = %runner, "a link was refused: its signature does not hold");
        let entry = AuditEntry {
            actor: Actor::System,
            kind: "link.refused",
            subject: runner.to_string(),
            detail: serde_json::json!({}),
        };
        self.inner
            .store
            .record_audit(tenant, entry, self.inner.clock.now())
            .await?;
        Ok(())
    }
}

fn new_runner(
    ask: &EnrolRequest,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<NewRunner, AppError> {
    let name = if ask.name.is_empty() {
        name_from(&ask.hostname)
    } else {
        ask.name.clone()
    };
    if !is_name(&name) {
        return Err(AppError::Invalid(format!(
            "{name:?} cannot name a runner: use up to 63 of a–z, 0–9, '-', '.' and '_', such as build-7"
        )));
    }
    // Terminals and logs will show these; their lengths are bounded by the store.
    let mut shown = ask
        .labels
        .iter()
        .flat_map(|(key, value)| [key, value])
        .chain([&ask.hostname, &ask.version]);
    if shown.any(|text| text.chars().any(char::is_control)) {
        return Err(AppError::Invalid(
            "labels, host name and version may not have control characters".to_owned(),
        ));
    }
    let public_key = ask
        .public_key
        .as_slice()
        .try_into()
        .map_err(|_| AppError::Invalid("an Ed25519 public key has 32 bytes".to_owned()))?;
    Ok(NewRunner {
        id: RunnerId::generate(clock, entropy),
        name,
        labels: ask.labels.clone(),
        public_key,
        hostname: ask.hostname.clone(),
        version: ask.version.clone(),
    })
}

/// A name made of a host's name: what does not fit becomes a dash.
fn name_from(hostname: &str) -> String {
    let fits = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '.' | '_')
    };
    let name: String = hostname
        .to_ascii_lowercase()
        .chars()
        .take(63)
        .map(|letter| if fits(letter) { letter } else { '-' })
        .collect();
    let name = name.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    if name.is_empty() {
        "runner".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_name_becomes_a_name_that_is_allowed() {
        assert_eq!(name_from("Eva's MacBook.local"), "eva-s-macbook.local");
        assert_eq!(name_from("-"), "runner");
        assert!(is_name(&name_from(&"Ä".repeat(200))));
    }
}
