//! The one place that asks [`allow`]: it looks an object up for a use case, and returns it only if the
//! subject may do the action.
//!
//! An object that the subject may not see gets the answer of one that does not exist. An action that the
//! subject's role or credential never allows is refused before the look-up, so that such a refusal tells
//! nothing either. The audit log gets each refusal, also one that the subject sees as a missing object.

use server_store::{
    CredentialRow, FleetRow, ListedOperation, PersonRow, PooledSandbox, Role, RunnerRow,
    SandboxRow, Scopes, SessionRow, Store, StoreError, UserKind, UserRow,
};
use shared_types::{
    CredentialId, OperationId, RunnerChoice, RunnerId, SandboxId, SessionId, Timestamp, UserId,
};

use crate::{
    AppError, OpContext,
    guarded::Right,
    refusals::{Refusal, Refusals},
    rights::{Action, Denied, Resource, RightSubject, allow, new_key},
};

/// No user's id.
const NOBODY: UserId = UserId::from_u128(0);

/// Hands objects out. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    store: Store,
    refusals: Refusals,
}

/// A runner, and the workspace that was named with it.
pub(crate) struct NamedPlace {
    pub(crate) runner: RunnerRow,
    /// The workspace. If absent, the runner's first one.
    pub(crate) workspace: Option<SandboxRow>,
}

/// The runners that a user may use.
pub(crate) enum RunnersToUse {
    None,
    OwnAndShared,
    All,
}

impl NamedPlace {
    pub(crate) fn choice(&self) -> RunnerChoice {
        RunnerChoice {
            runner: self.runner.id,
            sandbox: self.workspace.as_ref().map(|workspace| workspace.id),
        }
    }
}

impl Gate {
    pub(crate) fn new(store: Store, refusals: Refusals) -> Self {
        Self { store, refusals }
    }

    /// Tells that a credential is not let in.
    pub(crate) fn not_let_in(&self, refusal: Refusal) {
        self.refusals.tell(refusal);
    }

    /// Checks an action that concerns no object yet: making, listing.
    pub(crate) fn own(&self, ctx: &OpContext, action: Action) -> Result<(), AppError> {
        self.checked(ctx, action, &Resource::Own, "it")
    }

    /// True if the subject may do an action that concerns no object. For callers that do less
    /// otherwise.
    pub(crate) fn may(&self, ctx: &OpContext, action: Action) -> bool {
        allow(&ctx.subject(), action, &Resource::Own).is_ok()
    }

    /// Checks that the subject may do this action to any object at all.
    pub(crate) fn anything(&self, ctx: &OpContext, action: Action) -> Result<(), AppError> {
        self.checked(ctx, action, &Resource::Unknown, "it")
    }

    pub(crate) async fn session(
        &self,
        ctx: &OpContext,
        action: Action,
        id: SessionId,
    ) -> Result<(), AppError> {
        const NOUN: &str = "session";
        self.checked(ctx, action, &Resource::Unknown, NOUN)?;
        let owner = found(self.store.session_owner(ctx.tenant, id).await, NOUN)?;
        let shared = false;
        self.checked_of(
            ctx,
            action,
            &Resource::Thing { owner, shared },
            NOUN,
            id.to_string(),
        )
    }

    /// A session to be read, with all that lists tell of it.
    pub(crate) async fn session_row(
        &self,
        ctx: &OpContext,
        id: SessionId,
    ) -> Result<SessionRow, AppError> {
        self.session(ctx, Action::ReadSession, id).await?;
        let row = found(self.store.session(ctx.tenant, id).await, "session")?;
        match row.deleted_at {
            None => Ok(row),
            Some(_) => Err(AppError::NotFound("session")),
        }
    }

    /// An operation that the user or one of the user's sessions asked for. What goes on to its runner,
    /// or comes from there live, needs that runner as well, unless it was removed.
    pub(crate) async fn operation(
        &self,
        ctx: &OpContext,
        action: Action,
        id: OperationId,
    ) -> Result<ListedOperation, AppError> {
        const NOUN: &str = "operation";
        self.checked(ctx, action, &Resource::Unknown, NOUN)?;
        let listed = self.store.operation_of_user(ctx.tenant, ctx.user, id).await;
        let listed = found(listed, NOUN)?;
        self.checked_of(ctx, action, &Resource::Own, NOUN, id.to_string())?;
        if matches!(action, Action::FollowOperation | Action::PassInput) {
            let runner = listed.row.runner;
            self.known_runner(ctx, Action::SeeRunner, runner).await?;
            let right = Right {
                store: self.store.clone(),
                tenant: ctx.tenant,
                operation: id,
            };
            right.require().await?;
        }
        Ok(listed)
    }

    /// A runner that the subject knows, because it chose it or ran something there. One that was
    /// removed passes: nothing is left to keep from the subject.
    pub(crate) async fn known_runner(
        &self,
        ctx: &OpContext,
        action: Action,
        runner: RunnerId,
    ) -> Result<(), AppError> {
        let access = self.store.runner_access(ctx.tenant, runner, ctx.user);
        let access = access.await?;
        let resource = Resource::Thing {
            owner: access.owner,
            shared: access.shared,
        };
        let allowed = allow(&ctx.subject(), action, &resource);
        if let (Err(denied), false) = (&allowed, access.revoked) {
            self.tell(ctx, action, denied, runner.to_string());
        }
        match allowed {
            _ if access.revoked => Ok(()),
            Err(Denied::Hidden) => Err(AppError::Forbidden(
                format!(
                    "runner {name} is not shared with you any more; ask its owner to share it (gantry \
                     runners share {name}), or choose another: gantry runners use NAME",
                    name = access.name
                )
                .into(),
            )),
            Err(denied) => Err(AppError::Forbidden(denied.to_string().into())),
            Ok(()) => Ok(()),
        }
    }

    /// A runner that is not removed, by its name or id.
    pub(crate) async fn runner(
        &self,
        ctx: &OpContext,
        action: Action,
        name_or_id: &str,
    ) -> Result<RunnerRow, AppError> {
        const NOUN: &str = "runner";
        self.checked(ctx, action, &Resource::Unknown, NOUN)?;
        let row = self.store.find_runner(ctx.tenant, name_or_id).await;
        let row = found(row, NOUN)?;
        let access = self.store.runner_access(ctx.tenant, row.id, ctx.user).await;
        let access = found(access, NOUN)?;
        let resource = Resource::Thing {
            owner: access.owner,
            shared: access.shared,
        };
        self.checked_of(ctx, action, &resource, NOUN, row.id.to_string())?;
        Ok(row)
    }

    /// A runner that is not removed, by its name or id, alone or with one of its workspaces by name:
    /// `RUNNER`, or `RUNNER/WORKSPACE`.
    pub(crate) async fn place(
        &self,
        ctx: &OpContext,
        action: Action,
        named: &str,
    ) -> Result<NamedPlace, AppError> {
        let (name_or_id, workspace) = match named.split_once('/') {
            Some((runner, workspace)) => (runner, Some(workspace)),
            None => (named, None),
        };
        let runner = self.runner(ctx, action, name_or_id).await?;
        let workspace = match workspace {
            Some(name) => Some(self.workspace(&runner, name).await?),
            None => None,
        };
        Ok(NamedPlace { runner, workspace })
    }

    async fn workspace(&self, runner: &RunnerRow, name: &str) -> Result<SandboxRow, AppError> {
        let known = self.store.sandboxes_of_runner(runner.tenant, runner.id);
        let known = known.await?;
        let names: Vec<_> = known.iter().map(|one| one.name.clone()).collect();
        let found = known.into_iter().find(|one| one.name == name);
        found.ok_or_else(|| {
            let runner_makes_sandboxes = runner.pool.is_some();
            let runner = &runner.name;
            AppError::Conflict(match names.is_empty() {
                _ if runner_makes_sandboxes => format!(
                    "runner {runner} makes a sandbox for each person, and has no workspaces; write {runner} alone"
                ),
                true => format!(
                    "runner {runner} has never been online, so that its workspaces are not known; start it \
                     (gantry-runner run)"
                ),
                false => format!(
                    "runner {runner} has no such workspace, only: {}; on its machine one is added with: \
                     gantry-runner add-workspace FOLDER --name NAME",
                    names.join(", ")
                ),
            })
        })
    }

    /// A sandbox of a pool that is wanted.
    pub(crate) async fn sandbox(
        &self,
        ctx: &OpContext,
        action: Action,
        id: SandboxId,
    ) -> Result<PooledSandbox, AppError> {
        const NOUN: &str = "sandbox";
        self.checked(ctx, action, &Resource::Unknown, NOUN)?;
        let row = found(self.store.pooled_sandbox(ctx.tenant, id).await, NOUN)?;
        let resource = Resource::Thing {
            owner: row.owner,
            shared: false,
        };
        self.checked_of(ctx, action, &resource, NOUN, id.to_string())?;
        Ok(row)
    }

    /// True if the subject may see the sandboxes of others beside its own.
    pub(crate) fn sees_all_sandboxes(&self, ctx: &OpContext) -> Result<bool, AppError> {
        self.checked(ctx, Action::SeeSandbox, &Resource::Own, "sandbox")?;
        let anybodys = Resource::Thing {
            owner: NOBODY,
            shared: false,
        };
        Ok(allow(&ctx.subject(), Action::SeeSandbox, &anybodys).is_ok())
    }

    /// The runners that the subject may see, by name, after that name (empty: from the start).
    pub(crate) async fn runners(
        &self,
        ctx: &OpContext,
        after: &str,
        at_most: u32,
    ) -> Result<Vec<RunnerRow>, AppError> {
        self.checked(ctx, Action::SeeRunner, &Resource::Own, "runner")?;
        let anybodys = Resource::Thing {
            owner: NOBODY,
            shared: false,
        };
        let rows = match allow(&ctx.subject(), Action::SeeRunner, &anybodys) {
            Ok(()) => self.store.list_runners(ctx.tenant, after, at_most).await,
            Err(_) => {
                self.store
                    .runners_of_user(ctx.tenant, ctx.user, after, at_most)
                    .await
            }
        };
        Ok(rows?)
    }

    /// Checks that the subject may invite a person with that role.
    pub(crate) fn new_person(&self, ctx: &OpContext, role: Role) -> Result<(), AppError> {
        let resource = Resource::Person { id: NOBODY, role };
        self.checked(ctx, Action::InvitePerson, &resource, "person")
    }

    /// A person who was not removed. Only an owner may act on an owner, or make one.
    pub(crate) async fn person(
        &self,
        ctx: &OpContext,
        action: Action,
        id: UserId,
        gets: Option<Role>,
    ) -> Result<PersonRow, AppError> {
        const NOUN: &str = "person";
        self.checked(ctx, action, &Resource::Unknown, NOUN)?;
        let row = self.store.person(ctx.tenant, &id.to_string()).await;
        let row = found(row, NOUN)?;
        for role in gets.into_iter().chain([row.user.role]) {
            self.checked_of(
                ctx,
                action,
                &Resource::Person { id, role },
                NOUN,
                id.to_string(),
            )?;
        }
        Ok(row)
    }

    /// A person that the subject names, such as one to share something with.
    pub(crate) async fn person_named(
        &self,
        ctx: &OpContext,
        name_or_id: &str,
    ) -> Result<PersonRow, AppError> {
        self.checked(ctx, Action::SeePeople, &Resource::Own, "person")?;
        let name = match name_or_id.contains('_') {
            true => name_or_id.to_owned(),
            false => name_or_id.to_ascii_lowercase(),
        };
        match self.store.person(ctx.tenant, &name).await {
            Err(StoreError::NotFound) => Err(AppError::Invalid(format!(
                "there is no person {name_or_id}; gantry people lists them"
            ))),
            found => Ok(found?),
        }
    }

    /// True if this user, with the role that it has now, may still do the action for which it made something. It is
    /// checked again when a token or a link of the user is used. The credential that made it may be gone.
    pub(crate) fn may_still(user: &UserRow, action: Action) -> bool {
        let subject = RightSubject {
            user: user.id,
            role: user.role,
            scopes: Scopes::ALL,
        };
        allow(&subject, action, &Resource::Own).is_ok()
    }

    /// True if the user of a turn may use the runner that was chosen for it, with the role that the user has now.
    /// The credential must still hold; its scopes are not checked again.
    pub(crate) fn turn_may_use_runner(fleet: &FleetRow, now: Timestamp) -> bool {
        if fleet.credential_ended(now) {
            return false;
        }
        let (Some(role), Some(access)) = (fleet.role, &fleet.access) else {
            return false;
        };
        let subject = RightSubject {
            user: fleet.user,
            role,
            scopes: Scopes::ALL,
        };
        let resource = Resource::Thing {
            owner: access.owner,
            shared: access.shared,
        };
        access.revoked || allow(&subject, Action::UseRunner, &resource).is_ok()
    }

    /// The runners that this user may use, with the role that it has now.
    pub(crate) fn runners_to_use(user: &UserRow) -> RunnersToUse {
        let subject = RightSubject {
            user: user.id,
            role: user.role,
            scopes: Scopes::ALL,
        };
        let may_use = |owner, shared| {
            let resource = Resource::Thing { owner, shared };
            allow(&subject, Action::UseRunner, &resource).is_ok()
        };
        match (may_use(NOBODY, false), may_use(NOBODY, true)) {
            (true, _) => RunnersToUse::All,
            (false, true) => RunnersToUse::OwnAndShared,
            (false, false) => RunnersToUse::None,
        }
    }

    /// The scopes of a key that the subject makes: those that were asked for, else the usual ones.
    pub(crate) fn key_scopes(
        &self,
        ctx: &OpContext,
        asked: Option<Scopes>,
    ) -> Result<Scopes, AppError> {
        self.checked(ctx, Action::MakeKey, &Resource::Own, "key")?;
        let scopes = new_key(&ctx.subject(), asked);
        scopes.map_err(|denied| {
            self.tell(ctx, Action::MakeKey, &denied, String::new());
            AppError::Forbidden(denied.to_string().into())
        })
    }

    /// The scopes of a key that the subject makes for a service account with this role.
    pub(crate) fn service_key_scopes(
        &self,
        ctx: &OpContext,
        role: Role,
        asked: Option<Scopes>,
    ) -> Result<Scopes, AppError> {
        let account = RightSubject {
            role,
            ..ctx.subject()
        };
        new_key(&account, asked).map_err(|denied| {
            self.tell(ctx, Action::ManageServiceKeys, &denied, String::new());
            let words = match denied {
                Denied::KeyScope {
                    scope,
                    has,
                    by_role: true,
                } => format!(
                    "a service account with the role {has} can have no key with the scope {scope}; leave \
                     it out, or change the role: gantry people role NAME ROLE"
                ),
                denied => denied.to_string(),
            };
            AppError::Forbidden(words.into())
        })
    }

    /// Checks that the subject may add a service account with that role.
    pub(crate) fn new_service_account(&self, ctx: &OpContext, role: Role) -> Result<(), AppError> {
        let resource = Resource::Person { id: NOBODY, role };
        self.checked(ctx, Action::AddServiceAccount, &resource, "service account")
    }

    /// A service account that was not removed.
    pub(crate) async fn service_account(
        &self,
        ctx: &OpContext,
        action: Action,
        id: UserId,
    ) -> Result<PersonRow, AppError> {
        const NOUN: &str = "service account";
        self.checked(ctx, action, &Resource::Unknown, NOUN)?;
        let row = self.store.person(ctx.tenant, &id.to_string()).await;
        let row = found(row, NOUN)?;
        if row.user.kind != UserKind::Service {
            return Err(AppError::NotFound(NOUN));
        }
        let role = row.user.role;
        self.checked_of(
            ctx,
            action,
            &Resource::Person { id, role },
            NOUN,
            id.to_string(),
        )?;
        Ok(row)
    }

    /// A key or sign-in of the subject's own; also a key of a service account, for those who manage them.
    pub(crate) async fn key(
        &self,
        ctx: &OpContext,
        action: Action,
        id: CredentialId,
    ) -> Result<CredentialRow, AppError> {
        const NOUN: &str = "key";
        self.checked(ctx, action, &Resource::Unknown, NOUN)?;
        let row = found(self.store.credential(ctx.tenant, id).await, NOUN)?;
        if row.user != ctx.user {
            let manage = Action::ManageServiceKeys;
            let account = self.service_account(ctx, manage, row.user).await;
            return match account {
                Ok(_) => Ok(row),
                Err(error @ AppError::Unavailable(_)) => Err(error),
                Err(_) => Err(AppError::NotFound(NOUN)),
            };
        }
        let resource = Resource::Thing {
            owner: row.user,
            shared: false,
        };
        self.checked_of(ctx, action, &resource, NOUN, id.to_string())?;
        Ok(row)
    }

    fn checked(
        &self,
        ctx: &OpContext,
        action: Action,
        resource: &Resource,
        noun: &'static str,
    ) -> Result<(), AppError> {
        self.checked_of(ctx, action, resource, noun, String::new())
    }

    /// Of a thing with this id.
    fn checked_of(
        &self,
        ctx: &OpContext,
        action: Action,
        resource: &Resource,
        noun: &'static str,
        id: String,
    ) -> Result<(), AppError> {
        allow(&ctx.subject(), action, resource).map_err(|denied| {
            self.tell(ctx, action, &denied, id);
            match denied {
                Denied::Hidden => AppError::NotFound(noun),
                denied => AppError::Forbidden(denied.to_string().into()),
            }
        })
    }

    fn tell(&self, ctx: &OpContext, action: Action, denied: &Denied, id: String) {
        let refusal = Refusal::of_person(ctx, action, denied.reason(), id);
        self.refusals.tell(refusal);
    }
}

fn found<T>(found: Result<T, StoreError>, noun: &'static str) -> Result<T, AppError> {
    found.map_err(|error| match error {
        StoreError::NotFound => AppError::NotFound(noun),
        error => error.into(),
    })
}
