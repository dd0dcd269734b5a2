//! Calls that are run as an operation of a sandbox.

use shared_types::{RefusalCode, event::CallOutcome};

use super::{
    Call, Ran,
    done::{Beside, Times},
};
use crate::{
    tools::{Prepared, Rendered, Tool},
    transcript::Transcript,
    turn::{
        TurnError,
        again::is_run_anew,
        conclusion::Conclusion,
        listen::Listener,
        seen,
        told::{Told, not_run, wall},
    },
};

impl Call<'_> {
    pub(super) async fn operate(
        &self,
        tool: &dyn Tool,
        prepared: &Prepared,
    ) -> Result<Ran, TurnError> {
        if prepared.wait_for.is_some() && self.placed.is_none() && self.too_many_tasks().await? {
            let most = self.site.engine.limits.tasks_at_most;
            let full = format!(
                "{most} commands of this conversation run in the background, and no more may: stop one \
                 with task_kill or wait for one with task_read"
            );
            return Ok(self.done(not_run(full), Times::default()).into());
        }
        let clock = &self.site.engine.clock;
        let began = clock.monotonic();
        let started = self.placed.unwrap_or_else(|| clock.now());
        let mut attempt = 0;
        let (listener, conclusion) = loop {
            let operation = self
                .site
                .operation(self.site.place, attempt, tool.effect(), prepared);
            let mut listener = Listener::start(&self.site, operation, prepared);
            let conclusion = listener.run_to_its_end().await;
            if conclusion.refusal() == Some(RefusalCode::StaleEpoch) {
                return Err(TurnError::StaleEpoch);
            }
            if let Conclusion::Waits { until, awaits } = conclusion {
                return Ok(Ran::Waits(listener.waiting_call(until, awaits)));
            }
            let anew = is_run_anew(tool.effect(), attempt, &conclusion);
            match anew && !self.site.cancel.is_cancelled() {
                true => attempt += 1,
                false => break (listener, conclusion),
            }
        };
        let task = match &conclusion {
            Conclusion::StillRuns => Some(self.next_task().await?),
            _ => None,
        };
        let times = Times {
            budget: prepared.budget(),
            duration: clock
                .monotonic()
                .saturating_sub(began)
                .max(wall(&conclusion)),
        };
        let (rendered, mut beside) = {
            let told = Told {
                tool,
                prepared,
                listener: &listener,
                started,
                was_placed: self.placed.is_some(),
                limit: self.site.result_bytes,
                number: Some(self.site.number),
            };
            tell(&told, &conclusion, task)
        };
        let (rendered, image) = self.kept(rendered).await?;
        if let (CallOutcome::Completed, Conclusion::Ended(outcome)) =
            (rendered.outcome, &conclusion)
        {
            beside.file = seen::file(&prepared.request, outcome, &self.site.directory);
        }
        let mut done = self.done_with(rendered, times, beside);
        done.show(image);
        done.take(conclusion, listener);
        Ok(done.into())
    }

    /// True if so many commands run in the background that no other may begin. The log is read only
    /// if the turn's own knowledge leaves that open.
    async fn too_many_tasks(&self) -> Result<bool, TurnError> {
        let most = self.site.engine.limits.tasks_at_most;
        if self.tasks_at_most < most {
            return Ok(false);
        }
        let log = self.site.ports.log.load().await?;
        Ok(Transcript::of(&log).running_tasks().count() >= most)
    }

    /// The number of the task that is begun now.
    async fn next_task(&self) -> Result<u32, TurnError> {
        let log = self.site.ports.log.load().await?;
        Ok(Transcript::of(&log).next_task())
    }
}

/// The words on an operation, and the facts beside them; of one that goes on as a task of this number.
fn tell(told: &Told<'_>, conclusion: &Conclusion, task: Option<u32>) -> (Rendered, Beside) {
    match task {
        Some(number) => (
            told.goes_on(number, told.prepared.budget()),
            Beside {
                task,
                ..Beside::default()
            },
        ),
        None => (
            told.of(conclusion),
            Beside {
                unplaced: told.is_unplaced(conclusion),
                awaits: told.listener.awaits(conclusion),
                ..Beside::default()
            },
        ),
    }
}
