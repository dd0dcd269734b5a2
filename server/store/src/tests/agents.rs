//! Agents: sessions that work for a call of another session.

use server_records::{ClaimedTurn, IfRunning, NewAgent, NewChat, WaitsOver};
use shared_types::{
    CallWait, Event, Mode, ReplicaId, SessionId, TurnId, WaitsFor,
    event::{Finish, Part, Parts, Question, Role, Terms, TurnOutcome, Usage},
};

use super::fixture::{Fixture, REPLICA, Tenant, at, this_replica, turn_ended, usual};
use crate::{By, SessionFilter, StoreError};

on_every_backend!(
    an_agent_begins_with_its_session_its_turn_and_the_events_of_both_logs,
    an_agent_works_at_the_place_of_its_caller_and_with_its_terms,
    the_end_of_an_agent_is_told_to_its_caller_which_goes_on,
    every_session_above_an_agent_is_told_of_its_question,
    an_agent_gets_a_further_turn_from_its_own_caller_alone,
    a_worker_that_was_replaced_begins_no_agent,
    an_agents_turn_is_left_to_a_worker_that_counts_it,
    a_tenant_has_so_many_agents_at_work_on_all_live_replicas_together,
    a_conversation_begins_once_for_a_call_beside_the_others_of_the_user,
    agents_are_listed_with_their_caller_and_not_among_the_sessions_of_people,
    a_session_is_deleted_with_all_agents_below_it,
    an_agent_of_a_deleted_session_ends_without_a_word_to_it,
);

struct Caller {
    session: SessionId,
    claimed: ClaimedTurn,
}

async fn caller(ours: &Tenant) -> Caller {
    let session = ours.session().await;
    ours.send(session, "do it").await;
    let claimed = ours.claim(session).await;
    Caller { session, claimed }
}

fn new(turn: TurnId, ordinal: u32) -> NewAgent {
    NewAgent {
        turn,
        step: 1,
        ordinal,
        session: None,
        name: format!("general-{ordinal}"),
        description: "find the port".to_owned(),
        prompt: "Which port?".to_owned(),
        role: Role {
            name: "general".to_owned(),
            description: "any task".to_owned(),
            instructions: String::new(),
            tools: None,
            denied_tools: Vec::new(),
            model: None,
            steps: None,
            worktree: false,
            from: None,
        },
        depth: 1,
        model: Some("large".to_owned()),
        terms: Terms {
            mode: Some(Mode::Plan),
            ceiling: Some(Mode::Plan),
            tokens: Some(500),
            ..Terms::default()
        },
        tokens: 500,
        background: false,
        worktree: None,
    }
}

async fn begin(ours: &Tenant, caller: &Caller, ordinal: u32) -> (SessionId, TurnId) {
    let new = new(caller.claimed.turn.id, ordinal);
    let epoch = caller.claimed.epoch;
    let begun = ours
        .db
        .start_agent(ours.id, caller.session, epoch, &new, at(5));
    let begun = begun.await.expect("the turn runs");
    match begun.known() {
        Some(Event::AgentStarted {
            session,
            agent_turn,
            ..
        }) => (*session, *agent_turn),
        other => panic!("another event: {other:?}"),
    }
}

async fn log(ours: &Tenant, session: SessionId) -> Vec<Event> {
    let log = ours.db.events_after(ours.id, session, 0, 100).await;
    let log = log.expect("it is there").into_iter();
    log.map(|event| event.known().cloned().expect("it is known"))
        .collect()
}

fn answer(turn: TurnId, step: u32, text: &str) -> Event {
    Event::AnswerRecorded {
        turn,
        step,
        model: "large".to_owned(),
        origin: None,
        parts: Parts(vec![Part::Text {
            text: text.to_owned(),
        }]),
        finish: Finish::Complete,
        usage: Usage {
            input: 10,
            output: 5,
            ..Usage::default()
        },
        estimated: 0,
        model_ms: 0,
        limit: None,
    }
}

async fn an_agent_begins_with_its_session_its_turn_and_the_events_of_both_logs(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let caller = caller(&ours).await;
    let (agent, turn) = begin(&ours, &caller, 0).await;
    let of_caller = caller.claimed.turn.id;
    let ids = (
        SessionId::of_agent(of_caller, 1, 0),
        TurnId::of_agent(of_caller, 1, 0),
    );
    assert_eq!((agent, turn), ids);
    let log = log(&ours, agent).await;
    let kinds: Vec<_> = log.iter().map(Event::kind).collect();
    assert_eq!(
        kinds,
        ["session.created", "agent.briefed", "input.accepted"]
    );
    let row = db.session(ours.id, agent).await.expect("it is there");
    assert_eq!((row.last_seq, row.title.as_str()), (3, "find the port"));
    let named = row.agent.expect("it is an agent");
    assert_eq!(
        (named.parent, named.name.as_str()),
        (caller.session, "general-0")
    );
    let queued = db.queued_turns(at(9), None, 10).await.expect("it answers");
    assert!(queued.iter().any(|queued| queued.turn == turn));
    let (new, epoch) = (new(of_caller, 0), caller.claimed.epoch);
    let again = db.start_agent(ours.id, caller.session, epoch, &new, at(6));
    again.await.expect_err("the call has an agent");
    // What the refused one had begun is not there.
    let before = db
        .session(ours.id, caller.session)
        .await
        .expect("it is there");
    begin(&ours, &caller, 1).await;
    let after = db
        .session(ours.id, caller.session)
        .await
        .expect("it is there");
    assert_eq!(after.last_seq, before.last_seq + 1);
}

async fn an_agent_works_at_the_place_of_its_caller_and_with_its_terms(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let runner = ours.runner("laptop").await;
    let session = ours.session().await;
    ours.pin(session, Some(runner)).await.expect("it is there");
    ours.send(session, "do it").await;
    let claimed = ours.claim(session).await;
    let caller = Caller { session, claimed };
    let (agent, _) = begin(&ours, &caller, 0).await;
    // The choice of the session counts no more than that of its turn.
    ours.pin(session, None).await.expect("it is there");
    let claimed = ours.claim(agent).await;
    let choice = claimed.turn.choice.expect("it was claimed");
    assert_eq!(choice.runner().map(|(id, _)| id), Some(runner));
    let settings = claimed.turn.settings.expect("it was claimed");
    assert_eq!(settings.model, "large");
}

async fn the_end_of_an_agent_is_told_to_its_caller_which_goes_on(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let caller = caller(&ours).await;
    let (agent, turn) = begin(&ours, &caller, 0).await;
    let wait = CallWait {
        step: 1,
        ordinal: 0,
        waits_for: WaitsFor::Turn(turn),
        until: at(100),
        listens_until: None,
    };
    let (of_caller, epoch) = (caller.claimed.turn.id, caller.claimed.epoch);
    let parked = db.park_turn(ours.id, of_caller, epoch, &[wait]).await;
    parked.expect("it runs");
    let over = WaitsOver {
        replica: REPLICA,
        at: at(9),
        of_others_at: at(9),
    };
    let woken = db.turns_to_wake(over, None, 10).await.expect("it answers");
    assert!(woken.is_empty(), "{woken:?}");
    let claimed = ours.claim(agent).await;
    let events = [
        answer(turn, 1, "I look"),
        answer(turn, 2, "8080"),
        turn_ended(turn, TurnOutcome::Completed),
    ];
    let ended = db
        .append(ours.id, agent, claimed.epoch, &events, at(8))
        .await;
    assert_eq!(ended.expect("it runs").events.len(), 3);
    let woken = db.turns_to_wake(over, None, 10).await.expect("it answers");
    assert_eq!(woken.len(), 1);
    let log = log(&ours, caller.session).await;
    let Some(Event::AgentEnded {
        outcome,
        answer,
        steps,
        tokens,
        name,
        ..
    }) = log.last()
    else {
        panic!("it was not told: {log:?}");
    };
    assert_eq!(
        (*outcome, answer.as_str()),
        (TurnOutcome::Completed, "8080")
    );
    assert_eq!((*steps, *tokens, name.as_str()), (2, 30, "general-0"));
    let again = db.stop_agent(ours.id, agent, turn, at(9)).await;
    again.expect("it has ended");
}

async fn a_worker_that_was_replaced_begins_no_agent(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let caller = caller(&ours).await;
    let newer = db.claim_turn(
        ours.id,
        caller.session,
        REPLICA,
        IfRunning::TakeOver,
        usual(),
        at(4),
    );
    newer.await.expect("it answers").expect("a turn");
    let new = new(caller.claimed.turn.id, 0);
    let begun = db.start_agent(ours.id, caller.session, caller.claimed.epoch, &new, at(5));
    assert!(matches!(begun.await, Err(StoreError::StaleEpoch { .. })));
    let agent = SessionId::of_agent(new.turn, 1, 0);
    let there = db.session(ours.id, agent).await;
    assert!(matches!(there, Err(StoreError::NotFound)));
}

async fn an_agents_turn_is_left_to_a_worker_that_counts_it(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let caller = caller(&ours).await;
    let (agent, _) = begin(&ours, &caller, 0).await;
    let claim = |how| db.claim_turn(ours.id, agent, REPLICA, how, usual(), at(6));
    let left = claim(IfRunning::Leave).await;
    assert_eq!(left.expect("it answers"), None);
    let over = WaitsOver {
        replica: REPLICA,
        at: at(9),
        of_others_at: at(9),
    };
    let next = db.next_turn(ours.id, agent, over).await;
    let for_call = server_records::NextTurn::Claim { for_call: true };
    assert_eq!(next.expect("it answers"), for_call);
    let taken = claim(IfRunning::TakeOver).await;
    assert!(taken.expect("it answers").is_some());
}

async fn a_tenant_has_so_many_agents_at_work_on_all_live_replicas_together(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let caller = caller(&ours).await;
    let mut agents = Vec::new();
    for ordinal in 0..3 {
        agents.push(begin(&ours, &caller, ordinal).await);
    }
    let [here, there, gone] = [REPLICA, ReplicaId::from_u128(2), ReplicaId::from_u128(404)];
    let row = this_replica(there, "elsewhere");
    db.renew_replica(&row, None, at(5))
        .await
        .expect("it answers");
    let claim = async |agent, replica| {
        let within = IfRunning::TakeOverWithin(1);
        let claimed = db.claim_turn(ours.id, agent, replica, within, usual(), at(6));
        claimed
            .await
            .map(|claimed| claimed.map(|claimed| claimed.epoch))
    };
    // The server that has the first one is gone: it does not count.
    let lost = db.claim_turn(
        ours.id,
        agents[0].0,
        gone,
        IfRunning::TakeOver,
        usual(),
        at(6),
    );
    assert!(lost.await.expect("it answers").is_some());
    let epoch = claim(agents[1].0, there)
        .await
        .expect("there is a place")
        .expect("a turn");
    for replica in [here, there] {
        let full = claim(agents[2].0, replica).await;
        assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    }
    let ended = turn_ended(agents[1].1, TurnOutcome::Completed);
    let stored = db
        .append(ours.id, agents[1].0, epoch, &[ended], at(7))
        .await;
    stored.expect("it runs");
    assert!(
        claim(agents[2].0, here)
            .await
            .expect("there is a place")
            .is_some()
    );
}

async fn a_conversation_begins_once_for_a_call_beside_the_others_of_the_user(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let caller = caller(&ours).await;
    let mut new = NewChat {
        turn: caller.claimed.turn.id,
        step: 1,
        ordinal: 0,
        title: "the other task".to_owned(),
        message: "Do it.".to_owned(),
        model: None,
        terms: Terms {
            ceiling: Some(Mode::Ask),
            ..Terms::default()
        },
        sessions_at_most: 2,
    };
    let epoch = caller.claimed.epoch;
    let start = async |new: &NewChat| {
        let started = db.start_chat(ours.id, caller.session, epoch, new, at(5));
        started.await.map(|event| event.known().cloned())
    };
    let started = start(&new).await.expect("there is room");
    let chat = SessionId::of_chat(new.turn, 1, 0);
    assert!(matches!(started, Some(Event::ChatStarted { session, .. }) if session == chat));
    assert!(start(&new).await.is_err(), "the call has begun one");
    new.ordinal = 1;
    assert!(matches!(start(&new).await, Err(StoreError::Full(_))));
    let kinds: Vec<_> = log(&ours, chat).await.iter().map(Event::kind).collect();
    assert_eq!(kinds, ["session.created", "chat.origin", "input.accepted"]);
    let claimed = ours.claim(chat).await;
    let ceiling = claimed.turn.settings.and_then(|settings| settings.ceiling);
    assert!(!claimed.turn.for_call);
    assert_eq!(
        ceiling, None,
        "the terms of the message count, and no setting"
    );
    let rows = db
        .list_sessions(ours.id, ours.owner, SessionFilter::default(), 10)
        .await;
    assert_eq!(rows.expect("it answers").len(), 2);
}

async fn agents_are_listed_with_their_caller_and_not_among_the_sessions_of_people(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let caller = caller(&ours).await;
    let (agent, _) = begin(&ours, &caller, 0).await;
    let list = async |agents_of| {
        let filter = SessionFilter {
            agents_of,
            ..SessionFilter::default()
        };
        let rows = db.list_sessions(ours.id, ours.owner, filter, 10).await;
        let rows = rows.expect("it answers").into_iter();
        rows.map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None).await, [caller.session]);
    assert_eq!(list(Some(caller.session)).await, [agent]);
    assert_eq!(list(Some(agent)).await, []);
}

async fn a_session_is_deleted_with_all_agents_below_it(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (above, other) = (caller(&ours).await, caller(&ours).await);
    let (agent, _) = begin(&ours, &above, 0).await;
    let (of_other, _) = begin(&ours, &other, 0).await;
    let claimed = ours.claim(agent).await;
    let session = agent;
    let below = begin(&ours, &Caller { session, claimed }, 0).await.0;
    let by = By::from(ours.owner);
    let deleted = db.delete_session(ours.id, above.session, &by, at(7)).await;
    deleted.expect("it is there");
    for (session, is_gone) in [(agent, true), (below, true), (of_other, false)] {
        let row = db.session(ours.id, session).await.expect("it is there");
        assert_eq!(row.deleted_at.is_some(), is_gone);
    }
    // An agent that is begun in the same moment finds nothing to work for.
    let late = new(above.claimed.turn.id, 1);
    let late = db.start_agent(ours.id, above.session, above.claimed.epoch, &late, at(8));
    assert!(matches!(late.await, Err(StoreError::NotFound)));
}

async fn an_agent_of_a_deleted_session_ends_without_a_word_to_it(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let caller = caller(&ours).await;
    let (agent, turn) = begin(&ours, &caller, 0).await;
    let claimed = ours.claim(agent).await;
    let by = By::from(ours.owner);
    let deleted = db.delete_session(ours.id, caller.session, &by, at(7)).await;
    deleted.expect("it is there");
    let before = log(&ours, caller.session).await.len();
    let ended = [turn_ended(turn, TurnOutcome::Cancelled)];
    let ended = db
        .append(ours.id, agent, claimed.epoch, &ended, at(8))
        .await;
    ended.expect("it runs");
    assert_eq!(log(&ours, caller.session).await.len(), before);
}

async fn an_agent_gets_a_further_turn_from_its_own_caller_alone(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (caller, other) = (caller(&ours).await, caller(&ours).await);
    let (agent, first) = begin(&ours, &caller, 0).await;
    let further = NewAgent {
        session: Some(agent),
        prompt: "And the other one?".to_owned(),
        ..new(caller.claimed.turn.id, 1)
    };
    let epoch = caller.claimed.epoch;
    let sent = db
        .start_agent(ours.id, caller.session, epoch, &further, at(6))
        .await;
    sent.expect("the turn runs");
    let log = log(&ours, agent).await;
    assert!(matches!(log.last(), Some(Event::InputAccepted { turn, .. })
        if *turn == TurnId::of_agent(caller.claimed.turn.id, 1, 1)));
    assert_eq!(log.len(), 4);
    let claimed = ours.claim(agent).await;
    assert_eq!(claimed.turn.id, first, "one after the other");
    let strange = NewAgent {
        session: Some(agent),
        ..new(other.claimed.turn.id, 0)
    };
    let refused = db
        .start_agent(ours.id, other.session, other.claimed.epoch, &strange, at(6))
        .await;
    assert!(matches!(refused, Err(StoreError::NotFound)));
}

async fn every_session_above_an_agent_is_told_of_its_question(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let top = caller(&ours).await;
    let (agent, _) = begin(&ours, &top, 0).await;
    let claimed = ours.claim(agent).await;
    let middle = Caller {
        session: agent,
        claimed,
    };
    let (below, turn) = begin(&ours, &middle, 3).await;
    let claimed = ours.claim(below).await;
    let approval = shared_types::ApprovalId::derive(turn, 1, 0, 1);
    let asked = Event::ApprovalAsked {
        turn,
        step: 1,
        ordinal: 0,
        approval,
        question: Question::Free {
            text: "which one?".to_owned(),
            choices: Vec::new(),
        },
        plan: None,
        until: at(1000),
    };
    let asked = db
        .append(ours.id, below, claimed.epoch, &[asked], at(7))
        .await;
    asked.expect("it runs");
    for above in [top.session, agent] {
        let log = log(&ours, above).await;
        assert!(
            matches!(log.last(), Some(Event::AgentAsks { session, name, .. })
            if *session == below && name == "general-3")
        );
    }
}
