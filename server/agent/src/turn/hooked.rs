//! The points of a turn at which hooks run, and what their verdicts do there.

use serde_json::{Map, Value, json};
use shared_types::{
    Event,
    event::{CallOutcome, CompactedBecause, HookEvent, Parts, ToolCall},
};

use super::{
    Turn, TurnError,
    call::{Call, Done},
    show::CallPlace,
};
use crate::{
    hooks::{HookPoint, HookVerdict, inward, names_of, outward},
    roles,
    tools::SUB_AGENT,
};

/// Most times in a turn that hooks keep it going behind its last word.
const KEPT_GOING_AT_MOST: usize = 5;

/// The beginning of a turn, once its hooks have run.
pub(super) enum Begins {
    /// The model is asked.
    Asks,
    /// It ends for this reason.
    Refused(String),
    /// It was a command whose output is for people alone.
    Shown,
}

impl<'a> Turn<'a> {
    /// Before the model is asked first.
    pub(super) async fn before_first_step(&mut self) -> Result<Begins, TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        let prompt = turn.input.words().into_owned();
        let is_first = self
            .transcript
            .turns()
            .first()
            .is_some_and(|first| first.id == self.id);
        if is_first {
            let facts = object(json!({ "source": "startup" }));
            self.hooks(point(HookEvent::SessionStart, 0, 0), &["startup"], &facts)
                .await?;
        }
        let facts = object(json!({ "prompt": prompt }));
        let said = self
            .hooks(point(HookEvent::UserPromptSubmit, 0, 0), &[], &facts)
            .await?;
        if said.denies() {
            let why = reason("a hook does not let this message through", &said);
            return Ok(Begins::Refused(why));
        }
        self.slash_command(&prompt).await
    }

    /// Runs the command of a plugin that the message of a person is, `/PLUGIN:COMMAND ARGUMENTS`.
    async fn slash_command(&mut self, prompt: &str) -> Result<Begins, TurnError> {
        // A model runs no command by writing it to an agent or into another conversation.
        if self.transcript.brief().is_some() || self.transcript.is_begun_by_call(self.id) {
            return Ok(Begins::Asks);
        }
        let words = prompt.strip_prefix('/').unwrap_or_default();
        let (name, arguments) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let Some((_, command)) = name.split_once(':') else {
            return Ok(Begins::Asks);
        };
        let facts = object(json!({ "command": command, "arguments": arguments.trim() }));
        let at = point(HookEvent::SlashCommand, 0, 0);
        let said = self.hooks(at, &[name], &facts).await?;
        let failed = self.transcript.turn(self.id).and_then(|turn| {
            let mut ends = turn.hook_ends(at);
            ends.find_map(|end| end.failed.clone())
        });
        Ok(match failed {
            Some(why) => Begins::Refused(format!("/{name} failed: {why}")),
            None if said.denies() => Begins::Shown,
            None => Begins::Asks,
        })
    }

    /// Before the model is asked for a further step. Returns the reason if the turn is not to go on.
    pub(super) async fn after_batch(&mut self, step: u32) -> Result<Option<String>, TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        let Some(before) = step.checked_sub(1).and_then(|before| turn.step(before)) else {
            return Ok(None);
        };
        if before.calls.is_empty() {
            return Ok(None);
        }
        let calls = before.calls.iter().map(|call| {
            let outcome = call.result.as_ref().map(|result| result.outcome);
            json!({ "tool_name": call.asked.name, "outcome": outcome })
        });
        let facts = object(json!({ "tool_calls": calls.collect::<Vec<_>>() }));
        let at = point(HookEvent::PostToolBatch, step - 1, 0);
        let said = self.hooks(at, &[], &facts).await?;
        Ok(said.denies().then(|| reason("a hook ends the turn", &said)))
    }

    /// Before a call is judged.
    pub(super) async fn before_call(&mut self, call: &Call<'a>) -> Result<HookVerdict, TurnError> {
        let facts = self.facts_of(call.place())?;
        let at = point_of(HookEvent::PreToolUse, call.place());
        let name = self.name_of(call.place());
        let said = self.hooks(at, &names_of(&name), &facts).await?;
        if name != SUB_AGENT || said.denies() {
            return Ok(said);
        }
        let at = point_of(HookEvent::SubAgentStart, call.place());
        let role = role_of(&facts);
        let begins = self.hooks(at, &[&role], &facts).await?;
        Ok(match begins.denies() {
            true => begins,
            false => said,
        })
    }

    /// The tool of a call, and the arguments that a hook has put in place of its own, if one did.
    pub(super) fn changed_by_hook(&self, step: u32, ordinal: u32) -> Option<(String, String)> {
        let turn = self.transcript.turn(self.id)?;
        let of = |on| HookVerdict::of(turn.hook_ends(point(on, step, ordinal))).input;
        // What stands before people is changed last.
        let input = of(HookEvent::PermissionRequest).or_else(|| of(HookEvent::PreToolUse))?;
        let survey = turn.survey.as_ref();
        let folder = survey.map_or("", |survey| survey.folder.as_str());
        let written = serde_json::from_str(&input).ok()?;
        let call = turn.step(step)?.calls.get(ordinal as usize)?;
        let (name, _) = as_meant(&call.asked);
        let arguments = Value::Object(inward(&name, written, folder)).to_string();
        Some((name, arguments))
    }

    /// Before people are asked about a call.
    pub(super) async fn before_question(
        &mut self,
        call: &Call<'a>,
    ) -> Result<HookVerdict, TurnError> {
        let facts = self.facts_of(call.place())?;
        let at = point_of(HookEvent::PermissionRequest, call.place());
        let name = self.name_of(call.place());
        self.hooks(at, &names_of(&name), &facts).await
    }

    /// After a call was denied.
    pub(super) async fn after_denial(
        &mut self,
        place: CallPlace,
        why: &str,
    ) -> Result<(), TurnError> {
        let mut facts = self.facts_of(place)?;
        facts.insert("reason".to_owned(), why.into());
        let name = self.name_of(place);
        self.hooks(
            point_of(HookEvent::PermissionDenied, place),
            &names_of(&name),
            &facts,
        )
        .await?;
        Ok(())
    }

    /// After a call has ended, before its end is recorded: what hooks say of it becomes a part of the result.
    pub(super) async fn after_call(&mut self, done: &mut Done) -> Result<(), TurnError> {
        let Event::CallEnded {
            turn,
            step,
            ordinal,
            outcome,
            parts,
            ..
        } = &mut done.event
        else {
            return Ok(());
        };
        let on = match outcome {
            CallOutcome::Completed => HookEvent::PostToolUse,
            CallOutcome::Failed | CallOutcome::TimedOut | CallOutcome::Unknown => {
                HookEvent::PostToolUseFailure
            }
            CallOutcome::Refused | CallOutcome::Cancelled | CallOutcome::Background => {
                return Ok(());
            }
        };
        let place = CallPlace {
            turn: *turn,
            step: *step,
            ordinal: *ordinal,
        };
        if !self.has_hooks(on) && !self.has_hooks(HookEvent::SubAgentStop) {
            return Ok(());
        }
        let mut facts = self.facts_of(place)?;
        let words = parts.words().into_owned();
        match on {
            HookEvent::PostToolUse => {
                facts.insert("tool_response".to_owned(), words.clone().into())
            }
            _ => facts.insert("error".to_owned(), words.clone().into()),
        };
        let name = self.name_of(place);
        if name == SUB_AGENT {
            let at = point_of(HookEvent::SubAgentStop, place);
            self.hooks(at, &[&role_of(&facts)], &facts).await?;
        }
        let said = self
            .hooks(point_of(on, place), &names_of(&name), &facts)
            .await?;
        let mut text = said.output.clone().unwrap_or(words);
        let notes = [
            said.context.as_str(),
            if said.denies() {
                said.reason.as_str()
            } else {
                ""
            },
        ];
        for note in notes.into_iter().filter(|note| !note.is_empty()) {
            text.push_str(&format!("\n[a hook says: {note}]"));
        }
        let changed = Parts::text(text);
        if changed.words() != parts.words() {
            let images = parts
                .0
                .drain(..)
                .filter(|part| !matches!(part, shared_types::event::Part::Text { .. }));
            let images: Vec<_> = images.collect();
            *parts = changed;
            parts.0.extend(images);
        }
        Ok(())
    }

    /// Before the turn completes. Returns whether it goes on instead.
    pub(super) async fn before_stop(&mut self) -> Result<bool, TurnError> {
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        let Some(last) = turn.steps.last() else {
            return Ok(false);
        };
        let kept = turn
            .steps
            .iter()
            .filter(|step| turn.is_kept_going(step.number))
            .count();
        let step = last.number;
        if kept >= KEPT_GOING_AT_MOST || turn.cancel_requested {
            return Ok(false);
        }
        let facts = object(json!({
            "stop_hook_active": kept > 0,
            "last_assistant_message": last.parts.words(),
        }));
        let said = self
            .hooks(point(HookEvent::AgentStop, step, 0), &[], &facts)
            .await?;
        Ok(said.denies())
    }

    /// Once the turn has to fail for this reason.
    pub(super) async fn before_failure(&mut self, why: &str) -> Result<(), TurnError> {
        let step = self
            .transcript
            .turn(self.id)
            .map_or(0, |turn| turn.steps.len());
        let step = u32::try_from(step).unwrap_or(u32::MAX);
        let facts = object(json!({ "error": why }));
        self.hooks(point(HookEvent::AgentError, step, 0), &[], &facts)
            .await?;
        Ok(())
    }

    /// Before the conversation is compacted. Returns false if it is not to be.
    pub(super) async fn before_compaction(
        &mut self,
        step: u32,
        because: CompactedBecause,
    ) -> Result<bool, TurnError> {
        let trigger = trigger(because);
        let facts = object(json!({ "trigger": trigger }));
        let said = self
            .hooks(point(HookEvent::PreCompact, step, 0), &[trigger], &facts)
            .await?;
        Ok(!said.denies())
    }

    /// After the conversation was compacted.
    pub(super) async fn after_compaction(
        &mut self,
        step: u32,
        because: CompactedBecause,
    ) -> Result<(), TurnError> {
        let trigger = trigger(because);
        let facts = object(json!({ "trigger": trigger }));
        self.hooks(point(HookEvent::PostCompact, step, 0), &[trigger], &facts)
            .await?;
        Ok(())
    }

    fn name_of(&self, place: CallPlace) -> String {
        let step = self
            .transcript
            .turn(place.turn)
            .and_then(|turn| turn.step(place.step));
        let call = step.and_then(|step| step.calls.get(place.ordinal as usize));
        call.map_or_else(String::new, |call| as_meant(&call.asked).0)
    }

    /// The tool and the arguments of a call, as hooks read them.
    fn facts_of(&self, place: CallPlace) -> Result<Map<String, Value>, TurnError> {
        let turn = self
            .transcript
            .turn(place.turn)
            .ok_or(TurnError::NotInLog)?;
        let step = turn.step(place.step).ok_or(TurnError::NotInLog)?;
        let call = step
            .calls
            .get(place.ordinal as usize)
            .ok_or(TurnError::NotInLog)?;
        let (name, arguments) = as_meant(&call.asked);
        let survey = turn.survey.as_ref();
        let folder = survey.map_or("", |survey| survey.folder.as_str());
        Ok(object(json!({
            "tool_name": names_of(&name).first(),
            "tool_input": outward(&name, &arguments, folder),
            "tool_use_id": format!("r{}", call.number),
        })))
    }
}

/// The words for people and the model on a verdict that ends something.
fn reason(what: &str, said: &HookVerdict) -> String {
    match said.reason.is_empty() {
        true => what.to_owned(),
        false => format!("{what}: {}", said.reason),
    }
}

/// The tool and the arguments of a call, also where it was called through another tool.
fn as_meant(asked: &ToolCall) -> (String, String) {
    let through = asked.through_use_tool();
    through.unwrap_or_else(|| (asked.name.clone(), asked.arguments.clone()))
}

/// The role of the subagent that a call begins.
fn role_of(facts: &Map<String, Value>) -> String {
    let role = facts["tool_input"].get("agent").and_then(Value::as_str);
    role.unwrap_or(roles::GENERAL).to_owned()
}

fn trigger(because: CompactedBecause) -> &'static str {
    match because {
        CompactedBecause::Asked => "manual",
        _ => "auto",
    }
}

fn point(on: HookEvent, step: u32, ordinal: u32) -> HookPoint {
    HookPoint { on, step, ordinal }
}

fn point_of(on: HookEvent, place: CallPlace) -> HookPoint {
    point(on, place.step, place.ordinal)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
