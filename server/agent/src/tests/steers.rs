//! Messages that join a turn while it works, and those that interrupt it.

use server_llm::{Message, Model as _};
use shared_sandbox::{
    ExitCause, ExitStatus, Sandbox as _,
    scripted::{Script, ScriptedSandbox},
};
use shared_types::{
    Event, TurnId, UserId,
    event::{Parts, StopReason, TurnOutcome},
};

use crate::{
    Carried, Claim, Live, prompt,
    testing::{EPOCH, Reply, START, TURN, World, command, exit, output},
    transcript::Transcript,
};

const SHELL: (&str, &str) = ("Shell", r#"{"command":"make"}"#);

/// The next turn.
const NEXT: TurnId = TurnId::from_u128(8);

/// A command that writes and then runs until it is ended from outside, so.
fn long_command(status: ExitStatus, cause: ExitCause) -> Script {
    Script::UntilCancelled(vec![output("half")], exit(4, status, cause))
}

fn finishes() -> Script {
    long_command(ExitStatus::Code(0), ExitCause::Exited)
}

fn is_output(live: &Live) -> bool {
    matches!(live, Live::Output { .. })
}

/// The messages of the n-th request, each with its speaker.
fn request(world: &World, place: usize) -> Vec<String> {
    let requests = world.model.requests();
    let words = requests[place].messages.iter().map(|message| {
        let speaker = match message {
            Message::User { .. } => "user",
            Message::Assistant { .. } => "model",
            Message::ToolResult { .. } => "tool",
        };
        format!("{speaker}: {}", message.parts().words())
    });
    words.collect()
}

fn taken(world: &World) -> Vec<(u32, u32)> {
    let events = world.log.events().into_iter();
    let taken = events.filter_map(|event| match event {
        Event::SteersTaken { step, through, .. } => Some((step, through)),
        _ => None,
    });
    taken.collect()
}

#[tokio::test]
async fn messages_during_a_command_are_in_the_next_request_behind_its_result() {
    let replies = [Reply::calls("on it", [SHELL]), Reply::says("done")];
    let world = World::new(replies, [finishes()]);
    let running = world.spawn();
    world.live.saw(is_output).await;
    world.log.steer("use tabs");
    world.log.steer("and no dots");
    let started = world.started(1).await;
    let ended = world.sandbox.scripted.cancel(started[0], EPOCH).await;
    ended.expect("it runs");
    assert_eq!(running.await.expect("it runs"), Ok(TurnOutcome::Completed));
    assert_eq!(
        request(&world, 1),
        [
            "user: do it",
            "model: on it",
            "tool: half\n[exit code 0]",
            "user: use tabs",
            "user: and no dots",
        ]
    );
    assert_eq!(taken(&world), [(2, 2)]);
    let [first, second] = &world.model.requests()[..] else {
        panic!("two requests");
    };
    assert!(
        second.messages.starts_with(&first.messages),
        "a cache of it holds"
    );
    world.assert_log_gives_requests();
}

#[tokio::test]
async fn a_message_that_comes_just_before_the_end_makes_another_step() {
    for before_write in [1, 2] {
        let replies = [Reply::says("done"), Reply::says("with tabs")];
        let world = World::new(replies, []);
        // The first write is that of the last word, the second one that of a message.
        world.log.steer_before_write(1, "use tabs");
        if before_write == 2 {
            world.log.steer("be quick");
            world.log.steer_before_write(2, "use tabs");
        }
        assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
        let last = request(&world, 1);
        assert_eq!(last[last.len() - 2..], ["model: done", "user: use tabs"]);
        let answers = world.log.events().into_iter();
        let answers = answers.filter(|event| matches!(event, Event::AnswerRecorded { .. }));
        assert_eq!(answers.count(), 2);
        world.assert_log_gives_requests();
    }
}

#[tokio::test]
async fn a_message_outlives_the_worker_that_had_not_taken_it() {
    let replies = [Reply::calls("on it", [SHELL]), Reply::says("done")];
    let world = World::new(replies, [finishes()]);
    let operation = world.dies_after_starting(1).await;
    world.was_placed(operation);
    world.log.steer("use tabs");
    (world.sandbox.scripted).goes_on_as(operation, command("half", 0));
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(
        request(&world, 1)[2..],
        ["tool: half\n[exit code 0]", "user: use tabs"]
    );
    assert_eq!(taken(&world), [(2, 1)]);
    world.assert_log_gives_requests();
}

#[tokio::test]
async fn a_turn_at_its_limit_takes_no_message_and_leaves_it_to_the_next_one() {
    let replies = [Reply::calls("on it", [SHELL]), Reply::says("so far")];
    let mut world = World::new(replies, [command("", 0)]);
    world.limits.max_steps = 1;
    world.log.steer_before_write(2, "use tabs");
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    let summary = request(&world, 1);
    assert!(
        !summary.contains(&"user: use tabs".to_owned()),
        "{summary:?}"
    );

    let mut world = World::new([Reply::says("done")], []);
    world.limits.max_steps = 1;
    world.log.steer_before_write(1, "use tabs");
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    let (_, reason) = world.end();
    assert!(reason.contains("its limit of 1 steps"), "{reason}");
    assert_eq!(taken(&world), [], "the store starts a turn with it");
}

/// Runs the next turn, with this message.
async fn run_next(world: &World, message: &str) {
    world.log.append(Event::InputAccepted {
        turn: NEXT,
        by: UserId::from_u128(9),
        client_id: None,
        parts: Parts::text(message),
        compacts: None,
        terms: crate::testing::full(),
    });
    let claim = Claim {
        turn: NEXT,
        ..world.claim()
    };
    let (engine, ports) = (world.engine(), world.ports());
    let carried = engine.run_turn(&ports, claim, Default::default()).await;
    assert_eq!(carried, Ok(Carried::Ended(TurnOutcome::Completed)));
}

#[tokio::test]
async fn an_interrupt_stops_the_command_and_the_next_turn_sees_all_that_was_done_and_said() {
    let replies = [Reply::calls("on it", [SHELL]), Reply::says("done")];
    let stopped = long_command(ExitStatus::Signal(15), ExitCause::Cancelled);
    let world = World::with_sandbox(replies, ScriptedSandbox::new([stopped]));
    let running = world.spawn();
    world.live.saw(is_output).await;
    world.log.steer("use tabs");
    world.log.append(Event::CancelRequested {
        turn: TURN,
        by: UserId::from_u128(9),
        why: Some(StopReason::InterruptedByMessage),
    });
    world.cancel.cancel();
    let outcome = running.await.expect("it runs");
    assert_eq!(outcome, Ok(TurnOutcome::Interrupted));
    run_next(&world, "no, this").await;
    let last = request(&world, 1);
    assert_eq!(last[..2], ["user: do it", "model: on it"]);
    assert!(last[2].starts_with("tool: half\n[stopped"), "{last:?}");
    assert_eq!(last[3..], ["user: use tabs", "user: no, this"]);
    world.assert_log_gives_requests();
}

#[tokio::test]
async fn a_message_that_became_that_of_another_turn_is_sent_once() {
    let world = World::new([Reply::says("done")], []);
    world.log.steer("use tabs");
    for event in [
        Event::TurnEnded {
            turn: TURN,
            outcome: TurnOutcome::Failed,
            reason: None,
        },
        Event::SteersTaken {
            turn: TURN,
            step: 0,
            through: 1,
            into: Some(NEXT),
        },
    ] {
        world.log.append(event);
    }
    run_next(&world, "use tabs").await;
    assert_eq!(request(&world, 0), ["user: do it", "user: use tabs"]);
}

#[tokio::test]
async fn the_model_recalls_a_message_that_joined_a_turn_by_its_name() {
    let recalls = ["m1.1", "m1.2"].map(|of| format!(r#"{{"of":"{of}"}}"#));
    let recalls = recalls.each_ref().map(|asked| ("recall", asked.as_str()));
    let world = World::new([Reply::calls("", recalls), Reply::says("done")], []);
    world.log.steer("use tabs");
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let results = request(&world, 1);
    assert!(results[3].contains("use tabs"), "{results:?}");
    assert!(
        results[4].contains("there is no message m1.2"),
        "{results:?}"
    );
}

#[tokio::test]
async fn a_message_that_joined_a_turn_is_left_out_with_the_step_that_took_it() {
    let replies = [Reply::calls("on it", [SHELL]), Reply::says("done")];
    let world = World::new(replies, [finishes()]);
    let running = world.spawn();
    world.live.saw(is_output).await;
    world.log.steer("use tabs");
    let started = world.started(1).await;
    let ended = world.sandbox.scripted.cancel(started[0], EPOCH).await;
    ended.expect("it runs");
    assert_eq!(running.await.expect("it runs"), Ok(TurnOutcome::Completed));
    run_next(&world, "and now this").await;
    let mut transcript = Transcript::default();
    for event in world.log.events() {
        transcript.apply(&event, START);
    }
    let left = |gone| {
        let messages = prompt::tail(&transcript, NEXT, &world.model.info(), gone);
        let words = messages
            .iter()
            .map(|message| message.parts().words().into_owned());
        words.collect::<Vec<_>>()
    };
    // The parts of the first turn: its message, the first answer with one call, the last word.
    let behind_the_call = left(3);
    let last = ["use tabs", "done", "and now this", "done"];
    assert!(
        behind_the_call.ends_with(&last.map(str::to_owned)),
        "{behind_the_call:?}"
    );
    assert_eq!(left(4), ["and now this", "done"]);
}
