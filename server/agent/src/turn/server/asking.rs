//! The questions of a tool server to the session's person, while a call of it is under way.
//!
//! Each is an ordinary question of the session: an event, a row, and one outcome. The call waits for the answer where it
//! stands, because the connection with the server cannot be given to another worker. So all questions of a call have a
//! bound together.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use shared_types::{
    ApprovalId, Event, Timestamp,
    event::{Answer, Question, Unanswered},
};
use tokio::time::sleep;

use super::super::{TurnError, consent::outcome, site::Site};
use crate::{
    servers::{AskedByServer, ServerAnswer, ServerQuestion},
    session::LogError,
    transcript::Transcript,
};

/// The time that people have for all questions of a call together.
pub(in crate::turn) const WITHIN: Duration = Duration::from_secs(15 * 60);

/// Most questions of a call.
const MAX_QUESTIONS: u32 = 64;

/// The pause before the log is looked at without a hint.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The people of the session, for the questions of the server that carries out this call.
pub(super) struct Asking<'a> {
    site: &'a Site<'a>,
    until: Timestamp,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: u32,
    /// The question that has no outcome yet.
    open: Option<ApprovalId>,
}

impl<'a> Asking<'a> {
    pub(super) fn of(site: &'a Site<'a>) -> Self {
        Self {
            site,
            until: site.engine.clock.now().after(WITHIN),
            state: Mutex::default(),
        }
    }

    /// Withdraws the question that is open, if one is: the call has ended.
    pub(super) async fn withdraw(&self) -> Result<(), TurnError> {
        let open = self.state().open.take();
        let because = match self.site.cancel.is_cancelled() {
            true => Unanswered::Stopped,
            false => Unanswered::Changed,
        };
        match open {
            Some(open) => Ok(self.close(open, because).await?),
            None => Ok(()),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, question: ServerQuestion) -> Result<ServerAnswer, LogError> {
        let asked = {
            let mut state = self.state();
            state.asked += 1;
            state.asked
        };
        let clock = &self.site.engine.clock;
        if asked > MAX_QUESTIONS || clock.now() >= self.until {
            return Ok(ServerAnswer::Nobody);
        }
        let mut heard = self.site.ports.stirs.heard();
        let Some((id, until)) = self.record(question).await? else {
            return Ok(ServerAnswer::Nobody);
        };
        loop {
            heard.mark_unchanged();
            if let Some(answer) = self.answered(id).await? {
                self.state().open = None;
                return Ok(answer);
            }
            let left = until.since(clock.now());
            if left.is_zero() {
                self.close(id, Unanswered::Deadline).await?;
                continue;
            }
            tokio::select! {
                _ = heard.changed() => {}
                () = sleep(left.min(LOOK_AGAIN)) => {}
            }
        }
    }

    /// Records the question, and returns it with its deadline; nothing where no person can be asked.
    async fn record(
        &self,
        question: ServerQuestion,
    ) -> Result<Option<(ApprovalId, Timestamp)>, LogError> {
        let place = self.site.place;
        let log = self.site.ports.log.load().await?;
        let transcript = Transcript::of(&log);
        let Some(turn) = transcript.turn(place.turn) else {
            return Ok(None);
        };
        let call = turn.step(place.step);
        let call = call.and_then(|step| step.calls.get(place.ordinal as usize));
        let before = call.and_then(|call| call.approval.as_ref());
        let number = before.map_or(1, |before| before.number + 1);
        let approval = ApprovalId::derive(place.turn, place.step, place.ordinal, number);
        let answer_within = self.site.engine.limits.answer_within;
        let until = self
            .until
            .min(self.site.engine.clock.now().after(answer_within));
        let asked = Event::ApprovalAsked {
            turn: place.turn,
            step: place.step,
            ordinal: place.ordinal,
            approval,
            question: Question::Free {
                text: question.text,
                choices: question.choices,
            },
            plan: None,
            until,
        };
        if turn.terms.unattended {
            let nobody = outcome(place, approval, Unanswered::NobodyThere);
            self.site.ports.log.record(vec![asked, nobody]).await?;
            return Ok(None);
        }
        self.state().open = Some(approval);
        self.site.ports.log.record(vec![asked]).await?;
        Ok(Some((approval, until)))
    }

    /// The answer to the question, if it has one.
    async fn answered(&self, id: ApprovalId) -> Result<Option<ServerAnswer>, LogError> {
        let log = self.site.ports.log.load().await?;
        let answers = log.iter().rev().filter_map(|event| event.known());
        let mut answers = answers.filter_map(|event| match event {
            Event::ApprovalAnswered {
                approval, answer, ..
            } if *approval == id => Some(answer),
            _ => None,
        });
        Ok(answers.next().map(|answer| match answer {
            Answer::Said { text } => ServerAnswer::Said(text.clone()),
            Answer::Allowed { .. } => ServerAnswer::Said(String::new()),
            Answer::Denied { .. } => ServerAnswer::Declined,
            Answer::Unanswered { .. } => ServerAnswer::Nobody,
        }))
    }

    /// Records that no person answers the question any more, unless one just did.
    async fn close(&self, id: ApprovalId, because: Unanswered) -> Result<(), LogError> {
        let closed = outcome(self.site.place, id, because);
        match self.site.ports.log.record(vec![closed]).await {
            Err(LogError::Refused(_)) if self.answered(id).await?.is_some() => Ok(()),
            closed => closed,
        }
    }
}

#[async_trait]
impl AskedByServer for Asking<'_> {
    async fn ask(&self, question: ServerQuestion) -> ServerAnswer {
        match self.answer(question).await {
            Ok(answer) => answer,
            // The end of the call cannot be recorded either, and says why.
            Err(error) => {
                tracing::debug!(%error, "a question of a tool server is not asked");
                ServerAnswer::Nobody
            }
        }
    }
}
