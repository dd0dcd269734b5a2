//! The events of the log: what each does to the items and the facts.

use shared_types::{
    Event, OperationId, TurnId, UserId,
    event::{CompactedBecause, Finish, OfferedServer, Part, Parts, TurnOutcome},
    human::tokens,
    limits::HOOK_ORDINALS,
};

use super::{
    MOST_TURNS, Transcript, Waiting, answer, calls,
    calls::Key,
    facts::{Asked, MOST_ASKED, Task, Waits},
    item::{Agent, End, Kind, Level, Message, Note, Place, Sent, State, named},
    safe, words,
};

impl Transcript {
    pub(super) fn logged(&mut self, event: &Event) {
        match event {
            Event::SessionCreated { model, .. } => {
                self.models.chosen(model);
                self.facts.model = safe::line(model);
            }
            Event::InputAccepted {
                turn, by, parts, ..
            } => self.accepted(*turn, *by, parts),
            Event::InputSteered {
                turn, by, parts, ..
            } => {
                self.message(*turn, *by, parts, Sent::Steered);
            }
            Event::SteersTaken {
                turn, into: None, ..
            } => self.add_note(Some(*turn), "the agent has read it"),
            Event::TurnClaimed { turn, settings, .. } => {
                if let Some(settings) = settings {
                    self.facts.model = safe::line(&settings.model);
                }
                self.claimed(*turn);
            }
            Event::AnswerRecorded { .. } => self.answered(event),
            Event::PlaceSurveyed {
                turn,
                instructions,
                unread,
                project,
                ..
            } => {
                for words in words::instructions(instructions.as_deref(), unread) {
                    self.add_note(Some(*turn), words);
                }
                let project = project.as_deref().filter(|file| !file.trusted);
                if let Some(file) = project
                    && !std::mem::replace(&mut self.log.told_of_rules, true)
                {
                    self.add_note(Some(*turn), words::untrusted(file));
                }
            }
            Event::ExtensionsFound { turn, extensions } => {
                for words in extensions.words() {
                    self.add_note(Some(*turn), safe::line(&words));
                }
            }
            Event::HookEnded { turn, end } => {
                if let Some(words) = end.words() {
                    self.add_note(Some(*turn), safe::line(&words));
                }
            }
            Event::ToolsOffered { turn, servers } => {
                for words in servers.iter().flat_map(OfferedServer::words) {
                    self.add_note(Some(*turn), safe::line(&words));
                }
            }
            Event::ApprovalAsked { .. } => self.asked(event),
            Event::ApprovalAnswered { .. } => self.approved(event),
            Event::CallPlaced { .. } => self.placed(event),
            Event::CallEnded { .. } => self.call_ended(event),
            Event::AgentStarted { .. } => self.agent_started(event),
            Event::AgentEnded { .. } => self.agent_ended(event),
            Event::AgentAsks { name, session, .. } => {
                let words = format!(
                    "the agent {} asks you · its conversation: /resume {session}",
                    safe::line(name)
                );
                self.add(None, Kind::Note(Note::quiet(words)));
            }
            Event::ChatStarted {
                turn,
                session,
                title,
                ..
            } => {
                let words = words::chat_started(title, *session);
                self.add_note(Some(*turn), words);
            }
            Event::ChatOrigin { parent } => {
                self.add_note(None, words::chat_origin(parent.session));
            }
            Event::WorktreeChanged {
                turn,
                worktree,
                state,
                ..
            } => {
                if let Some(words) = words::worktree(worktree, *state) {
                    self.add_note(Some(*turn), words);
                }
            }
            Event::AgentBriefed {
                name, description, ..
            } => {
                let (name, task) = (safe::line(name), safe::line(description));
                self.add_note(None, format!("the agent {name} works here: {task}"));
            }
            Event::TodoChanged {
                turn, items, found, ..
            } => {
                let change = words::todo(&self.facts.todo, items, *found);
                self.facts.todo.clone_from(items);
                self.add(Some(*turn), Kind::Todo(change));
            }
            Event::OperationSettled { operation, summary } => {
                self.settled(*operation, summary);
            }
            Event::ConversationRewound { before, .. } => {
                // The list is as it was before that turn, which this reader does not know.
                self.facts.todo.clear();
                self.add_note(None, format!("went back to before “{before}”"));
            }
            Event::CancelRequested { turn, why, .. } => {
                if let Some(why) = why {
                    self.add_note(Some(*turn), format!("stopping: {why}"));
                }
                self.waits(*turn, Waits::Stop);
            }
            Event::TurnEnded {
                turn,
                outcome,
                reason,
            } => self.ended(*turn, *outcome, reason.as_deref()),
            // The message of that turn is shown, and so are the calls that edited the context or asked a tool server, and
            // the ends of hooks.
            Event::SteersTaken { .. }
            | Event::ContextEdited { .. }
            | Event::CallSent { .. }
            | Event::HookSent { .. } => {}
            Event::PromptChanged { .. }
            | Event::ResultsLeftOut { .. }
            | Event::ResultsMasked { .. }
            | Event::ContextCompacted { .. } => self.conversation_changed(event),
        }
    }

    fn accepted(&mut self, turn: TurnId, by: UserId, parts: &Parts) {
        let is_busy = self.facts.turn.is_some();
        let sent = if is_busy { Sent::Queued } else { Sent::Now };
        let item = self.message(turn, by, parts, sent);
        if !is_busy {
            self.works(turn, Waits::Server);
            return;
        }
        if self.log.queued.len() >= MOST_TURNS {
            self.log.queued.pop_front();
        }
        let words = parts.words();
        let message = safe::line(words.trim().lines().next().unwrap_or_default());
        self.log.queued.push_back(Waiting {
            turn,
            item,
            message,
        });
    }

    fn message(&mut self, turn: TurnId, by: UserId, parts: &Parts, sent: Sent) -> u64 {
        let texts = parts.0.iter().filter_map(|part| match part {
            Part::Text { text } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        let text = safe::text(texts.collect::<Vec<_>>().join("\n\n").trim_end());
        let images = parts.0.iter();
        let images = images
            .filter(|part| matches!(part, Part::Image { .. }))
            .count();
        let by = match self.people.me {
            Some(me) if me != by => Some(named(by, self.people.names.get(&by))),
            Some(_) | None => None,
        };
        let message = Message {
            text,
            images,
            sent,
            by,
        };
        self.add(Some(turn), Kind::User(message))
    }

    fn claimed(&mut self, turn: TurnId) {
        if self.log.claimed.replace(turn) == Some(turn) {
            // The worker before is gone, and with it what it had heard of the model.
            if let Some(answer) = self.answer.take_if(|answer| answer.turn() == turn) {
                answer.void(&mut self.store);
            }
            self.add_note(Some(turn), "taken up again where it was interrupted");
        }
        let waiting = self.log.queued.iter().position(|of| of.turn == turn);
        let waiting = waiting.and_then(|place| self.log.queued.remove(place));
        // Its message stands directly before, unless something was shown since.
        let is_far = |waiting: &Waiting| {
            let mut behind = self.store.from(waiting.item + 1);
            !behind.all(|item| matches!(item.kind, Kind::End(_) | Kind::Note(_)))
        };
        if let Some(waiting) = waiting.filter(is_far) {
            self.add_note(Some(turn), format!("now: {}", waiting.message));
        }
        if self
            .facts
            .turn
            .as_ref()
            .is_none_or(|known| known.turn != turn)
        {
            self.works(turn, Waits::Model);
        }
        self.waits(turn, Waits::Model);
    }

    fn answered(&mut self, event: &Event) {
        let Event::AnswerRecorded {
            turn,
            step,
            model,
            origin,
            parts,
            finish,
            usage,
            model_ms,
            ..
        } = event
        else {
            return;
        };
        let live = self.answer.take();
        let live = match live {
            Some(live) if live.is_of(*turn, *step) => Some(live),
            Some(other) => {
                other.abandon(&mut self.store);
                None
            }
            None => None,
        };
        answer::record(*turn, parts, *model_ms, live, &mut self.store);
        self.log.recorded = Some((*turn, *step));
        self.facts.model = safe::line(model);
        self.facts.last = *usage;
        self.facts.output = self.facts.output.saturating_add(usage.output);
        for words in self.models.answer(model, origin.as_ref(), parts) {
            self.add_note(Some(*turn), words);
        }
        match finish {
            Finish::Complete | Finish::Cancelled => {}
            Finish::Length => self.warn(*turn, "the model reached its own length limit"),
        }
        for (ordinal, asked) in (0..).zip(parts.calls()) {
            let key = Key {
                turn: *turn,
                step: *step,
                ordinal,
            };
            let call = Kind::Call(Box::new(calls::call(key, asked)));
            let item = self.store.push(Some(*turn), true, call);
            self.calls.begin(key, item);
        }
        if let Some(working) = &mut self.facts.turn
            && working.turn == *turn
        {
            working.step = *step;
        }
        self.waits_for_calls(*turn);
    }

    fn asked(&mut self, event: &Event) {
        let Event::ApprovalAsked {
            turn,
            step,
            ordinal,
            approval,
            question,
            until,
            ..
        } = event
        else {
            return;
        };
        let key = Key {
            turn: *turn,
            step: *step,
            ordinal: *ordinal,
        };
        let item = self.calls.get(key).map(|open| open.item);
        self.change_call(item, |call| call.state = State::Asked);
        if self.facts.asked.len() >= MOST_ASKED {
            self.facts.asked.pop_front();
        }
        self.facts.asked.push_back(Asked {
            approval: *approval,
            turn: *turn,
            item,
            question: question.clone(),
            until: *until,
        });
        self.waits_for_calls(*turn);
    }

    fn approved(&mut self, event: &Event) {
        let Event::ApprovalAnswered {
            turn,
            step,
            ordinal,
            approval,
            answer,
            by,
            name,
        } = event
        else {
            return;
        };
        if let Some(by) = by {
            self.person(*by, name);
        }
        let place = self
            .facts
            .asked
            .iter()
            .position(|of| of.approval == *approval);
        if let Some(place) = place {
            self.facts.asked.remove(place);
        }
        // It is plain that the person at this terminal answered.
        let is_mine = by.is_some() && *by == self.people.me;
        let words = words::answered(answer, if is_mine { "" } else { name });
        let key = Key {
            turn: *turn,
            step: *step,
            ordinal: *ordinal,
        };
        match self.calls.get(key).map(|open| open.item) {
            None => self.add_note(Some(*turn), words),
            item => self.change_call(item, |call| {
                call.state = State::Waits;
                call.approval = Some(words);
            }),
        }
        self.waits_for_calls(*turn);
    }

    fn placed(&mut self, event: &Event) {
        let Event::CallPlaced {
            turn,
            step,
            ordinal,
            operation,
            place,
        } = event
        else {
            return;
        };
        // The command of a hook is not shown as a call.
        if *ordinal >= HOOK_ORDINALS {
            return;
        }
        // Nor is the look at the place of a turn.
        if *step == 0 {
            self.log.look = Some(*operation);
            return;
        }
        let key = Key {
            turn: *turn,
            step: *step,
            ordinal: *ordinal,
        };
        let Some(open) = self.calls.get(key) else {
            return;
        };
        open.operation = Some(*operation);
        let item = Some(open.item);
        let place = Place {
            runner: safe::line(&place.runner_name),
            isolation: safe::line(&place.isolation.to_string()),
        };
        let is_other = self.place.as_ref() != Some(&place);
        self.place = Some(place.clone());
        self.change_call(item, |call| {
            call.state = State::Runs;
            if is_other {
                call.place = Some(place);
            }
        });
        self.waits_for_calls(*turn);
    }

    fn agent_started(&mut self, event: &Event) {
        let Event::AgentStarted {
            turn,
            step,
            ordinal,
            session,
            name,
            ..
        } = event
        else {
            return;
        };
        let key = Key {
            turn: *turn,
            step: *step,
            ordinal: *ordinal,
        };
        let item = self.calls.get(key).map(|open| open.item);
        self.change_call(item, |call| {
            call.state = State::Runs;
            call.agent = Some(Agent {
                name: safe::line(name),
                session: session.to_string(),
                ended: None,
            });
        });
        self.waits_for_calls(*turn);
    }

    /// The call tells the end of its agent, if it has not ended itself.
    fn agent_ended(&mut self, event: &Event) {
        let Event::AgentEnded {
            turn,
            step,
            ordinal,
            name,
            outcome,
            steps,
            tokens,
            ..
        } = event
        else {
            return;
        };
        let words = words::agent_ended(*outcome, *steps, *tokens);
        let key = Key {
            turn: *turn,
            step: *step,
            ordinal: *ordinal,
        };
        match self.calls.get(key).map(|open| open.item) {
            None => self.add_note(None, format!("the agent {}: {words}", safe::line(name))),
            item => self.change_call(item, |call| {
                if let Some(agent) = &mut call.agent {
                    agent.ended = Some(words);
                }
            }),
        }
    }

    fn call_ended(&mut self, event: &Event) {
        let Event::CallEnded {
            turn,
            step,
            ordinal,
            task,
            ..
        } = event
        else {
            return;
        };
        let key = Key {
            turn: *turn,
            step: *step,
            ordinal: *ordinal,
        };
        let Some(open) = self.calls.remove(key) else {
            return;
        };
        open.end(event, &mut self.store);
        if let Some(Kind::Call(call)) = self.store.get(open.item).map(|item| &item.kind) {
            self.changes.take(call);
            if let Some((number, operation)) = task.zip(open.operation) {
                self.facts.add_task(Task {
                    number,
                    operation,
                    command: call.request.about(),
                    last_line: String::new(),
                    ended: None,
                });
            }
        }
        self.waits_for_calls(*turn);
    }

    fn settled(&mut self, operation: OperationId, summary: &str) {
        if self.log.look == Some(operation) {
            return;
        }
        let summary = safe::line(summary);
        let words = match self.facts.task(operation) {
            Some(task) => {
                task.ended = Some(summary.clone());
                format!("task {} ended: {summary}", task.number)
            }
            None => format!("known later: {summary}"),
        };
        self.add_note(None, words);
    }

    fn ended(&mut self, turn: TurnId, outcome: TurnOutcome, reason: Option<&str>) {
        if let Some(answer) = self.answer.take_if(|answer| answer.turn() == turn) {
            answer.abandon(&mut self.store);
        }
        self.calls.leave(turn, &mut self.store);
        self.facts.asked.retain(|asked| asked.turn != turn);
        self.log.queued.retain(|waiting| waiting.turn != turn);
        let end = End {
            outcome,
            reason: reason.map(safe::line),
            todo: words::todo_line(&self.facts.todo),
        };
        self.add(Some(turn), Kind::End(end));
        self.log.has_ended_turn = true;
        if self.log.ended.len() >= MOST_TURNS {
            self.log.ended.pop_front();
        }
        self.log.ended.push_back(turn);
        let works = self.facts.turn.as_ref().map(|working| working.turn);
        if works == Some(turn) {
            self.facts.turn = None;
            if let Some(next) = self.log.queued.front().map(|waiting| waiting.turn) {
                self.works(next, Waits::Server);
            }
        }
    }

    fn conversation_changed(&mut self, event: &Event) {
        let turn = event.turn();
        match event {
            Event::ResultsLeftOut {
                results,
                gone,
                shortened,
                ..
            } => self.add_note(turn, words::left_out(*results, *gone, *shortened)),
            Event::ResultsMasked { before, after, .. } => self.add_note(
                turn,
                format!(
                    "left out old results, about {} tokens, to make room; the model can look them up again",
                    tokens(before.saturating_sub(*after))
                ),
            ),
            Event::ContextCompacted {
                carried,
                summary,
                before,
                after,
                no_summary,
                because,
                ..
            } => {
                self.facts.last.input = *after;
                self.facts.last.output = 0;
                let mut said = words::compacted(*before, *after, no_summary.as_deref());
                if *because == CompactedBecause::Asked {
                    said = format!("{said}\n{}", words::kept(carried, summary));
                }
                self.add_note(turn, said);
            }
            // The prompt of a session's first turn is no news.
            Event::PromptChanged { .. } if self.log.has_ended_turn => {
                self.add_note(turn, "the text that the system prompt begins with is another from here on");
            }
            _ => {}
        }
    }

    fn warn(&mut self, turn: TurnId, words: &str) {
        self.add(Some(turn), Kind::Note(Note::new(Level::Warning, words)));
    }

    fn change_call(&mut self, item: Option<u64>, change: impl FnOnce(&mut super::item::Call)) {
        let Some(item) = item else { return };
        self.store.change(item, |item| {
            if let Kind::Call(call) = &mut item.kind {
                change(call);
            }
        });
    }

    /// Notes which call the turn waits for, or the model where all have ended.
    fn waits_for_calls(&mut self, turn: TurnId) {
        let calls = self.calls.of(turn).filter_map(|item| {
            match self.store.get(item).map(|item| &item.kind) {
                Some(Kind::Call(call)) => Some(call),
                _ => None,
            }
        });
        let calls: Vec<_> = calls.collect();
        let what = match calls.first() {
            None => Waits::Model,
            Some(_) if calls.iter().any(|call| call.state == State::Asked) => Waits::Person,
            Some(call) => Waits::Tool {
                name: call.name.clone(),
                about: call.request.about(),
                more: calls.len() - 1,
            },
        };
        self.waits(turn, what);
    }
}
