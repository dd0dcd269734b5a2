//! Links of this replica that are lent to others ([`super::borrowed`] is the other end).
//!
//! The replica that borrows sends the frames that it would send the runner. Orders about operations go to their
//! collectors here, which stay the only ones that keep output and let the runner forget. All other orders go to the
//! runner. A loan ends with the link, or with the call.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use proto::v1;
use server_records::is_kept_nowhere;
use shared_link::{
    lent::{self, Incoming, ModelOrder, Order, ReceivedFrame, SandboxOrder, received},
    server::{AnswerPart, AskFailure, AskFailureKind, AskKind},
};
use shared_sandbox::{Operation, OperationLimits, Outcome};
use shared_types::{
    OperationId, OperationKey, Refusal, RefusalCode, RunnerId, SandboxId, TenantId, TraceContext,
    limits::{MODEL_BODY_BYTES, MODEL_WINDOW_BYTES},
};
use tokio::{
    pin,
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
};

use self::operation::{Attached, LentOperation, Passed};
use super::{LentAnswer, LinkIdentity, Links, asks::ModelAnswer, handle::LinkHandle};
use crate::{
    bounds::RETRY_AFTER,
    collect::{self, PlacedOperation, Ports, conflict, stale},
};

mod operation;

/// The most operations and asks of one loan at once: more than a runner runs.
const AT_ONCE: usize = 4096;

/// The way of the answers.
pub(super) type Answers = mpsc::Sender<LentAnswer>;

/// A link that is lent.
pub struct LentLink {
    links: Links,
    link: LinkHandle,
    ports: Ports,
    runner: RunnerId,
}

/// The work of a loan.
struct Loan {
    of: Arc<LentLink>,
    answers: Answers,
    operations: HashMap<OperationId, LentOperation>,
    asks: HashMap<u64, LentAsk>,
    tasks: JoinSet<Finished>,
    /// Tasks so far.
    started: u64,
}

/// A task of a loan that has ended.
enum Finished {
    /// Of an operation, and the number of its task.
    Operation(OperationId, u64, operation::End),
    Ask(u64),
    Order,
}

/// An ask of the runner's model server.
enum LentAsk {
    /// Its body is not whole.
    Body {
        kind: Option<AskKind>,
        bytes: usize,
        trace: Option<TraceContext>,
        so_far: Vec<u8>,
    },
    /// It is asked. The offset up to which the other replica has room for the answer, and the task.
    Asked(watch::Sender<u64>, AbortHandle),
}

impl LentLink {
    pub(super) fn of(links: &Links, tenant: TenantId, runner: RunnerId, link: LinkHandle) -> Self {
        // The rows are asked by the tenant alone.
        let who = LinkIdentity {
            tenant,
            runner,
            name: String::new(),
        };
        let ports = links.ports(links.serving.rows.operations(&who));
        Self {
            links: links.clone(),
            link,
            ports,
            runner,
        }
    }

    /// Serves the loan until the link ends, the borrower closes the call, or the answers have no receiver.
    pub async fn serve(
        self,
        orders: impl Stream<Item = v1::ServerFrame>,
        answers: mpsc::Sender<LentAnswer>,
    ) {
        let link = self.link.clone();
        let mut loan = Loan {
            of: Arc::new(self),
            answers,
            operations: HashMap::new(),
            asks: HashMap::new(),
            tasks: JoinSet::new(),
            started: 0,
        };
        pin!(orders);
        loop {
            tokio::select! {
                order = orders.next() => match order {
                    Some(frame) => {
                        if loan.order(frame).await.is_none() {
                            return;
                        }
                    }
                    None => return,
                },
                Some(finished) = loan.tasks.join_next() => {
                    // A task that was aborted has been taken out already.
                    if let Ok(finished) = finished && loan.finished(finished).await.is_none() {
                        return;
                    }
                }
                () = link.over() => return,
            }
        }
    }

    /// Lets the runner forget an operation that has ended. A collector does that itself, once it has kept the output.
    async fn forget(&self, operation: OperationId) {
        if self.links.collectors.find(operation).is_some() {
            return;
        }
        let found = self.ports.operations.find(operation).await;
        let ended = found.ok().flatten();
        let ended = ended.filter(|intent| intent.place.runner == self.runner);
        // Output of a call that goes on may have yet to be kept.
        if ended.is_some_and(|intent| intent.outcome.is_some() && intent.closed) {
            // If it does not arrive, the verdict on the next inventory repeats it.
            let _ = self.link.forget(operation).await;
        }
    }

    /// Attaches a reader to the operation of an order. It may store the end, if the order brings a request.
    async fn attach(&self, incoming: Incoming) -> Result<Attached, Refusal> {
        let (id, operations) = (incoming.id, &self.ports.operations);
        let found = operations.find(id).await;
        let found = found.map_err(|error| {
            tracing::warn!(operation.id = %id, %error, "failed to read an operation of another server");
            unreadable()
        })?;
        let found = found.filter(|intent| intent.place.runner == self.runner);
        let Some(mut intent) = found else {
            return Err(Refusal::new(
                RefusalCode::NotFound,
                "there is no such operation",
            ));
        };
        if intent.digest != incoming.digest {
            return Err(conflict());
        }
        let Some(request) = incoming.request else {
            // Its output is collected also if its end is stored: the other replica lacks some of it.
            let collected = self.links.collectors.attach(&self.ports, id).await;
            let collected = collected.ok().flatten().ok_or_else(unreadable)?;
            let running = collected.running(collected.read(incoming.from));
            return Ok(Attached::Reader(running));
        };
        if intent.epoch > incoming.epoch {
            return Err(stale());
        }
        // Both ends may be on hosts of their own, and so be their clocks since the boot: what travels is the rest.
        if !incoming.start_within.is_zero() {
            let start_by = self.ports.clock.boot_moment().after(incoming.start_within);
            intent.start_by = Some(start_by);
        }
        let operation = Arc::new(Operation {
            id,
            owner: incoming.owner,
            // It has named the operation when that was placed. Nothing asks for it later.
            key: OperationKey::Request(String::new()),
            epoch: incoming.epoch,
            effect: intent.effect,
            limits: OperationLimits {
                start_within: incoming.start_within,
                run_for: incoming.run_for,
            },
            request,
            consent: incoming.consent,
            trace: intent.trace,
        });
        // It was read after the link was there, as for a link that a collector finds.
        let is_open = intent.outcome.is_none();
        let placed = PlacedOperation {
            intent,
            fresh: is_open.then(|| self.link.generation()),
            connection: self.links.watch(self.runner).await,
        };
        if is_kept_nowhere(&operation.request) {
            let running = collect::alone(&self.ports, operation, placed);
            return Ok(Attached::OneReader(running));
        }
        let place = |_| async move { Ok(placed) };
        let collectors = &self.links.collectors;
        let (collected, _) = collectors.collect(&self.ports, operation, place).await?;
        let running = collected.running(collected.claim_if_free(incoming.from, incoming.epoch));
        Ok(Attached::Reader(running))
    }
}

fn unreadable() -> Refusal {
    let message = "the server that holds the runner's link failed to read the operation";
    Refusal::new(RefusalCode::Unavailable, message).retry_after(RETRY_AFTER)
}

impl Loan {
    /// Carries an order out. None ends the loan.
    async fn order(&mut self, frame: v1::ServerFrame) -> Option<()> {
        let order = match received(frame.kind) {
            ReceivedFrame::Order(order) => order,
            ReceivedFrame::Model(order) => return self.model(order).await,
            ReceivedFrame::Answer(answer) => return self.answer(answer).await,
            ReceivedFrame::Nothing => return Some(()),
        };
        match order {
            Order::Operation(incoming) => return self.operation(*incoming).await,
            Order::Credit {
                operation,
                stream,
                up_to,
            } => {
                if let Some(lent) = self.operations.get(&operation) {
                    lent.grant(stream, up_to);
                }
            }
            Order::Commit {
                operation,
                stream,
                up_to,
            } => self.pass(operation, Passed::Commit(stream, up_to)),
            Order::Control {
                operation,
                id,
                control,
            } => self.pass(operation, Passed::Control(id, control)),
            Order::Input { operation, piece } => {
                if let Some(lent) = self.operations.get(&operation) {
                    return lent.input(piece);
                }
            }
            Order::Cancel {
                operation,
                owner,
                epoch,
                ..
            } => {
                let (link, answers) = (self.of.link.clone(), self.answers.clone());
                self.tasks.spawn(async move {
                    if let Ok(answer) = link.cancel(operation, owner, epoch).await
                        && let Some(frame) = lent::cancel_answer(operation, answer)
                    {
                        let _ = answers.send(LentAnswer::Frame(frame)).await;
                    }
                    Finished::Order
                });
            }
            // Its end is stored.
            Order::Forget(operation) => match self.operations.remove(&operation) {
                Some(lent) => lent.stored(),
                None => {
                    let of = Arc::clone(&self.of);
                    self.tasks.spawn(async move {
                        of.forget(operation).await;
                        Finished::Order
                    });
                }
            },
            // The collector sees that its reader has gone.
            Order::LetGo(operation) => drop(self.operations.remove(&operation)),
            Order::Sandbox(sandbox, order) => return self.sandbox(sandbox, order).await,
        }
        Some(())
    }

    async fn operation(&mut self, incoming: Incoming) -> Option<()> {
        let id = incoming.id;
        if let Some(before) = self.operations.remove(&id)
            && !before.is_answered()
        {
            // Each order for an operation has one answer.
            self.answer(lent::accepted(id)).await?;
        }
        if self.operations.len() >= AT_ONCE {
            let message = format!("the link carries {AT_ONCE} operations of this server");
            let refusal = Refusal::new(RefusalCode::ResourceExhausted, message);
            let refusal = refusal.retry_after(RETRY_AFTER);
            return self
                .answer(lent::ended(id, Outcome::Refused(refusal)))
                .await;
        }
        self.started += 1;
        let (of, number) = (Arc::clone(&self.of), self.started);
        let from = incoming.from;
        let attached = async move { of.attach(incoming).await };
        let (lent, run) = operation::lend(id, from, attached, self.answers.clone());
        let task = self
            .tasks
            .spawn(async move { Finished::Operation(id, number, run.await) });
        self.operations.insert(id, lent.by(number, task));
        Some(())
    }

    fn pass(&self, operation: OperationId, passed: Passed) {
        if let Some(lent) = self.operations.get(&operation) {
            lent.pass(passed);
        }
    }

    async fn sandbox(&self, sandbox: SandboxId, order: SandboxOrder) -> Option<()> {
        let link = &self.of.link;
        let done = match order {
            SandboxOrder::Ensure { spec, start } => link.ensure(sandbox, &spec, start).await,
            SandboxOrder::Stop => link.stop_sandbox(sandbox).await,
            SandboxOrder::Remove => link.remove_sandbox(sandbox).await,
        };
        done.ok()
    }

    async fn finished(&mut self, finished: Finished) -> Option<()> {
        match finished {
            Finished::Order => {}
            Finished::Ask(ask) => drop(self.asks.remove(&ask)),
            Finished::Operation(id, number, end) => {
                if self
                    .operations
                    .get(&id)
                    .is_none_or(|lent| lent.number() != number)
                {
                    return Some(());
                }
                self.operations.remove(&id);
                match end {
                    operation::End::Told => {}
                    operation::End::Superseded => {
                        self.answers.send(LentAnswer::Superseded(id)).await.ok()?;
                    }
                    // The other replica attaches again, by another loan.
                    operation::End::GivenUp => return None,
                }
            }
        }
        Some(())
    }

    async fn answer(&self, frame: v1::RunnerFrame) -> Option<()> {
        self.answers.send(LentAnswer::Frame(frame)).await.ok()
    }

    /// Passes on an order about an ask of the runner's model server.
    async fn model(&mut self, order: ModelOrder) -> Option<()> {
        match order {
            ModelOrder::Begin {
                ask,
                kind,
                body_bytes,
                trace,
            } => {
                let bytes = usize::try_from(body_bytes).ok();
                let bytes = bytes.filter(|bytes| *bytes <= MODEL_BODY_BYTES)?;
                if self.asks.len() >= AT_ONCE {
                    return None;
                }
                let (kind, so_far) = (kind, Vec::new());
                let body = LentAsk::Body {
                    kind,
                    bytes,
                    trace,
                    so_far,
                };
                self.asks.insert(ask, body);
                self.ask_once_whole(ask);
            }
            ModelOrder::Body { ask, data } => {
                if let Some(LentAsk::Body { bytes, so_far, .. }) = self.asks.get_mut(&ask) {
                    if so_far.len() + data.len() > *bytes {
                        return None;
                    }
                    so_far.extend_from_slice(&data);
                    self.ask_once_whole(ask);
                }
            }
            ModelOrder::Credit { ask, up_to } => {
                if let Some(LentAsk::Asked(granted, _)) = self.asks.get(&ask) {
                    granted.send_if_modified(|granted| {
                        let is_more = up_to > *granted;
                        *granted = up_to.max(*granted);
                        is_more
                    });
                }
            }
            ModelOrder::Drop { ask } => {
                if let Some(LentAsk::Asked(_, task)) = self.asks.remove(&ask) {
                    task.abort();
                }
            }
        }
        Some(())
    }

    fn ask_once_whole(&mut self, ask: u64) {
        let Some(LentAsk::Body {
            kind,
            bytes,
            trace,
            so_far,
        }) = self.asks.get_mut(&ask)
        else {
            return;
        };
        if so_far.len() < *bytes {
            return;
        }
        let (kind, trace, body) = (*kind, *trace, Bytes::from(std::mem::take(so_far)));
        let (granted, room) = watch::channel(MODEL_WINDOW_BYTES);
        let (link, answers) = (self.of.link.clone(), self.answers.clone());
        let task = self.tasks.spawn(async move {
            let _ = relay_answer(ask, &link, kind, body, trace, room, &answers).await;
            Finished::Ask(ask)
        });
        self.asks.insert(ask, LentAsk::Asked(granted, task));
    }
}

/// Relays the answer of the runner's model server, within the room of the other replica. None if a loan ends.
async fn relay_answer(
    ask: u64,
    link: &LinkHandle,
    kind: Option<AskKind>,
    body: Bytes,
    trace: Option<TraceContext>,
    mut room: watch::Receiver<u64>,
    answers: &Answers,
) -> Option<()> {
    let Some(kind) = kind else {
        let failure = AskFailure {
            kind: AskFailureKind::Unsupported,
            reason: "the server that holds the runner's link does not know this request".to_owned(),
        };
        let frame = lent::model_answer(ask, AnswerPart::Failed(failure));
        return answers.send(LentAnswer::Frame(frame)).await.ok();
    };
    let mut answer = ModelAnswer::begin(link, kind, &body, trace).await.ok()?;
    let mut sent = 0;
    while let Some(part) = answer.next().await {
        if let AnswerPart::Data(data) = &part {
            sent += data.len() as u64;
            room.wait_for(|granted| sent <= *granted).await.ok()?;
        }
        let frame = lent::model_answer(ask, part);
        answers.send(LentAnswer::Frame(frame)).await.ok()?;
    }
    Some(())
}
