//! The enrolment of a runner in a tenant, and the proof that the runner gives when it connects
//! (docs/internals/contracts.md#b1 to #b3).
//!
//! The server proves itself first. The key that the join token pins signs `identify`, over the runner's
//! nonce and the certificate that was presented on this connection. A runner that was removed, one that
//! never was, and a wrong signature get the same answer. `refused` holds the refusals and their entries in
//! the log; `joining` enrols runners.

mod joining;
mod makers;
mod refused;
mod renewals;

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use proto::{enrolling, sealing::Opener, signing, v1};
use server_records::LinkIdentity;
use server_router::links::{LinkSealer, Links};
use server_store::{AttemptKind, JoinState, RunnerRow, ShownState, Store, ThisReplica};
use shared_telemetry::server::RUNNER_REFUSALS;
use shared_types::{Clock, Digest, Entropy, ReplicaId, RunnerId, Timestamp};

pub use self::{
    joining::{EnrolledRunner, Joined},
    refused::NotLetIn,
};
use self::{makers::Makers, refused::RefusedEnrolment, renewals::Renewals};
use crate::{
    AppError, Parts,
    challenges::Challenges,
    keys::{LINK_TOKEN_FOR, LinkKeys, SigningKey, verifies},
    link_challenge::LinkChallenge,
    link_token::{LinkClaims, LinkTokens, SignedUntilNow},
    refusals::{Refusals, place},
    shielded::shielded,
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
    replica: ReplicaId,
    store: Store,
    links: Links,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    identity: SigningKey,
    challenges: Challenges,
    tokens: LinkTokens,
    refusals: Refusals,
    renewals: Renewals,
    makers: Makers,
    /// True if this process has found that its database is an older copy, and raised the epochs.
    epochs_are_raised: AtomicBool,
}

/// The keys with which the server proves itself.
pub(crate) struct ServerKeys {
    /// The key that join tokens pin.
    pub(crate) identity: SigningKey,
    /// The keys that sign and verify link tokens.
    pub(crate) link_keys: LinkKeys,
}

/// The proof of a runner that asks for a link token.
#[derive(Clone)]
pub struct AuthenticateRequest {
    /// Its id, in text form.
    pub runner: String,
    /// From [`Enrolment::identify`].
    pub challenge: Vec<u8>,
    /// By the runner's key; see [`proto::signing::authenticate`].
    pub signature: Vec<u8>,
    /// The newest one that it has stored.
    pub join_state: u64,
    /// The server's signature of it from [`Enrolment::authenticate`]; empty after enrolment.
    pub join_state_signature: Vec<u8>,
    /// The address of the request.
    pub address: Option<IpAddr>,
}

impl Enrolment {
    /// Takes the server's keys.
    pub(crate) fn of(parts: Parts, this: &ThisReplica, links: &Links, refusals: Refusals) -> Self {
        let keys = ServerKeys {
            identity: parts.identity,
            link_keys: parts.link_keys,
        };
        let (clock, entropy) = (parts.clock, parts.entropy);
        let (store, links) = (parts.store, links.clone());
        Self::new(store, links, clock, entropy, this, keys, refusals)
    }

    pub(crate) fn new(
        store: Store,
        links: Links,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        this: &ThisReplica,
        keys: ServerKeys,
        refusals: Refusals,
    ) -> Self {
        let ServerKeys {
            identity,
            link_keys,
        } = keys;
        // The same on every replica, and whatever address the server is reached by.
        let audience = format!(
            "gantry:{}",
            &Digest::of(&identity.public()).to_string()[..32]
        );
        let tokens = LinkTokens::new(audience, &link_keys);
        let challenges = Challenges::new(this.id, &identity, &this.challenge_salt);
        Self {
            inner: Arc::new(Inner {
                replica: this.id,
                store,
                links,
                clock,
                entropy,
                identity,
                challenges,
                tokens,
                refusals,
                renewals: Renewals::new(),
                makers: Makers::new(),
                epochs_are_raised: AtomicBool::new(false),
            }),
        }
    }

    /// The key that join tokens pin.
    #[cfg(test)]
    pub(crate) fn identity_key(&self) -> [u8; 32] {
        self.inner.identity.public()
    }

    /// Replaces the keys that sign and verify link tokens. If the key that signed until now no longer
    /// verifies, all links end, and their runners prove themselves again.
    pub async fn use_link_keys(&self, keys: &LinkKeys) {
        if self.inner.tokens.use_keys(keys) == SignedUntilNow::Refused {
            self.inner.links.rotated().await;
        }
    }

    /// Proves who this server is, to a runner on a connection on which the certificate with this SHA-256
    /// was presented, if any was. The proof vouches for that one and no other.
    ///
    /// # Errors
    /// If the nonce does not have 32 bytes, or the runner speaks another version of these calls.
    pub fn identify(
        &self,
        ask: &v1::IdentifyRequest,
        certificate: Option<[u8; 32]>,
    ) -> Result<v1::IdentifyReply, AppError> {
        let inner = &*self.inner;
        speaks_our_version(ask.version)?;
        if ask.nonce.len() != 32 {
            return Err(AppError::Invalid("a nonce has 32 bytes".to_owned()));
        }
        let challenge = inner.challenges.issue(&*inner.clock, &*inner.entropy);
        let mut reply = v1::IdentifyReply {
            identity_key: inner.identity.public().to_vec(),
            sealing_key: inner.challenges.sealing_key(&challenge).public(),
            challenge,
            certificate_sha256: certificate.map(Vec::from).unwrap_or_default(),
            audience: inner.tokens.audience().to_owned(),
            signature: Vec::new(),
        };
        reply.signature = inner.identity.sign(&signing::identify(&ask.nonce, &reply));
        Ok(reply)
    }

    /// A signature over the archive with a runner's programs, which holds also where something on the way ends
    /// TLS.
    pub fn vouch_for_programs(&self, nonce: &[u8; 32], arch: &str, archive: &Digest) -> Vec<u8> {
        let signed = signing::programs(nonce, arch, archive);
        self.inner.identity.sign(&signed)
    }

    /// A link token, and the next join state, for a runner that signs the challenge, under the
    /// identity key's signature. A copy of a runner betrays itself by an old join state: then the
    /// runner is locked, and its link ends.
    ///
    /// # Errors
    /// If the runner is not known (any more), the signature does not hold, it is locked, or another
    /// request of its own came before. Only the holder of the runner's key is given the proof of a
    /// dismissal.
    pub async fn authenticate(
        &self,
        ask: &AuthenticateRequest,
    ) -> Result<v1::AuthenticateReply, NotLetIn> {
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

    async fn prove(
        &self,
        ask: &AuthenticateRequest,
    ) -> Result<v1::AuthenticateReply, RefusedEnrolment> {
        let inner = &*self.inner;
        let runner = ask
            .runner
            .parse()
            .map_err(|_| RefusedEnrolment::stranger())?;
        let row = inner.store.runner_for_authentication(runner).await?;
        let row = row.ok_or_else(RefusedEnrolment::stranger)?;
        let renewed = self.renew(&row, ask).await;
        renewed.map_err(|refused| refused.of(row.tenant, runner))
    }

    async fn renew(
        &self,
        row: &RunnerRow,
        ask: &AuthenticateRequest,
    ) -> Result<v1::AuthenticateReply, RefusedEnrolment> {
        let inner = &*self.inner;
        let audience = inner.tokens.audience();
        let signed = signing::authenticate(&ask.challenge, audience, row.id, ask.join_state);
        if !verifies(&row.public_key, &signed, &ask.signature) {
            return Err(RefusedEnrolment::impostor());
        }
        let challenge = self.good(&ask.challenge).await?;
        let challenge = challenge
            .ok_or_else(|| RefusedEnrolment::old_challenge(refused::AUTHENTICATE))?
            .number;
        // Nothing is written for a runner that is not welcome: the proof of that is good for its
        // challenge alone, however often it is asked for.
        lives(row).map_err(RefusedEnrolment::dismissal)?;
        let ours = signing::join_state(row.id, ask.join_state);
        let shown = ShownState {
            state: ask.join_state,
            is_ours: verifies(&inner.identity.public(), &ours, &ask.join_state_signature),
            challenge,
            known: match challenge.replica == inner.replica {
                true => inner.renewals.known(row.id, challenge.number),
                // Its maker may know one.
                false => None,
            },
        };
        let renewing = self.clone().renew_join_state(row.id, shown);
        let next = match shielded(renewing).await? {
            JoinState::Renewed(next) | JoinState::WentBack(next) => next,
            JoinState::Late | JoinState::Unordered(_) => return Err(RefusedEnrolment::late()),
            JoinState::NeverGiven => return Err(RefusedEnrolment::never_given()),
            JoinState::Locked => return Err(RefusedEnrolment::locked().dismissal()),
        };
        let claims = LinkClaims {
            tenant: row.tenant,
            runner: row.id,
            key: Digest::of(&row.public_key),
            join_state: next,
        };
        let mut reply = v1::AuthenticateReply {
            access_token: inner.tokens.issue(&claims, &*inner.clock),
            expires_in_s: u32::try_from(LINK_TOKEN_FOR.as_secs()).unwrap_or(u32::MAX),
            join_state: next,
            join_state_signature: inner.identity.sign(&signing::join_state(row.id, next)),
            signature: Vec::new(),
        };
        let signed = signing::authenticated(&ask.challenge, row.id, &reply);
        reply.signature = inner.identity.sign(&signed);
        Ok(reply)
    }

    /// Tells of a refusal, and limits what strangers may guess; returns what to answer.
    async fn refuse(
        &self,
        mut refused: RefusedEnrolment,
        from: String,
        now: Timestamp,
    ) -> AppError {
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
                Ok(false) => refused = RefusedEnrolment::too_many(ATTEMPTS_WITHIN),
                Err(error) => return error.into(),
            }
        }
        if let Some(refusal) = refused.refusal(from) {
            let request = refusal.kind.split('.').next().unwrap_or_default();
            let reason = refusal.reason.replace(' ', "_");
            RUNNER_REFUSALS.add(&[request, &reason], 1);
            refusals.tell(refusal);
        }
        refused.error
    }

    async fn renew_join_state(
        self,
        runner: RunnerId,
        shown: ShownState,
    ) -> Result<JoinState, AppError> {
        let Inner {
            store,
            links,
            clock,
            challenges,
            renewals,
            epochs_are_raised,
            ..
        } = &*self.inner;
        let raised = epochs_are_raised.load(Ordering::Relaxed);
        let renewed = store.renew_join_state(runner, shown, raised, clock.now());
        let renewed = renewed.await?;
        match renewed {
            JoinState::Locked => {
                tracing::error!(runner.id = %runner, "the runner is locked: its folder was copied");
                links.lock(runner).await;
            }
            JoinState::WentBack(_) => {
                // Once for this process: no database is restored under a running one. Twice does no
                // harm.
                epochs_are_raised.store(true, Ordering::Relaxed);
                tracing::warn!(
                    runner.id = %runner,
                    shown = shown.state,
                    "the server's database was restored from an older copy: the runner was here since. It is let in; what was done since the copy was made is not known here, and of what seems to be open on it, what it does not remember is lost"
                );
            }
            JoinState::Unordered(renewal) => renewals.note(runner, renewal, challenges.next()),
            JoinState::Renewed(_) | JoinState::Late | JoinState::NeverGiven => {}
        }
        Ok(renewed)
    }

    /// Whom a link token speaks for, if it holds.
    pub fn check_link_token(&self, token: &str) -> Option<LinkClaims> {
        self.inner.tokens.check(token, &*self.inner.clock)
    }

    /// Checks that the bearer of a link token may still link.
    ///
    /// # Errors
    /// If the runner was removed or locked since the token was given.
    pub async fn may_link(&self, claims: &LinkClaims) -> Result<(), AppError> {
        let row = self.inner.store.runner_for_authentication(claims.runner);
        let row = row
            .await?
            .ok_or_else(|| RefusedEnrolment::stranger().error)?;
        let Err(refused) = lives_still(&row) else {
            return Ok(());
        };
        let refused = refused.of(row.tenant, row.id);
        let now = self.inner.clock.now();
        Err(self.refuse(refused, String::new(), now).await)
    }

    /// The challenge of a new link for the bearer of this token, and what seals all that the server says
    /// behind it.
    pub async fn challenge_link(
        &self,
        claims: &LinkClaims,
        token: &str,
    ) -> (LinkChallenge, LinkSealer) {
        let Inner {
            identity, entropy, ..
        } = &*self.inner;
        let challenge = LinkChallenge::issue(token, identity, &**entropy);
        let sealer = self.inner.links.sealer(claims.runner, challenge.key());
        (challenge, sealer.await)
    }

    /// The identity of a link whose runner has signed its proof with the key that its token names, and
    /// what opens all that it says.
    ///
    /// # Errors
    /// If it has not, if its ephemeral key makes no secret, or if the runner was removed in the
    /// meantime.
    pub async fn prove_link(
        &self,
        claims: &LinkClaims,
        challenge: LinkChallenge,
        token: &str,
        proof: &v1::Proof,
    ) -> Result<(LinkIdentity, Opener<v1::RunnerFrame>), AppError> {
        let row = self.inner.store.runner_for_authentication(claims.runner);
        let row = row
            .await?
            .ok_or_else(|| RefusedEnrolment::stranger().error)?;
        lives_still(&row).map_err(|refused| refused.error)?;
        let bound = row.tenant == claims.tenant && Digest::of(&row.public_key) == claims.key;
        let signed = signing::proof(token, challenge.said(), proof);
        if !bound || !verifies(&row.public_key, &signed, &proof.signature) {
            // The caller has a link token of this runner, but not its key.
            let refused = RefusedEnrolment::stolen_link_token().of(row.tenant, row.id);
            return Err(self
                .refuse(refused, String::new(), self.inner.clock.now())
                .await);
        }
        let opener = challenge
            .agree(row.id, proof)
            .map_err(|error| AppError::Invalid(error.to_string()))?;
        let store = &self.inner.store;
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

fn lives(row: &RunnerRow) -> Result<(), RefusedEnrolment> {
    if row.revoked_at.is_some() {
        return Err(RefusedEnrolment::removed());
    }
    if row.locked_at.is_some() {
        return Err(RefusedEnrolment::locked());
    }
    Ok(())
}

/// Like [`lives`], for the bearer of a link token. The token was a runner's, so the answer tells what
/// became of that runner.
fn lives_still(row: &RunnerRow) -> Result<(), RefusedEnrolment> {
    match row.revoked_at {
        Some(_) => Err(RefusedEnrolment::removed_since()),
        None => lives(row),
    }
}

/// Refuses a runner of another version before it sends anything secret.
fn speaks_our_version(version: u32) -> Result<(), AppError> {
    let older = match version.cmp(&enrolling::VERSION) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Less => "gantry-runner",
        std::cmp::Ordering::Greater => "gantry-server",
    };
    // The first version did not name itself.
    let (theirs, ours) = (version.max(1), enrolling::VERSION);
    Err(AppError::Invalid(format!(
        "the runner speaks version {theirs} of the calls of enrolment, this server version {ours}: upgrade {older}"
    )))
}

#[cfg(test)]
mod tests;
