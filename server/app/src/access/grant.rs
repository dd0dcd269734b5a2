//! Grants: a person lets a program in, and the program gets a key of that person (OAuth 2.1, authorization code with
//! PKCE).
//!
//! A grant is kept as the answer to a request whose key is made of its code, and a second such key marks that the code was
//! used. So a code is good once, on whichever server of the database it is shown.

use std::{net::IpAddr, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use server_store::{KnownRequest, RequestAnswer, RequestKey, Scope, Scopes};
use shared_types::{CredentialId, Digest, TenantId, Timestamp, Token, UserId};

use super::{ATTEMPTS_WITHIN, Access, Key, KeyTerms, SIGN_IN};
use crate::{
    AppError, OpContext,
    refusals::{Refusal, place},
    rights::Action,
};

/// The time for which a code is good.
const CODE_FOR: Duration = Duration::from_secs(60);

/// The time for which the key of a program is good. Then its person is asked again.
const KEY_FOR: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Longest code that is looked at, in bytes.
const MAX_CODE_BYTES: usize = 256;

/// The scopes that a program can be given: it manages nothing,
/// runners included.
const FOR_PROGRAMS: [Scope; 3] = [Scope::Exec, Scope::Chat, Scope::Read];

/// The consent of a person to a program.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The program's id.
    pub client: String,
    /// The program's own name, for lists of keys.
    pub name: String,
    /// The address to which the code is sent.
    pub redirect: String,
    /// The SHA-256 of the secret that only the program has, in base64url (RFC 7636, S256).
    pub challenge: String,
    /// The scopes of its key.
    pub scopes: Scopes,
}

/// A code, as a program shows it.
#[derive(Debug, Clone, Copy)]
pub struct ShownCode<'a> {
    /// The code.
    pub code: &'a str,
    /// The program's secret.
    pub verifier: &'a str,
    /// The program's id.
    pub client: &'a str,
    /// The address to which the code was sent.
    pub redirect: &'a str,
}

/// The key of a program.
#[derive(Debug)]
pub struct GrantedKey {
    /// The key; it is not stored.
    pub token: Token,
    /// Its entry in lists.
    pub key: Key,
    /// The time for which it is good.
    pub valid_for: Duration,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    client: String,
    name: String,
    redirect: String,
    challenge: String,
    scopes: Vec<Scope>,
    credential: CredentialId,
    until: Timestamp,
}

/// The answer to each code that is not good.
const NOT_GOOD: AppError = AppError::Unauthenticated(
    "this code is wrong, was used or has expired; have the person let the program in again",
);

impl Access {
    /// The scopes that the person may give a program.
    pub fn scopes_for_programs(&self, ctx: &OpContext) -> Vec<Scope> {
        let may = |scope: &Scope| {
            let asked = [*scope].into_iter().collect();
            self.gate.key_scopes(ctx, Some(asked)).is_ok()
        };
        FOR_PROGRAMS.into_iter().filter(may).collect()
    }

    /// Lets a program in. Returns the code by which it gets its key.
    ///
    /// # Errors
    /// If the person may not make a key with these scopes, or the store does not answer.
    pub async fn grant(&self, ctx: &OpContext, grant: Grant) -> Result<String, AppError> {
        self.gate.own(ctx, Action::MakeKey)?;
        let managing = grant
            .scopes
            .iter()
            .find(|scope| !FOR_PROGRAMS.contains(scope));
        if let Some(scope) = managing {
            let why = format!("a program is not given the scope {scope}");
            return Err(AppError::Forbidden(why.into()));
        }
        let scopes = self.gate.key_scopes(ctx, Some(grant.scopes))?;
        let mut random = [0; 32];
        self.entropy.fill(&mut random);
        let secret = BASE64_URL_SAFE_NO_PAD.encode(random);
        let code = format!("{}.{}.{secret}", ctx.tenant, ctx.user);
        let now = self.clock.now();
        let kept = Kept {
            client: grant.client,
            name: grant.name,
            redirect: grant.redirect,
            challenge: grant.challenge,
            scopes: scopes.iter().collect(),
            credential: ctx.credential,
            until: now.after(CODE_FOR),
        };
        let request = request("grant", ctx.user, &code);
        self.store
            .take_request_key(ctx.tenant, &request, now)
            .await?;
        let answer = RequestAnswer {
            status: 200,
            made: None,
            text: Some(serde_json::to_string(&kept).map_err(AppError::unavailable)?),
        };
        self.store
            .answer_request(ctx.tenant, &request, &answer)
            .await?;
        Ok(code)
    }

    /// Exchanges a code for a key of the person who let the program in. It is good once.
    ///
    /// # Errors
    /// [`AppError::Unauthenticated`] if the code is not good, or was given to another program; also if the person has
    /// signed out since, or may not give the key any more. [`AppError::TooMany`] after many such codes in a minute, as of
    /// [`Access::sign_in`].
    pub async fn redeem_grant(
        &self,
        shown: ShownCode<'_>,
        from: IpAddr,
    ) -> Result<GrantedKey, AppError> {
        let redeemed = self.redeemed(shown, from).await;
        if !matches!(redeemed, Err(AppError::Unauthenticated(_))) {
            return redeemed;
        }
        let refusal = Refusal::of_stranger(SIGN_IN, "code of a program", place(Some(from)));
        self.gate.not_let_in(refusal);
        let (hash, now) = (Digest::of(shown.code.as_bytes()), self.clock.now());
        match self.counted(&hash, from, now).await? {
            true => redeemed,
            false => Err(AppError::TooMany {
                retry_after_s: ATTEMPTS_WITHIN.as_secs(),
            }),
        }
    }

    async fn redeemed(&self, shown: ShownCode<'_>, from: IpAddr) -> Result<GrantedKey, AppError> {
        let (tenant, user) = of_code(shown.code).ok_or(NOT_GOOD)?;
        let kept = self.kept_grant(tenant, user, shown.code).await?;
        let verifier = Digest::of(shown.verifier.as_bytes());
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(verifier.as_bytes());
        let is_good = self.clock.now() < kept.until
            && kept.client == shown.client
            && kept.redirect == shown.redirect
            && Digest::of(kept.challenge.as_bytes()) == Digest::of(challenge.as_bytes());
        if !is_good {
            return Err(NOT_GOOD);
        }
        let used = request("used grant", user, shown.code);
        let now = self.clock.now();
        match self.store.take_request_key(tenant, &used, now).await? {
            KnownRequest::New => {}
            _ => return Err(NOT_GOOD),
        }
        let row = self.store.subject(tenant, kept.credential).await?;
        let row = row.filter(|row| row.user == user).ok_or(NOT_GOOD)?;
        let ctx = self.context(&row, Some(from))?;
        let terms = KeyTerms {
            name: kept.name,
            scopes: Some(kept.scopes.into_iter().collect()),
            valid_for: Some(KEY_FOR),
            from: None,
        };
        let (token, key) = self.create_key(&ctx, &terms).await?;
        Ok(GrantedKey {
            token,
            key,
            valid_for: KEY_FOR,
        })
    }

    async fn kept_grant(
        &self,
        tenant: TenantId,
        user: UserId,
        code: &str,
    ) -> Result<Kept, AppError> {
        let request = request("grant", user, code);
        let now = self.clock.now();
        let known = self.store.take_request_key(tenant, &request, now).await;
        match known.map_err(|_| NOT_GOOD)? {
            KnownRequest::Answered(RequestAnswer {
                text: Some(text), ..
            }) => serde_json::from_str(&text).map_err(AppError::unavailable),
            KnownRequest::New => {
                self.store.forget_request_key(tenant, &request).await?;
                Err(NOT_GOOD)
            }
            _ => Err(NOT_GOOD),
        }
    }
}

fn of_code(code: &str) -> Option<(TenantId, UserId)> {
    let mut parts = Some(code)
        .filter(|code| code.len() <= MAX_CODE_BYTES)?
        .split('.');
    let tenant = parts.next()?.parse().ok()?;
    let user = parts.next()?.parse().ok()?;
    (parts.next().is_some() && parts.next().is_none()).then_some((tenant, user))
}

fn request(of: &str, user: UserId, code: &str) -> RequestKey {
    let digest = Digest::of(code.as_bytes());
    RequestKey {
        user,
        key: format!("oauth {of} {digest}"),
        digest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

    fn grant() -> Grant {
        Grant {
            client: "a".to_owned(),
            name: "Claude Code".to_owned(),
            redirect: "http://127.0.0.1:1/callback".to_owned(),
            // RFC 7636, appendix B.
            challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned(),
            scopes: [Scope::Exec].into_iter().collect(),
        }
    }

    #[tokio::test]
    async fn a_code_becomes_one_key_of_its_person_for_the_program_that_has_the_secret() {
        let fixture = Fixture::practice().await;
        let access = &fixture.app.access;
        let code = access.grant(&fixture.ctx, grant()).await.expect("a code");
        let shown = ShownCode {
            code: &code,
            verifier: VERIFIER,
            client: "a",
            redirect: "http://127.0.0.1:1/callback",
        };
        let other = code.replace('.', ".x");
        for wrong in [
            ShownCode {
                verifier: "x",
                ..shown
            },
            ShownCode {
                client: "b",
                ..shown
            },
            ShownCode {
                redirect: "http://127.0.0.1:2/callback",
                ..shown
            },
            ShownCode {
                code: &other,
                ..shown
            },
            ShownCode { code: "", ..shown },
        ] {
            let refused = access.redeem_grant(wrong, HERE).await;
            assert!(
                matches!(refused, Err(AppError::Unauthenticated(_))),
                "{wrong:?}"
            );
        }
        let granted = access.redeem_grant(shown, HERE).await.expect("a key");
        assert_eq!(granted.key.name, "Claude Code");
        assert_eq!(granted.key.scopes, [Scope::Exec].into_iter().collect());
        let ctx = access.authenticate(&granted.token.reveal(), None).await;
        assert_eq!(ctx.expect("it holds").user, fixture.ctx.user);
        let again = access.redeem_grant(shown, HERE).await;
        assert!(matches!(again, Err(AppError::Unauthenticated(_))));
        let managing = Grant {
            scopes: [Scope::Admin].into_iter().collect(),
            ..grant()
        };
        assert!(access.grant(&fixture.ctx, managing).await.is_err());
    }

    #[tokio::test]
    async fn after_many_wrong_codes_an_address_is_told_to_wait_and_a_good_code_is_taken_still() {
        let fixture = Fixture::practice().await;
        let access = &fixture.app.access;
        let good = access.grant(&fixture.ctx, grant()).await.expect("a code");
        let redirect = "http://127.0.0.1:1/callback";
        let unknown = ShownCode {
            code: "wrong",
            verifier: VERIFIER,
            client: "a",
            redirect,
        };
        for number in 0..10 {
            let wrong = format!("{good}{number}");
            let shown = ShownCode {
                code: &wrong,
                ..unknown
            };
            let refused = access.redeem_grant(shown, HERE).await;
            assert!(matches!(refused, Err(AppError::Unauthenticated(_))));
        }
        let refused = access.redeem_grant(unknown, HERE).await;
        assert!(matches!(refused, Err(AppError::TooMany { .. })));
        let shown = ShownCode {
            code: &good,
            ..unknown
        };
        assert!(access.redeem_grant(shown, HERE).await.is_ok());
    }
}
