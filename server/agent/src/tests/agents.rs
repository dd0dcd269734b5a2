//! Calls that have an agent of their own.

use server_records::ExtensionKind;
use shared_types::{
    CallWait, Event, Mode, SessionId, TurnId, WaitsFor,
    event::{CallOfSession, CallOutcome, Parts, Role, Terms, TurnOutcome, Worktree, WorktreeState},
};

use crate::{
    Carried,
    testing::{Reply, START, TURN, World, registered},
};

const LOOK: (&str, &str) = (
    "SubAgent",
    r#"{"description":"find the port","prompt":"Which port?","agent":"explore"}"#,
);
const DO: (&str, &str) = (
    "SubAgent",
    r#"{"description":"write tests","prompt":"Write them."}"#,
);
const IN_BACKGROUND: (&str, &str) = (
    "SubAgent",
    r#"{"description":"write docs","prompt":"Write them.","background":true}"#,
);

fn asks<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> World {
    World::new([Reply::calls("", calls), Reply::says("done")], [])
}

fn role(name: &str) -> Role {
    Role {
        name: name.to_owned(),
        description: "anything".to_owned(),
        instructions: String::new(),
        tools: None,
        denied_tools: Vec::new(),
        model: None,
        steps: None,
        worktree: false,
        from: None,
    }
}

/// The session of this turn is an agent, so far below a person's.
fn is_agent(world: &World, depth: u32, role: Role) {
    world.log.append(briefed(depth, role, None));
}

fn briefed(depth: u32, role: Role, worktree: Option<Worktree>) -> Event {
    Event::AgentBriefed {
        parent: CallOfSession {
            session: SessionId::from_u128(1),
            turn: TurnId::from_u128(1),
            step: 1,
            ordinal: 0,
        },
        depth,
        name: "general-1".to_owned(),
        description: "a part".to_owned(),
        role: Box::new(role),
        worktree,
    }
}

/// Carries the turn to where it only waits, and returns the calls that wait.
async fn parks(world: &mut World) -> Vec<CallWait> {
    let carried = world.spawn_carrying().await.expect("it does not panic");
    let Ok(Carried::Waits(calls)) = carried else {
        panic!("it waits: {carried:?}");
    };
    world.waited = calls.iter().map(|call| call.wait.clone()).collect();
    world.waited.clone()
}

fn results(world: &World) -> Vec<(u32, CallOutcome, String)> {
    let ended = world.ended_calls().into_iter();
    let mut results: Vec<_> = ended
        .filter_map(|event| match event {
            Event::CallEnded {
                ordinal,
                outcome,
                parts,
                ..
            } => Some((ordinal, outcome, parts.words().into_owned())),
            _ => None,
        })
        .collect();
    results.sort_by_key(|(ordinal, ..)| *ordinal);
    results
}

#[tokio::test]
async fn agents_of_one_answer_work_at_the_same_time_and_their_turn_needs_no_worker_meanwhile() {
    let mut world = asks([LOOK, DO, LOOK]);
    let waits = parks(&mut world).await;
    let turns: Vec<_> = waits.iter().map(|wait| wait.waits_for).collect();
    let agents = [0, 1, 2].map(|ordinal| WaitsFor::Turn(TurnId::of_agent(TURN, 1, ordinal)));
    assert_eq!(turns, agents);
    let names: Vec<_> = world
        .log
        .agents()
        .into_iter()
        .map(|agent| agent.name)
        .collect();
    assert_eq!(names, ["explore-1", "general-2", "explore-3"]);

    world
        .log
        .agent_ends(1, TurnOutcome::Completed, "three tests");
    let waits = parks(&mut world).await;
    assert_eq!(waits.len(), 2, "the others are still at work");
    assert_eq!(world.log.agents().len(), 3, "none is begun again");

    world.log.agent_ends(0, TurnOutcome::Completed, "8080");
    world.log.agent_ends(2, TurnOutcome::Cancelled, "");
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let stopped = "failed: the agent explore-3 was stopped by a person; do not begin it again unless you are asked to";
    let expected = [
        (0, CallOutcome::Completed, "8080".to_owned()),
        (1, CallOutcome::Completed, "three tests".to_owned()),
        (2, CallOutcome::Failed, stopped.to_owned()),
    ];
    assert_eq!(results(&world), expected);
    world.assert_log_gives_requests();
}

#[tokio::test]
async fn an_agent_has_its_role_and_never_more_freedom_or_tokens_than_its_caller() {
    let mut world = asks([LOOK, DO]);
    world.limits.turn_tokens = 1000;
    world.log.set_ceiling(Mode::Full);
    parks(&mut world).await;
    let agents = world.log.agents();
    let modes = agents
        .iter()
        .map(|agent| (agent.terms.mode, agent.terms.ceiling));
    let (plan, full) = (Some(Mode::Plan), Some(Mode::Full));
    assert_eq!(modes.collect::<Vec<_>>(), [(plan, plan), (full, full)]);
    let tools = agents[0].role.tools.as_deref().expect("it names them");
    assert!(tools.iter().any(|tool| tool == "Read") && !tools.iter().any(|tool| tool == "Shell"));
    assert_eq!(agents[1].role.tools, None);
    assert_eq!(
        agents[1].role.denied_tools,
        ["ask_user", "present_plan", "create_chat"]
    );
    let tokens = agents
        .iter()
        .map(|agent| (agent.tokens, agent.terms.tokens));
    assert_eq!(
        tokens.collect::<Vec<_>>(),
        [(500, Some(500)), (500, Some(500))]
    );
}

#[tokio::test]
async fn a_turn_that_its_agents_have_used_up_ends_with_a_summary() {
    let mut world = asks([LOOK]);
    world.limits.turn_tokens = 100;
    parks(&mut world).await;
    world.log.agent_ends(0, TurnOutcome::Completed, "8080");
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    let (_, reason) = world.end();
    assert!(reason.contains("its limit of 100 tokens"), "{reason}");
}

#[tokio::test]
async fn a_turn_that_is_stopped_stops_the_agents_that_it_waits_for() {
    let mut world = asks([LOOK, DO]);
    parks(&mut world).await;
    world.log.agent_ends(0, TurnOutcome::Completed, "8080");
    world.cancel.cancel();
    assert_eq!(world.run().await, Ok(TurnOutcome::Cancelled));
    assert_eq!(world.log.stopped(), [SessionId::of_agent(TURN, 1, 1)]);
    let outcomes: Vec<_> = results(&world).into_iter().map(|result| result.1).collect();
    assert_eq!(outcomes, [CallOutcome::Completed, CallOutcome::Cancelled]);
}

#[tokio::test]
async fn a_turn_that_is_given_up_stops_its_agents() {
    let mut world = asks([DO]);
    parks(&mut world).await;
    let given_up = world.engine();
    let ports = world.ports();
    let reason = Some("it failed".to_owned());
    given_up
        .abandon_turn(
            &ports,
            TURN,
            crate::testing::EPOCH,
            TurnOutcome::Failed,
            reason,
        )
        .await
        .expect("the log takes it");
    assert_eq!(world.log.stopped(), [SessionId::of_agent(TURN, 1, 0)]);
}

#[tokio::test]
async fn an_agent_that_does_not_end_in_time_is_stopped_and_the_turn_goes_on() {
    let mut world = asks([DO]);
    let waits = parks(&mut world).await;
    assert_eq!(waits[0].until, START.after(world.limits.agents_within));
    world.clock.advance(world.limits.agents_within);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::TimedOut, "{text}");
    assert_eq!(world.log.stopped().len(), 1);
}

#[tokio::test]
async fn a_call_in_the_background_ends_at_once_and_the_next_message_tells_of_the_end() {
    let world = asks([IN_BACKGROUND]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Completed);
    assert!(
        text.contains("the agent general-1 works in the background"),
        "{text}"
    );
    world
        .log
        .agent_ends(0, TurnOutcome::Completed, "the docs are in docs/");
    let next = TurnId::from_u128(8);
    world.log.append(Event::InputAccepted {
        turn: next,
        by: shared_types::UserId::from_u128(9),
        client_id: None,
        parts: shared_types::event::Parts::text("and now?"),
        compacts: None,
        terms: crate::testing::full(),
    });
    let claim = crate::Claim {
        turn: next,
        ..world.claim()
    };
    let (engine, ports) = (world.engine(), world.ports());
    let ended = engine.run_turn(&ports, claim, world.cancel.clone());
    ended.await.expect("the log takes it");
    let last = world.model.requests().pop().expect("it was asked");
    let said = format!("{:?}", last.messages);
    assert!(
        said.contains("the agent general-1 has ended meanwhile: it completed"),
        "{said}"
    );
    assert!(said.contains("the docs are in docs/"), "{said}");
}

#[tokio::test]
async fn an_agent_that_would_be_too_deep_or_one_too_many_is_refused_with_the_reason() {
    let refused = |text: &str, world: &World| {
        let results = results(world);
        let last = results.last().expect("a call");
        assert_eq!(last.1, CallOutcome::Refused);
        assert!(last.2.contains(text), "{}", last.2);
    };
    let world = asks([DO]);
    is_agent(&world, world.limits.agents_deep, role("general"));
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    refused("agents begin agents at most 3 deep", &world);
    assert!(world.log.agents().is_empty());

    let mut world = asks([DO, DO]);
    world.limits.agents_of_turn = 1;
    parks(&mut world).await;
    refused("a turn begins at most 1 agents", &world);
    assert_eq!(world.log.agents().len(), 1);

    let unknown = r#"{"description":"a","prompt":"b","agent":"wizard"}"#;
    let world = asks([("SubAgent", unknown)]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    refused(
        "there is no role \"wizard\"; the roles are general, explore",
        &world,
    );
}

#[tokio::test]
async fn an_agent_is_told_its_role_and_is_offered_only_the_tools_of_it() {
    let role = Role {
        instructions: "Read, and say what you read.".to_owned(),
        tools: Some(vec!["Read".to_owned(), "Grep".to_owned()]),
        denied_tools: vec!["Grep".to_owned()],
        ..role("reader")
    };
    let world = World::new([Reply::says("8080")], []);
    is_agent(&world, 1, role);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let request = world.model.requests().pop().expect("it was asked");
    let names: Vec<_> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["Read"]);
    assert!(request.system.contains("You are the agent general-1."));
    assert!(request.system.contains("Read, and say what you read."));
}

#[tokio::test]
async fn a_role_that_people_brought_counts_with_its_limits_and_its_model_only_where_there_is_one() {
    let call = r#"{"description":"review it","prompt":"Review.","agent":"reviewer"}"#;
    let mut world = asks([("SubAgent", call)]);
    let text = "---\nname: reviewer\ndescription: Reviews.\ntools: Read\nmodel: no such model\nmaxTurns: 3\n---\nReview.";
    let reviewer = registered(ExtensionKind::Agent, "reviewer", text);
    world.log.register(reviewer);
    parks(&mut world).await;
    let agents = world.log.agents();
    assert_eq!(agents[0].name, "reviewer-1");
    assert_eq!(agents[0].terms.steps, Some(3));
    assert_eq!(agents[0].model, None, "that of the turn");
    assert_eq!(
        agents[0].role.tools.as_deref(),
        Some(&["Read".to_owned()][..])
    );
}

#[tokio::test]
async fn a_message_goes_on_with_an_agent_until_it_was_idle_for_too_long() {
    let more = r#"{"to":"general-1","message":"And the other one?"}"#;
    let mut world = World::new(
        [
            Reply::calls("", [DO]),
            Reply::calls("", [("SendMessage", more)]),
            Reply::calls("", [("SendMessage", more)]),
            Reply::says("done"),
        ],
        [],
    );
    parks(&mut world).await;
    world.log.agent_ends(0, TurnOutcome::Completed, "one test");
    let waits = parks(&mut world).await;
    let further = TurnId::of_agent(TURN, 2, 0);
    assert_eq!(waits[0].waits_for, WaitsFor::Turn(further));
    let agents = world.log.agents();
    let agent = SessionId::of_agent(TURN, 1, 0);
    assert_eq!(agents[1].session, Some(agent));
    assert_eq!(
        (agents[1].name.as_str(), agents[1].prompt.as_str()),
        ("general-1", "And the other one?")
    );
    world.log.append(Event::AgentEnded {
        turn: TURN,
        step: 2,
        ordinal: 0,
        session: agent,
        agent_turn: further,
        name: "general-1".to_owned(),
        outcome: TurnOutcome::Completed,
        reason: None,
        answer: "two tests".to_owned(),
        steps: 1,
        tokens: 10,
        worktree: None,
    });
    world.clock.advance(world.limits.agents_idle);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let results = world.ended_calls();
    let words = format!("{results:?}");
    assert!(
        words.contains("two tests") && words.contains("takes no more messages"),
        "{words}"
    );
    assert_eq!(world.log.agents().len(), 2);
}

const APART: (&str, &str) = (
    "SubAgent",
    r#"{"description":"change it","prompt":"Change it.","isolation":"worktree"}"#,
);

#[tokio::test]
async fn an_agent_in_a_worktree_is_begun_once_a_person_allows_the_worktree() {
    let settings = |mode| Terms {
        mode: Some(mode),
        ..Terms::default()
    };
    for (mode, begins, waits) in [
        (Mode::Plan, 0, false),
        (Mode::Ask, 0, true),
        (Mode::Full, 1, true),
    ] {
        let mut world = asks([APART]);
        world.log.clear();
        world.log.append(Event::InputAccepted {
            turn: TURN,
            by: shared_types::UserId::from_u128(9),
            client_id: None,
            parts: Parts::text("go".to_owned()),
            compacts: None,
            terms: settings(mode),
        });
        match waits {
            true => drop(parks(&mut world).await),
            false => assert_eq!(world.run().await, Ok(TurnOutcome::Completed)),
        }
        let agents = world.log.agents();
        assert_eq!(agents.len(), begins, "{mode}");
        let trees = agents.iter().filter_map(|agent| agent.worktree.as_ref());
        assert!(
            trees
                .clone()
                .all(|tree| tree.branch.starts_with("gantry/agent-") && !tree.approved)
        );
        assert_eq!(trees.count(), begins, "{mode}");
    }
}

#[tokio::test]
async fn the_caller_is_told_where_the_changes_of_its_agent_are() {
    let mut world = asks([APART]);
    parks(&mut world).await;
    let worktree = world.log.agents()[0].worktree.clone().expect("it has one");
    let path = worktree.path.clone();
    world.log.append(Event::AgentEnded {
        turn: TURN,
        step: 1,
        ordinal: 0,
        session: SessionId::of_agent(TURN, 1, 0),
        agent_turn: TurnId::of_agent(TURN, 1, 0),
        name: "general-1".to_owned(),
        outcome: TurnOutcome::Completed,
        reason: None,
        answer: "changed".to_owned(),
        steps: 1,
        tokens: 10,
        worktree: Some(worktree),
    });
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let text = results(&world).remove(0).2;
    assert!(
        text.starts_with("changed\n[its changes are in the git worktree") && text.contains(&path),
        "{text}"
    );
    world.assert_log_gives_requests();
}

const CHAT: (&str, &str) = (
    "create_chat",
    r#"{"title":"the other task","message":"Do it.","mode":"full"}"#,
);

#[tokio::test]
async fn a_call_begins_a_conversation_of_the_user_never_with_more_freedom_and_at_most_four_in_a_turn()
 {
    let world = asks([CHAT; 5]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let chats = world.log.chats();
    assert_eq!(chats.len(), 4);
    assert_eq!(chats[0].terms.ceiling, Some(Mode::Full));
    let results = results(&world);
    let session = SessionId::of_chat(TURN, 1, 0);
    assert!(
        results[0].2.contains(&format!("/resume {session}")),
        "{results:?}"
    );
    assert_eq!(results[4].1, CallOutcome::Refused);
    world.assert_log_gives_requests();

    let mut world = asks([CHAT]);
    world.log.set_ceiling(Mode::Ask);
    parks(&mut world).await;
    assert!(world.log.chats().is_empty(), "a person is asked first");
}

#[tokio::test]
async fn a_conversation_that_a_call_began_begins_no_other_one_before_a_person_writes() {
    let world = asks([CHAT]);
    world.log.append(Event::ChatOrigin {
        parent: CallOfSession {
            session: SessionId::from_u128(1),
            turn: TurnId::from_u128(1),
            step: 1,
            ordinal: 0,
        },
    });
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert!(world.log.chats().is_empty());
    assert_eq!(results(&world)[0].1, CallOutcome::Refused);
}

#[tokio::test]
async fn a_worktree_is_made_before_the_look_at_the_place_and_stays_only_with_changes() {
    use super::extended::{finds, says, world};
    let worktree = Worktree::of_agent(SessionId::from_u128(3), "app", true);
    let briefed = || briefed(1, role("general"), Some(worktree.clone()));
    for (said, settled) in [
        ("removed\n", WorktreeState::Removed),
        ("kept\n", WorktreeState::Kept),
    ] {
        let made = says("", "", 0);
        let scripts = vec![made, finds(&[]), says(said, "", 0)];
        let world = world(Mode::Full, vec![Reply::says("done")], scripts);
        world.log.append(briefed());
        assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
        let states = world
            .log
            .events()
            .into_iter()
            .filter_map(|event| match event {
                Event::WorktreeChanged { state, .. } => Some(state),
                _ => None,
            });
        assert_eq!(states.collect::<Vec<_>>(), [WorktreeState::Made, settled]);
        let started = world.sandbox.scripted.started();
        let request = format!("{:?}", started[0].request);
        assert!(request.contains(&worktree.seen_from("app")), "{request}");
        assert_eq!(started.len(), 3);
    }
    let none = says("", "this folder is in no git repository", 1);
    let world = world(Mode::Full, vec![], vec![none]);
    world.log.append(briefed());
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert_eq!(
        world.end().1,
        "its git worktree cannot be made: this folder is in no git repository"
    );
}

#[tokio::test]
async fn a_rule_about_a_file_counts_for_its_copy_in_a_worktree() {
    use super::extended::{finds, says, world};
    let worktree = Worktree::of_agent(SessionId::from_u128(3), "", false);
    let read = ("Read", r#"{"path":"keys/one"}"#);
    let scripts = vec![says("", "", 0), finds(&[]), says("removed\n", "", 0)];
    let replies = vec![Reply::calls("", [read]), Reply::says("done")];
    let world = world(Mode::Full, replies, scripts);
    let directory = worktree.path.clone();
    world.log.append(Event::SessionCreated {
        title: String::new(),
        model: String::new(),
        directory,
    });
    world
        .log
        .append(briefed(1, role("general"), Some(worktree)));
    world.log.set_rules([server_records::SetRule {
        rule: "Read(keys/**)".parse().expect("a rule"),
        decision: shared_consent::Decision::Deny,
        by: server_records::RuleBy::Operator,
    }]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(world.only_call().0, CallOutcome::Refused);
}
