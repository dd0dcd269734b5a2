//! A session as a person sees it: a pure function from events to text for the terminal.
//!
//! The same renderer shows a live turn and replays a log. Text that was shown live is not shown again when the log
//! records it, and the log's other text is shown from there.

use std::collections::BTreeMap;

use cli_screen::transcript::words;
use shared_api::Live;
use shared_client::Followed;
use shared_types::{
    Event, SessionEvent, TurnId,
    event::{
        CompactedBecause, FindingCategory, Finish, OfferedServer, Parts, Place, TodoItem,
        TodoState, TurnOutcome,
    },
    limits::HOOK_ORDINALS,
};

use self::clean::{Clean, clean, clean_line};
use crate::style::Style;
pub(crate) use shared_types::clean;

mod call;
pub(crate) mod card;
mod look;
mod models;
mod output;
pub(crate) mod question;
mod tasks;
#[cfg(test)]
mod tests;
mod thoughts;
mod tool;

use call::Call;
use look::Look;
use models::Models;
pub(crate) use tasks::{Begin, ToFollow};
use tasks::{Settled, Tasks};
use thoughts::Thoughts;
pub(crate) use tool::main_argument;

/// Lines of what a compaction kept that are shown.
const KEPT_LINES: usize = 60;

/// Longest notice or reason, in characters.
const MAX_NOTE: usize = 400;

/// Turns a session into text.
#[derive(Debug)]
pub(crate) struct Renderer {
    style: Style,
    /// The terminal's width, where there is one.
    columns: Option<usize>,
    is_connected: bool,
    /// The message that the person typed here, which need not be shown to them.
    mine: Option<String>,
    stopping: bool,
    block: Block,
    claimed: Option<TurnId>,
    thoughts: Option<Thoughts>,
    text: Option<Text>,
    calls: BTreeMap<u32, Call>,
    /// The call that the last line belongs to.
    focus: Option<u32>,
    place: Option<Place>,
    /// The to-do list.
    todo: Vec<TodoItem>,
    look: Look,
    tasks: Tasks,
    models: Models,
    out: String,
    speech: Speech,
}

/// The model's text, which may have to be erased.
#[derive(Debug, Default)]
struct Speech {
    /// True if it is shown only once it is complete, because written text cannot be erased.
    is_held_back: bool,
    /// The text that was written of the present attempt.
    spoken: Option<Spoken>,
    /// The text that was written and is void.
    void: Option<String>,
}

/// The written text of one attempt of the model.
#[derive(Debug)]
struct Spoken {
    text: String,
    /// The start of that text in `out`.
    from: usize,
    /// The block before it.
    block: Block,
}

/// The part of a session that the last line belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Block {
    Nothing,
    Input,
    Thoughts,
    Text,
    Calls,
    End,
}

/// The answer that is being shown.
#[derive(Debug)]
struct Text {
    place: (TurnId, u32),
    attempt: u32,
    /// The part of the answer that was shown last.
    part: u32,
    shown: String,
    clean: Clean,
    is_line_open: bool,
}

impl Renderer {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            columns: None,
            is_connected: true,
            mine: None,
            stopping: false,
            block: Block::Nothing,
            claimed: None,
            thoughts: None,
            text: None,
            calls: BTreeMap::new(),
            focus: None,
            place: None,
            todo: Vec::new(),
            look: Look::default(),
            tasks: Tasks::default(),
            models: Models::default(),
            out: String::new(),
            speech: Speech::default(),
        }
    }

    /// For output from which nothing can be taken back: what the model says is written once it is whole.
    pub(crate) fn hold_back(mut self) -> Self {
        self.speech.is_held_back = true;
        self
    }

    /// Takes the void text, if the last text is void. It began at the beginning of a line.
    pub(crate) fn void(&mut self) -> Option<String> {
        self.speech.void.take()
    }

    /// The message with this client id comes from here; whether it stands on the screen already,
    /// behind a prompt.
    pub(crate) fn typed_here(&mut self, client_id: &str, is_on_screen: bool) {
        self.mine = Some(client_id.to_owned());
        self.stopping = false;
        if is_on_screen {
            self.block = Block::Input;
        }
    }

    /// Fits further text into this number of columns.
    pub(crate) fn fit(&mut self, columns: Option<usize>) {
        self.columns = columns;
    }

    /// The thing that a turn waits for, in few words.
    pub(crate) fn pending(&self) -> String {
        let mut calls = self.calls.values().filter(|call| !call.has_ended());
        match (calls.next(), calls.count()) {
            _ if self.stopping => "stopping".to_owned(),
            _ if !self.is_connected => "reconnecting".to_owned(),
            (None, _) => "the model".to_owned(),
            (Some(call), 0) => call.name().to_owned(),
            (Some(call), more) => format!("{} and {more} more", call.name()),
        }
    }

    /// The text for this item.
    pub(crate) fn item(&mut self, item: &Followed) -> String {
        match item {
            Followed::Event(event) => self.event(event),
            Followed::Live(live) => self.live(live),
            Followed::CaughtUp { .. } => self.tasks.caught_up(),
            Followed::Lost { reason } => {
                self.is_connected = false;
                let reason = clean_line(reason, MAX_NOTE);
                self.note(&format!("connection lost, reconnecting… ({reason})"));
            }
            Followed::Recovered => {
                self.is_connected = true;
                self.note("connected again");
            }
        }
        let out = std::mem::take(&mut self.out);
        if let Some(spoken) = &mut self.speech.spoken {
            spoken
                .text
                .push_str(&out[std::mem::take(&mut spoken.from)..]);
        }
        out
    }

    /// The text after the person asked to stop.
    pub(crate) fn stopping(&mut self) -> String {
        self.stopping = true;
        self.note("stopping… (Ctrl-C again leaves at once)");
        std::mem::take(&mut self.out)
    }

    /// The text of a note beside the session.
    pub(crate) fn aside(&mut self, text: &str) -> String {
        text.lines().for_each(|line| self.note(line));
        std::mem::take(&mut self.out)
    }

    fn event(&mut self, event: &SessionEvent) {
        // A kind that only a newer client knows is passed over.
        let Some(event) = event.known() else { return };
        match event {
            Event::SessionCreated { model, .. } => {
                self.models.chosen(model);
                self.note(&format!("model: {model}"));
            }
            Event::InputAccepted {
                client_id, parts, ..
            } => {
                if client_id.is_none() || *client_id != self.mine {
                    self.input(&parts.words());
                }
            }
            Event::InputSteered { parts, .. } => self.steered(&parts.words()),
            Event::SteersTaken { into: None, .. } => self.note("↳ the agent has read it"),
            // The message of that turn is shown.
            Event::SteersTaken { .. } => {}
            Event::TurnClaimed { turn, .. } => {
                if self.claimed.replace(*turn) == Some(*turn) {
                    self.note("taken up again where it was interrupted");
                }
            }
            Event::AnswerRecorded {
                turn,
                step,
                model,
                origin,
                parts,
                finish,
                ..
            } => {
                let notes = self.models.answer(model, origin.as_ref(), parts);
                // Behind an answer that was seen live, they would be taken for news of the next one.
                if !self.is_seen((*turn, *step)) {
                    notes.iter().for_each(|text| self.note(text));
                }
                self.recorded_thoughts((*turn, *step), &parts.reasoning());
                self.answer((*turn, *step), parts, *finish);
            }
            Event::PlaceSurveyed {
                instructions,
                unread,
                project,
                ..
            } => {
                let seen = self.look.seen(instructions.as_deref(), unread, project.as_deref());
                seen.iter().for_each(|text| self.note(text));
            }
            Event::ExtensionsFound { extensions, .. } => {
                let words = extensions.words();
                let words = words.iter().map(|text| clean_line(text, MAX_NOTE));
                words.for_each(|text| self.note(&text));
            }
            Event::HookEnded { end, .. } => {
                if let Some(words) = end.words() {
                    self.note(&clean_line(&words, MAX_NOTE));
                }
            }
            Event::ToolsOffered { servers, .. } => {
                let words = servers.iter().flat_map(OfferedServer::words);
                words.for_each(|text| self.note(&clean_line(&text, MAX_NOTE)));
            }
            // The look at the place of a turn is not shown as a call.
            Event::CallPlaced {
                step: 0, operation, ordinal: 0, ..
            } => self.look.placed(*operation),
            // Nor is the command of a hook.
            Event::CallPlaced { ordinal, .. } if *ordinal >= HOOK_ORDINALS => {}
            Event::OperationSettled { operation, .. } if self.look.is(*operation) => {}
            Event::AgentBriefed {
                name, description, ..
            } => {
                let description = clean_line(description, MAX_NOTE);
                self.note(&format!("the agent {name} works here: {description}"));
            }
            Event::AgentStarted {
                name,
                description,
                session,
                ..
            } => {
                let description = clean_line(description, MAX_NOTE);
                self.note(&format!("agent {name} begins: {description} ({session})"));
            }
            Event::ChatStarted { title, session, .. } => {
                self.note(&words::chat_started(title, *session));
            }
            Event::ChatOrigin { parent } => self.note(&words::chat_origin(parent.session)),
            Event::WorktreeChanged {
                worktree, state, ..
            } => {
                if let Some(words) = words::worktree(worktree, *state) {
                    self.note(&words);
                }
            }
            Event::AgentAsks { name, session, .. } => self.note(&format!(
                "the agent {name} asks you; gantry approvals lists its questions ({session})"
            )),
            Event::AgentEnded {
                name,
                outcome,
                steps,
                tokens,
                ..
            } => {
                let words = words::agent_ended(*outcome, *steps, *tokens);
                self.note(&format!("agent {name}: {words}"));
            }
            Event::CallPlaced {
                ordinal,
                operation,
                place,
                ..
            } => {
                self.placed(*ordinal, place);
                if let Some(call) = self.calls.get_mut(ordinal) {
                    call.placed(*operation);
                }
            }
            Event::ApprovalAsked { question, .. } => {
                self.finish_line();
                let shown = question::below_card(question, self.style);
                self.out.push_str(&shown);
            }
            Event::ApprovalAnswered { answer, name, .. } => {
                self.note(&words::answered(answer, name));
            }
            Event::CallEnded {
                ordinal,
                task,
                parts,
                findings,
                ..
            } => {
                self.call_ended(event, *ordinal, *task, &parts.words());
                if let Some(worst) = findings.iter().max_by_key(|finding| finding.score) {
                    self.note(&warning(worst.category));
                }
            }
            Event::CancelRequested { why: Some(why), .. } => self.note(&format!("stopping: {why}")),
            Event::CancelRequested { .. } => {
                if !self.stopping {
                    self.note("stopping…");
                }
            }
            Event::TurnEnded {
                outcome, reason, ..
            } => self.ended(*outcome, reason.as_deref()),
            Event::ResultsLeftOut {
                results,
                gone,
                shortened,
                ..
            } => self.note(&words::left_out(*results, *gone, *shortened)),
            Event::ResultsMasked { before, after, .. } => self.note(&format!(
                "left out old results, about {} tokens, to make room; the model can look them up again",
                before.saturating_sub(*after)
            )),
            // The call that did it is shown.
            Event::ContextEdited { .. } => {}
            // That is between the operator and the model.
            // The call that asks a tool server is shown, and so is the end of a hook.
            Event::PromptChanged { .. } | Event::CallSent { .. } | Event::HookSent { .. } => {}
            Event::TodoChanged { items, found, .. } => {
                self.todo.clone_from(items);
                todo(items, *found).iter().for_each(|text| self.note(text));
            }
            Event::ContextCompacted {
                carried,
                summary,
                before,
                after,
                no_summary,
                because,
                ..
            } => {
                self.note(&words::compacted(*before, *after, no_summary.as_deref()));
                if *because == CompactedBecause::Asked {
                    self.kept(carried, summary);
                }
            }
            Event::ConversationRewound { before, .. } => {
                self.note(&format!("went back to before {before:?}"));
            }
            Event::OperationSettled { operation, summary } => {
                let which = match self.tasks.settled(*operation) {
                    Settled::Told => return,
                    Settled::Untold(task) => format!("{}ended", tasks::mark(task)),
                    Settled::Unknown => "known later".to_owned(),
                };
                self.note(&format!("{which}: {}", clean_line(summary, MAX_NOTE)));
            }
        }
    }

    fn live(&mut self, live: &Live) {
        match live {
            Live::Reasoning { .. } | Live::Text { .. } if self.speech.is_held_back => {}
            Live::Reasoning {
                turn,
                step,
                attempt,
                text,
                ..
            } => self.thought((*turn, *step), *attempt, text),
            Live::Text {
                turn,
                step,
                attempt,
                part,
                text,
                ..
            } => self.piece((*turn, *step), *attempt, *part, text),
            Live::Output { operation, .. } | Live::Gap { operation, .. }
                if self.tasks.shows(*operation) => {}
            Live::Output {
                ordinal,
                stream,
                offset,
                text,
                bytes,
                ..
            } => {
                self.focus_on(*ordinal);
                if let Some(call) = self.calls.get_mut(ordinal) {
                    call.output(stream, *offset, text, *bytes, &mut self.out);
                }
            }
            Live::Gap {
                ordinal,
                stream,
                to,
                ..
            } => {
                self.focus_on(*ordinal);
                if let Some(call) = self.calls.get_mut(ordinal) {
                    call.gap(stream, *to, &mut self.out);
                }
            }
            Live::TakenBack { .. } => self.take_back(),
            Live::Notice { text, .. } => self.note(text),
        }
    }

    /// Notes that the model begins to speak: the text from here on may have to be erased.
    fn speaks(&mut self) {
        if self.speech.spoken.is_none() {
            self.finish_line();
            self.speech.spoken = Some(Spoken {
                text: String::new(),
                from: self.out.len(),
                block: self.block,
            });
        }
    }

    fn take_back(&mut self) {
        if let Some(spoken) = self.speech.spoken.take() {
            self.thoughts = None;
            self.text = None;
            self.block = spoken.block;
            self.speech.void = Some(spoken.text);
        }
    }

    fn input(&mut self, text: &str) {
        self.begin(Block::Input);
        let text = clean(text.trim_end());
        for (number, line) in text.lines().enumerate() {
            let mark = if number == 0 { "› " } else { "  " };
            self.out
                .push_str(&self.style.bold(&format!("{mark}{line}")));
            self.out.push('\n');
        }
    }

    /// A message that joined the turn: it stands where it came, and begins nothing.
    fn steered(&mut self, text: &str) {
        self.finish_line();
        let text = clean(text.trim_end());
        for (number, line) in text.lines().enumerate() {
            let mark = if number == 0 { "↳ sent: " } else { "  " };
            let line = self.style.bold(&format!("{mark}{line}"));
            self.out.push_str(&line);
            self.out.push('\n');
        }
    }

    fn thought(&mut self, place: (TurnId, u32), attempt: u32, text: &str) {
        let known = self.thoughts.as_ref();
        let known = known.filter(|known| known.place == place);
        if known.is_none_or(|known| known.attempt < attempt) {
            if known.is_some() {
                self.note("the answer begins again");
                self.text = None;
            }
            self.thoughts = Some(Thoughts::new(place, attempt));
        }
        self.speaks();
        self.begin(Block::Thoughts);
        if let Some(thoughts) = &mut self.thoughts {
            thoughts.say(text, self.style, &mut self.out);
        }
    }

    /// True if something of this answer was seen live.
    fn is_seen(&self, place: (TurnId, u32)) -> bool {
        let thought = self.thoughts.as_ref().map(|known| known.place);
        let spoken = self.text.as_ref().map(|known| known.place);
        [thought, spoken].contains(&Some(place))
    }

    /// The thoughts of a whole answer, where nothing of it was seen live.
    fn recorded_thoughts(&mut self, place: (TurnId, u32), reasoning: &str) {
        let is_seen = self.is_seen(place);
        if let Some(mut known) = self.thoughts.take()
            && known.break_line()
        {
            self.out.push('\n');
        }
        if !is_seen && !reasoning.trim().is_empty() {
            self.thought(place, 0, reasoning);
            self.finish_line();
            self.thoughts = None;
        }
    }

    fn piece(&mut self, place: (TurnId, u32), attempt: u32, part: u32, text: &str) {
        let known = self.text.as_ref().is_some_and(|known| known.place == place);
        if !known
            || self
                .text
                .as_ref()
                .is_some_and(|known| known.attempt < attempt)
        {
            if known {
                self.note("the answer begins again");
            }
            self.text = Some(Text {
                place,
                attempt,
                part,
                shown: String::new(),
                clean: Clean::default(),
                is_line_open: false,
            });
        }
        self.speaks();
        self.begin(Block::Text);
        let Some(known) = &mut self.text else { return };
        // As between the parts of the recorded answer.
        let gap = if known.part == part { "" } else { "\n\n" };
        known.part = part;
        let text = format!("{gap}{text}");
        known.shown.push_str(&text);
        let mut cleaned = known.clean.take(&text).to_owned();
        if known.shown.len() == text.len() {
            cleaned = cleaned.trim_start_matches('\n').to_owned();
        }
        if let Some(last) = cleaned.chars().last() {
            known.is_line_open = last != '\n';
            self.out.push_str(&cleaned);
        }
    }

    fn answer(&mut self, place: (TurnId, u32), parts: &Parts, finish: Finish) {
        let text = parts.words();
        let shown = self.text.as_ref().filter(|known| known.place == place);
        let (attempt, part) = shown.map_or((0, 0), |known| (known.attempt, known.part));
        match shown.map(|known| text.strip_prefix(&*known.shown)) {
            Some(Some("")) => {}
            Some(Some(rest)) => self.piece(place, attempt, part, rest),
            Some(None) => self.piece(place, attempt + 1, part, &text),
            None if text.trim().is_empty() => {}
            None => self.piece(place, attempt, part, &text),
        }
        self.finish_line();
        self.text = None;
        self.speech.spoken = None;
        match finish {
            Finish::Complete | Finish::Cancelled => {}
            Finish::Length => self.note("the model reached its own length limit"),
        }
        self.place = None;
        self.calls.clear();
        for (ordinal, call) in (0..).zip(parts.calls()) {
            self.begin(Block::Calls);
            let call = Call::new(self.style, &call.as_meant());
            self.out.push_str(&call.card(self.columns));
            self.calls.insert(ordinal, call);
        }
        self.focus = (self.calls.len() == 1).then_some(0);
    }

    fn placed(&mut self, ordinal: u32, place: &Place) {
        let same = self.place.as_ref().is_some_and(|known| {
            (known.runner, &known.isolation) == (place.runner, &place.isolation)
        });
        if same {
            return;
        }
        if self.place.is_some() {
            self.focus_on(ordinal);
        }
        self.begin(Block::Calls);
        self.finish_line();
        let name = clean_line(&place.runner_name, MAX_NOTE);
        let place_line = format!("  on {name} · isolation: {}", place.isolation);
        self.out.push_str(&self.style.dim(&place_line));
        self.out.push('\n');
        self.place = Some(place.clone());
    }

    /// Shows what stands in for the beginning of the conversation.
    fn kept(&mut self, carried: &str, summary: &str) {
        let summary = match summary {
            "" => String::new(),
            summary => format!("# Summary by the model\n{summary}\n"),
        };
        let text = format!("{carried}{summary}");
        let lines = text.lines().filter(|line| !line.is_empty());
        for line in lines.take(KEPT_LINES) {
            self.note(&format!("  {}", clean_line(line, MAX_NOTE)));
        }
    }

    /// Says which of several calls the next lines belong to, where it is another than before.
    fn focus_on(&mut self, ordinal: u32) {
        self.begin(Block::Calls);
        if self.focus == Some(ordinal) {
            return;
        }
        self.finish_line();
        self.focus = Some(ordinal);
        if let Some(call) = self.calls.get(&ordinal) {
            self.out.push_str(&call.title(self.columns));
        }
    }

    fn ended(&mut self, outcome: TurnOutcome, reason: Option<&str>) {
        self.finish_line();
        let reason = reason
            .map(|reason| format!(": {}", clean_line(reason, MAX_NOTE)))
            .unwrap_or_default();
        let line = match outcome {
            TurnOutcome::Completed => None,
            TurnOutcome::Failed => Some(self.style.red(&format!("✗ failed{reason}"))),
            TurnOutcome::Cancelled => Some(self.style.yellow(&format!("■ cancelled{reason}"))),
            TurnOutcome::Interrupted => Some(self.style.yellow(&format!("■ interrupted{reason}"))),
        };
        if let Some(line) = line {
            self.begin(Block::End);
            self.out.push_str(&line);
            self.out.push('\n');
        }
        self.thoughts = None;
        self.text = None;
        self.speech.spoken = None;
        self.calls.clear();
        self.focus = None;
        self.stopping = false;
        // It stays in sight.
        if let Some(line) = todo_line(&self.todo) {
            self.note(&line);
        }
        self.block = Block::End;
    }

    fn note(&mut self, text: &str) {
        self.finish_line();
        let indent = if self.block == Block::Calls { "  " } else { "" };
        let text = format!("{indent}{}", clean_line(text, MAX_NOTE));
        self.out.push_str(&self.style.dim(&text));
        self.out.push('\n');
    }

    /// Begins a block: different ones stand apart by an empty line.
    fn begin(&mut self, block: Block) {
        if self.block == block && block != Block::Input {
            return;
        }
        self.finish_line();
        if self.block != Block::Nothing {
            self.out.push('\n');
        }
        self.block = block;
    }

    fn finish_line(&mut self) {
        let is_text_open = self
            .text
            .as_mut()
            .is_some_and(|text| std::mem::take(&mut text.is_line_open));
        let is_thought_open = self.thoughts.as_mut().is_some_and(Thoughts::break_line);
        let open_call = self
            .focus
            .and_then(|focus| self.calls.get_mut(&focus))
            .is_some_and(|call| call.break_line());
        if is_text_open || is_thought_open || open_call {
            self.out.push('\n');
        }
    }
}

/// One line on a to-do list that is not done yet: how much of it is done, and what comes next.
fn todo_line(items: &[TodoItem]) -> Option<String> {
    let is = |state| move |item: &&TodoItem| item.state == state;
    let next = items.iter().find(is(TodoState::Doing));
    let next = next.or_else(|| items.iter().find(is(TodoState::Open)))?;
    let done = items.iter().filter(is(TodoState::Done)).count();
    let next = clean_line(&next.text, MAX_NOTE);
    Some(format!("to-do: {done} of {} done · ▸ {next}", items.len()))
}

/// A to-do list: how much of it is done, and each item.
fn todo(items: &[TodoItem], found: bool) -> Vec<String> {
    let done = items.iter().filter(|item| item.state == TodoState::Done);
    let from = match found {
        true => ", from an earlier session in this folder",
        false => "",
    };
    let head = format!("to-do: {} of {} done{from}", done.count(), items.len());
    let lines = items.iter().map(|item| {
        let mark = match item.state {
            TodoState::Open => '·',
            TodoState::Doing => '▸',
            TodoState::Done => '✓',
        };
        format!("  {mark} {}", clean_line(&item.text, MAX_NOTE))
    });
    std::iter::once(head).chain(lines).collect()
}

/// The note below a result with text of that category.
fn warning(category: FindingCategory) -> String {
    format!("! the result looks like it gives the agent instructions ({category})")
}
