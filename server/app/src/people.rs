//! People and service accounts: inviting and adding them, their roles, and how they go.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use server_store::{NewUser, Page, PersonRow, Role, Store, ToStop, UserKind, WorkItem};
use shared_types::{Clock, Entropy, TenantId, Timestamp, UserId, event::StopReason};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    AppError, OpContext, Parts,
    access::Access,
    allowance::Allowance,
    gate::Gate,
    operations::Operations,
    pages::{and_one, cut},
    rights::Action,
    sessions::Sessions,
    shielded::shielded,
};

/// The time for which an invitation can be used.
const INVITED_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The pause between two searches for work of people who were removed.
const LOOK_EVERY: Duration = Duration::from_secs(5 * 60);

/// The pause between two searches for work under credentials that ended: revoked at another server, or expired.
const LOOK_AGAIN_EVERY: Duration = Duration::from_secs(2);

/// Turns and operations that are stopped at the same time.
const STOPPED_AT_ONCE: usize = 16;

/// Longest name of a person, in bytes.
const NAME_AT_MOST: usize = 32;

/// Words that are no names, because commands and lists give them another meaning.
const RESERVED: [&str; 4] = ["everyone", "me", "nobody", "system"];

/// A person, with a mark on the caller's own entry.
#[derive(Debug, Clone)]
pub struct Person {
    /// The person.
    pub row: PersonRow,
    /// True if it is the caller.
    pub is_asking: bool,
}

/// A person was invited.
pub struct Invited {
    /// The person.
    pub person: Person,
    /// The one-time code; it is not stored and cannot be shown again.
    pub code: String,
    /// Until when it can be used.
    pub expires_at: Timestamp,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct People {
    store: Store,
    gate: Gate,
    access: Access,
    sessions: Sessions,
    operations: Operations,
    allowance: Allowance,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl People {
    /// Stops work whose right has ended from now on.
    pub(crate) fn start(
        parts: &Parts,
        gate: &Gate,
        access: &Access,
        sessions: &Sessions,
        operations: &Operations,
        allowance: &Allowance,
        tasks: &TaskTracker,
    ) -> Self {
        let people = Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            access: access.clone(),
            sessions: sessions.clone(),
            operations: operations.clone(),
            allowance: allowance.clone(),
            clock: parts.clock.clone(),
            entropy: parts.entropy.clone(),
        };
        tasks.spawn(people.clone().finish_removals(parts.stop.clone()));
        tasks.spawn(people.clone().end_with_rights(parts.stop.clone()));
        people
    }

    /// A page of the people with this text in their names (empty: all), by name, and whether there are
    /// more.
    ///
    /// # Errors
    /// If the user may not see them, or the store does not answer.
    pub async fn list(
        &self,
        ctx: &OpContext,
        name: &str,
        page: Page<String>,
    ) -> Result<(Vec<Person>, bool), AppError> {
        self.gate.own(ctx, Action::SeePeople)?;
        let (limit, page) = (page.limit, and_one(page));
        let rows = self.store.people(ctx.tenant, name, page).await?;
        let (rows, more) = cut(rows, limit);
        Ok((rows.into_iter().map(|row| person(ctx, row)).collect(), more))
    }

    /// Invites a person of this name, who signs in with the code. A person who has not signed in yet
    /// gets a new code.
    ///
    /// # Errors
    /// If the user may not give that role, the name cannot be one, or the person is here already.
    pub async fn invite(
        &self,
        ctx: &OpContext,
        name: &str,
        role: Role,
    ) -> Result<Invited, AppError> {
        self.gate.new_person(ctx, role)?;
        let name = user_name(name)?;
        if let Ok(known) = self.store.person(ctx.tenant, &name).await {
            if known.user.kind == UserKind::Service {
                return Err(AppError::Conflict(format!(
                    "{name} is a service account, which has keys and does not sign in; choose another name"
                )));
            }
            // An invitation that an owner made is not an admin's to replace.
            let id = known.user.id;
            self.gate
                .person(ctx, Action::ChangeRole, id, Some(role))
                .await?;
            if known.joined {
                return Err(AppError::Conflict(format!(
                    "{name} is here already; to change what {name} may do: gantry people role {name} ROLE"
                )));
            }
        }
        self.allowance.one_more(ctx)?;
        let new = NewUser {
            id: UserId::generate(&*self.clock, &*self.entropy),
            name,
        };
        let (code, made) = self.access.new_code(INVITED_FOR);
        let (by, now) = (ctx.by(), self.clock.now());
        let invited = self.store.invite(ctx.tenant, &new, role, &made, &by, now);
        let id = invited.await?.id;
        let row = self.store.person(ctx.tenant, &id.to_string()).await?;
        Ok(Invited {
            person: person(ctx, row),
            code,
            expires_at: made.expires_at,
        })
    }

    /// Adds a service account: a user that is no person, has keys, and never signs in.
    ///
    /// # Errors
    /// If the user may not do that, it would be an owner, the name cannot be one, or is taken.
    pub async fn add_service_account(
        &self,
        ctx: &OpContext,
        name: &str,
        role: Role,
    ) -> Result<Person, AppError> {
        // For any role first, so that one who may not do it hears that.
        self.gate.new_service_account(ctx, Role::Viewer)?;
        no_owner(role)?;
        self.gate.new_service_account(ctx, role)?;
        let name = user_name(name)?;
        if self.store.person(ctx.tenant, &name).await.is_ok() {
            return Err(AppError::Conflict(format!(
                "the name {name} is taken; choose another one (gantry people lists them)"
            )));
        }
        self.allowance.one_more(ctx)?;
        let new = NewUser {
            id: UserId::generate(&*self.clock, &*self.entropy),
            name,
        };
        let (by, now) = (ctx.by(), self.clock.now());
        let added = self
            .store
            .add_service_account(ctx.tenant, &new, role, &by, now);
        let id = added.await?.id;
        let row = self.store.person(ctx.tenant, &id.to_string()).await?;
        Ok(person(ctx, row))
    }

    /// Changes the role of a person or a service account.
    ///
    /// # Errors
    /// If there is no such person, the user may not do that, or no owner would be left.
    pub async fn change_role(
        &self,
        ctx: &OpContext,
        id: UserId,
        role: Role,
    ) -> Result<Person, AppError> {
        let row = self
            .gate
            .person(ctx, Action::ChangeRole, id, Some(role))
            .await?;
        if row.user.kind == UserKind::Service {
            no_owner(role)?;
        }
        let (by, now) = (ctx.by(), self.clock.now());
        let changed = self.store.change_role(ctx.tenant, id, role, &by, now);
        changed.await?;
        let row = self.store.person(ctx.tenant, &id.to_string()).await?;
        if !Gate::may_still(&row.user, Action::SendMessage) {
            self.stop_turns(ctx.tenant, id, ctx.user).await?;
        }
        Ok(person(ctx, row))
    }

    /// Ends a person's access at once, and stops the person's work. Sessions stay. So do runners, which
    /// still name the person as the owner until an admin takes them.
    ///
    /// # Errors
    /// If there is no such person, the user may not do that, or no owner would be left.
    pub async fn remove(&self, ctx: &OpContext, id: UserId) -> Result<(), AppError> {
        self.gate
            .person(ctx, Action::RemovePerson, id, None)
            .await?;
        let (this, ctx) = (self.clone(), ctx.clone());
        shielded(async move {
            let (tenant, by) = (ctx.tenant, ctx.by());
            let removed = this.store.remove_person(tenant, id, &by, this.clock.now());
            removed.await?;
            // What this does not reach is looked for again ([`Self::finish_removals`]).
            this.stop_all(tenant, id, ctx.user).await
        })
        .await
    }

    /// Stops, for as long as the server runs, what is still under way for people who were removed: the server
    /// may have died behind a removal, or the database have been away.
    async fn finish_removals(self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.stop_removed().await {
                tracing::warn!(%error, "what removed people left under way cannot be stopped yet");
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    async fn stop_removed(&self) -> Result<(), AppError> {
        for (tenant, user) in self.store.removed_at_work().await? {
            self.stop_all(tenant, user, user).await?;
        }
        Ok(())
    }

    /// Stops the turns and operations of a user, in the name of another one or the user's own. What cannot be
    /// stopped now is logged: it has no credential, and no runner takes anything new from it.
    async fn stop_all(&self, tenant: TenantId, user: UserId, by: UserId) -> Result<(), AppError> {
        let turns = self.store.unfinished_turns_of_user(tenant, user).await?;
        let turns = turns
            .into_iter()
            .map(|(session, turn)| WorkItem::Turn(session, turn));
        let operations = self.store.open_operations_of_user(tenant, user).await?;
        let operations = operations.into_iter().map(WorkItem::Operation);
        let all = turns.chain(operations).map(|work| ToStop {
            tenant,
            work,
            why: StopReason::PersonRemoved,
            by,
        });
        self.stop(all.collect()).await;
        Ok(())
    }

    /// Stops, for as long as the server runs, what is under way or queued under credentials that were revoked or
    /// have expired, and what runs on runners that its user may not use any more. A wake-up carries no data, and one that is lost costs [`LOOK_AGAIN_EVERY`].
    async fn end_with_rights(self, stop: CancellationToken) {
        loop {
            match self.store.work_to_stop(self.clock.now()).await {
                Ok(all) => self.stop(all).await,
                Err(error) => {
                    tracing::warn!(%error, "what has lost its right cannot be stopped yet");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN_EVERY) => {}
                () = self.access.until_revoked() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Stops what the sessions of a person have under way or queued who may send no messages any more.
    async fn stop_turns(&self, tenant: TenantId, user: UserId, by: UserId) -> Result<(), AppError> {
        for (session, turn) in self.store.unfinished_turns_of_user(tenant, user).await? {
            let stopped = self.sessions.stop(tenant, (by, None), session, turn);
            stopped.await?;
        }
        Ok(())
    }

    async fn stop(&self, all: Vec<ToStop>) {
        let stopped = futures_util::stream::iter(all).map(async |one| {
            if let Err(error) = self.stop_one(one).await {
                tracing::warn!(?one, %error, "what has lost its right cannot be stopped");
            }
        });
        stopped
            .buffer_unordered(STOPPED_AT_ONCE)
            .collect::<()>()
            .await;
    }

    async fn stop_one(&self, one: ToStop) -> Result<(), AppError> {
        let ToStop {
            tenant,
            work,
            why,
            by,
        } = one;
        match work {
            WorkItem::Turn(session, turn) => {
                let stopped = self.sessions.stop(tenant, (by, Some(why)), session, turn);
                stopped.await.map(drop)
            }
            WorkItem::Operation(operation) => {
                let stopped = self.operations.has_to_stop(tenant, operation, why, by);
                stopped.await
            }
        }
    }
}

fn person(ctx: &OpContext, row: PersonRow) -> Person {
    Person {
        is_asking: row.user.id == ctx.user,
        row,
    }
}

/// An account that never signs in cannot be the one who can do everything.
fn no_owner(role: Role) -> Result<(), AppError> {
    match role {
        Role::Owner => Err(AppError::Invalid(
            "a service account cannot be an owner; choose admin, member or viewer".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// A name as it is stored: ASCII in lower case, so that no two look alike.
fn user_name(given: &str) -> Result<String, AppError> {
    let name = given.trim().to_ascii_lowercase();
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = (1..=NAME_AT_MOST).contains(&name.len())
        && name.bytes().all(inner)
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-');
    if !fits {
        return Err(AppError::Invalid(format!(
            "{given:?} cannot name a person: use up to {NAME_AT_MOST} of a–z, 0–9 and '-', beginning with \
             a letter, such as ann or ann-lee"
        )));
    }
    match RESERVED.contains(&name.as_str()) {
        true => Err(AppError::Invalid(format!(
            "{name} has another meaning in commands; choose another name"
        ))),
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_one_name_or_none() {
        let name = |given: &str| user_name(given).ok();
        for same in ["ann", "Ann", "ANN", " ann\n"] {
            assert_eq!(name(same).as_deref(), Some("ann"));
        }
        assert_eq!(name("ann-lee2").as_deref(), Some("ann-lee2"));
        for none in [
            "",
            "-",
            "2ann",
            "ann-",
            "ann lee",
            "ann_lee",
            "ann@home",
            "\u{430}nn",
            "a\u{300}nn",
            "ａnn",
            "ann\u{200b}",
            "ann\u{202e}",
            "everyone",
            "Everyone",
            "me",
            "system",
            &"a".repeat(33),
        ] {
            assert_eq!(name(none), None, "{none:?}");
        }
    }
}
