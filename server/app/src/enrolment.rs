//! How a runner comes to belong to a tenant, and how it proves that it does (contract B1–B3).
//!
//! The server proves itself first: `identify` is signed by the key that the join token pins, over
//! the runner's nonce and the certificate that this server presents. A runner that was removed,
//! one that never was, and a wrong signature get the same answer. What is refused, and what the log
//! says of it, is in `refused`.

mod refused;

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use proto::{sealing::Opener, signing, v1};
use server_router::links::{LinkIdentity, Links};
use server_store::{
    AttemptKind, EnrolRefusal, JoinState, JoinTokenRow, NewRunner, RunnerRow, Store,
};
use shared_types::{
    AddressRange, Clock, Digest, Entropy, RunnerId, Timestamp, Token, TokenKind, limits::is_name,
};

pub use self::refused::NotLetIn;
use self::refused::Refused;
use crate::{
    AppError,
    challenges::Challenges,
    keys::{SigningKey, verifies},
    link_token::{LinkClaims, LinkTokens},
    refusals::{Refusals, place},
    tickets::{LinkChallenge, Tickets},
    whole::whole,
};

/// Failed enrolments that one address may make in [`ATTEMPTS_WITHIN`].
const ATTEMPTS: u64 = 10;
/// See [`ATTEMPTS`].
const ATTEMPTS_WITHIN: Duration = Duration::from_secs(60);

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
    refusals: Refusals,
}

/// What the server proves itself with.
pub(crate) struct ServerKeys {
    /// What join tokens pin.
    pub(crate) identity: SigningKey,
    /// What signs link tokens: the first; all verify.
    pub(crate) link_keys: Vec<SigningKey>,
    /// SHA-256 of the certificate that the server presents, where it ends TLS.
    pub(crate) certificate: Option<[u8; 32]>,
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

/// What a runner sends to be let in.
pub struct AuthenticateRequest {
    /// Its id, in text form.
    pub runner: String,
    /// From [`Enrolment::identify`].
    pub challenge: Vec<u8>,
    /// By the runner's key; see [`proto::signing::authenticate`].
    pub signature: Vec<u8>,
    /// The newest one that it has stored.
    pub join_state: u64,
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
    pub(crate) fn new(
        store: Store,
        links: Links,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        keys: ServerKeys,
        refusals: Refusals,
    ) -> Self {
        let ServerKeys {
            identity,
            link_keys,
            certificate,
        } = keys;
        // The same on every replica, and whatever address the server is reached by.
        let audience = format!(
            "gantry:{}",
            &Digest::of(&identity.public()).to_string()[..32]
        );
        let tokens = LinkTokens::new(audience, &link_keys);
        let challenges = Challenges::new(&*entropy);
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
                refusals,
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
    /// this one becomes the choice. A good token is always tried; what else an address sends is
    /// limited.
    ///
    /// # Errors
    /// If the token is wrong, spent or expired, the signature does not hold, the name is taken, or
    /// the address has failed too often.
    pub async fn enrol(&self, ask: EnrolRequest) -> Result<Enrolled, AppError> {
        let inner = &*self.inner;
        let now = inner.clock.now();
        let row = match self.spend(&ask, now).await {
            Ok(row) => row,
            Err(refused) => return Err(self.refuse(refused, place(ask.address), now).await),
        };
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

    async fn spend(&self, ask: &EnrolRequest, now: Timestamp) -> Result<RunnerRow, Refused> {
        let inner = &*self.inner;
        let token: Token = ask.join_token.parse().map_err(|_| Refused::no_token())?;
        if token.kind() != TokenKind::Join || token.pin() != Some(&inner.identity.public()) {
            return Err(Refused::foreign_token());
        }
        let known = inner.store.join_token_by_hash(&token.hash()).await?;
        let known = known.ok_or(EnrolRefusal::Unknown)?;
        let tried = match known.is_good(now) {
            Ok(()) if !may_come_from(&known, ask.address) => Err(Refused::elsewhere()),
            Ok(()) => self.try_good(ask, &token, now).await,
            Err(refusal) => Err(refusal.into()),
        };
        tried.map_err(|refused| refused.of(known.tenant, known.id))
    }

    async fn try_good(
        &self,
        ask: &EnrolRequest,
        token: &Token,
        now: Timestamp,
    ) -> Result<RunnerRow, Refused> {
        let inner = &*self.inner;
        let signed = signing::enrol(&ask.challenge, &ask.join_token);
        if !verifies(&ask.public_key, &signed, &ask.signature) {
            return Err(Refused::bad_signature());
        }
        if !inner.challenges.spend(&ask.challenge, &*inner.clock) {
            return Err(Refused::old_challenge(refused::ENROL));
        }
        let runner = new_runner(ask, &*inner.clock, &*inner.entropy)?;
        Ok(inner.store.enrol(&token.hash(), &runner, now).await?)
    }

    /// A link token, and the next join state, for a runner that signs the challenge. A copy of a
    /// runner betrays itself by an old join state: then the runner is locked, and its link ends.
    ///
    /// # Errors
    /// If the runner is not known (any more), the signature does not hold, or it is locked. Only
    /// whoever holds the runner's key is given the proof of a dismissal.
    pub async fn authenticate(&self, ask: &AuthenticateRequest) -> Result<(String, u64), NotLetIn> {
        let proved = self.prove(ask).await;
        match proved {
            Ok(renewed) => Ok(renewed),
            Err(refused) => {
                let now = self.inner.clock.now();
                let runner = ask.runner.parse().ok();
                let runner = runner.filter(|_| refused.is_dismissal);
                let dismissal = runner.map(|runner| {
                    let signed = signing::dismissed(&ask.challenge, runner);
                    self.inner.identity.sign(&signed)
                });
                let error = self.refuse(refused, place(ask.address), now).await;
                Err(NotLetIn { error, dismissal })
            }
        }
    }

    async fn prove(&self, ask: &AuthenticateRequest) -> Result<(String, u64), Refused> {
        let inner = &*self.inner;
        let runner = ask.runner.parse().map_err(|_| Refused::stranger())?;
        let row = inner.store.runner_for_authentication(runner).await?;
        let row = row.ok_or_else(Refused::stranger)?;
        let renewed = self.renew(&row, ask).await;
        renewed.map_err(|refused| refused.of(row.tenant, runner))
    }

    async fn renew(
        &self,
        row: &RunnerRow,
        ask: &AuthenticateRequest,
    ) -> Result<(String, u64), Refused> {
        let inner = &*self.inner;
        let audience = inner.tokens.audience();
        let signed = signing::authenticate(&ask.challenge, audience, row.id, ask.join_state);
        if !verifies(&row.public_key, &signed, &ask.signature) {
            return Err(Refused::impostor());
        }
        // Before the join state: whoever repeats an old request is no copy of the runner.
        if !inner.challenges.spend(&ask.challenge, &*inner.clock) {
            return Err(Refused::old_challenge(refused::AUTHENTICATE));
        }
        lives(row).map_err(Refused::dismissal)?;
        let renewing = self.clone().renew_join_state(row.id, ask.join_state);
        let JoinState::Renewed(next) = whole(renewing).await? else {
            return Err(Refused::locked().dismissal());
        };
        let claims = LinkClaims {
            tenant: row.tenant,
            runner: row.id,
            key: Digest::of(&row.public_key),
            join_state: next,
        };
        Ok((inner.tokens.issue(&claims, &*inner.clock), next))
    }

    /// Tells of a refusal, and limits what strangers may guess; returns what to answer.
    async fn refuse(&self, mut refused: Refused, from: String, now: Timestamp) -> AppError {
        let Inner {
            store, refusals, ..
        } = &*self.inner;
        if refused.is_guess {
            let within = i64::try_from(ATTEMPTS_WITHIN.as_micros()).unwrap_or(i64::MAX);
            let since = Timestamp::from_micros(now.as_micros().saturating_sub(within));
            let (kind, at_most) = (AttemptKind::Enrol, ATTEMPTS);
            let allowed = store.record_attempt_within(kind, &from, since, at_most, now);
            match allowed.await {
                Ok(true) => {}
                Ok(false) => refused = Refused::too_many(ATTEMPTS_WITHIN),
                Err(error) => return error.into(),
            }
        }
        if let Some(refusal) = refused.refusal(from) {
            refusals.tell(refusal).await;
        }
        refused.error
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
            links.lock(runner).await;
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

    /// The identity of a link whose runner has signed its hello with the key that its token names, and
    /// what opens all that it says behind that.
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
    ) -> Result<(LinkIdentity, Opener), AppError> {
        let row = self.inner.store.runner_for_authentication(claims.runner);
        let row = row.await?.ok_or_else(|| Refused::stranger().error)?;
        lives(&row).map_err(|refused| refused.error)?;
        let bound = row.tenant == claims.tenant && Digest::of(&row.public_key) == claims.key;
        let signed = signing::link(challenge.nonce(), token, hello);
        if !bound || !verifies(&row.public_key, &signed, &hello.signature) {
            // Somebody has a link token of this runner, but not its key.
            let refused = Refused::stolen_link_token().of(row.tenant, row.id);
            return Err(self
                .refuse(refused, String::new(), self.inner.clock.now())
                .await);
        }
        let Inner {
            store,
            links,
            identity,
            entropy,
            ..
        } = &*self.inner;
        let opener = challenge
            .behind(links.gate(row.id).await)
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
        let identity = LinkIdentity {
            tenant: row.tenant,
            runner: row.id,
            name: row.name,
        };
        Ok((identity, opener))
    }
}

fn may_come_from(token: &JoinTokenRow, address: Option<IpAddr>) -> bool {
    let inside = |range: AddressRange| address.is_some_and(|address| range.contains(address));
    token.from.is_none_or(inside)
}

fn lives(row: &RunnerRow) -> Result<(), Refused> {
    if row.revoked_at.is_some() {
        return Err(Refused::removed());
    }
    if row.locked_at.is_some() {
        return Err(Refused::locked());
    }
    Ok(())
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
mod tests;
