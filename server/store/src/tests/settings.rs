//! What the tenant, its users and its sessions set, and what a turn is run with.

use server_records::IfRunning;
use shared_types::{
    Event, SessionId,
    event::{TurnOutcome, TurnSettings},
};
use tokio::task::JoinSet;

use super::fixture::{Fixture, REPLICA, Tenant, at, turn_ended, usual};
use crate::{
    SettingChange, SettingLayer, SettingName, SettingRow, SettingsChanged, SettingsOf, StoreError,
    StoredSettings,
};

on_every_backend!(
    the_narrowest_layer_counts_and_each_value_says_who_set_it_and_when,
    a_turn_is_run_with_what_was_set_when_it_was_first_claimed,
    several_values_are_set_all_or_none,
    the_same_value_again_changes_neither_the_generation_nor_since_when_it_is_set,
    of_changes_that_expect_the_same_generation_one_is_done,
    the_settings_of_a_session_go_with_it_and_a_deleted_one_takes_none,
);

impl Tenant {
    async fn settings(&self, session: SessionId) -> StoredSettings {
        let settings = self.db.settings(self.id, self.owner, Some(session));
        settings.await.expect("the owner is there")
    }

    async fn in_effect(&self, session: SessionId, name: SettingName) -> Option<SettingRow> {
        self.settings(session).await.in_effect(name).cloned()
    }

    /// What the session's next turn is run with.
    async fn next_settings(&self, session: SessionId) -> TurnSettings {
        let turn = self.send(session, "go on").await;
        let claimed = self.claim(session).await;
        let ended = [turn_ended(turn, TurnOutcome::Completed)];
        let ended = (self.db).append(self.id, session, claimed.epoch, &ended, at(5));
        ended.await.expect("it runs");
        claimed.turn.settings.expect("it was claimed")
    }
}

fn steps(value: &str) -> SettingChange {
    SettingChange {
        name: SettingName::Steps,
        value: Some(value.to_owned()),
    }
}

async fn the_narrowest_layer_counts_and_each_value_says_who_set_it_and_when(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, runner) = (ours.session().await, ours.runner("laptop").await);
    let layers = [
        (SettingLayer::Tenant, SettingsOf::Tenant),
        (SettingLayer::User, SettingsOf::User(ours.owner)),
        (SettingLayer::Session, SettingsOf::Session(session)),
    ];
    let runner = runner.to_string();
    let names = [
        (SettingName::Runner, runner.as_str()),
        (SettingName::Model, "large"),
    ];
    for (name, value) in names {
        assert_eq!(ours.in_effect(session, name).await, None);
        for (layer, of) in layers {
            ours.set(of, name, Some(value)).await.expect("it is there");
            let row = SettingRow {
                name,
                value: value.to_owned(),
                layer,
                by: "owner".to_owned(),
                at: Some(at(4)),
            };
            assert_eq!(ours.in_effect(session, name).await, Some(row));
        }
        for (layer, of) in layers.into_iter().rev() {
            let row = ours.in_effect(session, name).await;
            assert_eq!(row.map(|row| row.layer), Some(layer));
            ours.set(of, name, None).await.expect("it is there");
        }
        assert_eq!(ours.in_effect(session, name).await, None);
    }
    assert_eq!(ours.settings(session).await.generation, 12);
    let audit = ours.db.audit_after(ours.id, 0, 100).await;
    let audit = audit.expect("it answers");
    let mut entries = audit.iter().filter(|row| row.kind == "settings.changed");
    let last = entries.next_back().expect("they are recorded");
    assert_eq!(last.subject, ours.id.to_string());
    let detail = serde_json::json!({
        "values": { "model": null }, "before": { "model": "large" }, "generation": 12
    });
    assert_eq!(last.detail, detail);
}

async fn a_turn_is_run_with_what_was_set_when_it_was_first_claimed(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    assert_eq!(ours.next_settings(session).await, *usual());
    let of = SettingsOf::User(ours.owner);
    for (of, name, value) in [
        (SettingsOf::Tenant, SettingName::Model, "of the tenant"),
        (SettingsOf::Tenant, SettingName::Steps, "7"),
        (of, SettingName::Model, "of the user"),
        (SettingsOf::Session(session), SettingName::Language, "Latin"),
    ] {
        ours.set(of, name, Some(value)).await.expect("it is there");
    }
    let turn = ours.send(session, "go on").await;
    let first = ours.claim(session).await.turn.settings;
    let set = TurnSettings {
        model: "of the user".to_owned(),
        language: Some("Latin".to_owned()),
        steps: 7,
        machine: None,
        own_runner: false,
        mode: None,
        ceiling: None,
        machine_ceiling: None,
    };
    assert_eq!(first, Some(set.clone()));

    ours.set(of, SettingName::Steps, Some("8"))
        .await
        .expect("it is there");
    let take_over = IfRunning::TakeOver;
    let again = db.claim_turn(ours.id, session, REPLICA, take_over, usual(), at(6));
    let again = again.await.expect("it answers").expect("it runs");
    assert_eq!(again.turn.settings, first);
    let log = db.events_after(ours.id, session, 0, 100).await;
    let log = log.expect("it is there");
    let logged = log.iter().filter_map(|event| match event.known() {
        Some(Event::TurnClaimed {
            turn: of, settings, ..
        }) if *of == turn => Some(settings.clone()),
        _ => None,
    });
    assert_eq!(logged.collect::<Vec<_>>(), [first.clone(), first]);
    let ended = [turn_ended(turn, TurnOutcome::Completed)];
    let ended = db.append(ours.id, session, again.epoch, &ended, at(7));
    ended.await.expect("it runs");
    assert_eq!(
        ours.next_settings(session).await,
        TurnSettings { steps: 8, ..set }
    );
}

async fn several_values_are_set_all_or_none(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let of = SettingsOf::Session(session);
    let nowhere = SettingChange {
        name: SettingName::Runner,
        value: Some(shared_types::RunnerId::from_u128(1).to_string()),
    };
    let by = ours.owner.into();
    let both = [steps("9"), nowhere];
    let refused = db.change_settings(ours.id, of, &both, None, &by, at(4));
    assert!(matches!(refused.await, Err(StoreError::NotFound)));
    assert_eq!(ours.settings(session).await.rows, []);
    assert_eq!(ours.settings(session).await.generation, 0);
}

async fn the_same_value_again_changes_neither_the_generation_nor_since_when_it_is_set(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (session, runner) = (ours.session().await, ours.runner("laptop").await);
    let of = SettingsOf::User(ours.owner);
    let runner = SettingChange {
        name: SettingName::Runner,
        value: Some(runner.to_string()),
    };
    let (both, by) = ([steps("9"), runner], ours.owner.into());
    let change = async |now| {
        let changed = db.change_settings(ours.id, of, &both, None, &by, now);
        changed.await.expect("they are there")
    };
    let generation = 1;
    assert_eq!(change(at(4)).await, SettingsChanged::Changed { generation });
    assert_eq!(
        change(at(9)).await,
        SettingsChanged::Unchanged { generation }
    );
    for row in ours.settings(session).await.rows {
        assert_eq!(row.at, Some(at(4)), "{:?}", row.name);
    }
}

async fn of_changes_that_expect_the_same_generation_one_is_done(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let mut changing = JoinSet::new();
    for value in 1..=8 {
        let (db, tenant, owner) = (fixture.db.clone(), ours.id, ours.owner);
        changing.spawn(async move {
            let (of, changes) = (SettingsOf::User(owner), [steps(&value.to_string())]);
            db.change_settings(tenant, of, &changes, Some(0), &owner.into(), at(4))
                .await
                .expect("it answers")
        });
    }
    let done = changing.join_all().await;
    let of = |wanted| done.iter().filter(|done| **done == wanted).count();
    let generation = 1;
    assert_eq!(
        (
            of(SettingsChanged::Changed { generation }),
            of(SettingsChanged::Stale { generation })
        ),
        (1, 7)
    );
}

async fn the_settings_of_a_session_go_with_it_and_a_deleted_one_takes_none(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let of = SettingsOf::Session(session);
    let set = async |value| ours.set(of, SettingName::Steps, Some(value)).await;
    set("9").await.expect("it is there");
    let by = ours.owner.into();
    let deleted = db.delete_session(ours.id, session, &by, at(5)).await;
    deleted.expect("it is there");
    assert!(matches!(set("8").await, Err(StoreError::NotFound)));
    let purged = db.purge_session(ours.id, session).await;
    assert!(purged.expect("it is deleted"));
    assert_eq!(ours.settings(session).await.rows, []);
}
