//! The dispatcher: it has one worker for each session with work, which claims the turns of the session in order. The
//! worker carries each to its end, or to a point where it only waits ([`crate::wait`]).
//!
//! A wake-up carries no data: the worker looks at the rows, so that a restart and the normal path
//! are one path. A turn that a dead worker left is claimed like any other, under a higher epoch,
//! and the engine goes on from its log (docs/internals/contracts.md#c1 to #c4).

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use server_records::{SessionError, SessionKey};
use shared_sandbox::CancelAnswer;
use shared_types::{Epoch, OperationId, Refusal, SessionEvent, TurnId};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{bench::Bench, permits::Permits, work::TurnWork, worker::Worker};
use crate::{
    context::report::{ContextReport, report},
    tools::ToolSet,
    transcript::Transcript,
    wait::{View, wake_queued, wake_waiting},
};

/// Wake-ups that may wait for the dispatcher.
const WAKE_UPS: usize = 1024;
/// Unfinished turns that are read at once when the server starts.
pub(crate) const START_PAGE: u32 = 500;
/// Between attempts while the store does not answer; a worker doubles it with each attempt.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A cheap handle to the dispatcher.
#[derive(Clone)]
pub struct Turns {
    wake: mpsc::Sender<SessionKey>,
    from_others: mpsc::Sender<FromOthers>,
    bench: Arc<Bench>,
    ended: CancellationToken,
}

/// Word about other replicas.
enum FromOthers {
    /// As they are, this replica does this work.
    Work(TurnWork),
    /// One has a session with a turn to claim, which it does not claim itself.
    Offered(SessionKey),
    /// One has changed something about the session's turns.
    Changed(SessionKey),
    /// One may have changed anything.
    AllChanged,
    /// Asks which sessions this replica has.
    Which(oneshot::Sender<Vec<SessionKey>>),
}

impl Turns {
    /// Starts the dispatcher and, with it, every turn that is not finished. It ends with `stop`:
    /// what runs is left as it is, for the next start.
    pub fn start(
        bench: Bench,
        at_once: usize,
        stop: CancellationToken,
        tasks: &TaskTracker,
    ) -> Self {
        let agents_at_once = bench.engine.limits.agents_at_once;
        let bench = Arc::new(bench);
        let (wake, inbox) = mpsc::channel(WAKE_UPS);
        let (unheard_of, unheard) = mpsc::channel(WAKE_UPS);
        let (from_others, of_others) = mpsc::channel(WAKE_UPS);
        let (idle, idled) = mpsc::channel(WAKE_UPS);
        let dispatcher = Dispatcher {
            bench: bench.clone(),
            workers: HashMap::new(),
            views: HashMap::new(),
            idle,
            permits: Permits::new(at_once, agents_at_once),
            dropped: stop.child_token(),
            wake: wake.clone(),
        };
        let ended = CancellationToken::new();
        let end = ended.clone().drop_guard();
        let run = dispatcher.run((inbox, unheard, of_others), idled, stop.clone());
        tasks.spawn(async move {
            run.await;
            drop(end);
        });
        let waiting = wake_waiting(bench.clone(), wake.clone(), stop.clone());
        tasks.spawn(waiting);
        let queued = wake_queued(bench.clone(), unheard_of, stop.clone());
        tasks.spawn(queued);
        tasks.spawn(wake_unfinished(bench.clone(), wake.clone(), stop));
        Self {
            wake,
            from_others,
            bench,
            ended,
        }
    }

    /// From now on this replica does this work on turns.
    pub async fn do_work(&self, work: TurnWork) {
        if self.bench.engine.work.send_replace(work) != work {
            let _ = self.from_others.send(FromOthers::Work(work)).await;
        }
    }

    /// Waits, after the stop, until no worker is left.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// A replica is gone: every turn that it may have had is looked at.
    pub fn wake_unfinished(&self) {
        if *self.bench.engine.work.borrow() != TurnWork::All {
            return;
        }
        let (bench, wake) = (self.bench.clone(), self.wake.clone());
        // It ends with the dispatcher, which takes what it says.
        tokio::spawn(wake_unfinished(bench, wake, CancellationToken::new()));
    }

    /// Something about the session's turns has changed: look.
    pub async fn wake(&self, session: SessionKey) {
        let _ = self.wake.send(session).await;
    }

    /// Another replica has changed something about the session's turns. If this one has a worker of the session, that
    /// one looks; none begins, or every replica would begin one.
    pub async fn changed_elsewhere(&self, session: SessionKey) {
        let _ = self.from_others.send(FromOthers::Changed(session)).await;
    }

    /// Another replica has a turn of the session to claim, and claims none. A worker begins here, unless this one claims
    /// none either.
    pub async fn offered(&self, session: SessionKey) {
        let _ = self.from_others.send(FromOthers::Offered(session)).await;
    }

    /// Other replicas may have changed something about the turns of any session.
    pub async fn all_changed_elsewhere(&self) {
        let _ = self.from_others.send(FromOthers::AllChanged).await;
    }

    /// The sessions of which this replica has a worker, or shows what they wait for.
    pub async fn sessions(&self) -> Vec<SessionKey> {
        let (reply, answer) = oneshot::channel();
        let _ = self.from_others.send(FromOthers::Which(reply)).await;
        // The dispatcher is gone only while the server stops.
        answer.await.unwrap_or_default()
    }

    /// The whole log of a session, in order.
    ///
    /// # Errors
    /// [`SessionError::NotFound`] if there is no such session.
    pub async fn log(&self, of: SessionKey) -> Result<Arc<Vec<SessionEvent>>, SessionError> {
        let Bench {
            turns, logs, clock, ..
        } = &*self.bench;
        let rows = turns.of(of).log();
        logs.load(&*rows, of, None, clock.now()).await
    }

    /// The use of the window by a session.
    ///
    /// # Errors
    /// There is no such session, or its model cannot be used; the text of the second says what to do.
    pub async fn context(
        &self,
        of: SessionKey,
    ) -> Result<Result<ContextReport, String>, SessionError> {
        let log = self.log(of).await?;
        let chain = match self.bench.models.of(of).chain(None).await {
            Ok(chain) => chain,
            Err(reason) => return Ok(Err(reason)),
        };
        let transcript = Transcript::of(&log);
        let last = transcript.turns().last();
        let last = last.map_or(TurnId::from_u128(0), |turn| turn.id);
        let tools = ToolSet::of_turn(&self.bench.engine.sources, &transcript, last);
        let mut info = chain.first().ok_or(SessionError::NotFound)?.info();
        info.profile.window = info
            .profile
            .window
            .or(self.bench.engine.limits.model_window);
        Ok(Ok(report(&log, &info, &tools)))
    }

    /// Drops what this process keeps of a session that was deleted.
    pub fn forget(&self, session: SessionKey) {
        self.bench.logs.forget(session);
    }

    /// Stops an operation of a turn, whether that turn is under way or over.
    ///
    /// # Errors
    /// A refusal: there is no such operation, or its runner is lost.
    pub async fn cancel(
        &self,
        (session, epoch): (SessionKey, Epoch),
        turn: TurnId,
        operation: OperationId,
    ) -> Result<CancelAnswer, Refusal> {
        let sandbox = self.bench.sandboxes.of(session, turn);
        sandbox.cancel(operation, epoch).await
    }
}

/// Wakes every session that an earlier process left with work.
async fn wake_unfinished(
    bench: Arc<Bench>,
    wake: mpsc::Sender<SessionKey>,
    stop: CancellationToken,
) {
    let mut after = None;
    loop {
        match bench.turns.unfinished(after, START_PAGE).await {
            Ok(turns) => {
                let Some(last) = turns.last() else { return };
                after = Some(last.turn);
                for turn in turns {
                    if wake.send(turn.key()).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                tracing::error!(%error, "the unfinished turns cannot be read; trying again");
                tokio::select! {
                    () = tokio::time::sleep(RETRY_AFTER) => {}
                    () = stop.cancelled() => return,
                }
            }
        }
    }
}

struct Dispatcher {
    bench: Arc<Bench>,
    workers: HashMap<SessionKey, Arc<Notify>>,
    /// Of turns that wait without a worker.
    views: HashMap<SessionKey, View>,
    idle: mpsc::Sender<Idle>,
    permits: Permits,
    /// Drops the workers where they stand.
    dropped: CancellationToken,
    wake: mpsc::Sender<SessionKey>,
}

/// A worker that found nothing more to do.
struct Idle {
    key: SessionKey,
    wake: Arc<Notify>,
    /// Of the turn that it has let go of.
    view: Option<View>,
}

impl Dispatcher {
    async fn run(
        mut self,
        (mut inbox, mut unheard, mut of_others): (
            mpsc::Receiver<SessionKey>,
            mpsc::Receiver<SessionKey>,
            mpsc::Receiver<FromOthers>,
        ),
        mut idled: mpsc::Receiver<Idle>,
        stop: CancellationToken,
    ) {
        let workers = TaskTracker::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(idle) = idled.recv() => self.retire(idle, &workers),
                Some(key) = inbox.recv() => self.wake(key, &workers),
                // A worker that waits to try again is not to be hurried.
                // Other replicas look at the queue themselves.
                Some(key) = unheard.recv() => if self.work() == TurnWork::All && !self.workers.contains_key(&key) {
                    self.wake(key, &workers);
                },
                Some(word) = of_others.recv() => match word {
                    FromOthers::Work(work) => self.work_is_now(work, &stop).await,
                    word => self.hear(word, &workers),
                },
            }
        }
        workers.close();
        workers.wait().await;
    }

    async fn work_is_now(&mut self, work: TurnWork, stop: &CancellationToken) {
        match work {
            TurnWork::All => {
                let (bench, wake) = (self.bench.clone(), self.wake.clone());
                // The dispatcher takes what it says.
                tokio::spawn(wake_unfinished(bench, wake, stop.clone()));
            }
            // After a lease that had ended, rows may name this replica, and no worker has their turns.
            TurnWork::LetsGo if self.workers.is_empty() => {
                if let Err(error) = self.bench.turns.let_go_of_left(self.bench.replica).await {
                    tracing::error!(%error, "the turns that are left here cannot be given to other servers");
                }
            }
            // Those that wait to try again find that they claim nothing.
            TurnWork::LetsGo => self.workers.values().for_each(|worker| worker.notify_one()),
            TurnWork::Stopped => {
                self.dropped.cancel();
                self.dropped = stop.child_token();
                self.views.clear();
                for (key, _) in std::mem::take(&mut self.workers) {
                    self.bench.hub.idle(key.session).await;
                }
            }
        }
    }

    fn work(&self) -> TurnWork {
        *self.bench.engine.work.borrow()
    }

    fn hear(&mut self, word: FromOthers, workers: &TaskTracker) {
        match word {
            FromOthers::Offered(key) => {
                if self.work() == TurnWork::All {
                    self.wake(key, workers);
                }
            }
            FromOthers::Changed(key) => self.changed(key, workers),
            FromOthers::AllChanged => {
                for key in self.sessions() {
                    self.changed(key, workers);
                }
            }
            FromOthers::Which(reply) => drop(reply.send(self.sessions())),
            FromOthers::Work(_) => {}
        }
    }

    fn changed(&mut self, key: SessionKey, workers: &TaskTracker) {
        let is_viewed = self.views.contains_key(&key);
        if self.workers.contains_key(&key) || (is_viewed && self.work() == TurnWork::All) {
            self.wake(key, workers);
        } else {
            // Another replica claims the turn once its wait is over.
            self.views.remove(&key);
        }
    }

    fn sessions(&self) -> Vec<SessionKey> {
        let all = self.workers.keys().chain(self.views.keys());
        all.copied().collect()
    }

    fn wake(&mut self, key: SessionKey, workers: &TaskTracker) {
        if let Some(worker) = self.workers.get(&key) {
            worker.notify_one();
            return;
        }
        match self.work() {
            TurnWork::All => {}
            TurnWork::LetsGo => return self.bench.turns.of(key).offer(),
            TurnWork::Stopped => return,
        }
        let wake = Arc::new(Notify::new());
        self.workers.insert(key, wake.clone());
        let worker = Worker {
            bench: self.bench.clone(),
            of: key,
            wake: wake.clone(),
            wake_others: self.wake.clone(),
            view: self.views.remove(&key),
            is_woken: true,
        };
        let (idle, permits) = (self.idle.clone(), self.permits.clone());
        let dropped = self.dropped.clone();
        let hub = self.bench.hub.clone();
        workers.spawn(async move {
            // A worker that panics between two turns is replaced at the session's next wake-up.
            let running = AssertUnwindSafe(worker.run(&permits)).catch_unwind();
            tokio::select! {
                view = running => {
                    let view = view.ok().flatten();
                    if view.is_none() {
                        hub.idle(key.session).await;
                    }
                    let _ = idle.send(Idle { key, wake, view }).await;
                }
                // Dropped where it stands: what it had recorded is what the next start sees.
                () = dropped.cancelled() => {}
            }
        });
    }

    /// A worker found nothing more to do. A wake-up that came in the meantime starts another.
    fn retire(&mut self, idle: Idle, workers: &TaskTracker) {
        let Idle { key, wake, view } = idle;
        let current = self.workers.get(&key);
        if !current.is_some_and(|current| Arc::ptr_eq(current, &wake)) {
            // It was dropped, and another one may be there since.
            return;
        }
        self.workers.remove(&key);
        if self.work() == TurnWork::LetsGo && view.is_none() {
            // More turns of the session may be queued.
            return self.bench.turns.of(key).offer();
        }
        self.views.extend(view.map(|view| (key, view)));
        let mut pending = std::pin::pin!(wake.notified());
        if pending.as_mut().enable() {
            self.wake(key, workers);
        }
    }
}
