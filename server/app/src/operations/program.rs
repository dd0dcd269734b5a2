//! Programs that this server runs on a user's runner and speaks to: tool servers.
//!
//! Each is an operation of the user like any other: its runner judges it, its user may stop it, and it is in the list.
//! Its output has one reader, this server. Its key has a space, which no key of a caller has, and names the server: so
//! another one that takes over knows it and stops it.

use std::time::Duration;

use server_router::SandboxRouter;
use server_store::{AskedBy, OpenCallerOperation, ReplicaRow};
use shared_sandbox::{Events, OperationEvent, Request, Running, Sandbox as _};
use shared_types::{OperationId, Refusal, ReplicaId, RunnerId, SandboxId, TenantId, UserId};
use tokio::time::timeout;

use super::{OperationSource, Operations, asked::CallerRequest, refused};
use crate::{
    AppError,
    guarded::{HeldEvents, Right},
    runners,
};

/// The time in which a program that was stopped ends.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// The beginning of the key of each of these operations.
const KEY: &str = "program of ";

/// A program to start.
pub(crate) struct StartProgram {
    pub(crate) tenant: TenantId,
    pub(crate) user: UserId,
    pub(crate) runner: RunnerId,
    pub(crate) sandbox: SandboxId,
    /// The command. Its output is kept nowhere.
    pub(crate) request: Request,
    /// It is stopped after running this long.
    pub(crate) run_for: Duration,
}

/// A program that was started, and the way to it.
pub(crate) struct Program {
    pub(crate) tenant: TenantId,
    pub(crate) id: OperationId,
    pub(crate) running: Running,
    sandbox: SandboxRouter,
    right: Right,
}

/// The events of a program, as long as its user may use the runner.
pub(crate) struct ProgramEvents {
    events: Box<dyn Events>,
    held: HeldEvents,
}

impl Operations {
    /// Starts a program in the name of this user.
    ///
    /// # Errors
    /// If the user may not use the runner, or it cannot be reached; then nothing was started.
    pub(crate) async fn start_program(&self, start: StartProgram) -> Result<Program, AppError> {
        let StartProgram {
            tenant,
            user,
            runner,
            sandbox,
            request,
            run_for,
        } = start;
        let place = self.store.caller_place(tenant, runner, user).await;
        let place = place.map_err(runners::not_found)?;
        let mut sandboxes = place.runner.sandboxes.iter();
        let meant = sandboxes.find(|one| one.id == sandbox);
        let epoch = meant.ok_or(AppError::NotFound("workspace"))?.epoch;
        let asked = CallerRequest {
            tenant,
            user,
            credential: None,
            key: format!("{KEY}{} {}", self.replica, self.new_key()),
            runner,
            sandbox,
            trace: None,
        };
        let operation = asked.operation(request, epoch, run_for);
        let id = operation.id;
        let (sandbox, _) = self.sandbox_knowing(&asked, Some(place));
        let running = sandbox.start(operation).await.map_err(refused)?;
        Ok(Program {
            tenant,
            id,
            running,
            sandbox,
            right: self.right(tenant, id),
        })
    }

    /// Stops a program and all that it started.
    pub(crate) async fn stop_program(&self, tenant: TenantId, id: OperationId) {
        match self.stop(tenant, id).await {
            Ok(_) | Err(AppError::NotFound(_)) => {}
            // Its runner ends it by itself once it has written nothing for a while.
            Err(error) => {
                tracing::warn!(operation.id = %id, %error, "a program cannot be stopped now")
            }
        }
        let operations = self.clone();
        // Detached on purpose: no caller needs the end of the program.
        tokio::spawn(async move {
            let ending = operations.read_to_the_end(tenant, id);
            match timeout(ENDS_WITHIN, ending).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::debug!(operation.id = %id, %error, "the end of a program is not known");
                }
                Err(_) => tracing::debug!(operation.id = %id, "a program has not ended yet"),
            }
        });
    }

    /// Reads the rest of a program's output and drops it, so that its end is stored.
    async fn read_to_the_end(&self, tenant: TenantId, id: OperationId) -> Result<(), AppError> {
        let OperationSource::Alone(mut running, sandbox) = self.collected(tenant, id).await? else {
            return Ok(());
        };
        while let Some(event) = running.events.recv().await {
            match event {
                OperationEvent::Output {
                    stream,
                    offset,
                    data,
                } => {
                    let read = offset.saturating_add(data.len() as u64);
                    running.controls.commit(stream, read).await;
                }
                OperationEvent::Ended(_) => {
                    self.close_program(tenant, id, &sandbox).await;
                    return Ok(());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Has the runner of a program that has ended forget it.
    pub(crate) async fn close_program(
        &self,
        tenant: TenantId,
        id: OperationId,
        sandbox: &SandboxRouter,
    ) {
        let closed = self
            .store
            .close_caller_operation(tenant, id, self.clock.now());
        if let Err(error) = closed.await {
            tracing::warn!(operation.id = %id, %error, "a program that ended cannot be closed yet");
        }
        sandbox.forget(id).await;
    }
}

impl Program {
    /// Its events, and the sandbox that forgets it in the end.
    pub(crate) fn into_parts(
        self,
    ) -> (
        ProgramEvents,
        std::sync::Arc<dyn shared_sandbox::Controls>,
        SandboxRouter,
    ) {
        let Running {
            events, controls, ..
        } = self.running;
        let events = ProgramEvents {
            events,
            held: HeldEvents::new(self.right),
        };
        (events, controls, self.sandbox)
    }
}

impl ProgramEvents {
    /// The next event; nothing where the runner gave the stream up.
    ///
    /// # Errors
    /// If the user may not use the runner any more.
    pub(crate) async fn next(&mut self) -> Result<Option<OperationEvent>, Refusal> {
        self.held.next(&mut *self.events).await
    }
}

/// True for a program that was started by a replica that lives no more.
pub(super) fn was_left(open: &OpenCallerOperation, live: &[ReplicaRow]) -> bool {
    let AskedBy::Caller { key, .. } = &open.row.asked_by else {
        return false;
    };
    let of = key
        .strip_prefix(KEY)
        .and_then(|rest| rest.split(' ').next());
    let of = of.and_then(|of| of.parse::<ReplicaId>().ok());
    of.is_some_and(|of| live.iter().all(|replica| replica.id != of))
}
