//! Questions to people, their answers, and rules.

use server_records::{AnswerRefused, ApprovalRow, NewAnswer};
use shared_consent::Decision;
use shared_types::{
    ApprovalId, CallWait, Digest, Event, RuleId, UserId, WaitsFor,
    event::{Answer, Question, TurnOutcome, Unanswered},
};

use super::fixture::{AtWork, Fixture, REPLICA, Tenant, at, turn_ended, unique};
use crate::{By, NewRuleRow, Page, StoreError};

on_every_backend!(
    the_first_answer_counts_and_the_others_hear_who_gave_it,
    of_two_answers_at_the_same_time_one_counts,
    an_answer_counts_for_its_person_its_question_and_its_time_alone,
    a_wait_for_a_person_is_over_with_the_answer,
    the_end_of_a_turn_closes_its_questions,
    an_answer_sets_its_rule_with_it_or_not_at_all,
    rules_are_listed_for_those_for_whom_they_count_and_removed_by_their_owner,
);

const EVERY: Page<ApprovalId> = Page {
    limit: 100,
    after: None,
};

fn by(user: UserId) -> By {
    By::from(user)
}

/// A turn that asks a question.
async fn asked(ours: &Tenant) -> (AtWork, ApprovalRow) {
    let work = ours.at_work().await;
    let approval = ApprovalId::derive(work.turn, 1, 0, 1);
    let asked = Event::ApprovalAsked {
        turn: work.turn,
        step: 1,
        ordinal: 0,
        approval,
        question: Question::Plan {
            text: "1. build".to_owned(),
        },
        plan: None,
        until: at(100),
    };
    let events = [asked];
    let appended = ours
        .db
        .append(ours.id, work.session, work.epoch, &events, at(5));
    appended.await.expect("the turn runs");
    let row = ours.db.approval(ours.id, ours.owner, approval).await;
    (work, row.expect("it is there"))
}

fn yes(row: &ApprovalRow) -> NewAnswer {
    NewAnswer {
        approval: row.id,
        shown: row.question.digest(),
        answer: Answer::Allowed {
            command: None,
            rule: None,
            mode: None,
        },
    }
}

async fn answer(
    ours: &Tenant,
    user: UserId,
    new: &NewAnswer,
    seconds: i64,
) -> Result<Result<ApprovalRow, AnswerRefused>, StoreError> {
    let rule = RuleId::from_u128(unique());
    ours.db
        .answer(ours.id, &by(user), rule, new, at(seconds))
        .await
}

/// The number of answers in the log.
async fn answers_in_log(ours: &Tenant, work: &AtWork) -> usize {
    let log = ours.db.events_after(ours.id, work.session, 0, 100).await;
    let log = log.expect("it answers");
    let answered = |event: &&shared_types::SessionEvent| {
        matches!(event.known(), Some(Event::ApprovalAnswered { .. }))
    };
    log.iter().filter(answered).count()
}

async fn the_first_answer_counts_and_the_others_hear_who_gave_it(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (work, row) = asked(&ours).await;
    let open = ours
        .db
        .approvals(ours.id, ours.owner, Some(at(6)), EVERY)
        .await;
    assert_eq!(open.expect("it answers"), std::slice::from_ref(&row));
    let waiting = async || {
        let session = ours.db.session(ours.id, work.session).await;
        session.expect("it is there").waiting_approvals
    };
    assert_eq!(waiting().await, 1);
    let first = answer(&ours, ours.owner, &yes(&row), 6)
        .await
        .expect("it answers");
    let name = first
        .expect("it counts")
        .outcome
        .and_then(|outcome| outcome.by);
    let name = name.expect("a person answered");
    let no = NewAnswer {
        answer: Answer::Denied { words: None },
        ..yes(&row)
    };
    let second = answer(&ours, ours.owner, &no, 7).await.expect("it answers");
    let said = AnswerRefused::Answered(format!("allowed by {name}"));
    assert_eq!(second, Err(said));
    let open = ours
        .db
        .approvals(ours.id, ours.owner, Some(at(8)), EVERY)
        .await;
    assert_eq!(open.expect("it answers"), []);
    assert_eq!(answers_in_log(&ours, &work).await, 1);
    assert_eq!(waiting().await, 0);
}

async fn of_two_answers_at_the_same_time_one_counts(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (work, row) = asked(&ours).await;
    let yes = yes(&row);
    let no = NewAnswer {
        answer: Answer::Denied { words: None },
        ..yes.clone()
    };
    let (one, other) = tokio::join!(
        answer(&ours, ours.owner, &yes, 6),
        answer(&ours, ours.owner, &no, 6)
    );
    let counted = [one, other].map(|answered| answered.expect("it answers").is_ok());
    assert!(counted[0] != counted[1], "{counted:?}");
    assert_eq!(answers_in_log(&ours, &work).await, 1);
}

async fn an_answer_counts_for_its_person_its_question_and_its_time_alone(fixture: Fixture) {
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let (work, row) = asked(&ours).await;
    let other = answer(&ours, theirs.owner, &yes(&row), 6).await;
    assert!(matches!(other, Err(StoreError::NotFound)), "{other:?}");
    let foreign = theirs.db.approval(theirs.id, theirs.owner, row.id).await;
    assert!(matches!(foreign, Err(StoreError::NotFound)), "{foreign:?}");
    let of_another = NewAnswer {
        shown: Digest::of(b"another question"),
        ..yes(&row)
    };
    let words = NewAnswer {
        answer: Answer::Said {
            text: "yes".to_owned(),
        },
        ..yes(&row)
    };
    for (new, seconds, why) in [
        (of_another, 6, AnswerRefused::OtherQuestion),
        (
            words,
            6,
            AnswerRefused::Unfit("this question wants a yes or a no"),
        ),
        (yes(&row), 100, AnswerRefused::Late),
    ] {
        let refused = answer(&ours, ours.owner, &new, seconds).await;
        assert_eq!(refused.expect("it answers"), Err(why));
    }
    assert_eq!(answers_in_log(&ours, &work).await, 0);
}

async fn a_wait_for_a_person_is_over_with_the_answer(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (work, row) = asked(&ours).await;
    let wait = CallWait {
        step: 1,
        ordinal: 0,
        waits_for: WaitsFor::Person(row.id),
        until: at(100),
        listens_until: None,
    };
    let calls = [wait];
    let parked = ours.db.park_turn(ours.id, work.turn, work.epoch, &calls);
    parked.await.expect("it runs");
    let over = server_records::WaitsOver {
        replica: REPLICA,
        at: at(7),
        of_others_at: at(0),
    };
    let woken = async || {
        let turns = ours.db.turns_to_wake(over, None, 100).await;
        turns
            .expect("it answers")
            .iter()
            .any(|turn| turn.turn == work.turn)
    };
    assert!(!woken().await);
    answer(&ours, ours.owner, &yes(&row), 6)
        .await
        .expect("it answers")
        .expect("it counts");
    assert!(woken().await);
}

async fn the_end_of_a_turn_closes_its_questions(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (work, row) = asked(&ours).await;
    let ended = turn_ended(work.turn, TurnOutcome::Cancelled);
    let events = [ended];
    let appended = ours
        .db
        .append(ours.id, work.session, work.epoch, &events, at(6));
    appended.await.expect("the turn runs");
    let late = answer(&ours, ours.owner, &yes(&row), 7)
        .await
        .expect("it answers");
    let closed = AnswerRefused::Answered("closed without an answer".to_owned());
    assert_eq!(late, Err(closed));
    let row = ours
        .db
        .approval(ours.id, ours.owner, row.id)
        .await
        .expect("it is there");
    let outcome = row.outcome.map(|outcome| outcome.answer);
    let because = Unanswered::Stopped;
    assert_eq!(outcome, Some(Answer::Unanswered { because }));
}

async fn an_answer_sets_its_rule_with_it_or_not_at_all(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = ours.at_work().await;
    let approval = ApprovalId::derive(work.turn, 1, 0, 1);
    let question = Question::Call(Box::new(shared_types::event::PlannedCall {
        tool: "Shell".to_owned(),
        text: "cargo test".to_owned(),
        cut: false,
        directory: String::new(),
        environment: Vec::new(),
        paths: Vec::new(),
        runner: None,
        runner_name: String::new(),
        isolation: String::new(),
        risk: shared_types::Risk::Medium,
        reasons: Vec::new(),
        why: "mode ask".to_owned(),
        rule: None,
        editable: true,
    }));
    let asked = Event::ApprovalAsked {
        turn: work.turn,
        step: 1,
        ordinal: 0,
        approval,
        question: question.clone(),
        plan: Some(Digest::of(b"the request")),
        until: at(100),
    };
    let events = [asked];
    let appended = ours
        .db
        .append(ours.id, work.session, work.epoch, &events, at(5));
    appended.await.expect("the turn runs");
    let always = |shown| NewAnswer {
        approval,
        shown,
        answer: Answer::Allowed {
            command: None,
            rule: Some("Shell(cargo test *)".to_owned()),
            mode: None,
        },
    };
    let rules = async || {
        ours.db
            .rules(ours.id, ours.owner)
            .await
            .expect("it answers")
    };
    let refused = answer(&ours, ours.owner, &always(Digest::of(b"x")), 6).await;
    assert_eq!(
        refused.expect("it answers"),
        Err(AnswerRefused::OtherQuestion)
    );
    assert_eq!(rules().await, []);
    let counted = answer(&ours, ours.owner, &always(question.digest()), 6).await;
    counted.expect("it answers").expect("it counts");
    let set: Vec<_> = rules()
        .await
        .into_iter()
        .map(|row| (row.rule.to_string(), row.decision))
        .collect();
    assert_eq!(set, [("Shell(cargo test *)".to_owned(), Decision::Allow)]);
}

async fn rules_are_listed_for_those_for_whom_they_count_and_removed_by_their_owner(
    fixture: Fixture,
) {
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let add = async |user, decision, text: &str| {
        let rule = NewRuleRow {
            id: RuleId::from_u128(unique()),
            user,
            decision,
            rule: text,
        };
        let added = ours
            .db
            .add_rule(ours.id, &rule, &by(ours.owner), at(4))
            .await;
        added.expect("it is set")
    };
    let of_tenant = add(None, Decision::Deny, "Shell(git push *)").await;
    let own = add(Some(ours.owner), Decision::Allow, "Shell(cargo *)").await;
    let again = add(Some(ours.owner), Decision::Allow, "Shell(cargo *)").await;
    assert_eq!(again, own, "it is one rule");
    let listed = ours
        .db
        .rules(ours.id, ours.owner)
        .await
        .expect("it answers");
    assert_eq!(listed, [of_tenant.clone(), own.clone()]);
    let others = theirs.db.rules(theirs.id, theirs.owner).await;
    assert_eq!(others.expect("it answers"), []);
    let remove = async |id, user| {
        ours.db
            .remove_rule(ours.id, id, user, &by(ours.owner), at(5))
            .await
    };
    let not_theirs = remove(of_tenant.id, Some(ours.owner)).await;
    assert!(
        matches!(not_theirs, Err(StoreError::NotFound)),
        "{not_theirs:?}"
    );
    remove(own.id, Some(ours.owner)).await.expect("it is there");
    let left = ours
        .db
        .rules(ours.id, ours.owner)
        .await
        .expect("it answers");
    assert_eq!(left, [of_tenant]);
}
