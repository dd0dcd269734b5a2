//! Who may come in: the first owner, one-time codes, sign-ins and API keys.

use std::{net::IpAddr, sync::Arc, time::Duration};

use server_store::{
    AttemptKind, Bootstrap, CredentialKind, CredentialRow, NewCredential, NewSignInCode, NewTenant,
    NewUser, RedeemRefusal, Store, StoreError, UserRow,
};
use shared_types::{
    Clock, CredentialId, Digest, Entropy, TenantId, Timestamp, Token, TokenKind, UserId,
    limits::MAX_NAME_BYTES,
};

use crate::{AppError, OpContext};

/// How long a one-time code can be used.
pub const SIGN_IN_CODE_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Failed sign-ins that one address may make in [`ATTEMPTS_WITHIN`].
const ATTEMPTS: u64 = 10;
/// See [`ATTEMPTS`].
const ATTEMPTS_WITHIN: Duration = Duration::from_secs(60);
/// Letters of a code: 50 bits, so that guessing within the limit of attempts is hopeless.
const CODE_LETTERS: usize = 10;
/// Crockford's base32: no letter that is mistaken for another.
const CODE_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A person or service account.
pub type User = UserRow;

/// A key or sign-in, without its secret.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its id.
    pub id: CredentialId,
    /// What it is called.
    pub name: String,
    /// What it is.
    pub kind: CredentialKind,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Who asks, and where.
#[derive(Debug, Clone)]
pub struct Me {
    /// The person.
    pub user: User,
    /// The tenant's name.
    pub tenant: String,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Access {
    store: Store,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl Access {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self {
            store,
            clock,
            entropy,
        }
    }

    /// The first tenant and its owner; made where there is none yet.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn bootstrap(&self) -> Result<Bootstrap, AppError> {
        let tenant = NewTenant {
            id: TenantId::generate(&*self.clock, &*self.entropy),
            name: "home".to_owned(),
        };
        let owner = NewUser {
            id: UserId::generate(&*self.clock, &*self.entropy),
            name: "owner".to_owned(),
        };
        Ok(self
            .store
            .bootstrap(&tenant, &owner, self.clock.now())
            .await?)
    }

    /// Whether this user can sign in already, so that no code need be printed.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn has_signed_in(&self, tenant: TenantId, user: UserId) -> Result<bool, AppError> {
        Ok(!self.store.list_credentials(tenant, user).await?.is_empty())
    }

    /// A new one-time code for the user; an older one is worth nothing from then on.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn issue_code(&self, tenant: TenantId, user: UserId) -> Result<String, AppError> {
        let mut random = [0; CODE_LETTERS];
        self.entropy.fill(&mut random);
        let letters: String = random
            .iter()
            .map(|byte| char::from(CODE_ALPHABET[usize::from(byte % 32)]))
            .collect();
        let now = self.clock.now();
        let code = NewSignInCode {
            hash: code_hash(&letters),
            expires_at: now.after(SIGN_IN_CODE_FOR),
        };
        self.store
            .issue_sign_in_code(tenant, user, &code, now)
            .await?;
        Ok(format!(
            "{}-{}",
            &letters[..CODE_LETTERS / 2],
            &letters[CODE_LETTERS / 2..]
        ))
    }

    /// Exchanges a code for a token. Failures count against the address.
    ///
    /// # Errors
    /// If the code is wrong, spent or expired, or the address has failed too often.
    pub async fn sign_in(
        &self,
        code: &str,
        device: &str,
        address: IpAddr,
    ) -> Result<(Token, User), AppError> {
        let now = self.clock.now();
        let address = address.to_string();
        let window = Timestamp::from_micros(now.as_micros() - ATTEMPTS_WITHIN.as_micros() as i64);
        if self
            .store
            .count_attempts(AttemptKind::SignIn, &address, window)
            .await?
            >= ATTEMPTS
        {
            return Err(AppError::TooMany {
                retry_after_s: ATTEMPTS_WITHIN.as_secs(),
            });
        }
        let token = Token::generate(TokenKind::SignIn, &*self.entropy);
        let credential = self.credential(CredentialKind::SignIn, device, &token)?;
        match self
            .store
            .redeem_sign_in_code(&code_hash(code), &credential, now)
            .await
        {
            Ok((user, _)) => Ok((token, user)),
            Err(RedeemRefusal::Store(error)) => Err(error.into()),
            Err(refusal) => {
                self.store
                    .record_attempt(AttemptKind::SignIn, &address, now)
                    .await?;
                Err(AppError::Unauthenticated(match refusal {
                    RedeemRefusal::Spent => {
                        "this code was used already; for a new one run: gantry-server sign-in-code"
                    }
                    RedeemRefusal::Expired => {
                        "this code has expired; for a new one run: gantry-server sign-in-code"
                    }
                    _ => "this code is wrong; for a new one run: gantry-server sign-in-code",
                }))
            }
        }
    }

    /// The context of whoever holds this bearer token.
    ///
    /// # Errors
    /// If the token is not one, is not known, or was revoked: the three are not told apart.
    pub async fn authenticate(&self, bearer: &str) -> Result<OpContext, AppError> {
        let token: Token = bearer.parse()?;
        let kind = match token.kind() {
            TokenKind::ApiKey => CredentialKind::ApiKey,
            TokenKind::SignIn => CredentialKind::SignIn,
            TokenKind::Join => {
                return Err(AppError::Unauthenticated(
                    "a join token enrols a runner; it does not sign in",
                ));
            }
        };
        let found = self
            .store
            .credential_by_hash(&token.hash())
            .await?
            .filter(|row| row.kind == kind);
        let row = found.ok_or(AppError::Unauthenticated(
            "the credential is not valid; sign in again",
        ))?;
        Ok(OpContext {
            tenant: row.tenant,
            user: row.user,
            credential: row.id,
        })
    }

    /// Whether the credential of a context has not been revoked since. What lives longer than a
    /// request asks from time to time.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn holds(&self, ctx: &OpContext) -> Result<bool, AppError> {
        self.is_own(ctx, ctx.credential).await
    }

    /// Who asks.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn me(&self, ctx: &OpContext) -> Result<Me, AppError> {
        let user = self.store.user(ctx.tenant, ctx.user).await?;
        let tenant = self.store.tenant(ctx.tenant).await?.name;
        Ok(Me { user, tenant })
    }

    /// The user's keys and sign-ins, the newest first.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn keys(&self, ctx: &OpContext) -> Result<Vec<Key>, AppError> {
        Ok(self
            .store
            .list_credentials(ctx.tenant, ctx.user)
            .await?
            .into_iter()
            .map(key)
            .collect())
    }

    /// Makes an API key.
    ///
    /// # Errors
    /// If the name is empty or too long.
    pub async fn create_key(&self, ctx: &OpContext, name: &str) -> Result<(Token, Key), AppError> {
        let token = Token::generate(TokenKind::ApiKey, &*self.entropy);
        let credential = self.credential(CredentialKind::ApiKey, name, &token)?;
        let row = self
            .store
            .insert_credential(ctx.tenant, ctx.user, &credential, self.clock.now())
            .await?;
        Ok((token, key(row)))
    }

    /// Ends one of the user's own keys or sign-ins: for requests at once, for a WebSocket that is
    /// open within five seconds.
    ///
    /// # Errors
    /// If the user has no such key.
    pub async fn revoke_key(&self, ctx: &OpContext, id: CredentialId) -> Result<(), AppError> {
        if !self.is_own(ctx, id).await? {
            return Err(AppError::NotFound("key"));
        }
        Ok(self
            .store
            .revoke_credential(ctx.tenant, id, ctx.user, self.clock.now())
            .await?)
    }

    async fn is_own(&self, ctx: &OpContext, id: CredentialId) -> Result<bool, AppError> {
        match self.store.credential(ctx.tenant, id).await {
            Ok(row) => Ok(row.user == ctx.user),
            Err(StoreError::NotFound) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn credential(
        &self,
        kind: CredentialKind,
        name: &str,
        token: &Token,
    ) -> Result<NewCredential, AppError> {
        let name = name.trim();
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
            return Err(AppError::Invalid(format!(
                "a name has 1 to {MAX_NAME_BYTES} printable bytes"
            )));
        }
        Ok(NewCredential {
            id: CredentialId::generate(&*self.clock, &*self.entropy),
            kind,
            name: name.to_owned(),
            hash: token.hash(),
        })
    }
}

fn key(row: CredentialRow) -> Key {
    Key {
        id: row.id,
        name: row.name,
        kind: row.kind,
        created_at: row.created_at,
    }
}

/// The digest of a code however a person types it: case and dashes do not matter.
fn code_hash(code: &str) -> Digest {
    let letters: String = code
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    Digest::of(letters.as_bytes())
}
