//! Collectors: one task for each placed operation, whichever reader asked for it.
//!
//! A collector appends the output to its store, stores the end, commits to the runner and lets it forget ([`driver`]).
//! Readers only read: by the operation's id and from an offset, first the kept output, then new output ([`board`],
//! [`reading`]). Readers come and go, and none of them delays the collector. An operation has one collector, however
//! many readers ask for it. The last one of them under the newest epoch of its owner may store the end together with
//! what it concludes from it.
//!
//! Operations that a link finds open on its runner are collected too, without their requests: that can start nothing. A
//! reader that asks for one later gets the same collector, which then has the request.
//!
//! A download is kept nowhere, so it has no board but one reader, and waits for that reader ([`audience`]).

mod audience;
mod board;
mod controls;
mod driver;
mod keeping;
mod patience;
mod reading;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use shared_link::server::Follow;
use shared_sandbox::{
    Control, Controls, Input, Operation, OutputStream, Request, Retention, Running,
};
use shared_types::{
    Clock, Digest, Epoch, Generation, OperationId, Refusal, RefusalCode, event::Place,
};
use tokio::{
    sync::{OnceCell, Semaphore},
    task::JoinHandle,
};
use tracing::Instrument;

pub use self::reading::OperationReader;
use self::{
    audience::{Audience, One},
    board::Board,
    controls::RemoteControls,
    driver::{Begin, CollectDriver},
    keeping::Keeping,
    patience::patiently,
};
use crate::{
    bounds::{ENDED_AT_ONCE, RUNNING_AT_ONCE},
    links::{ConnectionWatch, Links},
};
use server_records::{Fleet, Operations, Outputs, PortError};
use shared_link::server::StoredIntent;

/// The operations that are being collected. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Collectors(Arc<CollectorTable>);

#[derive(Debug)]
struct CollectorTable {
    all: Mutex<HashMap<OperationId, Arc<OnceCell<Collected>>>>,
    /// Permits of the collectors that may ask for output once more at the same time.
    again: Arc<Semaphore>,
}

/// An operation whose output and end are collected, or were.
#[derive(Debug, Clone)]
pub struct Collected {
    board: Arc<Board>,
    place: Place,
    digest: Digest,
    /// None once it has ended: then nothing is passed on to it.
    controls: Option<Arc<RemoteControls>>,
}

/// The parts of the server that a collector uses.
#[derive(Clone)]
pub(crate) struct Ports {
    pub(crate) links: Links,
    pub(crate) operations: Arc<dyn Operations>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Tells people what the operation waits for; absent if the request is not known.
    pub(crate) fleet: Option<Arc<dyn Fleet>>,
}

impl Ports {
    fn tell(&self, words: String) {
        if let Some(fleet) = &self.fleet {
            fleet.tell(words);
        }
    }
}

/// An operation that is placed, and its place.
pub(crate) struct PlacedOperation {
    pub(crate) intent: StoredIntent,
    /// It has just been placed, while its runner had this link.
    pub(crate) fresh: Option<Generation>,
    pub(crate) connection: ConnectionWatch,
}

impl Collected {
    /// An ended one whose known output is all kept; none if its end is not known.
    fn ended(
        id: OperationId,
        outputs: Arc<dyn Outputs>,
        intent: StoredIntent,
        kept: [u64; 2],
    ) -> Option<Self> {
        Some(Self {
            board: Board::ended(id, outputs, kept, intent.outcome?),
            place: intent.place,
            digest: intent.digest,
            controls: None,
        })
    }

    /// Reads stdout and stderr from these offsets on, and the other events.
    pub fn read(&self, from: [u64; 2]) -> OperationReader {
        OperationReader::new(Arc::clone(&self.board), from)
    }

    /// The place of the operation.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The controls that pass input and signals on to it.
    pub fn controls(&self) -> Arc<dyn Controls> {
        match &self.controls {
            Some(controls) => controls.clone(),
            None => Arc::new(EndedControls),
        }
    }

    /// The same for a contract's caller.
    pub(crate) fn running(&self, reading: OperationReader) -> Running {
        Running {
            place: self.place.clone(),
            events: Box::new(reading),
            controls: self.controls(),
        }
    }

    /// Its reader that may store the end, and asks for it under this epoch.
    pub(crate) fn claim(&self, epoch: Epoch) -> OperationReader {
        OperationReader::claiming(Arc::clone(&self.board), epoch)
    }

    /// A reader for another replica, which reads stdout and stderr from these offsets on. It may store the end unless a
    /// reader under this epoch or a newer one may: the other replica may collect the operation for no reader at all.
    pub(crate) fn claim_if_free(&self, from: [u64; 2], epoch: Epoch) -> OperationReader {
        OperationReader::claiming_if_free(Arc::clone(&self.board), from, epoch)
    }

    /// True if its runner cannot be reached.
    fn is_away(&self) -> bool {
        self.board.lock().unreachable.is_some()
    }

    /// Waits until its end is stored, or it is given up; returns true if there is an end.
    pub(crate) async fn settled(&self) -> bool {
        self.board.until_settled().await;
        self.board.lock().ended.is_some()
    }

    /// Records that a reader asks for it.
    fn ask(&self, operation: Arc<Operation>) -> Result<(), Refusal> {
        if self.digest != operation.request.digest() {
            return Err(conflict());
        }
        if asks_for_all(&operation.request) {
            self.board.all_is_kept();
        }
        let is_newest = match &self.controls {
            Some(controls) => controls.ask(operation),
            None => true,
        };
        match is_newest {
            true => Ok(()),
            false => Err(stale()),
        }
    }
}

impl Collectors {
    pub(crate) fn new() -> Self {
        Self(Arc::new(CollectorTable {
            all: Mutex::default(),
            again: Arc::new(Semaphore::new(ENDED_AT_ONCE)),
        }))
    }

    /// The operation, while it is being collected.
    pub(crate) fn find(&self, id: OperationId) -> Option<Collected> {
        self.lock().get(&id)?.get().cloned()
    }

    /// Collects an operation that a reader asks for; `place` finds its place. If the operation is new here, it also
    /// returns the reader that may store its end, which misses no event.
    ///
    /// # Errors
    /// A refusal, for instance of `place`; then this call started nothing.
    pub(crate) async fn collect<F>(
        &self,
        ports: &Ports,
        operation: Arc<Operation>,
        place: impl FnOnce(Arc<Operation>) -> F,
    ) -> Result<(Collected, Option<OperationReader>), Refusal>
    where
        F: Future<Output = Result<PlacedOperation, Refusal>>,
    {
        let mut claimed = None;
        let first = &mut claimed;
        let cell = Cell::of(self, operation.id);
        let begin = async {
            let placed = place(Arc::clone(&operation)).await?;
            let asked = Some(Arc::clone(&operation));
            let (begin, collected) = self.prepare(ports, operation.id, asked, &placed).await;
            *first = Some(collected.claim(operation.epoch));
            self.spawn(begin, &collected, placed.connection);
            Ok::<_, Refusal>(collected)
        };
        let collected = cell.cell.get_or_try_init(|| begin).await?.clone();
        if claimed.is_none() {
            collected.ask(operation)?;
        }
        Ok((collected, claimed))
    }

    /// Collects an operation that is placed, without its request; none if there is no such operation.
    ///
    /// # Errors
    /// The store did not answer.
    pub(crate) async fn attach(
        &self,
        ports: &Ports,
        id: OperationId,
    ) -> Result<Option<Collected>, PortError> {
        if let Some(collected) = self.find(id) {
            return Ok(Some(collected));
        }
        let Some(intent) = ports.operations.find(id).await? else {
            return Ok(None);
        };
        let connection = ports.links.watch(intent.place.runner).await;
        let placed = PlacedOperation {
            intent,
            fresh: None,
            connection,
        };
        let cell = Cell::of(self, id);
        let begin = async {
            let (begin, collected) = self.prepare(ports, id, None, &placed).await;
            self.spawn(begin, &collected, placed.connection.clone());
            collected
        };
        Ok(Some(cell.cell.get_or_init(|| begin).await.clone()))
    }

    /// The same for an operation that no reader asks for: it waits for a store that is away.
    ///
    /// # Errors
    /// The operation's row cannot be read.
    pub(crate) async fn attach_in_the_end(
        &self,
        ports: &Ports,
        id: OperationId,
    ) -> Result<Option<Collected>, PortError> {
        patiently(|| self.attach(ports, id)).await
    }

    /// A placed operation to read; none if there is no such operation. One that has ended is read from its kept output:
    /// its runner is not asked, and an absent one is not waited for.
    ///
    /// # Errors
    /// The store did not answer.
    pub(crate) async fn read(
        &self,
        ports: &Ports,
        id: OperationId,
    ) -> Result<Option<Collected>, PortError> {
        if let Some(collected) = self.find(id)
            && !collected.is_away()
        {
            return Ok(Some(collected));
        }
        match ports.operations.find(id).await? {
            Some(intent) if intent.outcome.is_some() => {
                let outputs = ports.operations.outputs();
                // Output that cannot be read now appears as missing when a reader comes to it.
                let kept = outputs.resume(id).await.unwrap_or_default();
                Ok(Collected::ended(id, outputs, intent, kept))
            }
            Some(_) => self.attach(ports, id).await,
            None => Ok(None),
        }
    }

    /// Collects the operations that a link has found on its runner: ended ones a few at a time, and running ones
    /// without waiting for those. The task ends with its work, or is aborted with the link. Operations that are being
    /// collected by then continue over the next link.
    pub(crate) fn attach_all(
        &self,
        ports: Ports,
        ended: Vec<OperationId>,
        running: Vec<OperationId>,
    ) -> JoinHandle<()> {
        let all = self.clone();
        tokio::spawn(async move {
            let (few, many) = (ENDED_AT_ONCE, RUNNING_AT_ONCE);
            let ended = all.attach_each(&ports, ended, few);
            let running = all.attach_each(&ports, running, many);
            tokio::join!(ended, running);
        })
    }

    async fn attach_each(&self, ports: &Ports, ids: Vec<OperationId>, at_once: usize) {
        let attached = stream::iter(ids).for_each_concurrent(at_once, |id| {
            let (all, ports) = (self.clone(), ports.clone());
            async move {
                match all.attach_in_the_end(&ports, id).await {
                    Ok(Some(collected)) => {
                        collected.settled().await;
                    }
                    Ok(None) => {}
                    Err(error) => {
                        tracing::error!(operation.id = %id, %error, "an operation cannot be collected: its row cannot be read");
                    }
                }
            }
        });
        attached.await;
    }

    async fn prepare(
        &self,
        ports: &Ports,
        id: OperationId,
        asked: Option<Arc<Operation>>,
        placed: &PlacedOperation,
    ) -> (Begin, Collected) {
        let outputs = ports.operations.outputs();
        let mut keeping = Keeping::of(id, Arc::clone(&outputs), true);
        let request = asked.as_ref().map(|asked| &asked.request);
        let may_write = request.is_none_or(|request| matches!(request, Request::Exec(_)));
        let kept = match placed.fresh.is_none() && may_write {
            true => keeping.resume().await,
            false => [0, 0],
        };
        let whole = request.is_some_and(asks_for_all);
        let board = Board::open(id, outputs, kept, whole);
        let (controls, wishes) = RemoteControls::pair(asked.clone());
        let begin = Begin {
            ports: ports.clone(),
            machine: Follow::new(id, asked, placed.intent.clone(), placed.fresh, kept),
            fresh: placed.fresh,
            keeping,
            audience: Audience::Board(Arc::clone(&board)),
            wishes,
            again: Arc::clone(&self.0.again),
        };
        let collected = Collected {
            board,
            place: placed.intent.place.clone(),
            digest: placed.intent.digest,
            controls: Some(Arc::new(controls)),
        };
        (begin, collected)
    }

    fn spawn(&self, begin: Begin, collected: &Collected, connection: ConnectionWatch) {
        let ending = CollectorExit {
            all: self.clone(),
            id: begin.machine.id(),
            board: Arc::clone(&collected.board),
        };
        spawn(begin, connection, ending);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OperationId, Arc<OnceCell<Collected>>>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

/// Collects an operation whose output is kept nowhere, for one reader. Another reader of it takes it over.
pub(crate) fn alone(ports: &Ports, operation: Arc<Operation>, placed: PlacedOperation) -> Running {
    let (one, events) = One::pair();
    let (controls, wishes) = RemoteControls::pair(Some(Arc::clone(&operation)));
    let place = placed.intent.place.clone();
    let (id, fresh) = (operation.id, placed.fresh);
    let begin = Begin {
        ports: ports.clone(),
        machine: Follow::new(id, Some(operation), placed.intent, fresh, [0, 0]),
        fresh,
        keeping: Keeping::of(id, ports.operations.outputs(), false),
        audience: Audience::One(one),
        wishes,
        again: Arc::new(Semaphore::new(1)),
    };
    spawn(begin, placed.connection, ());
    Running {
        place,
        events: Box::new(events),
        controls: Arc::new(controls),
    }
}

/// `ending` is dropped when the task ends, however it does.
fn spawn(begin: Begin, connection: ConnectionWatch, ending: impl Send + 'static) {
    let span = tracing::info_span!(
        "operation",
        operation.id = %begin.machine.id(),
        runner.id = %begin.machine.runner(),
        trace.id = begin.machine.trace().map(tracing::field::display)
    );
    let driver = CollectDriver::new(begin);
    // Detached on purpose: it ends with the operation.
    tokio::spawn(
        async move {
            let _ending = ending;
            if let Err(error) = driver.run(connection).await {
                tracing::error!(%error, "gave an operation up: its row cannot be used");
            }
        }
        .instrument(span),
    );
}

/// The end of a collector.
struct CollectorExit {
    all: Collectors,
    id: OperationId,
    board: Arc<Board>,
}

impl Drop for CollectorExit {
    fn drop(&mut self) {
        self.all.lock().remove(&self.id);
        self.board.close();
    }
}

/// The place of one operation among those that are collected. A cell that could not be filled is removed, unless
/// another caller tries as well.
struct Cell<'a> {
    all: &'a Collectors,
    id: OperationId,
    cell: Arc<OnceCell<Collected>>,
}

impl<'a> Cell<'a> {
    fn of(all: &'a Collectors, id: OperationId) -> Self {
        let cell = Arc::clone(all.lock().entry(id).or_default());
        Self { all, id, cell }
    }
}

impl Drop for Cell<'_> {
    fn drop(&mut self) {
        if self.cell.initialized() {
            return;
        }
        let mut all = self.all.lock();
        let same = |now: &Arc<_>| Arc::ptr_eq(now, &self.cell);
        // One reference is the map's and one is ours.
        if Arc::strong_count(&self.cell) <= 2 && all.get(&self.id).is_some_and(same) {
            all.remove(&self.id);
        }
    }
}

pub(crate) fn asks_for_all(request: &Request) -> bool {
    matches!(request, Request::Exec(exec) if exec.retention == Retention::All)
}

pub(crate) fn conflict() -> Refusal {
    Refusal::new(
        RefusalCode::Conflict,
        "the same operation was asked for with another request",
    )
}

pub(crate) fn stale() -> Refusal {
    Refusal::new(
        RefusalCode::StaleEpoch,
        "a newer holder of the session exists",
    )
}

/// The controls of an operation that has ended: nothing is passed on.
#[derive(Debug)]
struct EndedControls;

#[async_trait]
impl Controls for EndedControls {
    async fn input(&self, _input: Input) -> Result<u64, Refusal> {
        Err(over())
    }

    async fn control(&self, _control: Control) -> Result<(), Refusal> {
        Err(over())
    }

    async fn commit(&self, _stream: OutputStream, _up_to: u64) {}
}

fn over() -> Refusal {
    Refusal::new(RefusalCode::NotFound, "the operation has ended")
}
