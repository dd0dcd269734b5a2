//! The look at the place of a turn before the model is asked.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use server_llm::Model;
use shared_sandbox::{Instructions, OperationEvent, Outcome, Surveyed, scripted::Script};
use shared_types::{
    Event, Refusal, RefusalCode, ReplicaId, RunnerId, TurnId, UserId,
    event::{Choice, Parts, TodoItem, TodoState, TurnOutcome},
};

use crate::{
    Carried, Claim, ModelSource, ToolSet, prompt,
    testing::{EPOCH, Reply, START, ScriptedModel, TURN, World, ends},
    transcript::Transcript,
};

fn claimed(turn: TurnId) -> Event {
    Event::TurnClaimed {
        turn,
        epoch: EPOCH,
        replica: ReplicaId::from_u128(1),
        choice: Some(Choice::User {
            runner: RunnerId::from_u128(5),
            name: "laptop".to_owned(),
            workspace: None,
        }),
        settings: None,
    }
}

fn surveyed(branch: &str, files: &[(&str, &str)]) -> Script {
    let instructions = files.iter().map(|(path, text)| Instructions {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
        bytes: text.len() as u64,
        cut: false,
    });
    ends(Outcome::Surveyed(Surveyed {
        system: "Debian, x86_64".to_owned(),
        folder: "/home/me/work".to_owned(),
        branch: Some(branch.to_owned()),
        instructions: instructions.collect(),
        unread: Vec::new(),
        project: None,
        extensions: Vec::new(),
    }))
}

/// Runs a turn for each script; returns what stands before each message.
async fn notes(scripts: impl IntoIterator<Item = Script>) -> (World, Vec<String>) {
    let scripts: Vec<_> = scripts.into_iter().collect();
    let turns = scripts.len();
    let world = World::new([Reply::says("done")], scripts);
    for number in 0..turns {
        let turn = match number {
            0 => TURN,
            later => TurnId::from_u128(100 + later as u128),
        };
        if number > 0 {
            world.log.append(Event::InputAccepted {
                turn,
                by: UserId::from_u128(9),
                client_id: None,
                parts: Parts::text("do it"),
                compacts: None,
                terms: crate::testing::full(),
            });
        }
        world.log.append(claimed(turn));
        let claim = Claim {
            turn,
            ..world.claim()
        };
        let (engine, ports) = (world.engine(), world.ports());
        let carried = engine.run_turn(&ports, claim, world.cancel.clone()).await;
        assert_eq!(carried, Ok(Carried::Ended(TurnOutcome::Completed)));
    }
    world.assert_log_gives_requests();
    let last = world.model.requests().pop().expect("the model was asked");
    let texts = last
        .messages
        .iter()
        .map(|message| message.parts().words().into_owned());
    let texts = texts
        .filter(|text| text != "done")
        .collect::<Vec<_>>()
        .join("\n");
    let notes = texts.split("do it").map(str::to_owned).collect();
    (world, notes)
}

const WHOLE: &str = "[you work on runner scripted, isolation: none, in the folder /home/me/work of a machine with Debian, x86_64, on the git branch main]\n\
    [people left these instructions for you: each file counts for its folder and all below, the nearest file counts \
    more, and what a message says counts most]\n\
    <instructions file=\"AGENTS.md\">\nUse tabs.\n</instructions>\n\
    <instructions file=\"src/AGENTS.md\">\nUse spaces.\n</instructions>";

#[tokio::test(start_paused = true)]
async fn the_model_hears_of_the_place_and_its_instructions_and_then_of_what_changed() {
    let (root, src) = (
        ("AGENTS.md", "Use tabs.\n"),
        ("src/AGENTS.md", "Use spaces."),
    );
    let (world, notes) = notes([
        surveyed("main", &[root, src]),
        surveyed("main", &[root, src]),
        surveyed("topic", &[("AGENTS.md", "Use no tabs.")]),
    ])
    .await;
    assert_eq!(notes[0].trim(), WHOLE);
    assert_eq!(notes[1].trim(), "");
    assert_eq!(
        notes[2].trim(),
        "[you work on runner scripted, isolation: none, in the folder /home/me/work of a machine with Debian, x86_64, on the git branch topic]\n\
         [the instructions in src/AGENTS.md do not count any more]\n\
         [people left these instructions for you: each file counts for its folder and all below, the nearest file \
         counts more, and what a message says counts most]\n\
         <instructions file=\"AGENTS.md\">\nUse no tabs.\n</instructions>"
    );
    let recorded = world
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::PlaceSurveyed { instructions, .. } => {
                Some(instructions.map(|files| files.len()))
            }
            _ => None,
        });
    assert_eq!(recorded.collect::<Vec<_>>(), [Some(2), None, Some(1)]);
    let ends = world.log.ends();
    assert_eq!(ends.len(), 3, "each look is ended with its event");
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_without_a_place_that_is_away_or_cannot_look() {
    let away = Script::Hang(vec![OperationEvent::Unreachable { since: START }]);
    let silent = Script::Hang(vec![OperationEvent::Accepted]);
    let refuses = Script::Refuse(Refusal::new(RefusalCode::Unavailable, "no runner"));
    let too_old = ends(Outcome::Refused(Refusal::new(
        RefusalCode::Unsupported,
        "what?",
    )));
    for (script, left) in [(away, 1), (silent, 1), (refuses, 1), (too_old, 0)] {
        let (world, notes) = notes([script]).await;
        assert_eq!(notes[0], "");
        assert_eq!(world.sandbox.scripted.left().len(), left);
    }
}

#[tokio::test(start_paused = true)]
async fn instructions_are_sent_again_after_a_compaction_and_are_short_for_a_small_window() {
    let long = "word ".repeat(4_000);
    let (world, _) = notes([surveyed("main", &[("AGENTS.md", long.as_str())])]).await;
    let mut transcript = Transcript::default();
    for event in world.log.events() {
        transcript.apply(&event, START);
    }
    let later = TurnId::from_u128(77);
    for event in [
        Event::ContextCompacted {
            turn: TURN,
            step: 2,
            gone: 2,
            carried: String::new(),
            summary: String::new(),
            no_summary: None,
            before: 0,
            after: 0,
            because: shared_types::event::CompactedBecause::Asked,
        },
        Event::InputAccepted {
            turn: later,
            by: UserId::from_u128(9),
            client_id: None,
            parts: Parts::text("and now"),
            compacts: None,
            terms: crate::testing::full(),
        },
        claimed(later),
    ] {
        transcript.apply(&event, START);
    }
    let mut info = crate::testing::model("m");
    let mut bytes = |window| {
        info.profile.window = window;
        let tools = ToolSet::standard();
        let request = prompt::request(&transcript, later, &info, &tools);
        let note = request.messages[1].parts().words().into_owned();
        assert!(note.contains("<instructions file=\"AGENTS.md\">"), "{note}");
        note.len()
    };
    assert!(bytes(None) > 20_000);
    assert!(bytes(Some(8_000)) < 5_000);
}

#[tokio::test(start_paused = true)]
async fn a_session_goes_on_with_the_list_that_an_earlier_one_left_in_the_folder() {
    let write = |list: &str| Reply::calls("", [("todo_write", list)]);
    let world = World::new(
        [
            write(r#"{"list":"[x] one\n[~] two"}"#),
            Reply::calls("", [("todo_list", "{}")]),
            Reply::says("done"),
        ],
        [surveyed("main", &[])],
    );
    world.log.leave(vec![TodoItem {
        text: "two".to_owned(),
        state: TodoState::Open,
    }]);
    world.log.append(claimed(TURN));
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let first = &world.model.requests()[0].messages[0];
    let said = first.parts().words();
    assert!(
        said.contains("left this to-do list") && said.contains("[ ] two\n"),
        "{said}"
    );
    let events = world
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::TodoChanged {
                items,
                place,
                found,
                ..
            } => Some((items.len(), place, found)),
            _ => None,
        });
    let place = format!("{}//", RunnerId::from_u128(5));
    assert_eq!(
        events.collect::<Vec<_>>(),
        [(1, place.clone(), true), (2, place, false)]
    );
    let told = world
        .ended_calls()
        .into_iter()
        .filter_map(|event| match event {
            Event::CallEnded { parts, .. } => Some(parts.words().into_owned()),
            _ => None,
        });
    assert_eq!(told.collect::<Vec<_>>(), ["[x] one\n[~] two\n"; 2]);
}

#[tokio::test(start_paused = true)]
async fn the_text_of_the_operator_begins_the_system_prompt_from_the_next_turn_on() {
    struct Written(Arc<ScriptedModel>, Mutex<Option<Arc<str>>>);

    #[async_trait]
    impl ModelSource for Written {
        async fn chain(&self, _of_turn: Option<&str>) -> Result<Vec<Arc<dyn Model>>, String> {
            Ok(vec![self.0.clone()])
        }

        fn base_prompt(&self) -> Option<Arc<str>> {
            self.1
                .lock()
                .expect("no test panics while it holds it")
                .clone()
        }
    }

    let world = World::new([Reply::says("done")], []);
    let written = Arc::new(Written(world.model.clone(), Mutex::default()));
    let texts = [None, Some("Be a poet."), Some("Be a poet."), None];
    for (number, text) in texts.into_iter().enumerate() {
        let turn = TurnId::from_u128(200 + number as u128);
        *written.1.lock().expect("no test panics") = text.map(Arc::from);
        world.log.append(Event::InputAccepted {
            turn,
            by: UserId::from_u128(9),
            client_id: None,
            parts: Parts::text("hello"),
            compacts: None,
            terms: crate::testing::full(),
        });
        let ports = crate::SessionPorts {
            models: written.clone(),
            ..world.ports()
        };
        let claim = Claim {
            turn,
            ..world.claim()
        };
        let carried = world
            .engine()
            .run_turn(&ports, claim, world.cancel.clone())
            .await;
        assert_eq!(carried, Ok(Carried::Ended(TurnOutcome::Completed)));
    }
    let requests = world.model.requests();
    let begins = requests
        .iter()
        .map(|request| request.system.lines().next().unwrap_or_default());
    let begins: Vec<_> = begins
        .map(|line| line.split('.').next().unwrap_or_default())
        .collect();
    let own = "You are an agent of Gantry";
    assert_eq!(begins, [own, "Be a poet", "Be a poet", own]);
    assert!(
        requests[1].system.contains("Change a file with Edit."),
        "the tools have their say"
    );
    let changes = world.log.events().into_iter();
    let changes = changes.filter(|event| matches!(event, Event::PromptChanged { .. }));
    assert_eq!(changes.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_model_knows_the_runner_and_its_isolation_and_another_runner_has_no_instructions_of_the_first()
 {
    let file = ("AGENTS.md", "Use tabs.");
    let (world, _) = notes([surveyed("main", &[file])]).await;
    let mut transcript = Transcript::default();
    for event in world.log.events() {
        transcript.apply(&event, START);
    }
    let note = |transcript: &Transcript, turn| {
        let tools = ToolSet::standard();
        let info = crate::testing::model("m");
        let request = prompt::request(transcript, turn, &info, &tools);
        let texts = request
            .messages
            .iter()
            .map(|message| message.parts().words().into_owned());
        texts.collect::<Vec<_>>().join("\n")
    };
    let place = shared_sandbox::scripted::ScriptedSandbox::place();
    let said = format!(
        "[you work on runner {}, isolation: {}, in the folder",
        place.runner_name, place.isolation
    );
    assert!(
        note(&transcript, TURN).contains(&said),
        "{}",
        note(&transcript, TURN)
    );

    let later = TurnId::from_u128(78);
    let mut claim = claimed(later);
    if let Event::TurnClaimed {
        choice: Some(Choice::User { runner, .. }),
        ..
    } = &mut claim
    {
        *runner = RunnerId::from_u128(6);
    }
    transcript.apply(
        &Event::InputAccepted {
            turn: later,
            by: UserId::from_u128(9),
            client_id: None,
            parts: Parts::text("and there"),
            compacts: None,
            terms: crate::testing::full(),
        },
        START,
    );
    transcript.apply(&claim, START);
    let turn = transcript.turn(later).expect("it is there");
    assert!(turn.survey.is_none());
    assert!(transcript.survey_of(turn.runner()).is_none());
}
