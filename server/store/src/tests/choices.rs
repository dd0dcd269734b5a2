//! Where a turn's calls go: read once, when the turn is first claimed.

use server_records::{ClaimedTurn, IfRunning};
use shared_types::{
    Event, RunnerChoice, RunnerId, SandboxId, SessionId, TurnId,
    event::{Choice, TurnOutcome},
};

use super::fixture::{Fixture, REPLICA, Tenant, at, link_claim, turn_ended, usual};
use crate::{RunnerInUse, SettingLayer, SettingName, SettingsOf, StoreError, database::query};

on_every_backend!(
    a_turn_keeps_the_choice_of_its_first_claim_and_the_next_turn_has_the_new_one,
    the_first_runner_is_chosen_for_a_user_who_has_chosen_none,
    a_runner_that_an_earlier_release_chose_alone_keeps_no_sandbox_of_another_one,
    a_pin_goes_before_the_users_choice_until_it_is_lifted,
    a_pin_means_the_runner_and_not_the_name,
    the_tenants_runner_counts_for_a_user_who_has_chosen_none,
    a_workspace_is_chosen_with_its_runner_and_a_turn_keeps_it,
    a_workspace_of_another_runner_is_not_taken_for_one,
);

impl Tenant {
    async fn works_on(&self, runner: Option<RunnerId>) {
        let (of, value) = (
            SettingsOf::User(self.owner),
            runner.map(|id| id.to_string()),
        );
        let set = self.set(of, SettingName::Runner, value.as_deref());
        set.await.expect("it is there");
    }

    async fn runner_in_use(&self) -> RunnerInUse {
        let stored = self.db.settings(self.id, self.owner, None).await;
        let in_use = stored.expect("the owner is there").runner_in_use();
        in_use.expect("the value is good").expect("one is chosen")
    }

    /// The session's next turn is claimed; its worker dies, if it had one.
    async fn take_over(&self, session: SessionId) -> ClaimedTurn {
        let take_over = IfRunning::TakeOver;
        let claimed = self
            .db
            .claim_turn(self.id, session, REPLICA, take_over, usual(), at(4));
        claimed.await.expect("it answers").expect("a turn waits")
    }

    async fn next_choice(&self, session: SessionId) -> Choice {
        self.send(session, "go on").await;
        let claimed = self.take_over(session).await;
        let ended = [turn_ended(claimed.turn.id, TurnOutcome::Completed)];
        let ended = self
            .db
            .append(self.id, session, claimed.epoch, &ended, at(5));
        ended.await.expect("it runs");
        claimed.turn.choice.expect("it was claimed")
    }

    /// What the log says of each claim of the turn.
    async fn logged(&self, session: SessionId, of: TurnId) -> Vec<Choice> {
        let log = self.db.events_after(self.id, session, 0, 100).await;
        let log = log.expect("the session is there");
        let choices = log.iter().filter_map(|event| match event.known() {
            Some(Event::TurnClaimed { turn, choice, .. }) if *turn == of => choice.clone(),
            _ => None,
        });
        choices.collect()
    }
}

fn users(runner: RunnerId, name: &str) -> Choice {
    let name = name.to_owned();
    Choice::User {
        runner,
        name,
        workspace: None,
    }
}

fn pinned(runner: RunnerId, name: &str) -> Choice {
    let name = name.to_owned();
    Choice::Session {
        runner,
        name,
        workspace: None,
    }
}

async fn a_turn_keeps_the_choice_of_its_first_claim_and_the_next_turn_has_the_new_one(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (laptop, alpha) = (ours.runner("laptop").await, ours.runner("alpha").await);
    let session = ours.session().await;
    ours.works_on(Some(laptop)).await;
    let turn = ours.send(session, "run the tests").await;
    let first = ours.claim(session).await;
    assert_eq!(first.turn.choice, Some(users(laptop, "laptop")));
    ours.works_on(Some(alpha)).await;
    let again = ours.take_over(session).await;
    assert_eq!(again.turn, db.turn(ours.id, turn).await.expect("it runs"));
    assert_eq!(again.turn.choice, first.turn.choice);
    assert_eq!(
        ours.logged(session, turn).await,
        vec![users(laptop, "laptop"); 2]
    );
    let fleet = db.fleet(ours.id, turn).await.expect("it was claimed");
    assert_eq!(fleet.choice, users(laptop, "laptop"));
    assert_eq!(fleet.chosen.map(|runner| runner.id), Some(laptop));

    let ended = [turn_ended(turn, TurnOutcome::Completed)];
    let ended = db.append(ours.id, session, again.epoch, &ended, at(5));
    ended.await.expect("it runs");
    assert_eq!(ours.next_choice(session).await, users(alpha, "alpha"));
    ours.works_on(None).await;
    assert_eq!(ours.next_choice(session).await, Choice::None);
}

async fn the_first_runner_is_chosen_for_a_user_who_has_chosen_none(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (laptop, alpha) = (ours.runner("laptop").await, ours.runner("alpha").await);
    let session = ours.session().await;
    for enrolled in [laptop, alpha] {
        let chosen = db.choose_first_runner(ours.id, ours.owner, enrolled, at(1));
        chosen.await.expect("it is there");
        assert_eq!(ours.next_choice(session).await, users(laptop, "laptop"));
    }
}

async fn a_runner_that_an_earlier_release_chose_alone_keeps_no_sandbox_of_another_one(
    fixture: Fixture,
) {
    let ours = fixture.tenant().await;
    let (laptop, alpha) = (ours.runner("laptop").await, ours.runner("alpha").await);
    ours.link(laptop, at(1)).await;
    let of = SettingsOf::User(ours.owner);
    let workspace = place(laptop, "workspace");
    let chosen = ours.set(of, SettingName::Runner, Some(&workspace));
    chosen.await.expect("it is there");
    let mut tx = ours.db.write(ours.id).await.expect("it answers");
    let alone = query("UPDATE users SET active_runner_id = $1 WHERE tenant_id = $2 AND id = $3")
        .bind(alpha.to_string())
        .bind(ours.id.to_string())
        .bind(ours.owner.to_string());
    alone.execute(&mut tx).await.expect("it is there");
    tx.commit().await.expect("the disk takes it");
    let session = ours.session().await;
    assert_eq!(ours.next_choice(session).await, users(alpha, "alpha"));
}

async fn a_pin_goes_before_the_users_choice_until_it_is_lifted(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (laptop, alpha) = (ours.runner("laptop").await, ours.runner("alpha").await);
    let session = ours.session().await;
    ours.works_on(Some(laptop)).await;
    let pinned_to = ours.pin(session, Some(alpha)).await;
    pinned_to.expect("both are there");
    let row = db.session(ours.id, session).await.expect("it is there");
    assert_eq!(row.pin.map(|pin| pin.name).as_deref(), Some("alpha"));
    assert_eq!(ours.next_choice(session).await, pinned(alpha, "alpha"));
    ours.pin(session, None).await.expect("it is there");
    assert_eq!(ours.next_choice(session).await, users(laptop, "laptop"));
}

async fn a_pin_means_the_runner_and_not_the_name(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let removed = ours.runner("laptop").await;
    let session = ours.session().await;
    let pinned_to = ours.pin(session, Some(removed)).await;
    pinned_to.expect("both are there");
    db.revoke_runner(ours.id, removed, ours.owner, at(3))
        .await
        .expect("it is there");
    let other = ours.runner("laptop").await;
    ours.works_on(Some(other)).await;
    assert_eq!(ours.next_choice(session).await, pinned(removed, "laptop"));
    let pin = ours.pin(session, Some(removed)).await;
    assert!(matches!(pin, Err(StoreError::NotFound)));
}

async fn the_tenants_runner_counts_for_a_user_who_has_chosen_none(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (pool, laptop) = (ours.runner("pool").await, ours.runner("laptop").await);
    let session = ours.session().await;
    let id = pool.to_string();
    let set = ours.set(SettingsOf::Tenant, SettingName::Runner, Some(&id));
    set.await.expect("it is there");
    let name = "pool".to_owned();
    let default = Choice::Tenant {
        runner: pool,
        name,
        workspace: None,
    };
    assert_eq!(ours.next_choice(session).await, default);
    let by_layer = |runner: RunnerId, chosen_by| RunnerInUse {
        choice: runner.into(),
        chosen_by,
    };
    assert_eq!(
        ours.runner_in_use().await,
        by_layer(pool, SettingLayer::Tenant)
    );
    ours.works_on(Some(laptop)).await;
    assert_eq!(ours.next_choice(session).await, users(laptop, "laptop"));
    assert_eq!(
        ours.runner_in_use().await,
        by_layer(laptop, SettingLayer::User)
    );
    let log = db.events_after(ours.id, session, 0, 100).await;
    let log = log.expect("the session is there");
    let turns = log.iter().filter_map(|event| match event.known() {
        Some(Event::TurnClaimed { turn, .. }) => Some(*turn),
        _ => None,
    });
    let first = turns.into_iter().next().expect("a claim");
    let fleet = db.fleet(ours.id, first).await.expect("it was claimed");
    assert_eq!(fleet.choice, default, "it is read back as it was");
}

/// The setting's value for this workspace of the runner.
fn place(runner: RunnerId, workspace: &str) -> String {
    let sandbox = Some(SandboxId::derive(runner, workspace));
    RunnerChoice { runner, sandbox }.to_string()
}

async fn a_workspace_is_chosen_with_its_runner_and_a_turn_keeps_it(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let laptop = ours.runner("laptop").await;
    let mut claim = link_claim(1, 0);
    let mut api = claim.hello.sandboxes[0].clone();
    api.name = "api".to_owned();
    claim.hello.sandboxes.push(api);
    let linked = db.link_claim(ours.id, laptop, &claim, at(1)).await;
    linked.expect("it is there");
    let session = ours.session().await;
    let user = SettingsOf::User(ours.owner);
    let set = async |of, value: &str| ours.set(of, SettingName::Runner, Some(value)).await;
    set(user, &place(laptop, "api")).await.expect("it is there");
    let with = |workspace: &str| Some(workspace.to_owned());
    let in_api = Choice::User {
        runner: laptop,
        name: "laptop".to_owned(),
        workspace: with("api"),
    };
    let turn = ours.send(session, "run the tests").await;
    assert_eq!(ours.claim(session).await.turn.choice, Some(in_api.clone()));
    let in_use = ours.runner_in_use().await;
    assert_eq!(in_use.choice.to_string(), place(laptop, "api"));

    set(user, &laptop.to_string()).await.expect("it is there");
    assert_eq!(
        ours.take_over(session).await.turn.choice,
        Some(in_api.clone())
    );
    let fleet = db.fleet(ours.id, turn).await.expect("it answers");
    assert_eq!(fleet.choice, in_api);
    let ended = [turn_ended(turn, TurnOutcome::Completed)];
    let epoch = db
        .session(ours.id, session)
        .await
        .expect("it is there")
        .epoch;
    let ended = db.append(ours.id, session, epoch, &ended, at(5)).await;
    ended.expect("it runs");
    assert_eq!(ours.next_choice(session).await, users(laptop, "laptop"));

    let pin = SettingsOf::Session(session);
    set(pin, &place(laptop, "api")).await.expect("it is there");
    let pinned = Choice::Session {
        runner: laptop,
        name: "laptop".to_owned(),
        workspace: with("api"),
    };
    assert_eq!(ours.next_choice(session).await, pinned);
    let row = db.session(ours.id, session).await.expect("it is there");
    assert_eq!(row.pin.and_then(|pin| pin.workspace), with("api"));

    // What is reported no more stays the choice: placement says that it is gone.
    claim.hello.sandboxes.pop();
    let linked = db.link_claim(ours.id, laptop, &claim, at(6)).await;
    linked.expect("it is there");
    assert_eq!(ours.next_choice(session).await, pinned);
}

async fn a_workspace_of_another_runner_is_not_taken_for_one(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (laptop, alpha) = (ours.runner("laptop").await, ours.runner("alpha").await);
    ours.link(laptop, at(1)).await;
    ours.link(alpha, at(1)).await;
    let user = SettingsOf::User(ours.owner);
    let foreign = format!("{laptop}/{}", SandboxId::derive(alpha, "workspace"));
    for wrong in [foreign, place(laptop, "nowhere")] {
        let set = ours.set(user, SettingName::Runner, Some(&wrong)).await;
        assert!(matches!(set, Err(StoreError::NotFound)), "{wrong}: {set:?}");
    }
}
