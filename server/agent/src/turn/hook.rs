//! Runs hooks at the points of a turn. The end of each is recorded before what it decides on goes on, so that a worker
//! that takes the turn up runs none a second time.
//!
//! A hook's command is an ordinary operation with a key of its own, in the sandbox of the turn's calls. A worker that
//! takes the turn up attaches to it. A hook that is sent to an address or a tool server is recorded before it leaves. A
//! worker that finds such a hook without an end does not send it again: it has failed.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde_json::{Map, Value};
use shared_sandbox::{
    Command, Consent, EndToken, Exec, ExitStatus, Operation, OperationEvent, OperationLimits,
    Outcome, OutputStream, Request,
};
use shared_types::{
    Effect, Event, Mode, OperationId, OperationKey, Owner,
    clean::clean_line,
    event::{Hook, HookDecision, HookEnd, HookEvent, HookHandler},
};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Turn, TurnError, call::End, feeding::Feeding, listen::next_event};
use crate::{
    hooks::{
        self, Common, Exit, FAILURES, HookPoint, HookPost, HookVerdict, Said, of_exit, of_text,
        project_folder,
    },
    servers::{NobodyAsked, ServerCall},
};

/// The time that the place has to take an operation, beyond the hook's own.
const PLACED_WITHIN: Duration = Duration::from_secs(10);

/// Most bytes that are read of each output of a command.
const MAX_OUTPUT: usize = 64 * 1024;

/// Longest reason of a failure, in bytes.
const MAX_FAILURE: usize = 300;

/// The reason why a hook fails that an earlier worker sent.
const NOT_SENT_AGAIN: &str = "the Gantry server that waited for its answer stopped; it may have happened, and it was not sent again";

impl Turn<'_> {
    /// True if a hook runs at this event.
    pub(super) fn has_hooks(&self, on: HookEvent) -> bool {
        let turn = self.transcript.turn(self.id);
        let mut hooks = turn.into_iter().flat_map(|turn| &turn.extensions.hooks);
        hooks.any(|hook| hook.on == on && hook.from.trusted)
    }

    /// Runs the hooks of this point for what has one of these names, one after the other, and returns what they say
    /// together. Those whose end the log has do not run again.
    pub(super) async fn hooks(
        &mut self,
        point: HookPoint,
        names: &[&str],
        facts: &Map<String, Value>,
    ) -> Result<HookVerdict, TurnError> {
        if !self.has_hooks(point.on) {
            return Ok(HookVerdict::default());
        }
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        let extensions = turn.extensions.clone();
        let mut ends = Vec::new();
        for (number, hook) in hooks::at(&extensions.hooks, point.on, names) {
            let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
            if let Some(known) = turn.hook_end(point, number) {
                ends.push(known.clone());
                continue;
            }
            if turn.was_hook_sent(point, number) {
                let end = ended(point, number, hook, Err(NOT_SENT_AGAIN.to_owned()), 0);
                self.record_hook_end(end.clone(), None).await?;
                ends.push(end);
                continue;
            }
            let action = hooks::action(hook);
            // A person who calls a command again means it.
            if point.on != HookEvent::SlashCommand
                && self
                    .transcript
                    .failures_of(&hook.from.at, point.on, &action)
                    >= FAILURES
            {
                ends.extend(left_alone(point, number, hook, action));
                continue;
            }
            if self.cancel.is_cancelled() {
                break;
            }
            if hook.handler.is_sent() {
                let HookPoint { on, step, ordinal } = point;
                let sent = Event::HookSent {
                    turn: self.id,
                    on,
                    step,
                    ordinal,
                    number,
                };
                self.record(sent).await?;
            }
            let (end, stored) = self.run_hook(point, number, hook, facts).await;
            self.record_hook_end(end.clone(), stored).await?;
            ends.push(end);
        }
        Ok(HookVerdict::of(&ends))
    }

    async fn record_hook_end(
        &mut self,
        end: HookEnd,
        stored: Option<End>,
    ) -> Result<(), TurnError> {
        let event = Event::HookEnded {
            turn: self.id,
            end: Box::new(end),
        };
        match stored {
            Some(stored) => self.record_end(event, stored).await,
            None => self.record(event).await,
        }
    }

    async fn run_hook(
        &self,
        point: HookPoint,
        number: u32,
        hook: &Hook,
        facts: &Map<String, Value>,
    ) -> (HookEnd, Option<End>) {
        let clock = &self.engine.clock;
        let began = clock.monotonic();
        let folder = self.folder_there();
        let mode = self
            .transcript
            .turn(self.id)
            .map(|turn| turn.mode().to_string());
        let common = Common {
            session: self.ports.session,
            folder: &folder,
            mode: mode.as_deref().unwrap_or_default(),
        };
        let input = Bytes::from(hooks::input(&common, point.on, facts.clone()));
        let within = Duration::from_millis(hook.timeout_ms);
        let mut stored = None;
        let said = match &hook.handler {
            HookHandler::Command { command } => {
                let operation = self.hook_operation(point, number, hook, command, &folder);
                let (said, end) = self.run_command(point.on, operation, input, within).await;
                stored = end;
                said
            }
            HookHandler::Http { .. } => {
                let (_, run) = self.hook_run(point, number);
                let post = HookPost {
                    run: run.to_string(),
                    json: input,
                    within,
                };
                let place = self.server_place();
                let posted = self.ports.posts.post(hook, place.as_ref(), post);
                tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => Err("the turn was stopped".to_owned()),
                    posted = posted => posted.and_then(|text| of_text(point.on, &text)),
                }
            }
            HookHandler::McpTool {
                server,
                tool,
                input: wanted,
            } => {
                let event = serde_json::from_slice(&input).unwrap_or_default();
                let arguments = hooks::filled(wanted, &event);
                let called = self.call_server(server, tool, &arguments, within);
                let said = called.await;
                said.and_then(|stdout| {
                    let (code, stderr) = (Some(0), "");
                    of_exit(
                        point.on,
                        Exit {
                            code,
                            stdout: &stdout,
                            stderr,
                        },
                    )
                })
            }
            HookHandler::BuiltIn { name } if name == "secrets" => Ok(guards_secrets(&input)),
            HookHandler::BuiltIn { name } => {
                Err(format!("there is no built-in {name:?}; there is: secrets"))
            }
        };
        let took = clock.monotonic().saturating_sub(began);
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        (ended(point, number, hook, said, took), stored)
    }

    /// The absolute path of the session's folder, as the last look found it; empty if it is not known.
    fn folder_there(&self) -> String {
        let turn = self.transcript.turn(self.id);
        let survey = turn.and_then(|turn| turn.survey.as_ref());
        survey.map_or_else(String::new, |survey| survey.folder.clone())
    }

    /// The key and the id of a run of a hook: the same for each worker of the turn.
    fn hook_run(&self, point: HookPoint, number: u32) -> (OperationKey, OperationId) {
        let key = OperationKey::Call {
            turn: self.id,
            step: point.step,
            ordinal: point.operation_ordinal(number),
            attempt: 0,
        };
        let owner = Owner::Session(self.ports.session);
        let id = OperationId::derive(&self.ports.scope, &owner, &key);
        (key, id)
    }

    fn hook_operation(
        &self,
        point: HookPoint,
        number: u32,
        hook: &Hook,
        command: &str,
        folder: &str,
    ) -> Operation {
        let (key, id) = self.hook_run(point, number);
        let directory = self.transcript.directory();
        let (from_session, project) = project_folder(hook, folder, directory);
        let request = Request::Exec(Exec {
            directory: from_session,
            input: true,
            environment: BTreeMap::from([
                ("CLAUDE_PROJECT_DIR".to_owned(), project.clone()),
                ("GANTRY_PROJECT_DIR".to_owned(), project),
            ]),
            ..Exec::new(Command::Shell(command.to_owned()))
        });
        let request = request.of_directory(directory);
        let mode = self
            .transcript
            .turn(self.id)
            .map(|turn| turn.mode())
            .unwrap_or(Mode::Plan);
        Operation {
            id,
            owner: Owner::Session(self.ports.session),
            key,
            epoch: self.epoch,
            effect: Effect::Effectful,
            limits: OperationLimits {
                start_within: PLACED_WITHIN,
                run_for: Duration::from_millis(hook.timeout_ms),
            },
            // A person has registered this very command, or trusts the file that has it.
            consent: Consent::Approved {
                mode,
                plan: request.digest(),
            },
            request,
            trace: None,
        }
    }

    /// Calls a tool of a tool server of the session, and returns its text.
    async fn call_server(
        &self,
        server: &str,
        tool: &str,
        arguments: &Map<String, Value>,
        within: Duration,
    ) -> Result<String, String> {
        let turn = self.transcript.turn(self.id);
        let mut servers = turn.iter().flat_map(|turn| &turn.extensions.servers);
        let declared = servers.find(|known| known.name == server && known.from.trusted);
        let declared = declared.ok_or_else(|| {
            format!("there is no tool server {server}, or people do not trust its file")
        })?;
        let place = self.server_place();
        let call = ServerCall { tool, arguments };
        let servers = &self.ports.servers;
        let calling = servers.call(declared, place.as_ref(), &call, &NobodyAsked);
        let called = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err("the turn was stopped".to_owned()),
            called = timeout(PLACED_WITHIN + within, calling) => called,
        };
        let content = called.map_err(|_| "it did not end in time".to_owned())?;
        let content = content.map_err(|failure| failure.words)?;
        match content.failed {
            true => Err(clean_line(&content.text, MAX_FAILURE)),
            false => {
                let mut text = content.text;
                text.truncate(text.floor_char_boundary(MAX_OUTPUT));
                Ok(text)
            }
        }
    }

    /// Runs a command to its end, or stops it after its time.
    async fn run_command(
        &self,
        on: HookEvent,
        operation: Operation,
        input: Bytes,
        within: Duration,
    ) -> (Result<Said, String>, Option<End>) {
        let (id, until) = (operation.id, Instant::now() + PLACED_WITHIN + within);
        let ended = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err("the turn was stopped".to_owned()),
            ended = self.hear_command(operation, input, until) => ended,
        };
        match ended {
            Ok((outcome, token, [stdout, stderr])) => {
                let said = of_outcome(on, &outcome, &stdout, &stderr);
                let end = token.map(|token| End {
                    operation: id,
                    outcome,
                    token,
                });
                (said, end)
            }
            Err(why) => {
                // What runs on is stopped; the turn does not wait for that.
                let _ = self.ports.sandbox.cancel(id, self.epoch).await;
                self.ports.sandbox.leave(id).await;
                (Err(why), None)
            }
        }
    }

    /// Carries a command to its end: its outcome, and as much of its outputs as is kept.
    pub(super) async fn hear_command(
        &self,
        operation: Operation,
        input: Bytes,
        until: Instant,
    ) -> Result<(Outcome, Option<EndToken>, [String; 2]), String> {
        let late = || "it did not end in time".to_owned();
        let started = timeout_at(until, self.ports.sandbox.start(operation)).await;
        let mut running = started
            .map_err(|_| late())?
            .map_err(|refusal| refusal.to_string())?;
        let mut feeding = Feeding::new(running.controls.clone(), input);
        let mut output = [Vec::new(), Vec::new()];
        loop {
            let heard = next_event(&mut running.events, Some(&mut feeding));
            match timeout_at(until, heard).await.map_err(|_| late())? {
                Some(OperationEvent::Output { stream, data, .. }) => {
                    let kept = &mut output[usize::from(stream == OutputStream::Stderr)];
                    let room = MAX_OUTPUT.saturating_sub(kept.len());
                    kept.extend_from_slice(&data[..data.len().min(room)]);
                }
                Some(OperationEvent::InputTaken(through)) => feeding.taken(through),
                Some(OperationEvent::Ended(outcome)) => {
                    let token = running.events.end_token();
                    let output = output.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                    return Ok((outcome, token, output));
                }
                Some(OperationEvent::Unreachable { .. }) | None => {
                    return Err("its runner cannot be reached".to_owned());
                }
                Some(_) => {}
            }
        }
    }
}

fn of_outcome(
    on: HookEvent,
    outcome: &Outcome,
    stdout: &str,
    stderr: &str,
) -> Result<Said, String> {
    match outcome {
        Outcome::Exited(record) => {
            let code = match record.status {
                ExitStatus::Code(code) => Some(code),
                _ => return Err(format!("{}, {}", record.status, record.cause.word())),
            };
            of_exit(
                on,
                Exit {
                    code,
                    stdout,
                    stderr,
                },
            )
        }
        Outcome::Refused(refusal) => Err(refusal.to_string()),
        _ => Err("the runner answered something that was not asked".to_owned()),
    }
}

/// The end of a hook that said this, or failed for this reason, after so many milliseconds.
fn ended(
    point: HookPoint,
    number: u32,
    hook: &Hook,
    said: Result<Said, String>,
    duration_ms: u64,
) -> HookEnd {
    let (said, failed) = match said {
        Ok(said) => (said, None),
        Err(why) => (Said::default(), Some(clean_line(&why, MAX_FAILURE))),
    };
    let mut end = HookEnd {
        on: point.on,
        step: point.step,
        ordinal: point.ordinal,
        number,
        action: hooks::action(hook),
        from: hook.from.clone(),
        failed,
        decision: said.decision,
        reason: said.reason,
        context: said.context,
        input: said.input.map(|input| Value::Object(input).to_string()),
        output: said.output,
        message: said.message,
        duration_ms,
    };
    if let Some(why) = end.failed.as_ref().filter(|_| hook.fails_closed) {
        end.decision = Some(HookDecision::Deny);
        end.reason = format!("the hook {:?} failed: {why}", end.action);
    }
    end
}

/// A hook that does not run any more, because it failed too often. It refuses what it guards; no turn goes on for it
/// without an end.
fn left_alone(point: HookPoint, number: u32, hook: &Hook, action: String) -> Option<HookEnd> {
    let reason = format!(
        "the hook {action:?} failed {FAILURES} times in a row: mend it, and start a new session"
    );
    let refuses = hook.fails_closed && point.on != HookEvent::AgentStop;
    refuses.then(|| HookEnd {
        on: point.on,
        step: point.step,
        ordinal: point.ordinal,
        number,
        action,
        from: hook.from.clone(),
        failed: None,
        decision: Some(HookDecision::Deny),
        reason,
        context: String::new(),
        input: None,
        output: None,
        message: String::new(),
        duration_ms: 0,
    })
}

/// The built-in action that refuses what holds a secret.
fn guards_secrets(input: &Bytes) -> Said {
    let text = String::from_utf8_lossy(input);
    match server_guard::leaks::find(&text).is_empty() {
        true => Said::default(),
        false => Said {
            decision: Some(HookDecision::Deny),
            reason: "it holds what looks like a secret".to_owned(),
            ..Said::default()
        },
    }
}
