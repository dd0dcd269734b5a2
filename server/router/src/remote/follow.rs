//! Follows one operation from its committed intent to its stored outcome, over every link.
//!
//! It goes on when its reader has gone, so that the outcome is stored, and ends early only when
//! nobody reads and the runner is away: then the next inventory brings the outcome.

use std::time::Duration;

use proto::v1;
use shared_sandbox::{Operation, OperationEvent, Outcome, OutputStream, Running};
use shared_types::{
    Generation, Incarnation, Refusal, RefusalCode, RunnerId, Timestamp, event::Place,
};
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};
use tracing::Instrument;

use super::RemoteSandbox;
use crate::{
    convert,
    links::{Connection, Gone, LinkHandle, Reader},
    mailbox::{Mail, Mailbox, Offsets},
    ports::{PortError, RunnerState, Settled, StoredIntent},
};

/// Events that may wait for the reader; what waits beside them is bounded by the credit.
const EVENTS: usize = 4;

/// How often the store is asked before the stream is given up, with doubling pauses.
const STORE_ATTEMPTS: u32 = 6;

/// The pause before the store is asked a second time.
const STORE_PAUSE: Duration = Duration::from_millis(50);

/// Starts to follow. `fresh`: the caller has just committed the intent, while this link was there.
pub(super) fn start(
    sandbox: RemoteSandbox,
    operation: Operation,
    intent: StoredIntent,
    fresh: Option<Generation>,
) -> Running {
    let (events, receiver) = mpsc::channel(EVENTS);
    let place = intent.place.clone();
    let span = tracing::info_span!(
        "operation",
        operation.id = %operation.id,
        runner.id = %place.runner
    );
    let follow = Follow {
        sandbox,
        operation,
        runner: place.runner,
        incarnation: intent.incarnation.clone(),
        place: place.clone(),
        stored: intent.outcome.clone(),
        fresh: fresh.map(|link| (link, intent)),
        mailbox: Mailbox::new(),
        events,
        told_unreachable: false,
    };
    // Detached on purpose: it ends with the operation, or as the header says.
    tokio::spawn(
        async move {
            if let Err(error) = follow.run().await {
                tracing::error!(%error, "gave an operation's stream up: the store does not answer");
            }
        }
        .instrument(span),
    );
    Running {
        place,
        events: receiver,
    }
}

/// The runner came back with a memory that does not know the operation.
pub(super) fn lost_to_new_memory() -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        "the runner was restarted and remembers nothing of this operation; what it did is not \
         known, so look before you run it again",
    )
}

/// The runner will never come back.
pub(super) fn lost_to_revocation() -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        "the runner was revoked while this operation may have been running; what it did is not known",
    )
}

fn expired() -> Refusal {
    Refusal::new(
        RefusalCode::Expired,
        "the operation could not be sent to its runner in time and was not started",
    )
}

struct Follow {
    sandbox: RemoteSandbox,
    operation: Operation,
    runner: RunnerId,
    incarnation: Incarnation,
    place: Place,
    /// What was stored when this began.
    stored: Option<Outcome>,
    /// What has just been stored, and the link that was there before: as long as that one lives,
    /// whoever cancels says so to the runner itself, and nobody else can have settled it.
    fresh: Option<(Generation, StoredIntent)>,
    mailbox: Mailbox,
    events: mpsc::Sender<OperationEvent>,
    told_unreachable: bool,
}

/// How reading over one link ended.
enum Read {
    /// There is nothing more to read.
    Finished,
    /// The operation goes on; its link is gone.
    LinkLost,
}

impl Follow {
    async fn run(mut self) -> Result<(), PortError> {
        if let Some(outcome) = self.stored.take()
            && !self.output_is_missing(&outcome)
        {
            // All of it is here; whether the runner can be reached makes no difference.
            return self.finish(outcome).await.map(drop);
        }
        let mut connection = self.sandbox.links.watch(self.runner).await;
        loop {
            let now = connection.borrow_and_update().clone();
            match now {
                Connection::Online(link) if link.incarnation() == &self.incarnation => {
                    self.reachable().await;
                    if let Read::Finished = self.read(&link).await? {
                        return Ok(());
                    }
                }
                Connection::Online(_) => return self.lost(lost_to_new_memory()).await,
                Connection::Revoked => return self.lost(lost_to_revocation()).await,
                Connection::Linking => {}
                Connection::Offline { since } => {
                    let Some(since) = self.since(since).await? else {
                        return self.lost(lost_to_revocation()).await;
                    };
                    self.unreachable(since).await;
                    if self.nobody_waits_for_return(&mut connection).await {
                        return Ok(());
                    }
                    continue;
                }
            }
            if connection.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    /// Waits until the runner may be back: returns whether the reader went first.
    async fn nobody_waits_for_return(&self, connection: &mut watch::Receiver<Connection>) -> bool {
        tokio::select! {
            changed = connection.changed() => changed.is_err(),
            () = self.events.closed() => true,
        }
    }

    /// Since when the runner is away; nothing if it will never come back.
    async fn since(&self, here: Option<Timestamp>) -> Result<Option<Timestamp>, PortError> {
        if here.is_some() {
            return Ok(here);
        }
        let (fleet, runner) = (&self.sandbox.fleet, self.runner);
        let now = self.sandbox.clock.now();
        Ok(match patiently(|| fleet.state(runner)).await? {
            RunnerState::Revoked => None,
            RunnerState::Offline { since } => Some(since.unwrap_or(now)),
            // The store has not heard yet, or it is from before this server was started.
            RunnerState::Online => Some(now),
        })
    }

    /// Reads the operation over one link.
    async fn read(&mut self, link: &LinkHandle) -> Result<Read, PortError> {
        // Read after the link was there, so that an outcome stored before it is not overlooked:
        // the runner may have been told to forget the operation, and would start it again.
        let Some(intent) = self.intent(link.generation()).await? else {
            return Ok(Read::Finished);
        };
        if let Some(outcome) = &intent.outcome
            && !self.output_is_missing(outcome)
        {
            return self.finish(outcome.clone()).await;
        }
        let may_start = intent.outcome.is_none() && self.sandbox.clock.now() < intent.deadline;
        if self.send(link, &intent, may_start).await.is_err() {
            return Ok(Read::LinkLost);
        }
        loop {
            let (event, stream, up_to) = match self.mailbox.next().await {
                Mail::Output {
                    stream,
                    offset,
                    data,
                } => {
                    let up_to = offset + data.len() as u64;
                    let event = OperationEvent::Output {
                        stream,
                        offset,
                        data,
                    };
                    (event, stream, up_to)
                }
                Mail::Gap { stream, from, to } => {
                    (OperationEvent::Gap { stream, from, to }, stream, to)
                }
                Mail::Ended(outcome) => return self.finish(outcome).await,
                Mail::Refused(refusal) => return self.refused(refusal, intent, may_start).await,
                Mail::Detached => return Ok(Read::LinkLost),
                Mail::Superseded => return Ok(Read::Finished),
            };
            self.deliver(event).await;
            if let Some(up_to) = self.mailbox.taken(stream, up_to) {
                // If the link is gone, the mailbox says so after what is left in it.
                let _ = link.grant(self.operation.id, stream, up_to).await;
            }
        }
    }

    async fn intent(&mut self, link: Generation) -> Result<Option<StoredIntent>, PortError> {
        if let Some((same, intent)) = self.fresh.take()
            && same == link
        {
            return Ok(Some(intent));
        }
        let (intents, id) = (&self.sandbox.intents, self.operation.id);
        patiently(|| intents.find(id)).await
    }

    async fn send(
        &mut self,
        link: &LinkHandle,
        intent: &StoredIntent,
        may_start: bool,
    ) -> Result<(), Gone> {
        let id = self.operation.id;
        if intent.cancel_requested && intent.outcome.is_none() {
            // Before the operation itself: what the runner does not know yet must not start.
            link.cancel_unheard(id, self.operation.epoch).await?;
        }
        let (post, offsets) = self.mailbox.attach();
        let reader = Reader {
            post,
            expects: convert::expected(&self.operation.request),
            yields: false,
        };
        let frame = self.frame(intent, may_start, offsets);
        link.attach(id, frame, reader).await
    }

    fn frame(&self, intent: &StoredIntent, may_start: bool, offsets: Offsets) -> v1::Operation {
        let operation = &self.operation;
        let remaining = intent.deadline.since(self.sandbox.clock.now());
        // 0 says that the request is absent on purpose, and not of a kind that is unknown there.
        let start_within_ms = if may_start {
            milliseconds(remaining).max(1)
        } else {
            0
        };
        v1::Operation {
            operation: operation.id.to_string(),
            digest: intent.digest.as_bytes().to_vec(),
            sandbox: self.place.sandbox.to_string(),
            owner: operation.owner.to_string(),
            epoch: operation.epoch.0,
            incarnation: Some((&self.incarnation).into()),
            start_within_ms,
            run_for_ms: milliseconds(operation.limits.run_for),
            stdout_from: offsets.stdout,
            stderr_from: offsets.stderr,
            request: may_start.then(|| convert::request(&operation.request)),
        }
    }

    /// The runner did not take the operation.
    async fn refused(
        &mut self,
        refusal: Refusal,
        intent: StoredIntent,
        may_start: bool,
    ) -> Result<Read, PortError> {
        if let Some(outcome) = intent.outcome {
            return self.finish(outcome).await;
        }
        match refusal.code {
            // These speak of this attempt to read, not of the operation: it may be running.
            RefusalCode::StaleEpoch | RefusalCode::Conflict => {
                let ended = OperationEvent::Ended(Outcome::Refused(refusal));
                self.deliver(ended).await;
                Ok(Read::Finished)
            }
            // It was asked without a request because the time to start it has passed.
            RefusalCode::NotFound if !may_start => self.finish(Outcome::Refused(expired())).await,
            _ => self.finish(Outcome::Refused(refusal)).await,
        }
    }

    async fn lost(&mut self, refusal: Refusal) -> Result<(), PortError> {
        tracing::warn!(reason = %refusal, "the operation is lost, unless its outcome is stored");
        self.finish(Outcome::Refused(refusal)).await.map(drop)
    }

    /// Stores the outcome and tells the reader the one that is stored, after all that is known
    /// of the output.
    async fn finish(&mut self, outcome: Outcome) -> Result<Read, PortError> {
        let (intents, id) = (&self.sandbox.intents, self.operation.id);
        let outcome = match patiently(|| intents.settle(id, &outcome)).await? {
            Settled::First => outcome,
            Settled::Already(stored) => stored,
        };
        for (stream, end) in output_ends(&outcome) {
            let from = self.mailbox.received(stream);
            if from < end {
                let to = end;
                self.deliver(OperationEvent::Gap { stream, from, to }).await;
            }
        }
        self.deliver(OperationEvent::Ended(outcome)).await;
        Ok(Read::Finished)
    }

    fn output_is_missing(&self, outcome: &Outcome) -> bool {
        let mut ends = output_ends(outcome).into_iter();
        ends.any(|(stream, end)| self.mailbox.received(stream) < end)
    }

    async fn unreachable(&mut self, since: Timestamp) {
        if !self.told_unreachable {
            self.told_unreachable = true;
            self.deliver(OperationEvent::Unreachable { since }).await;
        }
    }

    async fn reachable(&mut self) {
        if std::mem::take(&mut self.told_unreachable) {
            self.deliver(OperationEvent::Reachable).await;
        }
    }

    /// Waits for the reader to take it; a reader that has gone needs nothing.
    async fn deliver(&self, event: OperationEvent) {
        let _ = self.events.send(event).await;
    }
}

/// Where the output ends, as far as the outcome says.
fn output_ends(outcome: &Outcome) -> Vec<(OutputStream, u64)> {
    match outcome {
        Outcome::Exited(record) => vec![
            (OutputStream::Stdout, record.stdout.offset),
            (OutputStream::Stderr, record.stderr.offset),
        ],
        _ => Vec::new(),
    }
}

/// Asks the store until it answers, a bounded number of times.
async fn patiently<T, F>(mut ask: impl FnMut() -> F) -> Result<T, PortError>
where
    F: Future<Output = Result<T, PortError>>,
{
    let mut pause = STORE_PAUSE;
    for _ in 1..STORE_ATTEMPTS {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => tracing::warn!(%error, "the store did not answer; asking again"),
        }
        sleep(pause).await;
        pause *= 2;
    }
    ask().await
}

/// Whole milliseconds.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
