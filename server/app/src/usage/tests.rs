use async_trait::async_trait;
use server_llm::{
    Answer, Attempted, Model, ModelError, ModelEvent, ModelInfo, ModelRequest, Price, Profile,
};
use server_store::Role;
use shared_types::{
    PaidBy, UserId,
    event::{Finish, Origin, Parts},
};
use tokio::sync::mpsc;

use super::*;
use crate::{NewMessage, testing::Fixture};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A model whose calls cost 3 millionths of a dollar for each token that is sent.
struct Paid;

#[async_trait]
impl Model for Paid {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: "large".to_owned(),
            practice: false,
            profile: Profile {
                provider: "openai".to_owned(),
                price: Some(Price {
                    date: "2026-11-01".to_owned(),
                    input: 3_000_000,
                    cached: 0,
                    cache_written: 0,
                    output: 0,
                }),
                ..Profile::default()
            },
            paid_by: PaidBy::default(),
            origin: Origin::default(),
        }
    }

    async fn answer(
        &self,
        _: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let usage = event::Usage {
            input: 100,
            cached: 0,
            cache_written: 0,
            output: 10,
            thoughts: 4,
        };
        let attempted = Attempted {
            number: 1,
            duration: Duration::from_millis(1),
            first_byte: None,
            outcome: "ok",
            usage,
        };
        let _ = events.send(ModelEvent::Attempted(attempted)).await;
        Ok(Answer {
            parts: Parts::text("fine"),
            finish: Finish::Complete,
            usage,
            model: String::new(),
            first_byte: None,
        })
    }
}

impl Fixture {
    /// A message of the owner, whose turn has ended.
    async fn said(&self, session: SessionId) -> TurnId {
        let sessions = &self.app.sessions;
        let sent = sessions.send(&self.ctx, session, NewMessage::of("hello"));
        let turn = sent.await.expect("it is accepted").turn;
        self.until_ended(session).await;
        turn
    }

    async fn usage(&self, ctx: &OpContext, by: UsageBy, everyone: bool) -> UsageSums {
        let usage = self.app.usage.since(ctx, Since::Usual, by, everyone).await;
        usage.expect("it may be seen")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn people_see_their_own_usage_and_admins_everyones() {
    let fixture = Fixture::with(Arc::new(Paid)).await;
    let owner = &fixture.ctx;
    let first = fixture.session().await;
    let turn = fixture.said(first).await;
    fixture.said(fixture.session().await).await;
    let ours = fixture.usage(owner, UsageBy::Model, false).await;
    let large = UsageOf::Model {
        provider: "openai".to_owned(),
        model: "large".to_owned(),
    };
    assert_eq!(ours.rows, [(large, ours.total)]);
    assert_eq!((ours.total.calls, ours.total.unpriced), (2, 0));
    assert_eq!(ours.total.cost_micros, 600);
    let of_turn = fixture.app.usage.of_session(owner, first, Some(turn)).await;
    let of_turn = of_turn.expect("it is theirs").total;
    assert_eq!((of_turn.calls, of_turn.cost_micros), (1, 300));
    let page = Page {
        after: None,
        limit: 9,
    };
    let turns = fixture.app.usage.of_turns(owner, first, page).await;
    let (turns, more) = turns.expect("it is theirs");
    assert_eq!((turns.len(), turns[0].0, more), (1, turn, false));
    assert_eq!(turns[0].1.total, of_turn);

    let as_other = |role| OpContext {
        user: UserId::from_u128(7),
        role,
        ..owner.clone()
    };
    let member = as_other(Role::Member);
    for by in [UsageBy::Model, UsageBy::Person, UsageBy::Day] {
        let theirs = fixture.usage(&member, by, false).await;
        assert_eq!((theirs.rows, theirs.total.calls), (Vec::new(), 0));
    }
    let refused = fixture
        .app
        .usage
        .since(&member, Since::Usual, UsageBy::Day, true)
        .await;
    assert!(
        matches!(refused, Err(AppError::Forbidden(_))),
        "{refused:?}"
    );
    for turn in [None, Some(turn)] {
        let hidden = fixture.app.usage.of_session(&member, first, turn).await;
        assert!(
            matches!(hidden, Err(AppError::NotFound("session"))),
            "{hidden:?}"
        );
    }
    let admin = as_other(Role::Admin);
    let all = fixture.usage(&admin, UsageBy::Person, true).await;
    assert_eq!(all.rows, [(UsageOf::Person(owner.user), ours.total)]);
    assert!(all.names.contains_key(&owner.user.to_string()), "{all:?}");
    let nothing = fixture.usage(&admin, UsageBy::Person, false).await;
    assert_eq!(nothing.total, ModelUsage::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_practice_model_is_not_counted() {
    let fixture = Fixture::practice().await;
    let session = fixture.session().await;
    fixture.said(session).await;
    let nothing = fixture.usage(&fixture.ctx, UsageBy::Model, false).await;
    assert_eq!(nothing.total, ModelUsage::default());
}

#[test]
fn the_time_that_is_summed_is_bounded_and_days_are_whole() {
    let now = Timestamp::from_micros(1_796_000_000_000_000);
    let ago = |days| Since::Ago(days * DAY);
    for (since, word) in [
        (Since::Moment(now.after(DAY)), "in the future"),
        (ago(367), "366 days"),
        (Since::Moment(Timestamp::from_micros(0)), "366 days"),
        (Since::Ago(Duration::MAX), "366 days"),
    ] {
        let refused = begin(since, UsageBy::Model, now).expect_err("it is out of bounds");
        assert!(refused.to_string().contains(word), "{refused}");
    }
    let usual = begin(Since::Usual, UsageBy::Model, now).expect("it is in bounds");
    assert_eq!(now.since(usual), 30 * DAY);
    let of_days = begin(ago(366), UsageBy::Day, now).expect("it is in bounds");
    assert!(
        of_days.to_string().ends_with("T00:00:00.000000Z"),
        "{of_days}"
    );
    assert!(now.since(of_days) >= 366 * DAY);
}
