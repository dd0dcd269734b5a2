//! The short-lived access token of a runner: an EdDSA JWT bound to the runner's key
//! (docs/internals/contracts.md#b3).
//!
//! Algorithm, type, audience and times are fixed and checked here; the bearer alone is useless,
//! because a link also needs a signature by the key that the token names.

use std::sync::{PoisonError, RwLock};

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use shared_types::{Clock, Digest, RunnerId, TenantId, Timestamp};

use crate::keys::{LINK_TOKEN_FOR, LinkKeys, SigningKey};

/// The most by which the clocks of two replicas may differ.
const CLOCK_SKEW_S: i64 = 5;

const TYPE: &str = "gantry-link+jwt";

/// Issues and checks link tokens.
pub(crate) struct LinkTokens {
    audience: String,
    /// A reload of the settings changes them.
    keys: RwLock<TokenKeys>,
}

struct TokenKeys {
    signing: (String, EncodingKey),
    verifying: Vec<Verifying>,
}

struct Verifying {
    kid: String,
    key: DecodingKey,
    until: Option<Timestamp>,
}

/// The fate of the tokens that the keys before have signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignedUntilNow {
    /// They stay good until they expire.
    Accepted,
    /// They are refused from now on.
    Refused,
}

/// The runner of a link token, and the terms of its link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkClaims {
    /// The tenant that the runner belongs to.
    pub tenant: TenantId,
    /// The runner.
    pub runner: RunnerId,
    /// SHA-256 of the public key that has to sign the link's challenge.
    pub key: Digest,
    /// The number that marks the link as newer than those of copies; see `server_store::JoinState`.
    pub join_state: u64,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: RunnerId,
    tenant: TenantId,
    join_state: u64,
    cnf: Confirmation,
    nbf: i64,
    exp: i64,
}

/// The key that the bearer must hold (RFC 7800), by its SHA-256.
#[derive(Serialize, Deserialize)]
struct Confirmation {
    key_sha256: Digest,
}

impl LinkTokens {
    /// Tokens for `audience`, signed by the newest key and accepted from any of them.
    pub(crate) fn new(audience: String, keys: &LinkKeys) -> Self {
        Self {
            audience,
            keys: RwLock::new(TokenKeys::of(keys)),
        }
    }

    /// Other keys sign and verify from now on.
    pub(crate) fn use_keys(&self, keys: &LinkKeys) -> SignedUntilNow {
        let keys = TokenKeys::of(keys);
        let mut held = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let signed = |key: &Verifying| key.kid == held.signing.0;
        let accepted = keys.verifying.iter().any(signed);
        *held = keys;
        match accepted {
            true => SignedUntilNow::Accepted,
            false => SignedUntilNow::Refused,
        }
    }

    /// The server for which tokens are good.
    pub(crate) fn audience(&self) -> &str {
        &self.audience
    }

    /// A token for the runner.
    pub(crate) fn issue(&self, who: &LinkClaims, clock: &dyn Clock) -> String {
        let now = clock.now();
        let claims = Claims {
            iss: "gantry".to_owned(),
            aud: self.audience.clone(),
            sub: who.runner,
            tenant: who.tenant,
            join_state: who.join_state,
            cnf: Confirmation {
                key_sha256: who.key,
            },
            nbf: now.as_seconds() - CLOCK_SKEW_S,
            exp: now.after(LINK_TOKEN_FOR).as_seconds(),
        };
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let header = Header {
            typ: Some(TYPE.to_owned()),
            kid: Some(keys.signing.0.clone()),
            ..Header::new(Algorithm::EdDSA)
        };
        jsonwebtoken::encode(&header, &claims, &keys.signing.1)
            .expect("strings and numbers are JSON, and the key is an Ed25519 key")
    }

    /// Whom the token speaks for; `None` where anything about it is wrong.
    pub(crate) fn check(&self, token: &str, clock: &dyn Clock) -> Option<LinkClaims> {
        let header = jsonwebtoken::decode_header(token).ok()?;
        if header.typ.as_deref() != Some(TYPE) {
            return None;
        }
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let signer = (keys.verifying.iter()).find(|key| header.kid.as_ref() == Some(&key.kid))?;
        if signer.until.is_some_and(|until| until <= clock.now()) {
            return None;
        }
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_audience(&[&self.audience]);
        validation.set_issuer(&["gantry"]);
        validation.set_required_spec_claims(&["exp", "nbf", "aud", "iss", "sub"]);
        // The library asks the system's clock; ours is passed in, and is asked below.
        validation.validate_exp = false;
        let claims = jsonwebtoken::decode::<Claims>(token, &signer.key, &validation)
            .ok()?
            .claims;
        let now = clock.now().as_seconds();
        (claims.nbf <= now && now < claims.exp).then_some(LinkClaims {
            tenant: claims.tenant,
            runner: claims.sub,
            key: claims.cnf.key_sha256,
            join_state: claims.join_state,
        })
    }
}

impl TokenKeys {
    fn of(keys: &LinkKeys) -> Self {
        let LinkKeys { newest, previous } = keys;
        let verifying = |key: &SigningKey, until| Verifying {
            kid: kid(key),
            key: DecodingKey::from_ed_der(&key.public()),
            until,
        };
        let before = previous.iter();
        let before = before.map(|(key, until)| verifying(key, Some(*until)));
        Self {
            signing: (kid(newest), EncodingKey::from_ed_der(newest.pkcs8())),
            verifying: [verifying(newest, None)]
                .into_iter()
                .chain(before)
                .collect(),
        }
    }
}

fn kid(key: &SigningKey) -> String {
    Digest::of(&key.public()).to_string()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shared_types::{Timestamp, clock::ManualClock, entropy::SeededEntropy};

    use super::*;

    fn setting() -> (SeededEntropy, ManualClock, LinkClaims) {
        let who = LinkClaims {
            tenant: TenantId::from_u128(1),
            runner: RunnerId::from_u128(2),
            key: Digest::of(b"key"),
            join_state: 3,
        };
        (
            SeededEntropy::new(1),
            ManualClock::at(Timestamp::from_micros(1_789_000_000_000_000)),
            who,
        )
    }

    fn one(entropy: &SeededEntropy) -> LinkKeys {
        LinkKeys::new(SigningKey::generate(entropy))
    }

    #[test]
    fn a_token_holds_for_ten_minutes_at_its_own_audience() {
        let (entropy, clock, who) = setting();
        let key = one(&entropy);
        let tokens = LinkTokens::new("here".to_owned(), &key);
        let token = tokens.issue(&who, &clock);
        assert_eq!(tokens.check(&token, &clock), Some(who));
        let elsewhere = LinkTokens::new("there".to_owned(), &key);
        assert_eq!(elsewhere.check(&token, &clock), None);
        clock.advance(LINK_TOKEN_FOR);
        assert_eq!(tokens.check(&token, &clock), None);
    }

    #[test]
    fn after_a_rotation_the_old_key_verifies_until_its_time_is_over_and_a_foreign_one_never_does() {
        let (entropy, clock, who) = setting();
        let old = one(&entropy);
        let tokens = LinkTokens::new("here".to_owned(), &old);
        let token = tokens.issue(&who, &clock);
        let until = clock.now().after(Duration::from_secs(60));
        let rotated = LinkKeys {
            previous: Some((old.newest, until)),
            ..one(&entropy)
        };
        assert_eq!(tokens.use_keys(&rotated), SignedUntilNow::Accepted);
        assert_eq!(tokens.check(&token, &clock), Some(who.clone()));
        clock.advance(Duration::from_secs(60));
        assert_eq!(tokens.check(&token, &clock), None);
        let newer = tokens.issue(&who, &clock);
        assert_eq!(tokens.check(&newer, &clock), Some(who));
        assert_eq!(tokens.use_keys(&one(&entropy)), SignedUntilNow::Refused);
        assert_eq!(tokens.check(&newer, &clock), None);
    }

    #[test]
    fn an_altered_token_and_one_without_a_signature_are_refused() {
        let (entropy, clock, who) = setting();
        let tokens = LinkTokens::new("here".to_owned(), &one(&entropy));
        let token = tokens.issue(&who, &clock);
        let parts: Vec<_> = token.split('.').collect();
        // {"typ":"gantry-link+jwt","alg":"none"}
        let none = "eyJ0eXAiOiJnYW50cnktbGluaytqd3QiLCJhbGciOiJub25lIn0";
        assert_eq!(tokens.check(&format!("{none}.{}.", parts[1]), &clock), None);
        assert_eq!(
            tokens.check(&format!("{}.{}.{}", parts[0], parts[1], "AAAA"), &clock),
            None
        );
        assert_eq!(tokens.check("", &clock), None);
    }
}
