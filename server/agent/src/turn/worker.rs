//! A worker: it carries the turns of one session.

use std::{
    convert::Infallible,
    ops::ControlFlow,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use server_records::{ClaimedTurn, IfRunning, NextTurn, SessionError, SessionKey};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    TurnError, TurnWork,
    bench::{Bench, Traced, Under},
    dispatcher::RETRY_AFTER,
    permits::{Held, Permits},
};
use crate::{
    engine::{Carried, Claim},
    log::RunningTurn,
    session::{SessionPorts, Stirs},
    wait::{View, WaitingCall},
};

/// The longest pause between attempts.
const RETRY_AFTER_AT_MOST: Duration = Duration::from_secs(300);

/// The pause before the turn of an agent asks again for a place that other servers have.
const FULL_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Worker {
    pub(super) bench: Arc<Bench>,
    pub(super) of: SessionKey,
    pub(super) wake: Arc<Notify>,
    /// Wakes the workers of other sessions.
    pub(super) wake_others: mpsc::Sender<SessionKey>,
    /// Of the turn that waits without a worker, until this one claims it.
    pub(super) view: Option<View>,
    /// Nothing was looked at yet since something woke it.
    pub(super) is_woken: bool,
}

/// An error that stops the work on a turn.
#[derive(Debug, thiserror::Error)]
pub(super) enum Obstacle {
    #[error(transparent)]
    Store(#[from] SessionError),
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error("carry on with the turn: its worker panicked")]
    Panic,
}

impl Worker {
    /// Carries the session's turns, one after the other, until none is left, or the next one waits:
    /// then returns the view of that one.
    pub(super) async fn run(mut self, permits: &Permits) -> Option<View> {
        let mut pause = RETRY_AFTER;
        loop {
            match self.carry_next(permits).await {
                Ok(ControlFlow::Continue(())) => pause = RETRY_AFTER,
                Ok(ControlFlow::Break(())) => return self.view,
                Err(Obstacle::Turn(TurnError::StaleEpoch)) => {
                    // Another server has taken it over, while this one was held for dead. Or the database is an older
                    // copy, and so the server raised the epoch. If the turn has no living worker it is claimed again.
                    tracing::warn!(session.id = %self.of.session, "the epoch of the session was raised; its turn is looked at again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                Err(error) => {
                    tracing::error!(session.id = %self.of.session, %error, retry_after_s = pause.as_secs(), "failed to carry a turn; it will be resumed");
                    // A wake-up, to cancel for example, ends the pause.
                    let _ = tokio::time::timeout(pause, self.wake.notified()).await;
                    pause = (pause * 2).min(RETRY_AFTER_AT_MOST);
                }
            }
        }
    }

    /// Claims the next turn and carries it as far as it goes; breaks where none is left, or where it
    /// waits.
    async fn carry_next(&mut self, permits: &Permits) -> Result<ControlFlow<()>, Obstacle> {
        let Some((_permit, turn)) = self.claim_next(permits).await? else {
            return Ok(ControlFlow::Break(()));
        };
        let _running = RunningTurn::begin();
        self.view = None;
        let trace = turn.turn.trace.map(|of| tracing::field::display(of.trace));
        let span = tracing::info_span!("turn", turn.id = %turn.turn.id, trace.id = trace);
        let carried = self.carry(&turn).instrument(span);
        let (outcome, next) = match carried.await {
            Ok((Carried::Ended(outcome), next)) => (outcome, next),
            Ok((Carried::Waits(calls), next)) => {
                self.park(&turn, calls).await?;
                return Ok(next);
            }
            Ok((Carried::LetGo, _)) => {
                self.let_go(&turn).await?;
                return Ok(ControlFlow::Break(()));
            }
            Err(obstacle) => {
                let outcome = self.give_up_or_try_again(&turn, obstacle).await?;
                (outcome, ControlFlow::Continue(()))
            }
        };
        tracing::info!(session.id = %self.of.session, turn.id = %turn.turn.id, trace.id = trace, ?outcome, "turn ended");
        Ok(next)
    }

    /// Claims the next turn, with a permit to run it.
    async fn claim_next(
        &mut self,
        permits: &Permits,
    ) -> Result<Option<(Held, ClaimedTurn)>, Obstacle> {
        // Most often a message woke it, and nothing else is unfinished: then a look would tell nothing.
        if std::mem::take(&mut self.is_woken)
            && self.view.is_none()
            && let Some(permit) = permits.try_acquire()
            && let Some(turn) = self.claim(IfRunning::Leave).await?
        {
            return Ok(Some((permit.into(), turn)));
        }
        let Some(for_call) = self.has_turn_to_claim().await? else {
            return Ok(None);
        };
        let mut permit = permits.acquire(self.of.tenant, for_call).await;
        // A turn of this session that runs here has lost its worker: this process has one a session.
        // Of one that another server carries the store says that there is nothing to do.
        let claimed = loop {
            match self.claim(self.take_over(for_call)).await {
                // Other servers carry as many agents as the tenant may have at work.
                Err(SessionError::Full(_)) => {
                    permit.give_back_place();
                    let _ = tokio::time::timeout(FULL_PAUSE, self.wake.notified()).await;
                    permit.take_place(permits, self.of.tenant).await;
                }
                claimed => break claimed?,
            }
        };
        if claimed.is_none() {
            self.view = None;
        }
        Ok(claimed.map(|turn| (permit, turn)))
    }

    fn take_over(&self, for_call: bool) -> IfRunning {
        let at_most = self.bench.engine.limits.agents_at_once.max(1);
        match for_call {
            true => IfRunning::TakeOverWithin(u32::try_from(at_most).unwrap_or(u32::MAX)),
            false => IfRunning::TakeOver,
        }
    }

    async fn claim(&self, if_running: IfRunning) -> Result<Option<ClaimedTurn>, SessionError> {
        let work = *self.bench.engine.work.borrow();
        if work != TurnWork::All {
            if work == TurnWork::LetsGo {
                // A turn that failed here is to go on elsewhere.
                let turns = self.bench.turns.of(self.of);
                turns.let_go_of_left(self.bench.replica).await?;
            }
            return Ok(None);
        }
        let Bench {
            turns,
            clock,
            replica,
            unless_set,
            ..
        } = &*self.bench;
        let turns = turns.of(self.of);
        let claimed = turns.claim(*replica, if_running, unless_set, clock.now());
        match claimed.await {
            // It was deleted.
            Err(SessionError::NotFound) => Ok(None),
            claimed => claimed,
        }
    }

    /// Tells if an unfinished turn waits for nothing, or if its wait is over, and then if that turn works for a call. It
    /// is also checked right after a turn is parked, so that no event in between is missed.
    async fn has_turn_to_claim(&mut self) -> Result<Option<bool>, Obstacle> {
        let turns = self.bench.turns.of(self.of);
        let waiting = match turns.next(self.bench.waits_over()).await? {
            NextTurn::Claim { for_call } => return Ok(Some(for_call)),
            NextTurn::Nothing => {
                self.view = None;
                return Ok(None);
            }
            NextTurn::Wait(waiting) => waiting,
        };
        if self.view.is_none() {
            let under = Under::new(self.of, turns.epoch().await?);
            let ports = self.bench.ports(under, waiting.turn, None);
            let calls = waiting.calls.into_iter().map(WaitingCall::unseen).collect();
            self.view = Some(View::start(ports, waiting.turn, calls));
        }
        Ok(None)
    }

    /// The ports of this claim of the turn, for use once the log has grown since the claim.
    pub(super) fn ports(&self, turn: &ClaimedTurn, traced: Option<Traced>) -> SessionPorts {
        let under = Under {
            wake: Some(self.wake_others.clone()),
            ..Under::new(self.of, turn.epoch)
        };
        self.bench.ports(under, turn.turn.id, traced)
    }

    /// Lets go of a turn that only waits.
    async fn park(&mut self, turn: &ClaimedTurn, calls: Vec<WaitingCall>) -> Result<(), Obstacle> {
        let (id, epoch) = (turn.turn.id, turn.epoch);
        let waits: Vec<_> = calls.iter().map(|call| call.wait.clone()).collect();
        let turns = self.bench.turns.of(self.of);
        turns.park(id, epoch, &waits).await?;
        tracing::debug!(session.id = %self.of.session, turn.id = %id, calls = waits.len(), "turn waits");
        self.view = Some(View::start(self.ports(turn, None), id, calls));
        Ok(())
    }

    /// Lets go of a turn that another replica is to carry on.
    async fn let_go(&self, turn: &ClaimedTurn) -> Result<(), Obstacle> {
        let turns = self.bench.turns.of(self.of);
        turns.let_go(turn.turn.id, turn.epoch).await?;
        tracing::info!(session.id = %self.of.session, turn.id = %turn.turn.id, "another server is to carry the turn on");
        Ok(())
    }

    /// Carries it, and breaks where it ended as the last of the session and nothing woke the worker since its
    /// claim: then there is nothing to look for.
    async fn carry(&self, turn: &ClaimedTurn) -> Result<(Carried, ControlFlow<()>), Obstacle> {
        let (cancel, woken) = (CancellationToken::new(), AtomicBool::new(false));
        let under = Under {
            claimed_at: turn.events.last().map(|event| event.seq),
            wake: Some(self.wake_others.clone()),
            ..Under::new(self.of, turn.epoch)
        };
        let was_last = Arc::clone(&under.was_last);
        let stirs = under.stirs.clone();
        let traced = Traced::of(&turn.turn);
        let ports = self.bench.ports(under, turn.turn.id, traced);
        let claim = Claim {
            turn: turn.turn.id,
            epoch: turn.epoch,
            waited: turn.waited.clone(),
            interrupted: turn.interrupted,
        };
        let running = self.bench.engine.run_turn(&ports, claim, cancel.clone());
        // The log is the truth, and what a panic leaves half done is built from it again.
        let running = AssertUnwindSafe(running).catch_unwind();
        let carried = tokio::select! {
            ended = running => ended.map_err(|_| Obstacle::Panic)??,
            never = self.heed_cancel(turn, &cancel, &woken, &stirs) => match never {},
        };
        let next = match was_last.load(Relaxed) && !woken.load(Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        Ok((carried, next))
    }

    /// Cancels the turn once a wish to do so is recorded; looks after every wake-up, and passes it on to the turn.
    async fn heed_cancel(
        &self,
        turn: &ClaimedTurn,
        cancel: &CancellationToken,
        woken: &AtomicBool,
        stirs: &Stirs,
    ) -> Infallible {
        let turns = self.bench.turns.of(self.of);
        loop {
            self.wake.notified().await;
            woken.store(true, Relaxed);
            stirs.stir();
            match turns.is_to_stop(turn.turn.id).await {
                Ok(true) => cancel.cancel(),
                Ok(false) => {}
                Err(error) => {
                    tracing::error!(turn.id = %turn.turn.id, %error, "a wish to cancel cannot be read; looking again");
                    self.wake.notify_one();
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }
}
