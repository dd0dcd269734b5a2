//! The runners of a tenant, and which one a user has chosen.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use server_records::LinkIdentity;
use server_router::{Reaper, SilenceLimits, links::Links};
use server_store::{
    By, CredentialKind, JoinTokenRow, NewJoinToken, Page, RunnerChange, RunnerRow, RunnerShares,
    SandboxRow, SharedWith, Store,
};
use shared_link::server::{Figures, PoolFacts};
use shared_types::{
    AddressRange, Clock, Entropy, Isolation, JoinTokenId, Mode, RunnerId, TenantId, Timestamp,
    Token, clean::is_clean_line, limits::is_name,
};
use tokio_util::task::TaskTracker;

use crate::{
    AppError, LinkClaims, OpContext, Parts,
    allowance::Allowance,
    gate::Gate,
    isolation::IsolationPolicy,
    pages::{and_one, cut},
    rights::Action,
    settings::Settings,
    shielded::shielded,
};

/// Longest time that a join token can be used, in seconds: 30 days, for fleets.
const JOIN_TOKEN_AT_MOST_S: u32 = 30 * 24 * 60 * 60;
/// Most runners that one token enrols.
const FLEET_AT_MOST: u32 = 1000;
/// The time for which lists show beside a runner that the database turned out to be an older copy.
const WENT_BACK_SHOWN_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The word for all people of a tenant.
const EVERYONE: &str = "everyone";

/// A runner as its users see it.
#[derive(Debug, Clone)]
pub struct Runner {
    /// Its id.
    pub id: RunnerId,
    /// Its name.
    pub name: String,
    /// True if it is connected now.
    pub online: bool,
    /// The time of its last message.
    pub last_seen: Option<Timestamp>,
    /// True if the caller works there: by choice, or because it is the tenant's default.
    pub active: bool,
    /// True if it is locked, because its folder was copied.
    pub locked: bool,
    /// The time at which it showed that the database is an older copy, within the last week.
    pub server_went_back: Option<Timestamp>,
    /// The version of the link protocol for which it is refused, where it is.
    pub refused_version: Option<u32>,
    /// True if it is removed when it leaves for good or stays away.
    pub ephemeral: bool,
    /// The name of the person who lets it drain; absent where it takes new operations.
    pub drained_by: Option<String>,
    /// The isolation that it reports of its first workspace.
    pub isolation: Isolation,
    /// True if policy believes that report.
    pub believed: bool,
    /// The name of the person who granted that, unless the operator did.
    pub trusted_by: Option<String>,
    /// Its workspaces, the first one first.
    pub sandboxes: Vec<SandboxRow>,
    /// The means by which a pool makes sandboxes.
    pub pool: Option<PoolFacts>,
    /// The most freedom of an agent by its machine's own policy, if the machine has one.
    pub ceiling: Option<Mode>,
    /// Its host's name.
    pub hostname: String,
    /// Its host's system and processor.
    pub platform: String,
    /// The version of its software.
    pub version: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The figures that it reported last, if it is linked to this server process.
    pub figures: Option<Figures>,
    /// Its owner, and the people who share it.
    pub shares: RunnerShares,
}

/// A join token that was made.
pub struct MadeJoinToken {
    /// Its id.
    pub id: JoinTokenId,
    /// The token; it is not stored and cannot be shown again.
    pub token: Token,
    /// Until when it can be used.
    pub expires_at: Timestamp,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Runners {
    store: Store,
    gate: Gate,
    settings: Settings,
    links: Links,
    join_tokens: JoinTokens,
    allowance: Allowance,
    isolation: Arc<IsolationPolicy>,
    clock: Arc<dyn Clock>,
}

impl Runners {
    pub(crate) fn of(
        parts: &Parts,
        gate: &Gate,
        links: &Links,
        allowance: &Allowance,
        settings: &Settings,
    ) -> Self {
        let (store, clock) = (parts.store.clone(), parts.clock.clone());
        let identity = parts.identity.public();
        let entropy = parts.entropy.clone();
        Self {
            join_tokens: JoinTokens::new(store.clone(), identity, clock.clone(), entropy),
            store,
            gate: gate.clone(),
            settings: settings.clone(),
            links: links.clone(),
            allowance: allowance.clone(),
            isolation: parts.isolation.clone(),
            clock,
        }
    }

    /// The runners that the user may choose, by name, after that name (empty: from the start), and
    /// whether there are more.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn list(
        &self,
        ctx: &OpContext,
        after: &str,
        limit: u32,
    ) -> Result<(Vec<Runner>, bool), AppError> {
        let rows = self.gate.runners(ctx, after, limit + 1).await?;
        let (rows, more) = cut(rows, limit);
        let active = self.in_use(ctx).await?;
        let mut runners = Vec::with_capacity(rows.len());
        for row in rows {
            runners.push(self.shown(row, active).await?);
        }
        Ok((runners, more))
    }

    /// Makes the runner of this name or id the one where the user's tools run: in its first workspace, or
    /// in the one that is named with it.
    ///
    /// # Errors
    /// If the tenant has no such runner, the runner no such workspace, or the user may not change settings.
    pub async fn choose(&self, ctx: &OpContext, name_or_id: &str) -> Result<Runner, AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        // To this door an unknown runner is not found; to the settings its name is a wrong value.
        let place = self.gate.place(ctx, Action::UseRunner, name_or_id).await?;
        let chosen = self.settings.choose_runner(ctx, None, Some(name_or_id));
        chosen.await?;
        self.as_seen(ctx, place.runner).await
    }

    /// Takes the user's choice of a runner back; the tenant's default counts then, if there is one.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn choose_none(&self, ctx: &OpContext) -> Result<(), AppError> {
        self.settings.choose_runner(ctx, None, None).await
    }

    /// Ends a runner for good: its link ends at once, and it cannot link again.
    ///
    /// # Errors
    /// If the tenant has no such runner.
    pub async fn remove(&self, ctx: &OpContext, runner: RunnerId) -> Result<(), AppError> {
        let named = runner.to_string();
        self.gate.runner(ctx, Action::RemoveRunner, &named).await?;
        let (this, tenant, by) = (self.clone(), ctx.tenant, ctx.by());
        shielded(async move { this.revoke(tenant, runner, by).await }).await
    }

    /// Renames a runner, lets it drain, or gives it work again. It keeps its id, so every choice of it stays.
    ///
    /// # Errors
    /// If the name cannot be one, another runner has it, there is no such runner, or the user may not do that.
    pub async fn change(
        &self,
        ctx: &OpContext,
        runner: RunnerId,
        change: &RunnerChange,
    ) -> Result<Runner, AppError> {
        let named = runner.to_string();
        self.gate.runner(ctx, Action::ChangeRunner, &named).await?;
        if let Some(name) = change.name.as_deref().filter(|name| !is_name(name)) {
            return Err(AppError::Invalid(no_name(name)));
        }
        let (by, now) = (ctx.by(), self.clock.now());
        let changed = self
            .store
            .change_runner(ctx.tenant, runner, change, &by, now);
        let row = changed.await.map_err(|error| match (error, &change.name) {
            (server_store::StoreError::Conflict(_), Some(name)) => {
                AppError::Conflict(name_taken(name))
            }
            (error, _) => not_found(error),
        })?;
        self.as_seen(ctx, row).await
    }

    /// Shares a runner with a person, by name or id, or with `everyone`.
    ///
    /// # Errors
    /// If there is no such runner or person, or the user may not share it.
    pub async fn share(
        &self,
        ctx: &OpContext,
        runner: RunnerId,
        with: &str,
    ) -> Result<Runner, AppError> {
        let row = self.shareable(ctx, runner).await?;
        let with = self.whom(ctx, with).await?;
        let (by, now) = (ctx.by(), self.clock.now());
        self.store
            .share_runner(ctx.tenant, runner, with, &by, now)
            .await?;
        self.as_seen(ctx, row).await
    }

    /// Takes back that a runner is shared: with one of them, or, where none is named, at all. Commands of people who
    /// may not use it any more are stopped, and those people are not shown their output any more.
    ///
    /// # Errors
    /// If there is no such runner or person, the user may not share it, or the person would still reach
    /// it because it is shared with everyone.
    pub async fn unshare(
        &self,
        ctx: &OpContext,
        runner: RunnerId,
        with: Option<&str>,
    ) -> Result<Runner, AppError> {
        let row = self.shareable(ctx, runner).await?;
        let with = match with {
            Some(with) => Some(self.whom(ctx, with).await?),
            None => None,
        };
        let shares = self.store.shares_of_runner(ctx.tenant, runner).await?;
        if matches!(with, Some(SharedWith::Person(_))) && shares.everyone {
            return Err(AppError::Conflict(format!(
                "{name} is shared with everyone; first: gantry runners unshare {name} --with everyone",
                name = row.name
            )));
        }
        let (by, now) = (ctx.by(), self.clock.now());
        self.store
            .unshare_runner(ctx.tenant, runner, with, &by, now)
            .await?;
        self.as_seen(ctx, row).await
    }

    /// Makes the user the owner of a runner.
    ///
    /// # Errors
    /// If there is no such runner, or the user may not do that.
    pub async fn take(&self, ctx: &OpContext, runner: RunnerId) -> Result<Runner, AppError> {
        let named = runner.to_string();
        let row = self.gate.runner(ctx, Action::TakeRunner, &named).await?;
        self.store
            .take_runner(ctx.tenant, runner, &ctx.by(), self.clock.now())
            .await?;
        self.as_seen(ctx, row).await
    }

    /// Sets if the runner's reports of its isolation count from now on.
    ///
    /// # Errors
    /// If there is no such runner, or the user may not do that.
    pub async fn trust(
        &self,
        ctx: &OpContext,
        runner: RunnerId,
        trusted: bool,
    ) -> Result<Runner, AppError> {
        let named = runner.to_string();
        self.gate.runner(ctx, Action::TrustRunner, &named).await?;
        let (by, now) = (ctx.by(), self.clock.now());
        self.store
            .trust_runner(ctx.tenant, runner, trusted, &by, now)
            .await?;
        let row = self.store.runner(ctx.tenant, runner).await?;
        self.as_seen(ctx, row).await
    }

    async fn shareable(&self, ctx: &OpContext, runner: RunnerId) -> Result<RunnerRow, AppError> {
        let named = runner.to_string();
        self.gate.runner(ctx, Action::ShareRunner, &named).await
    }

    async fn whom(&self, ctx: &OpContext, with: &str) -> Result<SharedWith, AppError> {
        match with {
            EVERYONE => Ok(SharedWith::Everyone),
            name_or_id => {
                let person = self.gate.person_named(ctx, name_or_id).await?;
                Ok(SharedWith::Person(person.user.id))
            }
        }
    }

    async fn as_seen(&self, ctx: &OpContext, row: RunnerRow) -> Result<Runner, AppError> {
        let active = self.in_use(ctx).await?;
        self.shown(row, active).await
    }

    async fn in_use(&self, ctx: &OpContext) -> Result<Option<RunnerId>, AppError> {
        let stored = self.store.settings(ctx.tenant, ctx.user, None).await?;
        let in_use = stored.runner_in_use()?;
        Ok(in_use.map(|in_use| in_use.choice.runner))
    }

    /// Makes a token with which runners can enrol, as the asking user's.
    ///
    /// # Errors
    /// If the terms are out of bounds, or the user has too many tokens or made too many lately.
    pub async fn create_join_token(
        &self,
        ctx: &OpContext,
        terms: JoinTerms,
    ) -> Result<MadeJoinToken, AppError> {
        self.gate.own(ctx, Action::MakeJoinToken)?;
        let allowed = self.allowance.one_more(ctx)?;
        let made = self.make_join_token(ctx, terms).await;
        if made.is_err() {
            self.allowance.back(allowed);
        }
        made
    }

    /// A token that was made with a key expires no later than the key.
    async fn make_join_token(
        &self,
        ctx: &OpContext,
        terms: JoinTerms,
    ) -> Result<MadeJoinToken, AppError> {
        let maker = self.store.credential(ctx.tenant, ctx.credential).await?;
        let is_key = maker.kind == CredentialKind::ApiKey;
        let makers_end = maker.expires_at.filter(|_| is_key);
        let (tokens, by) = (&self.join_tokens, ctx.by());
        tokens.make(ctx.tenant, &by, terms, makers_end).await
    }

    /// The user's join tokens with which runners can still enrol, the newest first, and whether there are more.
    ///
    /// # Errors
    /// If the credential is not good for it.
    pub async fn join_tokens(
        &self,
        ctx: &OpContext,
        page: Page<(Timestamp, JoinTokenId)>,
    ) -> Result<(Vec<JoinTokenRow>, bool), AppError> {
        self.gate.own(ctx, Action::EndJoinToken)?;
        let (limit, page, now) = (page.limit, and_one(page), self.clock.now());
        let rows = (self.store).list_join_tokens(ctx.tenant, ctx.user, page, now);
        Ok(cut(rows.await?, limit))
    }

    /// Ends a join token of the user's. Runners that enrolled with it stay.
    ///
    /// # Errors
    /// If the user has none of this id with which runners could enrol.
    pub async fn end_join_token(
        &self,
        ctx: &OpContext,
        token: JoinTokenId,
    ) -> Result<(), AppError> {
        self.gate.own(ctx, Action::EndJoinToken)?;
        let (by, now) = (ctx.by(), self.clock.now());
        let ended = self.store.end_join_token(ctx.tenant, token, &by, now);
        match ended.await {
            Err(server_store::StoreError::NotFound) => Err(AppError::NotFound("join token")),
            ended => Ok(ended?),
        }
    }

    /// Records that the link of a peer with an access token of this runner was refused. This server
    /// no longer speaks this version of the link protocol. The list of runners shows the reason.
    pub async fn version_refused(&self, of: &LinkClaims, version: u32) {
        let refused = self
            .store
            .link_version_refused(of.tenant, of.runner, version);
        if let Err(error) = refused.await {
            tracing::warn!(runner.id = %of.runner, %error, "it is not recorded why a runner's link was refused");
        }
    }

    /// A runner left for good: if it is ephemeral, it is removed, and turns that wait for it hear
    /// so.
    pub(crate) async fn left(&self, who: &LinkIdentity) -> Result<(), AppError> {
        let (this, tenant, runner) = (self.clone(), who.tenant, who.runner);
        let removed = shielded(async move {
            let now = this.clock.now();
            let left = this.store.runner_left(tenant, runner, now).await?;
            let removed = left.is_some();
            if removed {
                this.links.revoke(runner).await;
            }
            Ok(removed)
        });
        if removed.await? {
            tracing::info!(runner.id = %runner, runner.name = who.name, "an ephemeral runner left and was removed");
        }
        Ok(())
    }

    /// Ends a runner, its link, and all that waits for what it has open.
    async fn revoke(&self, tenant: TenantId, runner: RunnerId, by: By) -> Result<(), AppError> {
        let now = self.clock.now();
        let row = self.store.runner(tenant, runner).await.map_err(not_found)?;
        if row.revoked_at.is_some() {
            return Err(AppError::NotFound("runner"));
        }
        // Before the commit, so that nothing is sealed after it.
        self.links.bar(runner).await;
        let revoked = self.store.revoke_runner(tenant, runner, by, now);
        match revoked.await {
            Ok(_) => self.links.revoke(runner).await,
            Err(error) => {
                self.links.unbar(runner).await;
                return Err(not_found(error));
            }
        }
        Ok(())
    }

    async fn shown(&self, row: RunnerRow, active: Option<RunnerId>) -> Result<Runner, AppError> {
        let sandboxes = self.store.sandboxes_of_runner(row.tenant, row.id).await?;
        let isolation = match (&row.pool, sandboxes.first()) {
            (Some(pool), _) => pool.isolation.clone(),
            (None, Some(first)) => first.isolation.clone(),
            (None, None) => Isolation::none(),
        };
        let shares = self.store.shares_of_runner(row.tenant, row.id).await?;
        let now = self.clock.now();
        Ok(Runner {
            active: active == Some(row.id),
            online: row.link.is_some(),
            locked: row.locked_at.is_some(),
            server_went_back: row
                .went_back_at
                .filter(|at| now.since(*at) < WENT_BACK_SHOWN_FOR),
            ephemeral: row.ephemeral,
            drained_by: match row.drained {
                Some((by, _)) => Some(self.store.user(row.tenant, by).await?.name),
                None => None,
            },
            refused_version: row.refused_version,
            figures: self.links.figures(row.id),
            last_seen: row.last_seen_at,
            id: row.id,
            name: row.name,
            isolation,
            believed: row.trusted.is_some() || self.isolation.believed.contains(&row.id),
            trusted_by: match row.trusted {
                Some((by, _)) => Some(self.store.user(row.tenant, by).await?.name),
                None => None,
            },
            sandboxes,
            pool: row.pool,
            ceiling: row.ceiling,
            hostname: row.hostname,
            platform: if row.os.is_empty() {
                String::new()
            } else {
                format!("{}/{}", row.os, row.architecture)
            },
            version: row.version,
            labels: row.labels,
            shares,
        })
    }
}

/// Makes join tokens.
#[derive(Clone)]
pub(crate) struct JoinTokens {
    store: Store,
    identity_key: [u8; 32],
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl JoinTokens {
    /// Tokens that pin this identity key.
    pub(crate) fn new(
        store: Store,
        identity_key: [u8; 32],
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        Self {
            store,
            identity_key,
            clock,
            entropy,
        }
    }

    /// Refuses a name that a runner has; enrolling with it would be refused as well, but later and
    /// on another machine.
    async fn is_free(&self, tenant: TenantId, name: &str) -> Result<(), AppError> {
        match self.store.find_runner(tenant, name).await {
            Ok(_) => Err(AppError::Conflict(name_taken(name))),
            Err(server_store::StoreError::NotFound) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn make(
        &self,
        tenant: TenantId,
        owner: &By,
        terms: JoinTerms,
        makers_end: Option<Timestamp>,
    ) -> Result<MadeJoinToken, AppError> {
        terms.check()?;
        if !terms.name.is_empty() {
            self.is_free(tenant, &terms.name).await?;
        }
        let now = self.clock.now();
        let asked = now.after(Duration::from_secs(terms.valid_for_s.into()));
        let token = Token::join(self.identity_key, &*self.entropy);
        let made = NewJoinToken {
            id: JoinTokenId::generate(&*self.clock, &*self.entropy),
            owner: owner.user,
            origin: owner.origin,
            name: terms.name,
            labels: terms.labels,
            hash: token.hash(),
            expires_at: makers_end.map_or(asked, |end| asked.min(end)),
            uses: terms.uses,
            ephemeral: terms.ephemeral,
            from: terms.from,
        };
        self.store.create_join_token(tenant, &made, now).await?;
        Ok(MadeJoinToken {
            id: made.id,
            token,
            expires_at: made.expires_at,
        })
    }
}

/// The terms of a join token.
#[derive(Debug, Clone)]
pub struct JoinTerms {
    /// The name that the runner will have; empty lets the runner say.
    pub name: String,
    /// The seconds for which it can be used, from 1 to 30 days.
    pub valid_for_s: u32,
    /// The number of runners that may enrol with it, from 1 to 1000.
    pub uses: u32,
    /// True if those runners are removed when they leave for good or stay away.
    pub ephemeral: bool,
    /// Labels that they will have, in place of their own.
    pub labels: BTreeMap<String, String>,
    /// From where they may enrol, as the server sees it; from anywhere, if absent.
    pub from: Option<AddressRange>,
}

impl Default for JoinTerms {
    /// One runner, of a name of its own, within ten minutes.
    fn default() -> Self {
        Self {
            name: String::new(),
            valid_for_s: 600,
            uses: 1,
            ephemeral: false,
            labels: BTreeMap::new(),
            from: None,
        }
    }
}

impl JoinTerms {
    fn check(&self) -> Result<(), AppError> {
        let Self {
            name,
            valid_for_s,
            uses,
            labels,
            ..
        } = self;
        let mut texts = labels.iter().flat_map(|(key, value)| [key, value]);
        let refused = if !name.is_empty() && !is_name(name) {
            no_name(name)
        } else if !(1..=JOIN_TOKEN_AT_MOST_S).contains(valid_for_s) {
            format!(
                "a join token cannot be valid for {valid_for_s} s: ask for 1 to {JOIN_TOKEN_AT_MOST_S}"
            )
        } else if !(1..=FLEET_AT_MOST).contains(uses) {
            format!("a join token cannot enrol {uses} runners: ask for 1 to {FLEET_AT_MOST}")
        } else if *uses > 1 && !name.is_empty() {
            "several runners cannot have one name: leave the name out, and each says its own"
                .to_owned()
        } else if labels.contains_key("") || !texts.all(|text| is_clean_line(text)) {
            "a label is key=value, and neither has control characters, direction marks or spaces at its ends"
                .to_owned()
        } else {
            return Ok(());
        };
        Err(AppError::Invalid(refused))
    }
}

/// The error for a caller who wants something new on a runner that drains.
pub(crate) fn draining(name: &str, by: &str) -> AppError {
    AppError::Conflict(format!(
        "runner {name} takes no new work: {by} lets it drain, and what runs there goes on; name another runner, or have \
         it take work again: gantry runners undrain {name}"
    ))
}

/// The words for a name that another runner has.
fn name_taken(name: &str) -> String {
    format!(
        "a runner called {name} exists; choose another name, or remove that one: gantry runners remove {name}"
    )
}

/// The words for a text that cannot name a runner.
fn no_name(text: &str) -> String {
    format!(
        "{text:?} cannot name a runner: use up to 63 of a–z, 0–9, '-', '.' and '_', such as build-7"
    )
}

/// The error for a store that has no such runner.
pub(crate) fn not_found(error: server_store::StoreError) -> AppError {
    match error {
        server_store::StoreError::NotFound => AppError::NotFound("runner"),
        other => other.into(),
    }
}

/// Starts the reaper of runners that do not come back.
pub(crate) fn start_reaper(parts: &Parts, links: &Links, tasks: &TaskTracker) {
    let limits = SilenceLimits {
        operations_lost_after: parts.link.lost_after,
        ephemeral_removed_after: parts.ephemeral_silence,
    };
    let rows = parts.ports().silent_runners(parts.replica);
    let reaper = Reaper::from_now(rows, links.clone(), parts.clock.clone(), limits);
    tasks.spawn(reaper.run(parts.stop.clone()));
}

#[cfg(test)]
mod tests;
