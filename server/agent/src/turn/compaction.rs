//! The phase that compacts the conversation, by itself where the window is nearly full, or because a person asked.

use std::{sync::Arc, time::Duration};

use server_llm::{Model, ModelInfo};
use shared_types::{
    Event,
    event::{CompactedBecause, TurnOutcome},
};

use super::{
    Turn, TurnError,
    answer::{Asking, Heard, NO_MODEL},
};
use crate::{
    context::compact::{self, Plan},
    prompt,
};

/// The time for the summary.
const SUMMARY_WITHIN: Duration = Duration::from_secs(5 * 60);

/// A compaction by itself must make a request so much shorter, in percent. Else the oldest parts are left out when the
/// window is full.
const WORTH_PERCENT: usize = 10;

impl<'a> Turn<'a> {
    /// Compacts, with a summary by this model. Returns an end of the asking, where the turn was stopped meanwhile.
    pub(super) async fn compact(
        &mut self,
        model: &Arc<dyn Model>,
        info: &ModelInfo,
        asking: &mut Asking<'a>,
        because: CompactedBecause,
        focus: &str,
    ) -> Result<Option<Heard>, TurnError> {
        let Some(plan) = self.compaction(info, because) else {
            return Ok(None);
        };
        // What gains too little is not paid for either.
        if !self.is_worth_it(info, &plan, because) {
            return Ok(None);
        }
        if !self.before_compaction(asking.step, because).await? {
            return Ok(None);
        }
        asking
            .speech
            .notice("compacting the conversation to make room…".to_owned());
        let request = prompt::request(&self.transcript, self.id, info, &self.tools);
        let request = compact::asking(request, &plan, focus);
        asking.requests += 1;
        asking.speech.be_quiet(true);
        let hearing = self.hear_once(&**model, request, &mut asking.speech);
        let heard = match tokio::time::timeout(SUMMARY_WITHIN, hearing).await {
            Ok(heard) => heard?,
            Err(_) => Heard::TookTooLong,
        };
        self.note_calls(info, &heard, asking);
        asking.speech.be_quiet(false);
        asking.speech.asked_again();
        let summary = match heard {
            Heard::Cancelled => return Ok(Some(Heard::Cancelled)),
            // Another model may write it, or this one later: the beginning is not given up for that.
            Heard::Failed(error) if error.falls_back() => return Ok(Some(Heard::Failed(error))),
            Heard::Answer(answer) => compact::summary(&answer.parts.words(), &plan)
                .ok_or_else(|| "the model wrote none".to_owned()),
            Heard::TookTooLong => Err("the model did not write it in time".to_owned()),
            Heard::Failed(error) => Err(format!("{} {}", info.place(), error.brief())),
        };
        self.record_compaction(info, asking, plan, summary, because)
            .await?;
        Ok(None)
    }

    /// Compacts without asking the model; returns whether there was anything to compact.
    pub(super) async fn compact_without_model(
        &mut self,
        info: &ModelInfo,
        asking: &mut Asking<'a>,
    ) -> Result<bool, TurnError> {
        let because = CompactedBecause::Refused;
        let plan = self.compaction(info, because);
        let Some(plan) = plan.filter(|plan| self.is_worth_it(info, plan, because)) else {
            return Ok(false);
        };
        let why = "the conversation was too long for it".to_owned();
        self.record_compaction(info, asking, plan, Err(why), because)
            .await?;
        Ok(true)
    }

    fn compaction(&self, info: &ModelInfo, because: CompactedBecause) -> Option<Plan> {
        let whole = because == CompactedBecause::Asked;
        let tools = &self.tools;
        compact::plan(&self.transcript, self.id, info, tools, self.window, whole)
    }

    /// True if the next request becomes so much shorter by it, even with the longest summary.
    fn is_worth_it(&self, info: &ModelInfo, plan: &Plan, because: CompactedBecause) -> bool {
        if because == CompactedBecause::Asked {
            return true;
        }
        let before = self.size(info).tokens;
        let event = self.compacted(plan, (String::new(), None), because);
        let after = self.size_after(info, &event) + plan.summary;
        before.saturating_sub(after) >= before / 100 * WORTH_PERCENT
    }

    fn size_after(&self, info: &ModelInfo, event: &Event) -> usize {
        let mut then = self.transcript.clone();
        then.apply(event, self.engine.clock.now());
        self.size_with(&then, info).tokens
    }

    /// The event of a compaction, with the summary and the reason why the model wrote none; its sizes are not known yet.
    fn compacted(
        &self,
        plan: &Plan,
        (summary, no_summary): (String, Option<String>),
        because: CompactedBecause,
    ) -> Event {
        Event::ContextCompacted {
            turn: self.id,
            step: 0,
            gone: u32::try_from(plan.gone).unwrap_or(u32::MAX),
            carried: plan.carried.clone(),
            summary,
            no_summary,
            before: 0,
            after: 0,
            because,
        }
    }

    async fn record_compaction(
        &mut self,
        info: &ModelInfo,
        asking: &mut Asking<'a>,
        plan: Plan,
        summary: Result<String, String>,
        because: CompactedBecause,
    ) -> Result<(), TurnError> {
        let summary = match summary {
            Ok(summary) => (summary, None),
            // What the model knew of the beginning is worth more than nothing.
            Err(why) => {
                let earlier = self.transcript.compacted();
                let earlier = earlier.map(|compacted| compacted.summary.to_string());
                (earlier.unwrap_or_default(), Some(why))
            }
        };
        let mut event = self.compacted(&plan, summary, because);
        let sizes = [self.size(info).tokens, self.size_after(info, &event)];
        if let Event::ContextCompacted {
            step,
            before,
            after,
            ..
        } = &mut event
        {
            *step = asking.step;
            [*before, *after] = sizes.map(|tokens| tokens as u64);
        }
        let calls = std::mem::take(&mut asking.calls);
        let recorded = self.ports.log.record_paid(vec![event.clone()], calls);
        recorded.await?;
        self.transcript.apply(&event, self.engine.clock.now());
        self.after_compaction(asking.step, because).await
    }

    /// Does what a person asked for in this turn: compacts, and ends the turn.
    pub(super) async fn compact_as_asked(&mut self, focus: &str) -> Result<(), TurnError> {
        let chain = match self.chain().await {
            Ok(chain) => chain,
            Err(reason) => return self.fail(reason, Vec::new()).await,
        };
        let mut asking = Asking::of(self, 1);
        let asked = CompactedBecause::Asked;
        for (place, model) in chain.iter().enumerate() {
            let info = model.info();
            self.window = info.profile.window.or(self.engine.limits.model_window);
            if self.compaction(&info, asked).is_none() {
                let nothing = "there is nothing to compact yet".to_owned();
                return self.fail(nothing, asking.calls).await;
            }
            let is_last = place + 1 == chain.len();
            match self
                .compact(model, &info, &mut asking, asked, focus)
                .await?
            {
                Some(Heard::Failed(error)) if error.falls_back() && !is_last => {}
                Some(stopped) => return self.conclude(&info, stopped, asking).await,
                None => return self.end(TurnOutcome::Completed, None).await,
            }
        }
        self.fail(NO_MODEL.to_owned(), asking.calls).await
    }
}
