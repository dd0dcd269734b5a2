//! The sandboxes of pools.

use shared_link::server::{HelloFacts, PoolFacts, SandboxReport};
use shared_types::{
    ReplicaId, RunnerId, SandboxId, SandboxLimits, SandboxNetwork, SandboxPrivilege, SandboxSpec,
    SandboxState,
};

use super::fixture::{Fixture, REPLICA, Tenant, at, link_claim};
use crate::{LinkClaim, Reported, SettingName, SettingsOf, StoreError};

on_every_backend!(
    each_person_has_one_sandbox_on_a_pool_however_often_it_is_wanted,
    a_sandbox_that_was_removed_is_another_one_when_it_is_wanted_again,
    how_a_sandbox_is_counts_only_from_its_own_runner_and_since_its_state_changed,
    a_turn_on_a_pool_goes_to_the_sandbox_of_its_own_user,
    what_runs_as_root_is_found_where_its_tenant_or_the_operator_forbids_that,
);

fn pool_claim() -> LinkClaim {
    let mut claim = link_claim(1, 0);
    claim.hello = HelloFacts {
        sandboxes: Vec::new(),
        pool: Some(PoolFacts {
            backend: "docker".to_owned(),
            templates: vec!["base".to_owned(), "big".to_owned()],
            sudo_templates: vec!["big".to_owned()],
            isolation: "network".parse().expect("a property"),
            problem: "no engine".to_owned(),
        }),
        ..claim.hello
    };
    claim
}

impl Tenant {
    async fn pool(&self) -> RunnerId {
        let runner = self.runner("dock").await;
        let claim = pool_claim();
        let linked = self.db.link_claim(self.id, runner, &claim, at(1)).await;
        linked.expect("it links");
        runner
    }
}

async fn each_person_has_one_sandbox_on_a_pool_however_often_it_is_wanted(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (pool, folder) = (ours.pool().await, ours.runner("laptop").await);
    let whose = (pool, ours.owner);
    let id = db
        .want_sandbox(ours.id, whose.0, whose.1, at(2))
        .await
        .expect("made");
    assert_eq!(
        db.want_sandbox(ours.id, whose.0, whose.1, at(3))
            .await
            .expect("it answers"),
        id
    );
    let none = db.want_sandbox(ours.id, folder, ours.owner, at(3)).await;
    assert!(matches!(none, Err(StoreError::Conflict(_))), "{none:?}");
    let spec = SandboxSpec {
        name: ours.owner.to_string(),
        template: "base".to_owned(),
        limits: SandboxLimits::default(),
        network: SandboxNetwork::None,
        may_sudo: false,
    };
    assert_eq!(
        db.sandbox_spec(ours.id, id).await.expect("it answers"),
        Some(spec.clone())
    );
    let all = db.pooled_sandboxes(ours.id, Some(ours.owner), "", 10).await;
    let [one] = &all.expect("a list")[..] else {
        panic!("not one");
    };
    assert_eq!((one.id, one.runner, &one.spec), (id, pool, &spec));
    assert_eq!((one.state, one.since), (SandboxState::Wanted, at(2)));
    // Another tenant's request finds none of it.
    let theirs = fixture.tenant().await;
    assert_eq!(
        db.sandbox_spec(theirs.id, id).await.expect("it answers"),
        None
    );
    let foreign = db.pooled_sandbox(theirs.id, id).await;
    assert!(matches!(foreign, Err(StoreError::NotFound)));
    let wider = SandboxSpec {
        network: SandboxNetwork::Open,
        ..spec
    };
    let set = db.set_sandbox_spec(ours.id, id, &wider, at(4)).await;
    set.expect("it answers");
    assert_eq!(
        db.sandbox_spec(ours.id, id).await.expect("it answers"),
        Some(wider)
    );
}

fn report(
    sandbox: SandboxId,
    (state, reason, privilege): (SandboxState, &str, SandboxPrivilege),
) -> SandboxReport {
    SandboxReport {
        sandbox,
        state,
        reason: reason.to_owned(),
        privilege,
    }
}

async fn a_sandbox_that_was_removed_is_another_one_when_it_is_wanted_again(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let whose = (ours.pool().await, ours.owner);
    let id = db
        .want_sandbox(ours.id, whose.0, whose.1, at(2))
        .await
        .expect("made");
    let wide = SandboxSpec {
        network: SandboxNetwork::Open,
        ..db.pooled_sandbox(ours.id, id).await.expect("there").spec
    };
    let set = db.set_sandbox_spec(ours.id, id, &wide, at(2)).await;
    set.expect("there");
    let said = (SandboxState::Running, "", SandboxPrivilege::Sudo);
    let reported = db
        .sandbox_reported(ours.id, whose.0, &report(id, said), at(2))
        .await;
    assert_eq!(reported.expect("it answers"), Reported::Stored);
    db.unwant_sandbox(ours.id, id, at(3))
        .await
        .expect("it answers");
    let again = db.unwant_sandbox(ours.id, id, at(3)).await;
    assert!(matches!(again, Err(StoreError::NotFound)));
    assert_eq!(
        db.sandbox_spec(ours.id, id).await.expect("it answers"),
        None
    );
    // The runner is told so, until it says that it is gone.
    let reported = db
        .sandbox_reported(ours.id, whose.0, &report(id, said), at(4))
        .await;
    assert_eq!(reported.expect("it answers"), Reported::NotWanted);
    let gone = (SandboxState::Removed, "", SandboxPrivilege::Strict);
    let reported = db
        .sandbox_reported(ours.id, whose.0, &report(id, gone), at(4))
        .await;
    assert_eq!(reported.expect("it answers"), Reported::Stored);
    assert_eq!(
        db.want_sandbox(ours.id, whose.0, whose.1, at(5))
            .await
            .expect("it answers"),
        id
    );
    let anew = db.pooled_sandbox(ours.id, id).await.expect("there");
    assert_eq!(anew.spec.network, SandboxNetwork::None);
    assert_eq!((anew.state, anew.since), (SandboxState::Wanted, at(5)));
}

async fn how_a_sandbox_is_counts_only_from_its_own_runner_and_since_its_state_changed(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let whose = (ours.pool().await, ours.owner);
    let other = ours.runner("laptop").await;
    let id = db
        .want_sandbox(ours.id, whose.0, whose.1, at(2))
        .await
        .expect("made");
    let stopped = (
        SandboxState::Stopped,
        "it was idle",
        SandboxPrivilege::Strict,
    );
    let news = report(id, stopped);
    let foreign = db.sandbox_reported(ours.id, other, &news, at(3));
    assert_eq!(foreign.await.expect("it answers"), Reported::Unknown);
    for (time, reason) in [(4, "it was idle"), (5, "it was stopped on request")] {
        let said = (SandboxState::Stopped, reason, SandboxPrivilege::Sudo);
        let news = report(id, said);
        let stored = db.sandbox_reported(ours.id, whose.0, &news, at(time));
        assert_eq!(stored.await.expect("it answers"), Reported::Stored);
        let now = db.pooled_sandbox(ours.id, id).await.expect("there");
        let told = (now.state, now.reason.as_str(), now.since);
        assert_eq!(told, (SandboxState::Stopped, reason, at(4)));
        assert_eq!(now.privilege, SandboxPrivilege::Sudo);
    }
}

async fn what_runs_as_root_is_found_where_its_tenant_or_the_operator_forbids_that(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let theirs = fixture.tenant().await;
    let mut ids = Vec::new();
    for tenant in [&ours, &theirs] {
        let of = (tenant.pool().await, tenant.owner);
        let id = db
            .want_sandbox(tenant.id, of.0, of.1, at(2))
            .await
            .expect("made");
        let said = (SandboxState::Running, "", SandboxPrivilege::Sudo);
        let news = report(id, said);
        let told = db.sandbox_reported(tenant.id, of.0, &news, at(3));
        told.await.expect("it answers");
        ids.push((of.0, id));
    }
    let found = async |replica, of_all| -> Vec<_> {
        let found = db.forbidden_sandboxes(replica, of_all).await;
        let found = found.expect("it answers").into_iter();
        found.map(|(runner, id, _)| (runner, id)).collect()
    };
    let policy = async |word| {
        let set = ours.set(SettingsOf::Tenant, SettingName::Sudo, Some(word));
        set.await.expect("it is set");
    };
    assert_eq!(found(REPLICA, false).await, []);
    policy("forbid").await;
    assert_eq!(found(REPLICA, false).await, [ids[0]]);
    assert_eq!(found(ReplicaId::from_u128(2), true).await, []);
    policy("allow").await;
    assert_eq!(found(REPLICA, false).await, []);
    assert_eq!(found(REPLICA, true).await.len(), 2);
    let said = (SandboxState::Stopped, "", SandboxPrivilege::Sudo);
    let news = report(ids[0].1, said);
    let told = db.sandbox_reported(ours.id, ids[0].0, &news, at(4));
    told.await.expect("it answers");
    assert_eq!(found(REPLICA, true).await, [ids[1]]);
}

async fn a_turn_on_a_pool_goes_to_the_sandbox_of_its_own_user(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let pool = ours.pool().await;
    let chosen = db.choose_first_runner(ours.id, ours.owner, pool, at(1));
    chosen.await.expect("it is there");
    let session = ours.session().await;
    ours.send(session, "run the tests").await;
    let turn = ours.claim(session).await.turn.id;
    let runner = async || {
        let fleet = db.fleet(ours.id, turn).await.expect("it answers");
        assert_eq!(fleet.user, ours.owner);
        fleet.chosen.expect("one is chosen")
    };
    let before = runner().await;
    assert!(before.pool && before.sandboxes.is_empty());
    let wanted = db.want_sandbox(ours.id, pool, ours.owner, at(2)).await;
    let id = wanted.expect("made");
    let now = runner().await;
    let [own] = &now.sandboxes[..] else {
        panic!("not one");
    };
    assert_eq!(own.id, id);
    assert_eq!(own.isolation, "network".parse().expect("a property"));
    assert_eq!(own.problem.as_deref(), Some("no engine"));
    // One that is a pool no more has no sandboxes either.
    let claim = link_claim(1, 0);
    let linked = db.link_claim(ours.id, pool, &claim, at(3)).await;
    linked.expect("it links");
    let now = runner().await;
    assert!(!now.pool && now.sandboxes.iter().all(|one| one.id != id));
}
