//! The short-lived access token of a runner: an EdDSA JWT bound to the runner's key
//! (docs/internals/contracts.md#b3).
//!
//! Algorithm, type, audience and times are fixed and checked here; the bearer alone is useless,
//! because a link also needs a signature by the key that the token names.

use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use shared_types::{Clock, Digest, RunnerId, TenantId};

use crate::keys::SigningKey;

/// How long a token is good for.
pub(crate) const LINK_TOKEN_FOR: Duration = Duration::from_secs(600);

/// How far the clocks of two replicas may differ.
const CLOCK_SKEW_S: i64 = 5;

const TYPE: &str = "gantry-link+jwt";

/// Issues and checks link tokens.
pub(crate) struct LinkTokens {
    audience: String,
    signing: (String, EncodingKey),
    verifying: Vec<(String, DecodingKey)>,
}

/// Who a link token speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkClaims {
    /// The tenant that the runner belongs to.
    pub tenant: TenantId,
    /// The runner.
    pub runner: RunnerId,
    /// SHA-256 of the public key that has to sign the link's challenge.
    pub key: Digest,
    /// What marks the link as newer than those of copies; see `server_store::JoinState`.
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
    /// Tokens for `audience`, signed by the first key and accepted from any of them.
    ///
    /// # Panics
    /// Without a key.
    pub(crate) fn new(audience: String, keys: &[SigningKey]) -> Self {
        let first = keys.first().expect("one key signs");
        Self {
            audience,
            signing: (kid(first), EncodingKey::from_ed_der(first.pkcs8())),
            verifying: keys
                .iter()
                .map(|key| (kid(key), DecodingKey::from_ed_der(&key.public())))
                .collect(),
        }
    }

    /// What tokens are for.
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
        let header = Header {
            typ: Some(TYPE.to_owned()),
            kid: Some(self.signing.0.clone()),
            ..Header::new(Algorithm::EdDSA)
        };
        jsonwebtoken::encode(&header, &claims, &self.signing.1)
            .expect("strings and numbers are JSON, and the key is an Ed25519 key")
    }

    /// Whom the token speaks for; `None` where anything about it is wrong.
    pub(crate) fn check(&self, token: &str, clock: &dyn Clock) -> Option<LinkClaims> {
        let header = jsonwebtoken::decode_header(token).ok()?;
        if header.typ.as_deref() != Some(TYPE) {
            return None;
        }
        let (_, key) = self
            .verifying
            .iter()
            .find(|(kid, _)| header.kid.as_ref() == Some(kid))?;
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_audience(&[&self.audience]);
        validation.set_issuer(&["gantry"]);
        validation.set_required_spec_claims(&["exp", "nbf", "aud", "iss", "sub"]);
        // The library asks the system's clock; ours is passed in, and is asked below.
        validation.validate_exp = false;
        let claims = jsonwebtoken::decode::<Claims>(token, key, &validation)
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

fn kid(key: &SigningKey) -> String {
    Digest::of(&key.public()).to_string()[..16].to_owned()
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_token_holds_for_ten_minutes_at_its_own_audience() {
        let (entropy, clock, who) = setting();
        let key = SigningKey::generate(&entropy);
        let tokens = LinkTokens::new("here".to_owned(), std::slice::from_ref(&key));
        let token = tokens.issue(&who, &clock);
        assert_eq!(tokens.check(&token, &clock), Some(who));
        assert_eq!(
            LinkTokens::new("there".to_owned(), &[key]).check(&token, &clock),
            None
        );
        clock.advance(LINK_TOKEN_FOR);
        assert_eq!(tokens.check(&token, &clock), None);
    }

    #[test]
    fn after_a_rotation_the_old_key_still_verifies_and_a_foreign_one_never_does() {
        let (entropy, clock, who) = setting();
        let (old, new, foreign) = (
            SigningKey::generate(&entropy),
            SigningKey::generate(&entropy),
            SigningKey::generate(&entropy),
        );
        let token =
            LinkTokens::new("here".to_owned(), std::slice::from_ref(&old)).issue(&who, &clock);
        assert_eq!(
            LinkTokens::new("here".to_owned(), &[new, old]).check(&token, &clock),
            Some(who)
        );
        assert_eq!(
            LinkTokens::new("here".to_owned(), &[foreign]).check(&token, &clock),
            None
        );
    }

    #[test]
    fn an_altered_token_and_one_without_a_signature_are_refused() {
        let (entropy, clock, who) = setting();
        let tokens = LinkTokens::new("here".to_owned(), &[SigningKey::generate(&entropy)]);
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
