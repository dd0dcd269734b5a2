//! Sign-in: the first owner, one-time codes, sign-ins of terminals and browsers, and keys.
//!
//! A sign-in code carries so many random bits that guessing is hopeless at any rate that a server can
//! answer. At 100,000 tries a second, for all of the 24 hours that a code is good, one guess in a
//! hundred million such days is right. So a right code signs in after any number of wrong tries, from
//! the same address or another, and wrong codes lock no user out. The limits bound the answer to a
//! *wrong* code: within them it is the reason (wrong, used, expired). Beyond them every wrong code gets
//! the same answer: too many tries.

use std::{net::IpAddr, sync::Arc, time::Duration};

use server_store::{
    Actor, AttemptKind, AuditOrigin, Bootstrap, CredentialKind, NewCredential, NewSignInCode,
    NewTenant, NewUser, RedeemRefusal, RunnerInUse, SettingLayer, Store, SubjectRow, UserRow,
};
use shared_types::{
    AddressRange, Clock, CredentialId, Digest, Entropy, RunnerId, TenantId, Timestamp, Token,
    TokenKind, UserId, clean::is_clean_line, limits::MAX_NAME_BYTES,
};

use tokio::sync::Notify;

mod browser;
mod grant;
mod key;
mod last_use;
mod rights_changes;
mod ticket;

pub use self::{
    browser::{BrowserSession, SignedInBrowser},
    grant::{Grant, GrantedKey, ShownCode},
    key::{Key, KeyTerms},
    rights_changes::RightsWatch,
    ticket::StreamTicket,
};

use self::last_use::LastUse;
pub(crate) use self::rights_changes::RightsChanges;
use crate::{
    AppError, OpContext, Parts,
    allowance::Allowance,
    gate::Gate,
    refusals::{Refusal, place},
    rights::Action,
};

/// The time for which a one-time code can be used.
pub const SIGN_IN_CODE_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Wrong codes that are told what is wrong with them in [`ATTEMPTS_WITHIN`]: of one address, and of
/// one code from all addresses.
const ATTEMPTS: u64 = 10;
/// See [`ATTEMPTS`].
const ATTEMPTS_WITHIN: Duration = Duration::from_secs(60);
/// Letters of a code: 60 bits, because no limit stands between a guess and the code.
const CODE_LETTERS: usize = 12;
/// Letters of a code between two dashes.
const CODE_GROUP: usize = 4;
/// Hexadecimal digits of a code's digest by which tries of it are counted: as many as are no other
/// code's by chance.
const COUNTED_DIGITS: usize = 32;
/// Crockford's base32: no letter that is mistaken for another.
const CODE_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The audit log's word for a refused sign-in.
const SIGN_IN: &str = "sign_in.refused";
/// The audit log's word for a refused credential.
const CREDENTIAL: &str = "credential.refused";

/// A person or service account.
pub type User = UserRow;

/// The caller's user, tenant and active runner.
#[derive(Debug, Clone)]
pub struct Me {
    /// The person.
    pub user: User,
    /// The tenant's name.
    pub tenant: String,
    /// The runner on which the person works: by choice, else the tenant's default.
    pub active_runner: Option<ActiveRunner>,
}

/// The runner on which a person works.
#[derive(Debug, Clone)]
pub struct ActiveRunner {
    /// Its id.
    pub id: RunnerId,
    /// Its name.
    pub name: String,
    /// The workspace that the person chose with it. If absent, the runner's first one.
    pub workspace: Option<String>,
    /// True if it was removed. It stays the choice: another runner of its name does not replace it.
    pub removed: bool,
    /// True if it is the tenant's default, because the person has chosen none.
    pub is_default: bool,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Access {
    store: Store,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    allowance: Allowance,
    gate: Gate,
    used: LastUse,
    /// A credential was revoked.
    revoked: Arc<Notify>,
    rights: RightsChanges,
}

impl Access {
    pub(crate) fn of(
        parts: &Parts,
        gate: &Gate,
        allowance: &Allowance,
        rights: &RightsChanges,
    ) -> Self {
        let (clock, entropy) = (parts.clock.clone(), parts.entropy.clone());
        let (store, gate) = (parts.store.clone(), gate.clone());
        Self {
            rights: rights.clone(),
            ..Self::new(store, gate, clock, entropy, allowance.clone())
        }
    }

    pub(crate) fn new(
        store: Store,
        gate: Gate,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        allowance: Allowance,
    ) -> Self {
        Self {
            gate,
            used: LastUse::default(),
            revoked: Arc::default(),
            rights: RightsChanges::default(),
            store,
            clock,
            entropy,
            allowance,
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

    /// Tells if this user can sign in already, so that the server need not print a code.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn has_signed_in(&self, tenant: TenantId, user: UserId) -> Result<bool, AppError> {
        Ok(!self
            .store
            .list_credentials(tenant, user, 1)
            .await?
            .is_empty())
    }

    /// A new one-time code for the user; an older one is worth nothing from then on.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn issue_code(&self, tenant: TenantId, user: UserId) -> Result<String, AppError> {
        let (text, code) = self.new_code(SIGN_IN_CODE_FOR);
        self.store
            .issue_sign_in_code(tenant, user, &code, self.clock.now())
            .await?;
        Ok(text)
    }

    /// A new one-time code as a person types it, and as it is stored.
    pub(crate) fn new_code(&self, valid_for: Duration) -> (String, NewSignInCode) {
        let mut random = [0; CODE_LETTERS];
        self.entropy.fill(&mut random);
        let letters: String = random
            .iter()
            .map(|byte| char::from(CODE_ALPHABET[usize::from(byte % 32)]))
            .collect();
        let code = NewSignInCode {
            hash: code_hash(&letters),
            expires_at: self.clock.now().after(valid_for),
        };
        let groups: Vec<&str> = (0..CODE_LETTERS / CODE_GROUP)
            .map(|group| &letters[group * CODE_GROUP..][..CODE_GROUP])
            .collect();
        (groups.join("-"), code)
    }

    /// Exchanges a code for a terminal's token. A wrong code counts against the address and against the code.
    /// A right code signs in after any number of wrong tries.
    ///
    /// # Errors
    /// If the code is wrong, spent or expired. Beyond the limits the error does not tell which.
    pub async fn sign_in(
        &self,
        code: &str,
        device: &str,
        address: IpAddr,
    ) -> Result<(Token, User), AppError> {
        let token = Token::generate(TokenKind::SignIn, &*self.entropy);
        let made = self.credential(CredentialKind::SignIn, device, &token)?;
        let user = self.redeem(code, made, address).await?;
        Ok((token, user))
    }

    /// Exchanges a code for this credential.
    async fn redeem(
        &self,
        code: &str,
        made: NewCredential,
        address: IpAddr,
    ) -> Result<User, AppError> {
        let (now, hash) = (self.clock.now(), code_hash(code));
        let credential = NewCredential {
            origin: AuditOrigin {
                credential: Some(made.id),
                address: Some(address),
            },
            ..made
        };
        let redeemed = self.store.redeem_sign_in_code(&hash, &credential, now);
        let (reason, refusal) = match redeemed.await {
            Ok((user, _)) => return Ok(user),
            Err(RedeemRefusal::Store(error)) => return Err(error.into()),
            Err(RedeemRefusal::Unknown) => (
                "unknown code",
                "this code is wrong, or a newer one has taken its place; ask the person who invites you for a new one, or run on the server's machine: gantry-server sign-in-code",
            ),
            Err(RedeemRefusal::Spent) => (
                "spent code",
                "this code was used already; ask the person who invites you for a new one, or run on the server's machine: gantry-server sign-in-code",
            ),
            Err(RedeemRefusal::Expired) => (
                "expired code",
                "this code has expired; ask the person who invites you for a new one, or run on the server's machine: gantry-server sign-in-code",
            ),
        };
        let from = place(Some(address));
        self.gate
            .not_let_in(Refusal::of_stranger(SIGN_IN, reason, from));
        match self.counted(&hash, address, now).await? {
            true => Err(AppError::Unauthenticated(refusal)),
            false => Err(AppError::TooMany {
                retry_after_s: ATTEMPTS_WITHIN.as_secs(),
            }),
        }
    }

    /// Counts a wrong code; answers whether it is within the limits, so that it may be told why.
    async fn counted(
        &self,
        hash: &Digest,
        address: IpAddr,
        now: Timestamp,
    ) -> Result<bool, AppError> {
        let within = i64::try_from(ATTEMPTS_WITHIN.as_micros()).unwrap_or(i64::MAX);
        let since = Timestamp::from_micros(now.as_micros().saturating_sub(within));
        let (address, code) = (place(Some(address)), hash.to_string());
        let counted = [
            (AttemptKind::SignIn, address.as_str()),
            (AttemptKind::SignInCode, &code[..COUNTED_DIGITS]),
        ];
        let within = self
            .store
            .record_attempts_within(&counted, since, ATTEMPTS, now);
        Ok(within.await?)
    }

    /// The context of the caller that sends this bearer token.
    ///
    /// # Errors
    /// If the token is malformed, unknown or revoked. The error does not tell which.
    pub async fn authenticate(
        &self,
        bearer: &str,
        from: Option<IpAddr>,
    ) -> Result<OpContext, AppError> {
        let token: Token = bearer.parse()?;
        let kind = match token.kind() {
            TokenKind::ApiKey => CredentialKind::ApiKey,
            TokenKind::SignIn => CredentialKind::SignIn,
            TokenKind::Join => {
                return Err(AppError::Unauthenticated(
                    "a join token enrols a runner; it does not sign in",
                ));
            }
            TokenKind::Share => {
                return Err(AppError::Unauthenticated(
                    "a link to a session reads that session alone; it does not sign in",
                ));
            }
            TokenKind::Browser => {
                return Err(AppError::Unauthenticated(
                    "a browser's cookie is good as a cookie alone; a program needs a key: gantry keys add NAME",
                ));
            }
            TokenKind::Ticket => {
                return Err(AppError::Unauthenticated(
                    "a ticket opens one stream, as ?ticket= behind its address; it does not sign in",
                ));
            }
        };
        let found = self
            .store
            .subject_by_hash(&token.hash())
            .await?
            .filter(|row| row.kind == kind);
        let row = found.ok_or(AppError::Unauthenticated(
            "the credential is not valid; sign in again",
        ))?;
        let ctx = self.let_in(&row, from)?;
        self.used.note(&row, from, &self.store, &*self.clock);
        Ok(ctx)
    }

    /// The context as it is now: what lives longer than a request asks from time to time. Nothing
    /// where the credential was revoked or has expired, or its user was removed.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn renewed(&self, ctx: &OpContext) -> Result<Option<OpContext>, AppError> {
        let row = self.store.subject(ctx.tenant, ctx.credential).await?;
        Ok(row.and_then(|row| self.context(&row, ctx.from).ok()))
    }

    /// Waits until a credential was revoked here since the last time.
    pub(crate) async fn until_revoked(&self) {
        self.revoked.notified().await;
    }

    /// Checks that the caller may read the metrics of the whole server. The operator's tenant, the first
    /// one, may.
    ///
    /// # Errors
    /// If the caller may not.
    pub async fn read_metrics(&self, ctx: &OpContext) -> Result<(), AppError> {
        self.gate.own(ctx, Action::ReadMetrics)?;
        let first = self.store.first_owner().await?;
        match first.is_some_and(|(operator, _)| operator == ctx.tenant) {
            true => Ok(()),
            false => Err(AppError::Forbidden(
                "the metrics tell of the whole server, and are its operator's: ask for them to be sent to you"
                    .into(),
            )),
        }
    }

    /// Checks that the caller may do an action that concerns no object.
    ///
    /// # Errors
    /// If the caller may not.
    pub fn require(&self, ctx: &OpContext, action: Action) -> Result<(), AppError> {
        self.gate.own(ctx, action)
    }

    /// True if the caller may do an action that concerns no object. For doors that show less otherwise.
    pub fn may(&self, ctx: &OpContext, action: Action) -> bool {
        self.gate.may(ctx, action)
    }

    /// The context of this credential. If it does not hold, records that in the audit log.
    fn let_in(&self, row: &SubjectRow, from: Option<IpAddr>) -> Result<OpContext, AppError> {
        self.context(row, from).inspect_err(|_| {
            let has_expired = row.expires_at.is_some_and(|at| at <= self.clock.now());
            let reason = match has_expired || row.kind == CredentialKind::Browser {
                true => "expired",
                false => "not for this address",
            };
            self.gate.not_let_in(Refusal {
                tenant: Some(row.tenant),
                actor: Actor::User(row.user),
                credential: Some(row.credential),
                subject: row.credential.to_string(),
                ..Refusal::of_stranger(CREDENTIAL, reason, place(from))
            });
        })
    }

    fn context(&self, row: &SubjectRow, from: Option<IpAddr>) -> Result<OpContext, AppError> {
        if row.kind == CredentialKind::Browser && self.is_over(row) {
            return Err(browser::SIGNED_OUT);
        }
        if row.expires_at.is_some_and(|at| at <= self.clock.now()) {
            return Err(AppError::Unauthenticated(
                "this key has expired; make a new one: gantry keys add NAME",
            ));
        }
        let outside = |range: AddressRange| !from.is_some_and(|from| range.contains(from));
        if row.from.is_some_and(outside) {
            return Err(AppError::Unauthenticated(
                "this key is not for your address; use it where it was made for, or make another one: \
                 gantry keys add NAME --from ADDRESSES",
            ));
        }
        Ok(OpContext {
            tenant: row.tenant,
            user: row.user,
            credential: row.credential,
            role: row.role,
            scopes: row.scopes,
            from,
            trace: None,
        })
    }

    /// The caller's user, tenant and active runner.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn me(&self, ctx: &OpContext) -> Result<Me, AppError> {
        self.gate.own(ctx, Action::SeeAccount)?;
        let user = self.store.user(ctx.tenant, ctx.user).await?;
        let tenant = self.store.tenant(ctx.tenant).await?.name;
        let stored = self.store.settings(ctx.tenant, ctx.user, None).await?;
        let active_runner = match stored.runner_in_use()? {
            Some(RunnerInUse { choice, chosen_by }) => {
                let row = self.store.runner(ctx.tenant, choice.runner).await?;
                let workspace = match choice.sandbox {
                    Some(sandbox) => Some(self.store.sandbox_name(ctx.tenant, sandbox).await?),
                    None => None,
                };
                Some(ActiveRunner {
                    id: row.id,
                    name: row.name,
                    workspace,
                    removed: row.revoked_at.is_some(),
                    is_default: chosen_by == SettingLayer::Tenant,
                })
            }
            None => None,
        };
        Ok(Me {
            user,
            tenant,
            active_runner,
        })
    }

    fn credential(
        &self,
        kind: CredentialKind,
        name: &str,
        token: &Token,
    ) -> Result<NewCredential, AppError> {
        let name = name.trim();
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !is_clean_line(name) {
            return Err(AppError::Invalid(format!(
                "a name has 1 to {MAX_NAME_BYTES} bytes, on one line, and no invisible characters"
            )));
        }
        Ok(NewCredential {
            id: CredentialId::generate(&*self.clock, &*self.entropy),
            kind,
            name: name.to_owned(),
            hash: token.hash(),
            made_by: None,
            scopes: None,
            expires_at: None,
            from: None,
            origin: AuditOrigin::default(),
            maker: None,
            second_hash: token.second_hash(),
        })
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
