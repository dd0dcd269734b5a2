//! The hooks of the event `SessionEnd`: they run once a person has archived or deleted a session. Nothing waits for them,
//! and nothing depends on them: where the runner is away they do not run.
//!
//! A command is an operation of the person's own, at the place where the session worked last.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use server_agent::{EndAction, HookPost, ServerPlace, session_end_hooks};
use server_records::{ExtensionKind, StandingExtensions};
use server_store::Store;
use shared_extensions::read_hooks;
use shared_types::{
    Entropy, Event, OperationId, SessionId, UserId,
    event::{Hook, HookEvent, Layer, Place, Provenance},
};
use tokio_util::task::TaskTracker;

use crate::{AppError, OpContext, Operations, Parts, hook_posts, tool_servers::access::Grants};

/// The longest time of a hook, whatever it asks for.
const WITHIN: Duration = Duration::from_secs(60);

/// Runs the hooks of sessions that end.
#[derive(Clone)]
pub(crate) struct SessionEnds {
    store: Store,
    grants: Grants,
    entropy: Arc<dyn Entropy>,
    tasks: TaskTracker,
    /// Set once, when the server starts.
    operations: Arc<OnceLock<Operations>>,
}

/// The hooks of one session that is about to end.
pub(super) struct Ending {
    session: SessionId,
    /// The person of the session.
    user: UserId,
    actions: Vec<(EndAction, Duration)>,
    place: Option<Place>,
}

impl SessionEnds {
    pub(crate) fn new(parts: &Parts, tasks: &TaskTracker) -> Self {
        Self {
            store: parts.store.clone(),
            grants: Grants::of(parts),
            entropy: parts.entropy.clone(),
            tasks: tasks.clone(),
            operations: Arc::default(),
        }
    }

    /// Hands over the use cases that start commands.
    pub(crate) fn start(&self, operations: &Operations) {
        let _ = self.operations.set(operations.clone());
    }

    /// The hooks that are to run when this session ends for this reason, as they count now. None of an agent's session.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) async fn of(
        &self,
        ctx: &OpContext,
        session: SessionId,
        reason: &str,
    ) -> Result<Ending, AppError> {
        let row = self.store.session(ctx.tenant, session).await?;
        let mut ending = Ending {
            session,
            user: row.user,
            actions: Vec::new(),
            place: None,
        };
        let standing = self.store.standing_extensions(ctx.tenant, row.user).await?;
        let last = async |kind| self.store.last_event(ctx.tenant, session, kind).await;
        let found = match last("extensions.found").await? {
            Some(Event::ExtensionsFound { extensions, .. }) => extensions.hooks,
            _ => Vec::new(),
        };
        let mut folder = String::new();
        if let Some(Event::PlaceSurveyed {
            place,
            folder: seen,
            ..
        }) = last("place.surveyed").await?
        {
            ending.place = place.map(|place| *place);
            folder = seen;
        }
        if row.agent.is_none() {
            let hooks = counting(&standing, found, ending.place.as_ref());
            ending.actions = session_end_hooks(&hooks, session, (&folder, &row.directory), reason);
        }
        Ok(ending)
    }

    /// Starts the hooks, and does not wait for them.
    pub(super) fn run(&self, ctx: &OpContext, ending: Ending) {
        if ending.actions.is_empty() {
            return;
        }
        let (this, ctx) = (self.clone(), ctx.clone());
        self.tasks.spawn(async move {
            let session = ending.session;
            let of = (ending.user, ending.place.as_ref());
            for (number, (action, within)) in ending.actions.into_iter().enumerate() {
                let ran = this.run_one(&ctx, of, action, within.min(WITHIN));
                if let Err(error) = ran.await {
                    tracing::info!(session.id = %session, hook.number = number, %error, "a hook of the end of a session did not run");
                }
            }
        });
    }

    async fn run_one(
        &self,
        ctx: &OpContext,
        (user, place): (UserId, Option<&Place>),
        action: EndAction,
        within: Duration,
    ) -> Result<(), AppError> {
        match action {
            EndAction::Command(request) => {
                let operations = self.operations.get();
                let (operations, place) = operations
                    .zip(place)
                    .ok_or(AppError::NotFound("place of this session"))?;
                let (runner, sandbox) = (place.runner, place.sandbox);
                let started = operations.start_there(ctx, runner, sandbox, *request, within);
                started.await.map(drop)
            }
            EndAction::Http { hook, json } => {
                let place = place.map(|place| ServerPlace {
                    runner: place.runner,
                    sandbox: place.sandbox,
                    directory: String::new(),
                });
                let run = OperationId::generate(&*self.grants.clock, &*self.entropy);
                let post = HookPost {
                    run: run.to_string(),
                    json,
                    within,
                };
                let (of, hook) = ((ctx.tenant, user), (&*hook, place.as_ref()));
                let operations = self.operations.get();
                let posted = hook_posts::post(&self.grants, operations, of, hook, post).await;
                posted.map(drop).map_err(AppError::Conflict)
            }
        }
    }
}

/// The hooks that count now: those that are registered, and of those that the last turn found the ones that people still
/// trust.
fn counting(standing: &StandingExtensions, found: Vec<Hook>, place: Option<&Place>) -> Vec<Hook> {
    let registered = standing.registered.iter();
    let registered = registered.filter(|row| row.kind == ExtensionKind::Hooks);
    let read = registered.filter_map(|row| {
        let from = Provenance {
            layer: row.layer(),
            at: row.name.clone(),
            digest: row.digest,
            trusted: true,
        };
        read_hooks(&row.text, &from).ok()
    });
    let registered = read.flat_map(|(hooks, _)| hooks);
    let is_trusted = |from: &Provenance| {
        standing.trusted.iter().any(|trusted| {
            Some(trusted.sandbox) == place.map(|place| place.sandbox)
                && trusted.path == from.at
                && trusted.digest == from.digest
        })
    };
    let of_place = found.into_iter().filter(|hook| {
        matches!(hook.from.layer, Layer::Project | Layer::Local) && is_trusted(&hook.from)
    });
    let hooks = registered.chain(of_place);
    hooks
        .filter(|hook| hook.on == HookEvent::SessionEnd)
        .collect()
}
