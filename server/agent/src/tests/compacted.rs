//! Conversations that are longer than the model's window.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use server_llm::{
    Answer, Message, Model, ModelError, ModelEvent, ModelInfo, ModelRequest, Profile,
};
use shared_sandbox::scripted::ScriptedSandbox;
use shared_types::{
    Event, TurnId, UserId,
    event::{CompactedBecause, Finish, Parts, ToolCall, TurnOutcome, Usage},
};
use tokio::sync::mpsc;

use crate::{
    Carried, Claim, ModelSource, SessionPorts,
    context::tokens::tokens,
    prompt,
    testing::{Reply, World, command, model, said},
    tools::ToolSet,
    transcript::Transcript,
};

/// The beginning of the wish for a summary.
const WISH: &str = "[From Gantry, not from the user";

/// A model with a window that counts a tenth more tokens than the server estimates.
struct Vendor {
    window: usize,
    /// The answer to the wish for a summary; nothing where that fails.
    summary: Option<&'static str>,
    /// Commands of a turn, and their answers' texts.
    commands: usize,
    binds_thoughts: bool,
    /// The tokens that it says of each request, where that is not their number.
    says_tokens: Option<u64>,
    requests: Mutex<Vec<ModelRequest>>,
}

impl Vendor {
    fn new(window: usize) -> Self {
        Self {
            window,
            summary: Some("The work goes well."),
            commands: 0,
            binds_thoughts: false,
            says_tokens: None,
            requests: Mutex::default(),
        }
    }

    fn requests(&self) -> Vec<ModelRequest> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// All that is sent, as one text.
fn text_of(request: &ModelRequest) -> String {
    let messages = request.messages.iter().map(|message| {
        let calls = message.parts().calls();
        let calls: String = calls
            .map(|call| format!("{} {}", call.name, call.arguments))
            .collect();
        message.parts().words().into_owned() + &calls + "\n"
    });
    let messages: String = messages.collect();
    let tools = request
        .tools
        .iter()
        .map(|tool| format!("{} {} {}", tool.name, tool.description, tool.parameters));
    format!(
        "{}\n{}\n{messages}",
        request.system,
        tools.collect::<String>()
    )
}

fn last_message(request: &ModelRequest) -> String {
    let last = request.messages.last().expect("there is a message");
    last.parts().words().into_owned()
}

/// The steps since the last message of the user.
fn step_of(request: &ModelRequest) -> usize {
    let since = request.messages.iter().rev();
    let since = since.take_while(|message| !matches!(message, Message::User { .. }));
    since
        .filter(|message| matches!(message, Message::Assistant { .. }))
        .count()
}

#[async_trait]
impl Model for Vendor {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            profile: Profile {
                window: Some(self.window),
                binds_thoughts: self.binds_thoughts,
                ..Profile::default()
            },
            ..model("vendor")
        }
    }

    async fn answer(
        &self,
        request: ModelRequest,
        _events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let counted = tokens(&text_of(&request)) * 11 / 10;
        let is_wish = last_message(&request).starts_with(WISH);
        let step = step_of(&request);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push(request);
        let number = requests.len();
        if counted > self.window {
            return Err(ModelError::Overflow(format!("{counted} tokens")));
        }
        let (text, calls) = match (is_wish, self.summary) {
            (true, None) => return Err(ModelError::Refused("no".to_owned())),
            (true, Some(summary)) => (summary, Vec::new()),
            (false, _) if step < self.commands => {
                let call = ToolCall {
                    vendor_id: format!("v{number}"),
                    name: "Shell".to_owned(),
                    arguments: format!(r#"{{"command":"make part-{number}"}}"#),
                    opaque: Default::default(),
                };
                ("I look at `part.rs`.", vec![call])
            }
            (false, _) => ("Done.", Vec::new()),
        };
        Ok(Answer {
            parts: said(text, calls),
            finish: Finish::Complete,
            usage: Usage {
                input: self.says_tokens.unwrap_or(counted as u64),
                ..Usage::default()
            },
            model: String::new(),
            first_byte: None,
        })
    }
}

struct Only(Arc<Vendor>);

#[async_trait]
impl ModelSource for Only {
    async fn chain(&self, _of_turn: Option<&str>) -> Result<Vec<Arc<dyn Model>>, String> {
        Ok(vec![self.0.clone()])
    }
}

/// A conversation with this model.
struct Talk {
    world: World,
    ports: SessionPorts,
    vendor: Arc<Vendor>,
    turns: u128,
}

impl Talk {
    fn with(vendor: Vendor, output: &str) -> Self {
        let scripts = std::iter::repeat_n(command(output, 0), 3_000);
        let mut world = World::with_sandbox([], ScriptedSandbox::new(scripts));
        world.log.clear();
        world.limits.same_steps = usize::MAX;
        let vendor = Arc::new(vendor);
        let ports = SessionPorts {
            models: Arc::new(Only(vendor.clone())),
            ..world.ports()
        };
        Self {
            world,
            ports,
            vendor,
            turns: 0,
        }
    }

    async fn say(&mut self, text: &str) -> TurnOutcome {
        self.send(text, None).await
    }

    async fn send(&mut self, text: &str, compacts: Option<&str>) -> TurnOutcome {
        self.turns += 1;
        let turn = TurnId::from_u128(1_000 + self.turns);
        self.world.log.append(Event::InputAccepted {
            turn,
            by: UserId::from_u128(9),
            client_id: None,
            parts: Parts::text(text),
            compacts: compacts.map(str::to_owned),
            terms: crate::testing::full(),
        });
        let claim = Claim {
            turn,
            ..self.world.claim()
        };
        let engine = self.world.engine();
        let carried = engine.run_turn(&self.ports, claim, self.world.cancel.clone());
        match carried.await {
            Ok(Carried::Ended(outcome)) => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn compactions(&self) -> Vec<Event> {
        let mut events = self.world.log.events();
        events.retain(|event| matches!(event, Event::ContextCompacted { .. }));
        events
    }

    fn last_request(&self) -> ModelRequest {
        self.vendor.requests().pop().expect("there was a request")
    }

    /// The request that the log alone gives for each answer in it, in order.
    fn requests_of_log(&self) -> Vec<ModelRequest> {
        let mut transcript = Transcript::default();
        let tools = ToolSet::of(&self.world.engine().sources, None);
        let info = self.vendor.info();
        let mut requests = Vec::new();
        for event in self.world.log.events() {
            if let Event::AnswerRecorded { turn, .. } = &event {
                requests.push(prompt::request(&transcript, *turn, &info, &tools));
            }
            transcript.apply(&event, crate::testing::START);
        }
        requests
    }
}

/// The requests are the same; the texts are too long to be printed.
fn assert_same(sent: &[ModelRequest], of_log: &[ModelRequest]) {
    assert_eq!(sent.len(), of_log.len());
    let other = sent
        .iter()
        .zip(of_log)
        .position(|(sent, of_log)| sent != of_log);
    assert_eq!(other, None, "this request is another one");
}

/// Each call of an answer has one result behind it, and no result stands alone.
fn assert_calls_have_results(request: &ModelRequest) {
    let mut open = Vec::new();
    for message in &request.messages {
        match message {
            Message::ToolResult { vendor_id, .. } => {
                let place = open.iter().position(|known| known == vendor_id);
                open.remove(place.expect("its call stands before it"));
            }
            _ => {
                assert_eq!(open, Vec::<String>::new());
                let calls = message.parts().calls();
                open.extend(calls.map(|call| call.vendor_id.clone()));
            }
        }
    }
    assert_eq!(open, Vec::<String>::new());
}

const FACTS: [(usize, &str, &str); 5] = [
    (3, "My dog is called Rexington.", "Rexington"),
    (17, "Never push to the branch release-7.", "release-7"),
    (40, "The port of staging is 48151.", "48151"),
    (90, "Use tabs in ops/deploy.toml only.", "ops/deploy.toml"),
    (150, "Remember: the reviewer is Ada Quill.", "Ada Quill"),
];

#[tokio::test(start_paused = true)]
async fn five_hundred_turns_fit_a_small_window_and_the_facts_of_the_first_are_still_sent() {
    let vendor = Vendor {
        commands: 1,
        ..Vendor::new(8_000)
    };
    let mut talk = Talk::with(vendor, &"some output of the build\n".repeat(30));
    for number in 1..=500 {
        let fact = FACTS.iter().find(|(place, ..)| *place == number);
        let said = match fact {
            Some((_, fact, _)) => format!("{fact} Then run part {number}."),
            None => format!("run part {number} again, please"),
        };
        assert_eq!(
            talk.say(&said).await,
            TurnOutcome::Completed,
            "turn {number}"
        );
    }
    let requests = talk.vendor.requests();
    let last = text_of(&talk.last_request());
    for (_, fact, name) in FACTS {
        assert!(last.contains(name), "{fact}\n{last}");
    }
    requests.iter().for_each(assert_calls_have_results);
    let sizes = requests
        .iter()
        .map(|request| tokens(&text_of(request)) * 11 / 10);
    assert!(sizes.max() <= Some(8_000));
    let compactions = talk.compactions().len();
    assert!((10..=120).contains(&compactions), "{compactions}");
    assert!(
        talk.world
            .log
            .events()
            .iter()
            .all(|event| !matches!(event, Event::ResultsLeftOut { .. }))
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_is_what_the_log_gives_after_a_restart_at_any_event() {
    let vendor = Vendor {
        commands: 3,
        ..Vendor::new(8_000)
    };
    let mut talk = Talk::with(vendor, &"some output of the build\n".repeat(60));
    for number in 1..=40 {
        talk.say(&format!("run part {number}")).await;
    }
    assert!(!talk.compactions().is_empty());
    let is_wish = |request: &ModelRequest| last_message(request).starts_with(WISH);
    let mut sent = talk.vendor.requests();
    sent.retain(|request| !is_wish(request));
    assert_same(&sent, &talk.requests_of_log());
}

#[tokio::test(start_paused = true)]
async fn a_vendor_that_counts_too_few_tokens_does_not_hide_that_the_window_is_full() {
    let vendor = Vendor {
        commands: 1,
        says_tokens: Some(10),
        ..Vendor::new(8_000)
    };
    let mut talk = Talk::with(vendor, &"some output of the build\n".repeat(30));
    for number in 1..=40 {
        let outcome = talk.say(&format!("run part {number}")).await;
        assert_eq!(outcome, TurnOutcome::Completed, "turn {number}");
    }
    let compactions = talk.compactions();
    assert!(!compactions.is_empty());
    for event in compactions {
        let Event::ContextCompacted { because, .. } = event else {
            continue;
        };
        assert_eq!(because, CompactedBecause::NearWindow);
    }
}

#[tokio::test(start_paused = true)]
async fn between_compactions_each_request_begins_as_the_one_before() {
    let vendor = Vendor {
        commands: 2,
        ..Vendor::new(16_000)
    };
    let mut talk = Talk::with(vendor, &"some output of the build\n".repeat(60));
    for number in 1..=30 {
        talk.say(&format!("run part {number}")).await;
    }
    let requests = talk.vendor.requests();
    let changed = requests.windows(2).filter(|pair| {
        let (before, now) = (&pair[0].messages, &pair[1].messages);
        let wish = usize::from(last_message(&pair[0]).starts_with(WISH));
        !now.starts_with(&before[..before.len() - wish])
    });
    assert_eq!(
        changed.count(),
        talk.compactions().len() + masked(&talk).len()
    );
}

#[tokio::test(start_paused = true)]
async fn a_person_compacts_and_says_what_matters() {
    let mut talk = Talk::with(Vendor::new(100_000), "");
    talk.say("The password file is etc/staging.pw").await;
    talk.say("hello").await;
    let before = talk.vendor.requests().len();
    assert_eq!(
        talk.send("/compact the password", Some("the password"))
            .await,
        TurnOutcome::Completed
    );
    let wishes = &talk.vendor.requests()[before..];
    assert_eq!(wishes.len(), 1);
    assert!(last_message(&wishes[0]).contains("keep what matters for this: the password"));
    assert!(!text_of(&wishes[0]).contains("/compact"));
    match talk.compactions().as_slice() {
        [
            Event::ContextCompacted {
                because,
                summary,
                carried,
                no_summary,
                ..
            },
        ] => {
            assert_eq!((*because, no_summary), (CompactedBecause::Asked, &None));
            assert_eq!(summary, "The work goes well.");
            assert_eq!(
                carried,
                "# What the user said\nm1: The password file is etc/staging.pw\nm2: hello\n\n"
            );
        }
        other => panic!("{other:?}"),
    }
    talk.say("go on").await;
    let request = talk.last_request();
    assert_eq!(request.messages.len(), 2, "{request:?}");
    assert!(
        request.messages[0]
            .parts()
            .words()
            .contains("etc/staging.pw")
    );
    assert_eq!(request.messages[1].parts().words(), "go on");
    // There is one answer since then, which the next one replaces.
    talk.send("/compact", Some("")).await;
    talk.send("/compact", Some("")).await;
    assert_eq!(talk.compactions().len(), 2);
    assert_eq!(
        talk.world.end(),
        (
            TurnOutcome::Failed,
            "there is nothing to compact yet".to_owned()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_summary_the_facts_and_the_summary_before_stay() {
    for (summary, why) in [
        (Some("   "), "the model wrote none"),
        (None, "refuses the request"),
    ] {
        let mut talk = Talk::with(Vendor::new(100_000), "");
        talk.say("The port is 48151.").await;
        talk.send("/compact", Some("")).await;
        let mut vendor = Vendor::new(100_000);
        vendor.summary = summary;
        let vendor = Arc::new(vendor);
        talk.ports.models = Arc::new(Only(vendor.clone()));
        talk.vendor = vendor;
        talk.say("go on").await;
        talk.send("/compact", Some("")).await;
        match talk.compactions().pop() {
            Some(Event::ContextCompacted {
                summary,
                carried,
                no_summary,
                ..
            }) => {
                assert_eq!(summary, "The work goes well.");
                assert!(no_summary.is_some_and(|said| said.contains(why)), "{why}");
                assert!(
                    carried.contains("m1: The port is 48151.\nm3: go on\n"),
                    "{carried}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_larger_than_the_window_and_a_window_that_shrank_are_made_to_fit() {
    let mut talk = Talk::with(Vendor::new(8_000), "");
    let novel = "It was a dark night. ".repeat(4_000);
    assert_eq!(talk.say(&novel).await, TurnOutcome::Completed);
    assert_eq!(talk.say("and now?").await, TurnOutcome::Completed);

    let mut talk = Talk::with(Vendor::new(200_000), "");
    for number in 0..30 {
        let text = format!("Fact {number} is {number}. {}", "Words. ".repeat(800));
        assert_eq!(talk.say(&text).await, TurnOutcome::Completed);
    }
    assert_eq!(talk.compactions().len(), 0);
    let vendor = Arc::new(Vendor::new(9_500));
    talk.ports.models = Arc::new(Only(vendor.clone()));
    talk.vendor = vendor;
    assert_eq!(talk.say("go on").await, TurnOutcome::Completed);
    let last = text_of(&talk.last_request());
    assert!(
        last.contains("Fact 0 is 0.") && last.contains("Fact 29 is 29."),
        "{last}"
    );
}

/// A talk whose turns run so many commands with so much output.
async fn long_talk(window: usize, turns: usize, binds_thoughts: bool) -> Talk {
    let vendor = Vendor {
        commands: 3,
        binds_thoughts,
        ..Vendor::new(window)
    };
    let mut talk = Talk::with(vendor, &"some output of the build\n".repeat(160));
    for number in 1..=turns {
        talk.say(&format!("run part {number}")).await;
    }
    talk
}

fn masked(talk: &Talk) -> Vec<Event> {
    let mut events = talk.world.log.events();
    events.retain(|event| matches!(event, Event::ResultsMasked { .. }));
    events
}

#[tokio::test(start_paused = true)]
async fn old_results_go_in_batches_before_a_compaction_and_the_newest_stay() {
    let talk = long_talk(32_000, 12, false).await;
    let requests = talk.vendor.requests();
    requests.iter().for_each(assert_calls_have_results);
    let masks = masked(&talk);
    assert!((1..=4).contains(&masks.len()), "{masks:?}");
    for mask in &masks {
        let Event::ResultsMasked { before, after, .. } = mask else {
            continue;
        };
        assert!(
            *before >= 19_000 && before - after >= 3_200,
            "{before} {after}"
        );
    }
    let last = text_of(&talk.last_request());
    assert!(last.contains("they are stored as r1]"), "{last}");
    assert_eq!(talk.compactions().len(), 0);
    let is_wish = |request: &ModelRequest| last_message(request).starts_with(WISH);
    let mut sent = requests;
    sent.retain(|request| !is_wish(request));
    assert_same(&sent, &talk.requests_of_log());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_masked_for_a_model_that_binds_its_thoughts() {
    let talk = long_talk(32_000, 12, true).await;
    assert_eq!(masked(&talk), []);
    assert!(!talk.compactions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_model_shortens_an_old_result_and_gets_it_back() {
    let edit = |arguments: &'static str| Reply::calls("", [("context_edit", arguments)]);
    let shell = Reply::calls("", [("Shell", r#"{"command":"make"}"#)]);
    let output = format!("{}needle\n", "hay\n".repeat(500));
    let world = World::new(
        [
            shell.clone(),
            edit(r#"{"of":"r1","text":"made"}"#),
            Reply::calls("", [("task_status", "{}")]),
            Reply::calls("", [("task_status", "{}")]),
            edit(r#"{"of":"r1","keep":"needle"}"#),
            edit(r#"{"of":"m1","text":""}"#),
            edit(r#"{"of":"r9","text":""}"#),
            Reply::says("done"),
        ],
        [command(&output, 0)],
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let told = world
        .ended_calls()
        .into_iter()
        .filter_map(|event| match event {
            Event::CallEnded { parts, .. } => Some(parts.words().into_owned()),
            _ => None,
        });
    let told: Vec<_> = told.collect();
    assert_eq!(
        told[1],
        "not run: r1 is one of the newest results, which stay as they are"
    );
    assert_eq!(told[4], "r1 is sent with 7 bytes from now on; it had 2020");
    assert_eq!(told[5], "not run: what a person said cannot be changed");
    assert_eq!(told[6], "not run: there is no result r9");
    let last = text_of(&world.model.requests().pop().expect("the model was asked"));
    assert!(
        last.contains("[you put this in place of r1:]\nneedle\n"),
        "{last}"
    );
    assert!(!last.contains("hay"), "{last}");
}
