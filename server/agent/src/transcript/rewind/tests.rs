use shared_sandbox::scripted::ScriptedSandbox;
use shared_types::{
    Entropy as _, Epoch, Event, OperationId, ReplicaId, Timestamp, TurnId, UserId,
    entropy::SeededEntropy,
    event::{
        CallOutcome, CallRange, Choice, CompactedBecause, FileSeen, Finish, LeftOutBecause, Part,
        Parts, TodoItem, TodoState, ToolCall, TurnOutcome, TurnSettings, Usage,
    },
};

use super::*;

/// Writes the events of a session's turns.
struct Writer {
    entropy: SeededEntropy,
    events: Vec<Event>,
    /// The number of calls so far in the conversation.
    calls: u32,
    /// The number of tasks that were begun.
    tasks: u32,
    /// Operations of tasks that run.
    running: Vec<OperationId>,
}

impl Writer {
    fn new(seed: u64) -> Self {
        Self {
            entropy: SeededEntropy::new(seed),
            events: Vec::new(),
            calls: 0,
            tasks: 0,
            running: Vec::new(),
        }
    }

    fn below(&mut self, bound: u32) -> u32 {
        let mut bytes = [0; 4];
        self.entropy.fill(&mut bytes);
        u32::from_le_bytes(bytes) % bound
    }

    fn input(&mut self, turn: TurnId) {
        self.events.push(Event::InputAccepted {
            turn,
            by: UserId::from_u128(9),
            client_id: None,
            parts: Parts::text(format!("message {turn}")),
            compacts: None,
            terms: crate::testing::full(),
        });
    }

    fn claim(&mut self, turn: TurnId) {
        let language = ["en", "de", "fr"][self.below(3) as usize];
        let place = ScriptedSandbox::place();
        self.events.push(Event::TurnClaimed {
            turn,
            epoch: Epoch(1),
            replica: ReplicaId::from_u128(1),
            choice: Some(Choice::User {
                runner: place.runner,
                name: place.runner_name,
                workspace: None,
            }),
            settings: Some(TurnSettings {
                model: "m".to_owned(),
                language: Some(language.to_owned()),
                steps: 9,
                machine: None,
                own_runner: true,
                mode: None,
                ceiling: None,
                machine_ceiling: None,
            }),
        });
    }

    /// Work of a turn, with one change of what turns hand on in each step.
    fn works(&mut self, turn: TurnId) {
        for step in 1..=1 + self.below(3) {
            self.change(turn, step);
            let calls = 1 + self.below(3);
            let asked = (0..calls).map(|number| {
                Part::ToolCall(ToolCall {
                    vendor_id: number.to_string(),
                    name: "Edit".to_owned(),
                    arguments: "{}".to_owned(),
                    opaque: Default::default(),
                })
            });
            self.events.push(Event::AnswerRecorded {
                turn,
                step,
                model: "m".to_owned(),
                origin: None,
                parts: Parts(asked.collect()),
                finish: Finish::Complete,
                usage: Usage::default(),
                estimated: 0,
                model_ms: 0,
                limit: None,
            });
            for ordinal in 0..calls {
                self.call(turn, step, ordinal);
            }
        }
    }

    fn call(&mut self, turn: TurnId, step: u32, ordinal: u32) {
        self.calls += 1;
        let operation = OperationId::from_u128(self.entropy_id());
        self.events.push(Event::CallPlaced {
            turn,
            step,
            ordinal,
            operation,
            place: ScriptedSandbox::place(),
        });
        let task = (self.below(4) == 0).then(|| {
            self.tasks += 1;
            self.running.push(operation);
            self.tasks
        });
        let path = ["a", "b"][self.below(2) as usize];
        let changed = self.below(2) == 0;
        self.events.push(Event::CallEnded {
            turn,
            step,
            ordinal,
            outcome: match task {
                Some(_) => CallOutcome::Background,
                None => CallOutcome::Completed,
            },
            parts: Parts::text("done"),
            unplaced: false,
            task,
            awaits: None,
            budget_ms: 1,
            duration_ms: 1,
            overran: false,
            file: Some(FileSeen {
                path: path.to_owned(),
                digest: None,
                changed,
            }),
            whole: None,
            findings: Vec::new(),
            tools: Vec::new(),
        });
    }

    fn entropy_id(&mut self) -> u128 {
        let mut bytes = [0; 16];
        self.entropy.fill(&mut bytes);
        u128::from_le_bytes(bytes)
    }

    fn change(&mut self, turn: TurnId, step: u32) {
        let number = self.below(1000);
        let calls = self.calls;
        let event = match self.below(7) {
            0 => Event::TodoChanged {
                turn,
                items: vec![TodoItem {
                    text: format!("item {number}"),
                    state: TodoState::Open,
                }],
                place: String::new(),
                found: number.is_multiple_of(2),
            },
            1 => Event::PromptChanged {
                turn,
                text: Some(format!("prompt {number}")),
            },
            2 => Event::ResultsMasked {
                turn,
                step,
                calls: vec![CallRange {
                    first: 1,
                    last: calls / 2,
                }],
                before: 2,
                after: 1,
            },
            3 if calls > 0 => Event::ContextEdited {
                turn,
                call: 1 + number % calls,
                text: format!("other {number}"),
            },
            4 => Event::ContextCompacted {
                turn,
                step,
                gone: calls / 2,
                carried: format!("carried {number}"),
                summary: String::new(),
                no_summary: None,
                before: 2,
                after: 1,
                because: CompactedBecause::NearWindow,
            },
            5 => Event::ResultsLeftOut {
                turn,
                step,
                through: calls / 3,
                results: 1,
                bytes: 1,
                gone: calls / 4,
                longest: Some(1000 + u64::from(number)),
                shortened: 1,
                because: LeftOutBecause::NearWindow,
            },
            _ => Event::PlaceSurveyed {
                turn,
                place: Some(Box::new(ScriptedSandbox::place())),
                system: "Debian".to_owned(),
                folder: format!("/work/{number}"),
                branch: None,
                instructions: None,
                unread: Vec::new(),
                project: None,
            },
        };
        self.events.push(event);
    }

    fn end(&mut self, turn: TurnId) {
        self.events.push(Event::TurnEnded {
            turn,
            outcome: TurnOutcome::Completed,
            reason: None,
        });
    }

    fn settle(&mut self, operation: OperationId) {
        self.running.retain(|running| *running != operation);
        self.events.push(Event::OperationSettled {
            operation,
            summary: "exited with 0".to_owned(),
        });
    }

    /// Turns with these numbers, the next of which waits while one works. Some of their tasks end, now and then.
    fn turns(&mut self, numbers: std::ops::Range<u128>) {
        let ids: Vec<_> = numbers.map(TurnId::from_u128).collect();
        let mut inputs = ids.iter();
        inputs.next().into_iter().for_each(|id| self.input(*id));
        for id in &ids {
            self.claim(*id);
            if self.below(2) == 0 {
                inputs.next().into_iter().for_each(|id| self.input(*id));
            }
            self.works(*id);
            self.end(*id);
            if self.below(2) == 0 {
                self.settle_all();
            }
            inputs.next().into_iter().for_each(|id| self.input(*id));
        }
    }

    fn settle_all(&mut self) {
        for operation in std::mem::take(&mut self.running) {
            self.settle(operation);
        }
    }

    /// Goes back to before a turn, all of whose tasks have ended.
    fn rewind(&mut self, turn: u128) {
        self.settle_all();
        self.events.push(rewound(turn));
        self.calls = fold(&self.events).shared.calls;
    }
}

fn fold(events: &[Event]) -> Transcript {
    let mut transcript = Transcript::default();
    for (at, event) in events.iter().enumerate() {
        transcript.apply(event, Timestamp::from_micros(at as i64));
    }
    transcript
}

/// What the model can come to know of it.
fn known(events: &[Event]) -> Transcript {
    let mut transcript = fold(events);
    transcript.settled.clear();
    transcript.last_task = 0;
    for turn in &mut transcript.turns {
        turn.asked_at = Timestamp::from_micros(0);
        let steps = turn.steps.iter_mut();
        for call in steps.flat_map(|step| &mut step.calls) {
            call.placed.iter_mut().for_each(|placed| {
                placed.at = Timestamp::from_micros(0);
            });
        }
    }
    for task in &mut transcript.tasks {
        task.placed.at = Timestamp::from_micros(0);
    }
    transcript
}

fn rewound(turn: u128) -> Event {
    Event::ConversationRewound {
        turn: TurnId::from_u128(turn),
        by: UserId::from_u128(9),
        before: String::new(),
    }
}

/// The events as they would be if the turns that are gone had never been.
fn never_been(events: &[Event]) -> Vec<Event> {
    let mut left: Vec<Event> = Vec::new();
    for event in events {
        let Event::ConversationRewound { turn, .. } = event else {
            left.push(event.clone());
            continue;
        };
        let inputs = left.iter().filter_map(|event| match event {
            Event::InputAccepted { turn, .. } => Some(*turn),
            _ => None,
        });
        let gone: Vec<_> = inputs.skip_while(|input| input != turn).collect();
        let placed = left.iter().filter_map(|event| match event {
            Event::CallPlaced {
                turn, operation, ..
            } if gone.contains(turn) => Some(*operation),
            _ => None,
        });
        let placed: Vec<_> = placed.collect();
        left.retain(|event| match event {
            Event::OperationSettled { operation, .. } => !placed.contains(operation),
            event => event.turn().is_none_or(|turn| !gone.contains(&turn)),
        });
    }
    left
}

#[test]
fn a_conversation_that_was_rewound_goes_on_as_if_the_later_turns_had_never_been() {
    for seed in 0..300 {
        let mut writer = Writer::new(seed);
        let is_as_if = |writer: &Writer, when: &str| {
            let never = known(&never_been(&writer.events));
            assert_eq!(known(&writer.events), never, "{when}, with seed {seed}");
        };
        writer.turns(0..6);
        let first = 1 + u128::from(writer.below(5));
        writer.rewind(first);
        is_as_if(&writer, "right after");
        writer.turns(10..13);
        is_as_if(&writer, "continued");
        writer.rewind(10);
        writer.turns(20..22);
        is_as_if(&writer, "continued in another way");
        writer.rewind(first - 1);
        is_as_if(&writer, "back once more");
    }
}

#[test]
fn a_turn_that_is_no_part_of_the_conversation_is_not_gone_back_to() {
    let mut writer = Writer::new(1);
    writer.turns(0..3);
    writer.rewind(1);
    let before = known(&writer.events);
    for turn in [1, 2, 99] {
        writer.rewind(turn);
    }
    assert_eq!(known(&writer.events), before);
}

#[test]
fn a_task_of_a_turn_that_is_gone_goes_on_under_its_number_and_its_end_is_told() {
    let mut writer = Writer::new(2);
    let mut turn = 0;
    while writer.running.len() < 2 {
        writer.settle_all();
        turn += 1;
        let id = TurnId::from_u128(turn);
        writer.input(id);
        writer.claim(id);
        writer.works(id);
        writer.end(id);
    }
    let begun = fold(&writer.events);
    let running: Vec<_> = begun.running_tasks().cloned().collect();
    writer.events.push(rewound(turn));
    let back = fold(&writer.events);
    assert_eq!(back.running_tasks().cloned().collect::<Vec<_>>(), running);
    assert_eq!(back.next_task(), begun.next_task());
    assert_eq!(back.tasks_at_most(), running.len());
    writer.settle_all();
    let ended = fold(&writer.events);
    let told: Vec<_> = ended.ended.iter().filter_map(|end| end.task).collect();
    assert!(running.iter().all(|task| told.contains(&task.number)));
    assert_eq!(ended.tasks_at_most(), 0);
}
