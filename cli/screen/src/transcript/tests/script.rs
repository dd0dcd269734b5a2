//! A session that is told event by event, and the live pieces that belong to it.

use serde_json::{Value, json};
use shared_api::Live;
use shared_types::{
    ApprovalId, Epoch, Event, Isolation, OperationId, ReplicaId, RunnerId, SandboxId, SessionEvent,
    Timestamp, TurnId, UserId,
    event::{
        Answer, CallOutcome, EventBody, Finish, Part, Parts, Place, Question, TodoItem, ToolCall,
        TurnOutcome, Usage,
    },
};

use crate::transcript::Transcript;

/// One thing that a transcript is fed.
#[derive(Debug, Clone)]
pub(crate) enum Fed {
    Event(SessionEvent),
    Live(Live),
}

/// A session under way.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) events: Vec<SessionEvent>,
    turn: u128,
    step: u32,
    operations: u128,
    /// The operation of the last task.
    task: u128,
}

pub(crate) fn turn(number: u128) -> TurnId {
    TurnId::from_u128(number)
}

pub(crate) fn user(number: u128) -> UserId {
    UserId::from_u128(number)
}

impl Script {
    pub(crate) fn push(&mut self, event: Event) -> &mut Self {
        let seq = self.events.len() as u64 + 1;
        self.events.push(SessionEvent {
            seq,
            at: Timestamp::from_micros(i64::try_from(seq).expect("small") * 1_000_000),
            body: EventBody::Known(event),
        });
        self
    }

    pub(crate) fn turn(&self) -> TurnId {
        turn(self.turn)
    }

    /// A message, whose turn is claimed.
    pub(crate) fn user(&mut self, text: &str) -> &mut Self {
        self.turn += 1;
        self.step = 0;
        let turn = self.turn();
        self.push(Event::InputAccepted {
            turn,
            by: user(1),
            client_id: None,
            parts: Parts::text(text),
            compacts: None,
            terms: Default::default(),
        });
        self.claimed(turn)
    }

    pub(crate) fn claimed(&mut self, turn: TurnId) -> &mut Self {
        self.push(Event::TurnClaimed {
            turn,
            epoch: Epoch::default(),
            replica: ReplicaId::from_u128(1),
            choice: None,
            settings: None,
        })
    }

    /// An answer with a thought, words and calls; empty ones are left out.
    pub(crate) fn answer(
        &mut self,
        thought: &str,
        words: &str,
        calls: &[(&str, Value)],
    ) -> &mut Self {
        self.step += 1;
        let mut parts = Vec::new();
        if !thought.is_empty() {
            parts.push(Part::Reasoning {
                text: thought.to_owned(),
                signature: None,
            });
        }
        if !words.is_empty() {
            parts.push(Part::Text {
                text: words.to_owned(),
            });
        }
        parts.extend(calls.iter().map(|(name, arguments)| {
            Part::ToolCall(ToolCall {
                vendor_id: String::new(),
                name: (*name).to_owned(),
                arguments: arguments.to_string(),
                opaque: Default::default(),
            })
        }));
        let event = Event::AnswerRecorded {
            turn: self.turn(),
            step: self.step,
            model: "gpt-5".to_owned(),
            origin: None,
            parts: Parts(parts),
            finish: Finish::Complete,
            usage: Usage {
                input: 1000 * u64::from(self.step),
                output: 100,
                ..Usage::default()
            },
            estimated: 0,
            model_ms: 12_000,
            limit: None,
        };
        self.push(event)
    }

    pub(crate) fn placed_on(&mut self, ordinal: u32, runner: &str) -> &mut Self {
        self.operations += 1;
        let event = Event::CallPlaced {
            turn: self.turn(),
            step: self.step,
            ordinal,
            operation: OperationId::from_u128(self.operations),
            place: Place {
                runner: RunnerId::from_u128(1),
                runner_name: runner.to_owned(),
                sandbox: SandboxId::from_u128(1),
                isolation: Isolation::none(),
            },
        };
        self.push(event)
    }

    pub(crate) fn placed(&mut self, ordinal: u32) -> &mut Self {
        self.placed_on(ordinal, "laptop")
    }

    pub(crate) fn ended(&mut self, ordinal: u32, outcome: CallOutcome, text: &str) -> &mut Self {
        self.took(ordinal, outcome, text, 40)
    }

    pub(crate) fn took(
        &mut self,
        ordinal: u32,
        outcome: CallOutcome,
        text: &str,
        duration_ms: u64,
    ) -> &mut Self {
        let event = self.call_ended(ordinal, outcome, text, duration_ms, None);
        self.push(event)
    }

    fn call_ended(
        &self,
        ordinal: u32,
        outcome: CallOutcome,
        text: &str,
        duration_ms: u64,
        task: Option<u32>,
    ) -> Event {
        Event::CallEnded {
            turn: self.turn(),
            step: self.step,
            ordinal,
            outcome,
            parts: Parts::text(text),
            unplaced: false,
            task,
            awaits: None,
            whole: None,
            budget_ms: 120_000,
            duration_ms,
            overran: false,
            file: None,
            findings: Vec::new(),
            tools: Vec::new(),
        }
    }

    /// A call that goes on as a task.
    pub(crate) fn background(&mut self, ordinal: u32, task: u32) -> &mut Self {
        self.task = self.operations;
        let event = self.call_ended(ordinal, CallOutcome::Background, "", 10_000, Some(task));
        self.push(event)
    }

    /// The end of the last call that became a task.
    pub(crate) fn settled_task(&mut self, summary: &str) -> &mut Self {
        self.settled(self.task, summary)
    }

    pub(crate) fn settled(&mut self, operation: u128, summary: &str) -> &mut Self {
        self.push(Event::OperationSettled {
            operation: OperationId::from_u128(operation),
            summary: summary.to_owned(),
        })
    }

    /// One call that runs and ends well.
    pub(crate) fn call(&mut self, name: &str, arguments: Value, result: &str) -> &mut Self {
        self.answer("", "", &[(name, arguments)])
            .placed(0)
            .ended(0, CallOutcome::Completed, result)
    }

    pub(crate) fn asked(&mut self, ordinal: u32, question: Question) -> &mut Self {
        let event = Event::ApprovalAsked {
            turn: self.turn(),
            step: self.step,
            ordinal,
            approval: ApprovalId::from_u128(1),
            question,
            plan: None,
            until: Timestamp::from_micros(0),
        };
        self.push(event)
    }

    pub(crate) fn approved(&mut self, ordinal: u32, answer: Answer) -> &mut Self {
        let event = Event::ApprovalAnswered {
            turn: self.turn(),
            step: self.step,
            ordinal,
            approval: ApprovalId::from_u128(1),
            answer,
            by: Some(user(1)),
            name: "kim".to_owned(),
        };
        self.push(event)
    }

    pub(crate) fn todo(&mut self, items: Vec<TodoItem>) -> &mut Self {
        let event = Event::TodoChanged {
            turn: self.turn(),
            items,
            place: String::new(),
            found: false,
        };
        self.push(event)
    }

    pub(crate) fn turn_ended(&mut self, outcome: TurnOutcome, reason: Option<&str>) -> &mut Self {
        let event = Event::TurnEnded {
            turn: self.turn(),
            outcome,
            reason: reason.map(str::to_owned),
        };
        self.push(event)
    }

    pub(crate) fn done(&mut self) -> &mut Self {
        self.turn_ended(TurnOutcome::Completed, None)
    }

    pub(crate) fn fed(&self) -> Vec<Fed> {
        self.events.iter().cloned().map(Fed::Event).collect()
    }

    /// The events with the live pieces that came before them, cut where `cuts` says.
    pub(crate) fn fed_live(&self, cuts: &[usize]) -> Vec<Fed> {
        let mut cuts = cuts.iter().copied().cycle();
        let mut fed = Vec::new();
        let mut placed = std::collections::BTreeMap::new();
        for event in &self.events {
            match event.known() {
                Some(Event::AnswerRecorded {
                    turn, step, parts, ..
                }) => fed.extend(spoken(*turn, *step, parts, &mut cuts)),
                Some(Event::CallPlaced {
                    step,
                    ordinal,
                    operation,
                    ..
                }) => {
                    placed.insert((*step, *ordinal), *operation);
                }
                Some(Event::CallEnded {
                    turn,
                    step,
                    ordinal,
                    parts,
                    ..
                }) => {
                    let words = parts.words();
                    let output = words.trim_end().rsplit_once('\n');
                    let written = output.filter(|(output, last)| {
                        *output != "[no output]" && last.starts_with("[exit code")
                    });
                    if let Some(((output, _), operation)) =
                        written.zip(placed.get(&(*step, *ordinal)))
                    {
                        let pieces = pieces(output, &mut cuts);
                        fed.extend(pieces.into_iter().map(|(offset, text)| {
                            Fed::Live(Live::Output {
                                turn: *turn,
                                step: *step,
                                ordinal: *ordinal,
                                operation: *operation,
                                stream: "stdout".to_owned(),
                                offset,
                                bytes: text.len() as u64,
                                text,
                            })
                        }));
                    }
                }
                _ => {}
            }
            fed.push(Fed::Event(event.clone()));
        }
        fed
    }
}

fn spoken(
    turn: TurnId,
    step: u32,
    parts: &Parts,
    cuts: &mut impl Iterator<Item = usize>,
) -> Vec<Fed> {
    let mut fed = Vec::new();
    let mut part = 0;
    for spoken in &parts.0 {
        let (text, is_thought) = match spoken {
            Part::Reasoning { text, .. } => (text, true),
            Part::Text { text } => (text, false),
            _ => continue,
        };
        for (offset, text) in pieces(text, cuts) {
            fed.push(Fed::Live(said(
                turn, step, 1, part, offset, &text, is_thought,
            )));
        }
        part += 1;
    }
    fed
}

pub(crate) fn said(
    turn: TurnId,
    step: u32,
    attempt: u32,
    part: u32,
    offset: u64,
    text: &str,
    is_thought: bool,
) -> Live {
    let text = text.to_owned();
    match is_thought {
        true => Live::Reasoning {
            turn,
            step,
            attempt,
            part,
            offset,
            text,
        },
        false => Live::Text {
            turn,
            step,
            attempt,
            part,
            offset,
            text,
        },
    }
}

/// The text in pieces, each with its offset.
fn pieces(text: &str, cuts: &mut impl Iterator<Item = usize>) -> Vec<(u64, String)> {
    let (mut pieces, mut from) = (Vec::new(), 0);
    while from < text.len() {
        let wanted = from + cuts.next().unwrap_or(1).max(1);
        let end = text.ceil_char_boundary(wanted.min(text.len()));
        pieces.push((from as u64, text[from..end].to_owned()));
        from = end;
    }
    pieces
}

pub(crate) fn shell(command: &str) -> Value {
    json!({ "command": command })
}

pub(crate) fn transcript(fed: &[Fed]) -> Transcript {
    let mut transcript = Transcript::new();
    fed.iter().for_each(|fed| feed(&mut transcript, fed));
    transcript
}

pub(crate) fn feed(transcript: &mut Transcript, fed: &Fed) {
    match fed {
        Fed::Event(event) => transcript.event(event),
        Fed::Live(live) => transcript.live(live),
    }
}
