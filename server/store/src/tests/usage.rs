//! The usage of models.

use std::time::Duration;

use server_records::{ModelCall, ModelCost};
use shared_types::{
    Epoch, ModelAccountId, PaidBy, SessionId, Timestamp, TurnId, UserId, event::Usage,
};

use super::fixture::{Fixture, Tenant, at, unique};
use crate::{ModelUsage, Page, UsageBy, UsageOf};

on_every_backend!(
    a_call_that_is_recorded_twice_counts_once,
    the_turns_of_a_session_are_listed_page_by_page_with_their_models,
    usage_is_summed_by_model_person_and_day_and_an_unknown_price_is_not_zero,
    usage_survives_its_session,
    usage_of_another_tenant_is_not_counted,
);

const DAY: i64 = 24 * 60 * 60;

/// A call, with the session, the user and the time of it.
#[derive(Clone)]
struct Called {
    of: (SessionId, UserId),
    at: Timestamp,
    call: ModelCall,
}

fn call(tenant: &Tenant, session: SessionId, turn: TurnId, step: u32) -> Called {
    Called {
        of: (session, tenant.owner),
        at: at(5),
        call: sent(turn, step),
    }
}

fn sent(turn: TurnId, step: u32) -> ModelCall {
    ModelCall {
        turn,
        step,
        epoch: Epoch(1),
        attempt: 1,
        model: "large".to_owned(),
        provider: "openai".to_owned(),
        paid_by: PaidBy::Own(ModelAccountId::from_u128(1)),
        usage: Usage {
            input: 100,
            cached: 50,
            cache_written: 25,
            output: 10,
            thoughts: 5,
        },
        cost: Some(ModelCost {
            micros: 1000,
            price_date: "2026-11-01".to_owned(),
        }),
        duration: Duration::from_millis(1500),
        first_byte: Some(Duration::from_millis(300)),
        outcome: "ok",
    }
}

fn model(model: &str) -> UsageOf {
    UsageOf::Model {
        provider: "openai".to_owned(),
        model: model.to_owned(),
    }
}

fn sums(calls: u64, unpriced: u64) -> ModelUsage {
    ModelUsage {
        calls,
        unpriced,
        cost_micros: 1000 * (calls - unpriced),
        usage: Usage {
            input: 100 * calls,
            cached: 50 * calls,
            cache_written: 25 * calls,
            output: 10 * calls,
            thoughts: 5 * calls,
        },
    }
}

impl Tenant {
    async fn record(&self, Called { of, at, call }: &Called) -> bool {
        let recorded = self
            .db
            .record_model_call(self.id, of.0, of.1, call, *at)
            .await;
        recorded.expect("the tenant is there")
    }

    async fn usage(
        &self,
        user: Option<UserId>,
        since: Timestamp,
        by: UsageBy,
    ) -> Vec<(UsageOf, ModelUsage)> {
        let usage = self.db.usage(self.id, user, since, by).await;
        usage.expect("it answers")
    }

    async fn of_session(
        &self,
        session: SessionId,
        turn: Option<TurnId>,
    ) -> Vec<(UsageOf, ModelUsage)> {
        let usage = self.db.usage_of_session(self.id, session, turn).await;
        usage.expect("it answers")
    }

    async fn in_all(&self, user: Option<UserId>, since: Timestamp) -> ModelUsage {
        let usage = self.db.usage_in_all(self.id, user, since).await;
        usage.expect("it answers")
    }
}

async fn a_call_that_is_recorded_twice_counts_once(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, turn) = (SessionId::from_u128(1), TurnId::from_u128(1));
    let first = call(&ours, session, turn, 1);
    assert!(ours.record(&first).await);
    let again = call(&ours, session, turn, 1);
    assert!(!ours.record(&again).await, "the same attempt");
    let mut retried = call(&ours, session, turn, 1);
    retried.call.attempt = 2;
    (retried.call.cost, retried.call.first_byte) = (None, None);
    assert!(ours.record(&retried).await);
    let mut of_the_next_worker = call(&ours, session, TurnId::from_u128(9), 1);
    assert!(ours.record(&of_the_next_worker).await);
    of_the_next_worker.call.epoch = Epoch(2);
    assert!(ours.record(&of_the_next_worker).await, "it asked again");
    let other = call(&ours, session, TurnId::from_u128(2), 1);
    assert!(ours.record(&other).await);
    let large = |sums| vec![(model("large"), sums)];
    assert_eq!(
        ours.of_session(session, Some(turn)).await,
        large(sums(2, 1))
    );
    assert_eq!(ours.of_session(session, None).await, large(sums(5, 1)));
    let nothing = TurnId::from_u128(3);
    assert_eq!(ours.of_session(session, Some(nothing)).await, []);
    let elsewhere = SessionId::from_u128(2);
    assert_eq!(ours.of_session(elsewhere, Some(turn)).await, []);
}

async fn the_turns_of_a_session_are_listed_page_by_page_with_their_models(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let session = SessionId::from_u128(1);
    for (turn, step, model) in [
        (1, 1, "large"),
        (1, 2, "small"),
        (2, 1, "large"),
        (3, 1, "small"),
    ] {
        let mut call = call(&ours, session, TurnId::from_u128(turn), step);
        call.call.model = model.to_owned();
        assert!(ours.record(&call).await);
    }
    let other = call(&ours, SessionId::from_u128(2), TurnId::from_u128(2), 9);
    assert!(ours.record(&other).await, "of another session");
    let turns = async |after: Option<u128>, limit| {
        let after = after.map(TurnId::from_u128);
        let turns = ours
            .db
            .usage_of_turns(ours.id, session, Page { after, limit });
        turns.await.expect("it answers")
    };
    let of = |turn, models: &[&str]| {
        let models = models.iter().map(|name| (model(name), sums(1, 0)));
        (TurnId::from_u128(turn), models.collect::<Vec<_>>())
    };
    assert_eq!(
        turns(None, 2).await,
        [of(1, &["large", "small"]), of(2, &["large"])]
    );
    assert_eq!(turns(Some(2), 2).await, [of(3, &["small"])]);
}

async fn usage_is_summed_by_model_person_and_day_and_an_unknown_price_is_not_zero(
    fixture: Fixture,
) {
    let ours = fixture.tenant().await;
    let (session, other) = (SessionId::from_u128(1), UserId::from_u128(unique()));
    for (turn, (day, user, model, priced)) in [
        (0, ours.owner, "large", true),
        (0, ours.owner, "small", true),
        (1, ours.owner, "large", true),
        (1, other, "large", true),
        (2, other, "small", false),
    ]
    .into_iter()
    .enumerate()
    {
        let turn = TurnId::from_u128(turn as u128);
        let mut call = call(&ours, session, turn, 1);
        (call.at, call.of) = (at(day * DAY + 7), (session, user));
        call.call.model = model.to_owned();
        call.call.paid_by = PaidBy::Operator;
        if !priced {
            call.call.cost = None;
        }
        assert!(ours.record(&call).await);
    }
    let day = |day: i64| UsageOf::Day(at(day * DAY));
    let all = at(0);
    assert_eq!(
        ours.usage(None, all, UsageBy::Model).await,
        [(model("large"), sums(3, 0)), (model("small"), sums(2, 1))]
    );
    assert_eq!(
        ours.usage(None, all, UsageBy::Person).await,
        [
            (UsageOf::Person(ours.owner), sums(3, 0)),
            (UsageOf::Person(other), sums(2, 1))
        ]
    );
    assert_eq!(
        ours.usage(None, at(DAY), UsageBy::Day).await,
        [(day(2), sums(1, 1)), (day(1), sums(2, 0))]
    );
    assert_eq!(
        ours.usage(Some(other), all, UsageBy::Day).await,
        [(day(2), sums(1, 1)), (day(1), sums(1, 0))]
    );
    assert_eq!(
        ours.usage(Some(other), all, UsageBy::Model).await,
        [(model("large"), sums(1, 0)), (model("small"), sums(1, 1))]
    );
    assert_eq!(ours.in_all(None, all).await, sums(5, 1));
    assert_eq!(ours.in_all(Some(other), at(2 * DAY)).await, sums(1, 1));
}

async fn usage_survives_its_session(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let session = ours.session().await;
    let turn = TurnId::from_u128(unique());
    assert!(ours.record(&call(&ours, session, turn, 1)).await);
    let by = ours.owner.into();
    let deleted = ours.db.delete_session(ours.id, session, &by, at(6)).await;
    deleted.expect("it is there");
    let purged = ours.db.purge_session(ours.id, session).await;
    assert!(purged.expect("nothing of it runs"));
    let usage = ours.of_session(session, None).await;
    assert_eq!(usage, [(model("large"), sums(1, 0))]);
}

async fn usage_of_another_tenant_is_not_counted(fixture: Fixture) {
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let (session, turn) = (SessionId::from_u128(1), TurnId::from_u128(1));
    assert!(theirs.record(&call(&theirs, session, turn, 1)).await);
    assert_eq!(ours.of_session(session, Some(turn)).await, []);
    assert_eq!(ours.of_session(session, None).await, []);
    for user in [None, Some(theirs.owner)] {
        assert_eq!(ours.usage(user, at(0), UsageBy::Person).await, []);
        assert_eq!(ours.in_all(user, at(0)).await, ModelUsage::default());
    }
    assert!(ours.record(&call(&ours, session, turn, 1)).await, "its own");
}
