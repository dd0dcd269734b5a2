//! Agents that work for a call: at the same time, through kills of the server, and as people see them.

use std::time::Duration;

use shared_types::{
    Event, SessionEvent, SessionId,
    event::{Answer, CallOutcome, TurnOutcome},
};
use tests::gantry::{Gantry, Runner, Talk, eventually};

/// Three agents, each of which leaves one line in `effects` once `go-on` is there.
fn three_agents() -> String {
    let agent = |name: &str| {
        format!(
            "agent: run echo {name} >> begun; while [ ! -e go-on ]; do sleep 0.05; done; echo {name} >> effects; echo said by {name}"
        )
    };
    ["one", "two", "three"].map(agent).join("\n")
}

async fn log(gantry: &Gantry, session: SessionId) -> Vec<SessionEvent> {
    let page = gantry.client().events(session, 0, 500).await;
    page.expect("the session is there").events
}

fn agents(log: &[SessionEvent]) -> Vec<SessionId> {
    let started = log.iter().filter_map(|event| match event.known() {
        Some(Event::AgentStarted { session, .. }) => Some(*session),
        _ => None,
    });
    started.collect()
}

async fn all_have_begun(runner: &Runner) {
    eventually("three agents work", || async {
        runner
            .file("begun")
            .filter(|begun| begun.lines().count() == 3)
    })
    .await;
}

/// The turn has its three results, and each agent had one effect.
async fn has_ended_well(
    gantry: &Gantry,
    runner: &Runner,
    talk: &mut Talk,
    turn: shared_types::TurnId,
) {
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let calls = told.calls();
    assert_eq!(calls.len(), 3, "{calls:?}");
    for name in ["one", "two", "three"] {
        let said = format!("said by {name}");
        let mut results = calls.iter().filter(|(_, text)| text.contains(&said));
        let (outcome, _) = results.next().expect("it has a result");
        assert_eq!((*outcome, results.count()), (CallOutcome::Completed, 0));
    }
    let effects = runner.file("effects").unwrap_or_default();
    let mut effects: Vec<_> = effects.lines().collect();
    effects.sort_unstable();
    assert_eq!(effects, ["one", "three", "two"]);
    let log = log(gantry, talk.session()).await;
    assert_eq!(agents(&log).len(), 3, "none was begun twice");
    let ends = log
        .iter()
        .filter(|event| matches!(event.known(), Some(Event::AgentEnded { .. })));
    assert_eq!(ends.count(), 3, "none is told twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_agents_work_at_the_same_time_and_are_listed_beside_the_conversation() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let turn = talk.send(&three_agents()).await;
    all_have_begun(&runner).await;
    let client = gantry.client();
    let own = client.sessions(50).await.expect("it answers");
    assert_eq!(own.len(), 1, "agents are not among the sessions of people");
    let found = client.sessions_found("", false, Some(talk.session()), 50);
    let found = found.await.expect("it answers");
    let mut names: Vec<_> = found
        .iter()
        .filter_map(|session| Some(session.agent.as_ref()?.name.as_str()))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["general-1", "general-2", "general-3"]);
    std::fs::write(runner.workspace().join("go-on"), "").expect("it can be written");
    has_ended_well(&gantry, &runner, &mut talk, turn).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_at_each_event_loses_no_agent_and_runs_none_twice() {
    let mut gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let turn = talk.send(&three_agents()).await;
    let (mut seen, mut kills) = (0, 0);
    loop {
        let client = gantry.client();
        let grown = eventually("the work goes on", || async {
            let all = total(&client, talk.session()).await?;
            (all > seen).then_some(all)
        });
        // While every agent runs its command nothing is told.
        match tokio::time::timeout(Duration::from_secs(4), grown).await {
            Ok(all) => seen = all,
            Err(_) if runner.file("go-on").is_some() => break,
            Err(_) => {
                std::fs::write(runner.workspace().join("go-on"), "").expect("it can be written");
                continue;
            }
        }
        gantry.kill_server().await;
        gantry.start_server().await;
        kills += 1;
        assert!(kills < 60, "the work does not end");
        if has_ended(&gantry, talk.session()).await {
            break;
        }
    }
    // A server that starts may tell several events at once.
    assert!(kills >= 3, "killed {kills} times");
    has_ended_well(&gantry, &runner, &mut talk, turn).await;
}

/// The events of the session and of its agents, but for those that each start of a server adds.
async fn total(client: &shared_client::Client, session: SessionId) -> Option<usize> {
    let agents = client.sessions_found("", false, Some(session), 50);
    let agents = agents.await.ok()?.into_iter().map(|agent| agent.id);
    let mut total = 0;
    for session in agents.chain([session]) {
        let log = client.events(session, 0, 500).await.ok()?.events;
        let claimed =
            |event: &&SessionEvent| matches!(event.known(), Some(Event::TurnClaimed { .. }));
        total += log.len() - log.iter().filter(claimed).count();
    }
    Some(total)
}

async fn has_ended(gantry: &Gantry, session: SessionId) -> bool {
    let log = log(gantry, session).await;
    log.iter()
        .any(|event| matches!(event.known(), Some(Event::TurnEnded { .. })))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_the_conversation_stops_its_agents_and_a_deletion_takes_them_away() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let turn = talk.send(&three_agents()).await;
    all_have_begun(&runner).await;
    talk.cancel().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Cancelled);
    let client = gantry.client();
    let found = agents(&log(&gantry, talk.session()).await);
    assert_eq!(found.len(), 3);
    for agent in &found {
        eventually("the agent is stopped", || async {
            let ended = log(&gantry, *agent).await.into_iter().any(|event| {
                matches!(
                    event.known(),
                    Some(Event::TurnEnded {
                        outcome: TurnOutcome::Cancelled,
                        ..
                    })
                )
            });
            ended.then_some(())
        })
        .await;
    }
    let deleted = client.delete_session(talk.session()).await;
    deleted.expect("it is there");
    for agent in found {
        eventually("the agent is gone", || async {
            client.session(agent).await.is_err().then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_asks_the_questions_of_its_agents_and_drops_one_that_is_answered_elsewhere() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let screen = gantry.screen(&["chat", "--mode", "ask"]);
    screen.until_shown("/help").await;
    screen.type_in("agent: run touch here\r");
    screen.until_shown("the agent general-1 asks").await;
    screen.until_shown("Esc later").await;
    screen.type_in("y");
    eventually("the agent goes on", async || runner.file("here")).await;
    screen.until_shown("done after").await;
    screen.type_in("agent: run touch elsewhere\r");
    screen.until_shown("the agent general-2 asks").await;
    let client = gantry.client();
    let asked = client.approvals(false, 10).await.expect("it answers");
    let allowed = Answer::Allowed {
        command: None,
        rule: None,
        mode: None,
    };
    let answer = client.answer(asked[0].id, asked[0].digest, allowed);
    answer.await.expect("it counts");
    eventually("the agent goes on", async || runner.file("elsewhere")).await;
    let is_gone = async || (!screen.shown().contains("Esc later")).then_some(());
    eventually("the question is gone", is_gone).await;
    screen.type_in("/resume general-2\r");
    screen.until_shown("general-2 works here").await;
}
