//! The gate of consent, at which a call is let through, ended, or has to wait for people.
//!
//! The decision is a pure function of the mode, the rules and the call (`shared-consent`). This file records what is
//! asked and answered. Each pass reads the log alone, so a worker that takes the turn up after a crash, or after days,
//! stands at the same gate.

use server_records::{RuleBy, StandingRules};
use shared_consent::{Decision, Ruled, Terms, Verdict, judge};
use shared_types::{
    ApprovalId, CallWait, Event, Isolation, Mode, WaitsFor,
    event::{Answer, Choice, HookDecision, Place, PlannedCall, Question, Unanswered, Worktree},
};

use super::{
    Turn, TurnError,
    call::{Call, Done},
    show::CallPlace,
};
use crate::{
    gates::{self, OwnedDeed},
    hooks::HookVerdict,
    tools::{Ask, PersonAsk},
    transcript::{Approval, TurnLog},
    wait::WaitingCall,
};

/// What becomes of a call at the gate.
pub(super) enum Gated<'a> {
    /// It runs.
    Runs(Box<Call<'a>>),
    /// It has ended without running.
    Ended(Box<Done>),
    /// It waits for people.
    Waits(WaitingCall),
}

impl<'a> Turn<'a> {
    /// The rules for the calls of this turn, and the ceiling that the tenant has set by now.
    pub(super) async fn rules(&self) -> Result<StandingRules, TurnError> {
        let StandingRules { mut rules, ceiling } = self.ports.log.rules().await?;
        rules.extend(self.engine.rules.iter().cloned());
        rules.extend(self.project_rules().await?);
        let turn = self.transcript.turn(self.id);
        let of_message = turn.into_iter().flat_map(|turn| &turn.terms.allow);
        // The message was refused where one of its rules cannot be read.
        let of_message = of_message.filter_map(|rule| rule.parse().ok());
        rules.extend(of_message.map(|rule| Ruled {
            rule,
            decision: Decision::Allow,
            by: RuleBy::Message,
        }));
        if turn.is_some_and(TurnLog::only_people_allow) {
            rules.retain(|rule| rule.decision != Decision::Allow);
        }
        Ok(StandingRules { rules, ceiling })
    }

    /// Brings a call through the gate, or to where it ends or waits.
    pub(super) async fn gate(
        &mut self,
        call: Call<'a>,
        rules: &StandingRules,
    ) -> Result<Gated<'a>, TurnError> {
        // One that was placed may have happened: it is followed to its end, under the consent that it was placed with.
        if call.was_placed() {
            // The server that asked it for the call is not waited for any more.
            if self
                .approval(&call)
                .is_some_and(|asked| asked.answer.is_none())
            {
                self.unanswered(&call, Unanswered::Changed).await?;
            }
            return Ok(Gated::Runs(Box::new(self.as_placed(call)?)));
        }
        if call.ask().is_none() {
            return Ok(Gated::Runs(Box::new(call)));
        }
        let hooked = self.before_call(&call).await?;
        let call = match hooked.input {
            // It is another call now.
            Some(_) => self.planned_again(call)?,
            None => call,
        };
        if hooked.denies() && self.approval(&call).is_none() {
            let why = hook_denies(&hooked.reason);
            self.after_denial(call.place(), &why).await?;
            return Ok(Gated::Ended(Box::new(call.refused(&why))));
        }
        let Some(ask) = call.ask() else {
            return Ok(Gated::Runs(Box::new(call)));
        };
        if let Ask::Person(ask) = ask {
            let question = question(ask);
            return self.ask_person(call, question).await;
        }
        let directory = self.transcript.directory().clone();
        let Some(deed) = OwnedDeed::of(ask, &directory) else {
            return Ok(Gated::Runs(Box::new(call)));
        };
        let asked = self.approval(&call);
        let Some(Approval { plan, answer, .. }) = &asked else {
            return self.judged(call, &deed, rules, &hooked).await;
        };
        match answer {
            None if self.cancel.is_cancelled() => {
                self.unanswered(&call, Unanswered::Stopped).await?;
                Ok(Gated::Ended(Box::new(call.stopped())))
            }
            None => self.wait_for_person(&call, &asked).await,
            Some(Answer::Allowed { command, .. }) => {
                // The call is another one by now: people are asked anew.
                if *plan != call.digest() {
                    return self.judged(call, &deed, rules, &hooked).await;
                }
                let call = match command.clone() {
                    Some(command) => call.with_command(&command),
                    None => call,
                };
                self.approved(call, rules)
            }
            Some(answer) => {
                let words = gates::of_answer(answer).unwrap_or_default();
                Ok(Gated::Ended(Box::new(call.refused(&words))))
            }
        }
    }

    /// The call with the arguments that a hook put in place of its own.
    fn planned_again(&self, call: Call<'a>) -> Result<Call<'a>, TurnError> {
        let CallPlace { step, ordinal, .. } = call.place();
        let step = self.turn_log()?.step(step).ok_or(TurnError::NotInLog)?;
        let again = Call::plan(self, step, ordinal).ok_or(TurnError::NotInLog)?;
        Ok(again.knowing(&self.transcript))
    }

    /// The call as it was placed.
    fn as_placed(&self, call: Call<'a>) -> Result<Call<'a>, TurnError> {
        let mode = self.turn_log()?.mode();
        Ok(match self.approval(&call).and_then(|asked| asked.answer) {
            Some(Answer::Allowed { command, .. }) => match command {
                Some(command) => call.with_command(&command),
                None => call,
            }
            .approved(mode),
            _ => call.in_mode(mode),
        })
    }

    /// Judges a call about which no person is asked yet.
    async fn judged(
        &mut self,
        mut call: Call<'a>,
        deed: &OwnedDeed,
        rules: &StandingRules,
        hooked: &HookVerdict,
    ) -> Result<Gated<'a>, TurnError> {
        let (directory, asked_before) = (self.transcript.directory().clone(), call.ask().cloned());
        let turn = self.turn_log()?;
        // People see the place by which the call is judged, and none that an earlier turn looked at.
        let place = turn.survey.clone().filter(|_| turn.is_surveyed);
        let mode = mode_now(turn, rules);
        let isolation = turn.isolation();
        let verdict = verdict(turn, deed, &isolation, rules, self.worktree().as_ref());
        let only_people = turn.only_people_allow();
        let verdict = with_hooks(verdict, hooked, only_people);
        match verdict.decision {
            Decision::Allow => Ok(Gated::Runs(Box::new(call.in_mode(mode)))),
            Decision::Deny => {
                let words = gates::denied_by_rule(&verdict);
                self.after_denial(call.place(), &words).await?;
                Ok(Gated::Ended(Box::new(call.refused(&words))))
            }
            Decision::Ask if self.cancel.is_cancelled() => {
                Ok(Gated::Ended(Box::new(call.stopped())))
            }
            Decision::Ask => {
                let place = place.as_ref().and_then(|survey| survey.place.as_ref());
                let planned = planned(turn, &call, place, &verdict).ok_or(TurnError::NotInLog)?;
                let said = self.before_question(&call).await?;
                if said.denies() {
                    let why = hook_denies(&said.reason);
                    self.after_denial(call.place(), &why).await?;
                    return Ok(Gated::Ended(Box::new(call.refused(&why))));
                }
                if said.input.is_some() {
                    // It may be another call now. Its hooks have run, so the second look changes nothing more.
                    let again = self.planned_again(call)?;
                    if again.ask() != asked_before.as_ref() {
                        let deed = again.ask().and_then(|ask| OwnedDeed::of(ask, &directory));
                        return match deed {
                            Some(deed) => Box::pin(self.judged(again, &deed, rules, hooked)).await,
                            None => Ok(Gated::Runs(Box::new(again))),
                        };
                    }
                    call = again;
                }
                if said.decision == Some(HookDecision::Allow)
                    && verdict.by.is_none()
                    && !only_people
                {
                    return Ok(Gated::Runs(Box::new(call.in_mode(mode))));
                }
                let question = Question::Call(Box::new(planned));
                self.ask(&call, question).await?;
                self.wait_for_answer(call).await
            }
        }
    }

    /// Lets a call run that a person has allowed, unless a rule denies it by now.
    fn approved(&self, call: Call<'a>, rules: &StandingRules) -> Result<Gated<'a>, TurnError> {
        let turn = self.turn_log()?;
        let deed = call
            .ask()
            .and_then(|ask| OwnedDeed::of(ask, self.transcript.directory()));
        let isolation = turn.isolation();
        let verdict = deed
            .as_ref()
            .map(|deed| verdict(turn, deed, &isolation, rules, self.worktree().as_ref()));
        if let Some(verdict) = verdict.filter(|verdict| verdict.decision == Decision::Deny) {
            let words = gates::denied_by_rule(&verdict);
            return Ok(Gated::Ended(Box::new(call.refused(&words))));
        }
        Ok(Gated::Runs(Box::new(call.approved(mode_now(turn, rules)))))
    }

    /// Asks a person in the model's name, and ends the call with the answer.
    async fn ask_person(
        &mut self,
        call: Call<'a>,
        question: Question,
    ) -> Result<Gated<'a>, TurnError> {
        if self.cancel.is_cancelled() {
            if self
                .approval(&call)
                .is_some_and(|asked| asked.answer.is_none())
            {
                self.unanswered(&call, Unanswered::Stopped).await?;
            }
            return Ok(Gated::Ended(Box::new(call.stopped())));
        }
        let Some(asked) = self.approval(&call) else {
            self.ask(&call, question).await?;
            return self.wait_for_answer(call).await;
        };
        match &asked.answer {
            None => self.wait_for_person(&call, &Some(asked)).await,
            Some(answer) => {
                let mode = self.turn_log()?.mode();
                Ok(Gated::Ended(Box::new(call.answered(answer, mode))))
            }
        }
    }

    /// Goes on behind a question that was just asked: where no person can be asked, it has its outcome.
    async fn wait_for_answer(&mut self, call: Call<'a>) -> Result<Gated<'a>, TurnError> {
        let asked = self.approval(&call);
        match asked.as_ref().and_then(|asked| asked.answer.as_ref()) {
            None => self.wait_for_person(&call, &asked).await,
            Some(answer) => {
                let words = gates::of_answer(answer).unwrap_or_default();
                Ok(Gated::Ended(Box::new(call.refused(&words))))
            }
        }
    }

    /// Has the call wait, unless the deadline of its question has passed.
    async fn wait_for_person(
        &mut self,
        call: &Call<'a>,
        asked: &Option<Approval>,
    ) -> Result<Gated<'a>, TurnError> {
        let Some(Approval { id, until, .. }) = asked else {
            return Err(TurnError::NotInLog);
        };
        if self.engine.clock.now() >= *until {
            self.unanswered(call, Unanswered::Deadline).await?;
            let answer = Answer::Unanswered {
                because: Unanswered::Deadline,
            };
            let words = gates::of_answer(&answer).unwrap_or_default();
            return Ok(Gated::Ended(Box::new(call.refused(&words))));
        }
        let CallPlace { step, ordinal, .. } = call.place();
        let wait = CallWait {
            step,
            ordinal,
            waits_for: WaitsFor::Person(*id),
            until: *until,
            listens_until: None,
        };
        Ok(Gated::Waits(WaitingCall::new(wait, [0, 0])))
    }

    /// Records the question. Where no person can be asked, its outcome is recorded with it.
    async fn ask(&mut self, call: &Call<'a>, question: Question) -> Result<(), TurnError> {
        let CallPlace {
            turn,
            step,
            ordinal,
        } = call.place();
        let number = self.approval(call).map_or(1, |before| before.number + 1);
        let approval = ApprovalId::derive(turn, step, ordinal, number);
        let asked = Event::ApprovalAsked {
            turn,
            step,
            ordinal,
            approval,
            question,
            plan: call.digest(),
            until: self
                .engine
                .clock
                .now()
                .after(self.engine.limits.answer_within),
        };
        if !self.turn_log()?.terms.unattended {
            return self.record(asked).await;
        }
        let answered = outcome(call.place(), approval, Unanswered::NobodyThere);
        self.record_both(asked, answered).await
    }

    /// Records that no person answers the question any more.
    async fn unanswered(&mut self, call: &Call<'a>, because: Unanswered) -> Result<(), TurnError> {
        let Some(asked) = self.approval(call) else {
            return Ok(());
        };
        self.record(outcome(call.place(), asked.id, because)).await
    }

    /// The newest question about the call.
    fn approval(&self, call: &Call<'a>) -> Option<Approval> {
        let CallPlace { step, ordinal, .. } = call.place();
        let step = self.transcript.turn(self.id)?.step(step)?;
        step.calls.get(ordinal as usize)?.approval.clone()
    }

    fn turn_log(&self) -> Result<&TurnLog, TurnError> {
        self.transcript.turn(self.id).ok_or(TurnError::NotInLog)
    }
}

/// The mode of the turn. The tenant may have lowered its ceiling since the turn began.
fn mode_now(turn: &TurnLog, rules: &StandingRules) -> Mode {
    let mode = turn.mode();
    rules.ceiling.map_or(mode, |ceiling| mode.min(ceiling))
}

/// The verdict on a deed in this turn. A rule about a file of the repository also counts for the copy in the agent's worktree.
fn verdict<'r>(
    turn: &TurnLog,
    deed: &'r OwnedDeed,
    isolation: &'r Isolation,
    rules: &'r StandingRules,
    worktree: Option<&Worktree>,
) -> Verdict<'r, RuleBy> {
    let terms = Terms {
        mode: turn.mode(),
        ceiling: turn.ceiling().into_iter().chain(rules.ceiling).min(),
        isolation,
        folder: deed.folder(),
        rules: &rules.rules,
    };
    let verdict = judge(&deed.as_deed(), &terms);
    let original = worktree.and_then(|worktree| deed.in_repository(worktree));
    let of_original = original.map(|deed| judge(&deed.as_deed(), &terms));
    match of_original {
        Some(other) if other.by.is_some() && other.decision > verdict.decision => other,
        _ => verdict,
    }
}

/// The verdict once the hooks before the call have had their say.
fn with_hooks<'r>(
    mut verdict: Verdict<'r, RuleBy>,
    hooked: &HookVerdict,
    only_people: bool,
) -> Verdict<'r, RuleBy> {
    match verdict.decision {
        Decision::Allow if hooked.asks() => {
            verdict.decision = Decision::Ask;
            verdict.why = hook_asks(&hooked.reason);
            verdict.suggestion = None;
        }
        // Where a rule or the machine wants a person to be asked, no hook takes that away.
        Decision::Ask
            if hooked.decision == Some(HookDecision::Allow)
                && verdict.by.is_none()
                && !only_people =>
        {
            verdict.decision = Decision::Allow;
        }
        _ => {}
    }
    verdict
}

/// The question to people about a call at this place; nothing where its arguments are none.
fn planned(
    turn: &TurnLog,
    call: &Call<'_>,
    place: Option<&Place>,
    verdict: &Verdict<'_, RuleBy>,
) -> Option<PlannedCall> {
    let mut planned = call.planned(place, verdict)?;
    let chosen = turn.choice.as_ref().and_then(Choice::runner);
    // A place that could not be looked at is named all the same.
    if let Some((runner, name)) = chosen.filter(|_| call.digest().is_some())
        && planned.runner.is_none()
    {
        planned.runner = Some(runner);
        name.clone_into(&mut planned.runner_name);
        "not known".clone_into(&mut planned.isolation);
    }
    if turn.only_people_allow() {
        planned.rule = None;
    }
    Some(planned)
}

/// The words to the model on a call that a hook does not let through.
fn hook_denies(reason: &str) -> String {
    match reason {
        "" => "a hook does not allow it".to_owned(),
        reason => format!("a hook does not allow it: {reason}"),
    }
}

/// The reason to ask people because a hook wants that.
fn hook_asks(reason: &str) -> String {
    match reason {
        "" => "a hook asks for your consent".to_owned(),
        reason => format!("a hook asks for your consent: {reason}"),
    }
}

fn question(ask: &PersonAsk) -> Question {
    match ask {
        PersonAsk::Question { text, choices } => Question::Free {
            text: text.clone(),
            choices: choices.clone(),
        },
        PersonAsk::Plan { text } => Question::Plan { text: text.clone() },
    }
}

/// The outcome of a question that no person answered.
pub(super) fn outcome(place: CallPlace, approval: ApprovalId, because: Unanswered) -> Event {
    let CallPlace {
        turn,
        step,
        ordinal,
    } = place;
    Event::ApprovalAnswered {
        turn,
        step,
        ordinal,
        approval,
        answer: Answer::Unanswered { because },
        by: None,
        name: String::new(),
    }
}
