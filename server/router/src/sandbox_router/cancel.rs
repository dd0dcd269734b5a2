//! Stops an operation. The caller need not stay (docs/internals/contracts.md#a17): a task of its
//! own records, sends and concludes the request, and the caller gets the known result in time.

use shared_link::server::{self, CancelStep};
use shared_sandbox::{CancelAnswer, Outcome};
use shared_types::{Epoch, OperationId, Owner, Refusal, RefusalCode, RunnerId};
use tokio::{
    pin,
    sync::oneshot,
    time::{sleep, timeout},
};
use tracing::Instrument;

use super::{Cancelled, SandboxRouter, not_stored};
use crate::{
    bounds::{LINKING_WITHIN, RETRY_AFTER},
    links::{LinkHandle, RunnerConnection, linked, linked_or_not},
};

/// Starts to stop it; the caller may wait for the answer or not.
pub(super) fn start(
    sandbox: SandboxRouter,
    operation: OperationId,
    epoch: Epoch,
) -> impl Future<Output = Cancelled> {
    let (caller, answer) = oneshot::channel();
    let cancel = Cancel {
        sandbox,
        operation,
        epoch,
        caller: Some(caller),
    };
    let span = tracing::info_span!("cancel", operation.id = %operation);
    // Detached on purpose: it ends with the answer, or with the link.
    tokio::spawn(cancel.run().instrument(span));
    async { answer.await.unwrap_or_else(|_| Err(stopping())) }
}

struct Cancel {
    sandbox: SandboxRouter,
    operation: OperationId,
    epoch: Epoch,
    /// None once it was answered.
    caller: Option<oneshot::Sender<Cancelled>>,
}

impl Cancel {
    async fn run(mut self) {
        let answer = self.stop().await;
        self.tell(answer);
    }

    async fn stop(&mut self) -> Cancelled {
        let Some(intent) = self.sandbox.find(self.operation).await? else {
            return Err(not_placed());
        };
        if intent.outcome.is_some() {
            return Ok(CancelAnswer::AlreadyExited);
        }
        // Recorded before it is sent, so that a crash in between does not lose it.
        let recorded = self.sandbox.operations.request_cancel(self.operation).await;
        recorded.map_err(|error| not_stored("record the cancel", &error))?;
        let connection = self.connection(intent.place.runner).await;
        let Some(intent) = self.sandbox.find(self.operation).await? else {
            return Err(not_placed());
        };
        let lost = match (server::cancel(&intent, &linked(&connection)), connection) {
            (CancelStep::Answer(answer), _) => return Ok(answer),
            (CancelStep::Send, RunnerConnection::Online(link)) => {
                return self.send(link, intent.owner).await;
            }
            (CancelStep::Send, _) => return Ok(CancelAnswer::Recorded),
            (CancelStep::Lost(refusal), _) => refusal,
        };
        self.settle(lost.clone()).await?;
        Err(lost)
    }

    /// The connection of the runner, once no link is just being made: such a link may have looked
    /// for operations to stop already.
    async fn connection(&mut self, runner: RunnerId) -> RunnerConnection {
        let mut watch = self.sandbox.watch(runner).await;
        if let Ok(connection) = timeout(LINKING_WITHIN, linked_or_not(&mut watch)).await {
            return connection;
        }
        self.tell(Ok(CancelAnswer::Recorded));
        linked_or_not(&mut watch).await
    }

    async fn send(&mut self, link: LinkHandle, owner: Owner) -> Cancelled {
        let within = self.sandbox.links.options().cancel_within;
        let sent = link.cancel(self.operation, owner, self.epoch);
        pin!(sent);
        let answered = tokio::select! {
            answered = &mut sent => answered,
            () = sleep(within) => {
                self.tell(Ok(CancelAnswer::Recorded));
                sent.await
            }
        };
        match answered {
            Ok(Ok(CancelAnswer::NeverStarted)) => {
                self.settle(server::never_started()).await?;
                Ok(CancelAnswer::NeverStarted)
            }
            Ok(answer) => answer,
            // It is recorded: the next link finds it.
            Err(_) => Ok(CancelAnswer::Recorded),
        }
    }

    async fn settle(&self, refusal: Refusal) -> Result<(), Refusal> {
        let outcome = Outcome::Refused(refusal);
        let settled = self
            .sandbox
            .operations
            .settle(self.operation, &outcome)
            .await;
        settled.map_err(|error| not_stored("store the outcome", &error))?;
        Ok(())
    }

    fn tell(&mut self, answer: Cancelled) {
        if let Some(caller) = self.caller.take() {
            // A caller that stopped waiting needs no answer.
            let _ = caller.send(answer);
        }
    }
}

/// The refusal for an operation that was never placed. It promises nothing: a start may be on its
/// way.
fn not_placed() -> Refusal {
    Refusal::new(
        RefusalCode::NotFound,
        "there is no such operation to be cancelled; one that is started later runs",
    )
}

fn stopping() -> Refusal {
    Refusal::new(RefusalCode::Unavailable, "the server stops").retry_after(RETRY_AFTER)
}
