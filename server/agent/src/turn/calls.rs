//! The phase that runs an answer's tool calls: those that only read beside one another, every
//! other one alone and in order. Each result is recorded by itself as it ends.

use std::{collections::VecDeque, pin::pin};

use futures_util::{Stream, StreamExt as _, stream};
use shared_types::Event;

use super::{
    Turn, TurnError,
    call::{Call, Done, End, Left, Ran},
    consent::Gated,
};

impl<'a> Turn<'a> {
    /// Brings these calls to their ends. Where the turn is being cancelled they are stopped, or
    /// not begun, and that is their end. Those that are found to wait for long are left as they are,
    /// and so are all behind them.
    pub(super) async fn run_calls(&mut self, step: u32, pending: &[u32]) -> Result<(), TurnError> {
        self.waiting.clear();
        let rules = self.rules().await?;
        for batch in batches(self.planned(step, pending), Call::only_reads) {
            let batch = self.without_unplaced(step, batch).await?;
            let mut waiting = Vec::new();
            let mut runs = Vec::new();
            for call in batch {
                let call = call.knowing(&self.transcript);
                match self.gate(call, &rules).await? {
                    Gated::Runs(call) => runs.push(call.run()),
                    Gated::Ended(done) => self.record_call(*done).await?,
                    Gated::Waits(call) => waiting.push(call),
                }
            }
            let at_once = self.engine.limits.parallel_reads.max(1);
            let mut running = stream::iter(runs).buffer_unordered(at_once);
            let mut ended = VecDeque::new();
            let mut goes_on = false;
            while let Some(ran) = next(&mut ended, &mut running).await {
                let done = match ran? {
                    Ran::Ended(done) => *done,
                    Ran::Waits(call) => {
                        waiting.push(call);
                        continue;
                    }
                    Ran::Recorded(event) => {
                        if let Some(known) = event.known() {
                            self.transcript.apply(known, event.at);
                        }
                        goes_on = true;
                        continue;
                    }
                };
                let mut recorded = pin!(self.record_call(done));
                // One that runs may hold what the record waits for: it must not stand still.
                loop {
                    tokio::select! {
                        biased;
                        recorded = &mut recorded => break recorded?,
                        Some(ran) = running.next() => ended.push_back(ran),
                    }
                }
            }
            // A call that goes on is run again before the turn may wait.
            if goes_on {
                return Ok(());
            }
            if !waiting.is_empty() {
                self.waiting = waiting;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Ends the calls that wait for a runner which an earlier call of the step did not find: each
    /// would wait for it in its turn. Returns the others.
    async fn without_unplaced(
        &mut self,
        step: u32,
        batch: Vec<Call<'a>>,
    ) -> Result<Vec<Call<'a>>, TurnError> {
        let turn = self.transcript.turn(self.id);
        let reason = turn.and_then(|turn| turn.step(step)?.unplaced());
        let Some(reason) = reason else {
            return Ok(batch);
        };
        let mut others = Vec::new();
        for call in batch {
            match call.unplaced(&reason) {
                Some(done) => self.record_call(done).await?,
                None => others.push(call),
            }
        }
        Ok(others)
    }

    fn planned(&self, step: u32, pending: &[u32]) -> Vec<Call<'a>> {
        let turn = self.transcript.turn(self.id);
        let Some(step) = turn.and_then(|turn| turn.step(step)) else {
            return Vec::new();
        };
        let planned = pending.iter();
        planned
            .filter_map(|ordinal| Call::plan(self, step, *ordinal))
            .collect()
    }

    async fn record_call(&mut self, mut done: Done) -> Result<(), TurnError> {
        self.after_call(&mut done).await?;
        match done.end {
            Some(end) => self.record_end(done.event, end).await?,
            None => match done.before {
                Some(before) => self.record_both(before, done.event).await?,
                None => self.record(done.event).await?,
            },
        }
        if let Some(Left { operation, events }) = done.left {
            drop(events);
            self.ports.sandbox.leave(operation).await;
        }
        Ok(())
    }

    /// One transaction for both: a synced write is what a call waits for longest. Where it fails, the
    /// token goes back with the end.
    pub(super) async fn record_end(&mut self, ended: Event, end: End) -> Result<(), TurnError> {
        let End {
            operation,
            outcome,
            token,
        } = end;
        let log = &self.ports.log;
        log.record_end(ended.clone(), operation, &outcome).await?;
        token.spend();
        self.transcript.apply(&ended, self.engine.clock.now());
        Ok(())
    }
}

/// The first that has ended already, or the one that ends next.
async fn next<T>(
    ended: &mut VecDeque<T>,
    running: &mut (impl Stream<Item = T> + Unpin),
) -> Option<T> {
    match ended.pop_front() {
        Some(done) => Some(done),
        None => running.next().await,
    }
}

/// Splits the calls, in order, into those that run at the same time: neighbours that only read
/// are together, and every other call is by itself.
fn batches<T>(calls: Vec<T>, only_reads: impl Fn(&T) -> bool) -> Vec<Vec<T>> {
    let mut batches: Vec<Vec<T>> = Vec::new();
    let mut before_reads = false;
    for call in calls {
        let reads = only_reads(&call);
        match batches.last_mut() {
            Some(batch) if reads && before_reads => batch.push(call),
            _ => batches.push(vec![call]),
        }
        before_reads = reads;
    }
    batches
}

#[cfg(test)]
mod tests;
