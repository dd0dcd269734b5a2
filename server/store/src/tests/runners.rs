use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use server_records::FleetRunner;
use shared_link::server::{MODELS_FEATURE, ModelsReport, RunnerState, TurnedAway};
use shared_types::{
    Generation, JoinTokenId, Mode, ReplicaId, RunnerId, SandboxId, UserId, token::TokenHash,
};

use super::fixture::{
    Fixture, REPLICA, Tenant, at, count_silence, heard_at, link_claim, new_runner, this_replica,
    token_hash, unique,
};
use crate::{
    By, EnrolRefusal, LinkClaim, LinkRow, MAX_PAGE, NewJoinToken, NewRunner, Page, RunnerChange,
    RunnerRow, StoreError, database::query,
};

on_every_backend!(
    a_join_token_enrols_one_runner_also_when_many_race,
    a_join_token_is_listed_until_it_is_spent_expired_or_ended,
    the_token_decides_the_name_and_the_labels,
    a_late_unknown_or_spent_token_enrols_nobody_and_its_one_use_is_audited,
    a_taken_name_leaves_the_token_good_and_a_revoked_runner_frees_it,
    each_link_raises_the_generation_and_the_end_of_an_older_one_changes_nothing,
    what_a_runner_has_accepted_is_kept_and_a_link_that_shows_less_is_refused,
    a_sandbox_that_is_reported_no_more_is_not_listed,
    after_a_restart_every_runner_is_offline_since_it_was_last_heard,
    a_revoked_runner_links_no_more_and_its_link_learns_of_it,
    a_replica_finds_its_links_whose_runners_were_revoked_or_locked,
    the_version_for_which_a_runner_was_refused_is_known_until_it_links,
    a_runner_is_found_by_name_and_by_id_and_the_id_goes_first,
    runners_are_listed_by_name_in_pages,
    what_a_runner_reports_is_bounded,
    a_request_to_enrol_that_comes_twice_enrols_one_runner,
    a_fleet_token_enrols_as_many_runners_as_it_says_and_no_more,
    a_turns_fleet_is_the_chosen_runner_as_its_newest_link_reported_it,
    only_ephemeral_runners_without_a_link_go_when_they_leave_or_stay_away,
    the_models_of_a_runner_are_those_of_its_newest_link_while_it_has_a_model_server,
    the_ceiling_of_a_runner_is_that_of_its_newest_link,
    a_runner_that_is_renamed_stays_the_same_one_and_frees_its_name,
    a_change_of_a_runner_is_told_once_and_what_is_so_already_is_not,
);

/// Changes a runner as the tenant's owner.
async fn change(
    ours: &Tenant,
    runner: RunnerId,
    name: Option<&str>,
    draining: Option<bool>,
) -> Result<RunnerRow, StoreError> {
    let name = name.map(str::to_owned);
    let change = RunnerChange { name, draining };
    let by = By::from(ours.owner);
    ours.db
        .change_runner(ours.id, runner, &change, &by, at(7))
        .await
}

async fn a_runner_that_is_renamed_stays_the_same_one_and_frees_its_name(fixture: Fixture) {
    let (db, ours, theirs) = (&fixture.db, fixture.tenant().await, fixture.tenant().await);
    let (laptop, desktop) = (ours.runner("laptop").await, ours.runner("desktop").await);
    let taken = change(&ours, laptop, Some("desktop"), None).await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    let foreign = change(&theirs, laptop, Some("ours"), None).await;
    assert!(matches!(foreign, Err(StoreError::NotFound)), "{foreign:?}");
    let renamed = change(&ours, laptop, Some("work"), None).await;
    assert_eq!(renamed.expect("it is there").name, "work");
    // What the runner says of itself when it links has no name.
    ours.link(laptop, at(8)).await;
    let found = db.find_runner(ours.id, "work").await;
    assert_eq!(found.expect("it has that name").id, laptop);
    let another = ours.runner("laptop").await;
    let found = db.find_runner(ours.id, "laptop").await;
    assert_eq!(found.expect("the name was free").id, another);
    let revoked = db.revoke_runner(ours.id, desktop, ours.owner, at(9)).await;
    revoked.expect("it is there");
    let gone = change(&ours, desktop, Some("gone"), None).await;
    assert!(matches!(gone, Err(StoreError::NotFound)), "{gone:?}");
    let freed = change(&ours, laptop, Some("desktop"), None).await;
    freed.expect("a revoked runner has no name any more");
}

async fn a_change_of_a_runner_is_told_once_and_what_is_so_already_is_not(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    for (name, draining) in [
        (None, None),
        (Some("laptop"), Some(false)),
        (Some("work"), Some(true)),
        (Some("work"), Some(true)),
        (None, Some(false)),
    ] {
        let changed = change(&ours, runner, name, draining).await;
        changed.expect("it is there");
    }
    let log = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    let told = log.iter().filter(|row| row.subject == runner.to_string());
    let told: Vec<_> = told.map(|row| (&*row.kind, row.detail.clone())).collect();
    let (from, to) = ("laptop", "work");
    assert_eq!(
        told[1..],
        [
            ("runner.renamed", json!({ "from": from, "to": to })),
            ("runner.drained", json!({})),
            ("runner.undrained", json!({})),
        ],
        "behind its enrolment"
    );
}

async fn the_ceiling_of_a_runner_is_that_of_its_newest_link(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    let mut claim = link_claim(1, 0);
    for ceiling in [None, Some(Mode::Ask), Some(Mode::Full), None] {
        claim.hello.ceiling = ceiling;
        let linked = db.link_claim(ours.id, runner, &claim, at(1)).await;
        linked.expect("it links");
        let row = db.runner(ours.id, runner).await.expect("it is there");
        assert_eq!(row.ceiling, ceiling);
    }
}

async fn the_models_of_a_runner_are_those_of_its_newest_link_while_it_has_a_model_server(
    fixture: Fixture,
) {
    let (db, ours, theirs) = (&fixture.db, fixture.tenant().await, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    let models = async |tenant: &Tenant, user| {
        let rows = db.runners_with_models(tenant.id, user, MAX_PAGE).await;
        let rows = rows.expect("it answers").into_iter();
        rows.filter_map(|row| row.models).collect::<Vec<_>>()
    };
    let mut claim = link_claim(1, 0);
    let without = claim.clone();
    claim.hello.features = vec![MODELS_FEATURE.to_owned()];
    let linked = async |claim: &LinkClaim| {
        let linked = db.link_claim(ours.id, runner, claim, at(1)).await;
        linked.expect("it links").generation
    };
    let (older, newer) = (linked(&claim).await, linked(&claim).await);
    let one = ModelsReport::bounded(["qwen3:8b".to_owned()], "");
    let other = ModelsReport::bounded(["late".to_owned()], "");
    for (link, report) in [(newer, &one), (older, &other)] {
        let stored = db.models_reported(ours.id, runner, link, report);
        stored.await.expect("it answers");
    }
    assert_eq!(models(&ours, Some(ours.owner)).await, vec![one.clone()]);
    assert_eq!(models(&ours, None).await, vec![one]);
    let stranger = UserId::from_u128(unique());
    assert_eq!(models(&ours, Some(stranger)).await, Vec::new());
    assert_eq!(models(&theirs, None).await, Vec::new());
    linked(&without).await;
    assert_eq!(models(&ours, None).await, Vec::new());
}

async fn a_turns_fleet_is_the_chosen_runner_as_its_newest_link_reported_it(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (other, runner) = (ours.runner("a").await, ours.runner("b").await);
    ours.link(other, at(1)).await;
    db.choose_first_runner(ours.id, ours.owner, runner, at(1))
        .await
        .expect("it is there");
    let session = ours.session().await;
    ours.send(session, "run the tests").await;
    let turn = ours.claim(session).await.turn.id;
    let fleet = async || db.fleet(ours.id, turn).await.expect("it answers");
    let chosen = async || fleet().await.chosen.expect("one is chosen");
    let before = chosen().await;
    assert_eq!((before.id, before.name.as_str()), (runner, "b"));
    assert_eq!(before.state, RunnerState::Offline { since: None });
    assert_eq!((before.incarnation, before.sandboxes), (None, Vec::new()));

    let mut claim = link_claim(1, 0);
    let mut first = claim.hello.sandboxes[0].clone();
    first.name = "another".to_owned();
    first.isolation = "network".parse().expect("a property");
    claim.hello.sandboxes.push(first.clone());
    let link = db.link_claim(ours.id, runner, &claim, at(2)).await;
    let linked = chosen().await;
    assert_eq!(linked.state, RunnerState::Online);
    assert_eq!(linked.incarnation, Some(claim.hello.incarnation.clone()));
    let ids = |runner: FleetRunner| {
        let sandboxes = runner.sandboxes.into_iter();
        sandboxes
            .map(|one| (one.id, one.isolation))
            .collect::<Vec<_>>()
    };
    let (workspace, another) = (
        SandboxId::derive(runner, "workspace"),
        SandboxId::derive(runner, "another"),
    );
    assert_eq!(
        ids(linked),
        [
            (workspace, claim.hello.sandboxes[0].isolation.clone()),
            (another, first.isolation)
        ],
        "in the order in which the runner named them"
    );

    claim.hello.sandboxes.pop();
    let link = link.expect("it is there").generation;
    db.link_ended(ours.id, runner, heard_at(link, at(3), 0))
        .await
        .expect("it answers");
    let link = db.link_claim(ours.id, runner, &claim, at(4)).await;
    let link = link.expect("it is there").generation;
    db.link_ended(ours.id, runner, heard_at(link, at(5), 0))
        .await
        .expect("it answers");
    let gone = chosen().await;
    assert_eq!(
        gone.sandboxes.first().map(|one| one.id),
        Some(workspace),
        "what was reported before is not there any more"
    );
    let since = Some(at(5));
    assert_eq!(gone.state, RunnerState::Offline { since });
    db.revoke_runner(ours.id, runner, ours.owner, at(6))
        .await
        .expect("it is there");
    let chosen = fleet().await.chosen;
    assert!(chosen.is_none_or(|runner| runner.state == RunnerState::Revoked));
}

async fn a_join_token_is_listed_until_it_is_spent_expired_or_ended(fixture: Fixture) {
    let (db, ours, theirs) = (&fixture.db, fixture.tenant().await, fixture.tenant().await);
    let make = async |name, expires_at| {
        let mut token = ours.new_join_token(name);
        token.expires_at = expires_at;
        let made = db.create_join_token(ours.id, &token, at(1)).await;
        made.map(|()| token).expect("there is room")
    };
    let listed = async |now| {
        let page = Page::from(MAX_PAGE);
        let listed = db.list_join_tokens(ours.id, ours.owner, page, now).await;
        let mut names: Vec<_> = listed
            .expect("it answers")
            .into_iter()
            .map(|token| token.name)
            .collect();
        names.sort();
        names
    };
    let spent = make("spent", at(90)).await;
    make("expired", at(5)).await;
    let ended = make("ended", at(90)).await;
    make("good", at(90)).await;
    assert_eq!(listed(at(2)).await, ["ended", "expired", "good", "spent"]);

    let runner = new_runner("spent");
    let enrolled = db.enrol(&spent.hash, &runner, at(3)).await;
    enrolled.expect("the token is good");
    let end = async |tenant, by: UserId| {
        let by = By::from(by);
        db.end_join_token(tenant, ended.id, &by, at(4)).await
    };
    let foreign = [(ours.id, theirs.owner), (theirs.id, theirs.owner)];
    for (tenant, by) in foreign {
        let refused = end(tenant, by).await;
        assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    }
    end(ours.id, ours.owner).await.expect("it is good");
    assert_eq!(listed(at(6)).await, ["good"]);

    let again = end(ours.id, ours.owner).await;
    assert!(matches!(again, Err(StoreError::NotFound)), "{again:?}");
    let enrolled = db.enrol(&ended.hash, &new_runner("ended"), at(6)).await;
    assert!(enrolled.is_err(), "{enrolled:?}");
    let log = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    let last = log.last().expect("entries");
    assert_eq!(
        (last.kind.as_str(), &last.subject),
        ("join_token.ended", &ended.id.to_string())
    );
}

async fn a_join_token_enrols_one_runner_also_when_many_race(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let hash = ours.join_token("").await;
    let mut tries = tokio::task::JoinSet::new();
    for number in 0..8 {
        let (db, runner) = (fixture.db.clone(), new_runner(&format!("r{number}")));
        tries.spawn(async move { db.enrol(&hash, &runner, at(1)).await });
    }
    let tries = tries.join_all().await;
    let (good, refused): (Vec<_>, Vec<_>) = tries.into_iter().partition(Result::is_ok);
    assert_eq!(good.len(), 1);
    assert!(
        refused
            .iter()
            .all(|refusal| matches!(refusal, Err(EnrolRefusal::Spent)))
    );
    let runners = fixture.db.list_runners(ours.id, "", 10).await;
    let runners = runners.expect("it answers");
    assert_eq!(runners.len(), 1);
    let token = fixture.db.join_token_by_hash(&hash).await;
    let token = token.expect("it answers").expect("it is there");
    assert_eq!((token.used, token.uses), (1, 1));
}

async fn the_token_decides_the_name_and_the_labels(fixture: Fixture) {
    let ours = fixture.tenant().await;
    for (token_name, wanted, given) in [
        ("from-token", "wanted", "from-token"),
        ("", "wanted", "wanted"),
        ("", "", "laptop.local"),
    ] {
        let hash = ours.join_token(token_name).await;
        let runner = new_runner(wanted);
        let row = fixture.db.enrol(&hash, &runner, at(1)).await;
        let row = row.expect("the token is good");
        assert_eq!(row.name, given);
        assert_eq!(row.labels["zone"], "home");
        assert_eq!((row.tenant, row.owner), (ours.id, ours.owner));
        assert_eq!(row.public_key, runner.public_key);
        assert_eq!(
            (row.link, row.last_seen_at, row.incarnation),
            (None, None, None)
        );
    }
}

async fn a_late_unknown_or_spent_token_enrols_nobody_and_its_one_use_is_audited(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let unknown = db.enrol(&token_hash(), &new_runner("a"), at(1)).await;
    assert!(matches!(unknown, Err(EnrolRefusal::Unknown)));
    let hash = ours.join_token("").await;
    let late = db.enrol(&hash, &new_runner("a"), at(600)).await;
    assert!(matches!(late, Err(EnrolRefusal::Expired)));
    db.enrol(&hash, &new_runner("a"), at(599))
        .await
        .expect("its time is not over");
    let spent = db.enrol(&hash, &new_runner("b"), at(2)).await;
    assert!(matches!(spent, Err(EnrolRefusal::Spent)));

    let log = db.audit_after(ours.id, 1, 10).await.expect("it answers");
    let told: Vec<_> = log.iter().map(|entry| entry.kind.as_str()).collect();
    assert_eq!(told, ["join_token.created", "runner.enrolled"]);
}

async fn a_taken_name_leaves_the_token_good_and_a_revoked_runner_frees_it(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let first = ours.runner("laptop").await;
    let hash = ours.join_token("").await;
    let taken = db.enrol(&hash, &new_runner("laptop"), at(1)).await;
    assert!(matches!(taken, Err(EnrolRefusal::NameTaken(name)) if name == "laptop"));
    db.revoke_runner(ours.id, first, ours.owner, at(2))
        .await
        .expect("it is there");
    db.enrol(&hash, &new_runner("laptop"), at(3))
        .await
        .expect("the name is free and the token unspent");
}

async fn each_link_raises_the_generation_and_the_end_of_an_older_one_changes_nothing(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    let first = ours.link(runner, at(10)).await;
    let second = ours.link(runner, at(20)).await;
    assert_eq!(first.generation, Generation(1));
    assert_eq!(second.generation, Generation(2));

    let ended = db.link_ended(ours.id, runner, heard_at(first.generation, at(21), 0));
    assert!(!ended.await.expect("it answers"));
    let heard = db.link_heard(ours.id, runner, heard_at(first.generation, at(22), 0));
    assert_eq!(heard.await.expect("it answers"), Some(TurnedAway::Older));
    let row = db.runner(ours.id, runner).await.expect("it is there");
    let link = LinkRow {
        replica: REPLICA,
        connected_at: at(20),
    };
    assert_eq!((row.link, row.last_seen_at), (Some(link), Some(at(20))));
    assert_eq!((row.os.as_str(), row.version.as_str()), ("linux", "0.1.1"));

    let heard = db.link_heard(ours.id, runner, heard_at(second.generation, at(30), 0));
    assert_eq!(heard.await.expect("it answers"), None);
    let ended = db.link_ended(ours.id, runner, heard_at(second.generation, at(31), 0));
    assert!(ended.await.expect("it answers"));
    let again = db.link_ended(ours.id, runner, heard_at(second.generation, at(99), 0));
    assert!(!again.await.expect("it answers"));
    let row = db.runner(ours.id, runner).await.expect("it is there");
    assert_eq!((row.link, row.last_seen_at), (None, Some(at(31))));
}

async fn what_a_runner_has_accepted_is_kept_and_a_link_that_shows_less_is_refused(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    let link = async |journal, sequence| {
        let claim = link_claim(journal, sequence);
        db.link_claim(ours.id, runner, &claim, at(1)).await
    };
    let accepted = async || {
        let row = db.runner(ours.id, runner).await;
        row.expect("it is there").accepted_sequence
    };
    let first = link(1, 3).await.expect("it is the first").generation;
    assert_eq!(accepted().await, 3);
    for (shown, kept) in [(5, 5), (4, 5)] {
        let heard = db
            .link_heard(ours.id, runner, heard_at(first, at(2), shown))
            .await;
        assert_eq!(heard.expect("it answers"), None);
        assert_eq!(accepted().await, kept, "it never falls");
    }
    let ended = db
        .link_ended(ours.id, runner, heard_at(first, at(3), 6))
        .await;
    assert!(ended.expect("it answers"));
    assert_eq!(accepted().await, 6);
    let restored = link(1, 5).await;
    assert!(matches!(restored, Err(StoreError::Conflict(_))));
    link(1, 6).await.expect("it has all that was seen");
    link(2, 0).await.expect("another journal");
    assert_eq!(accepted().await, 0);
}

async fn a_sandbox_that_is_reported_no_more_is_not_listed(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    let mut claim = link_claim(1, 0);
    let mut second = claim.hello.sandboxes[0].clone();
    second.name = "another".to_owned();
    claim.hello.sandboxes.push(second);
    let names = async || {
        let rows = db.sandboxes_of_runner(ours.id, runner).await;
        let rows = rows.expect("it answers").into_iter();
        rows.map(|row| (row.id, row.name)).collect::<Vec<_>>()
    };
    let named = |name: &str| (SandboxId::derive(runner, name), name.to_owned());
    db.link_claim(ours.id, runner, &claim, at(1))
        .await
        .expect("the runner is there");
    assert_eq!(names().await, [named("workspace"), named("another")]);
    claim.hello.sandboxes.remove(0);
    db.link_claim(ours.id, runner, &claim, at(2))
        .await
        .expect("the runner is there");
    assert_eq!(names().await, [named("another")]);
}

async fn after_a_restart_every_runner_is_offline_since_it_was_last_heard(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (first, second) = (ours.runner("a").await, ours.runner("b").await);
    let before = ours.link(first, at(10)).await;
    let fixture = fixture.reopened().await;
    let db = &fixture.db;
    let replica = ReplicaId::from_u128(2);
    let mut claim = link_claim(1, 0);
    claim.replica = replica;
    db.link_claim(ours.id, second, &claim, at(20))
        .await
        .expect("the runner is there");
    let ended = db
        .start_replica(&this_replica(replica, "here"), at(20))
        .await;
    assert_eq!(ended.expect("it answers"), 1, "its own links stay");
    let row = db.runner(ours.id, first).await.expect("it is there");
    assert_eq!((row.link, row.last_seen_at), (None, Some(at(10))));
    let heard = db.link_heard(ours.id, first, heard_at(before.generation, at(30), 0));
    let heard = heard.await.expect("it answers");
    assert_eq!(heard, Some(TurnedAway::Older), "the link ended");
}

async fn a_revoked_runner_links_no_more_and_its_link_learns_of_it(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    let link = ours.link(runner, at(10)).await;
    db.revoke_runner(ours.id, runner, ours.owner, at(11))
        .await
        .expect("it is there");
    let again = db.revoke_runner(ours.id, runner, ours.owner, at(12)).await;
    assert!(matches!(again, Err(StoreError::NotFound)));
    let heard = db.link_heard(ours.id, runner, heard_at(link.generation, at(13), 0));
    assert_eq!(heard.await.expect("it answers"), Some(TurnedAway::Revoked));
    let claim = link_claim(1, 0);
    let refused = db.link_claim(ours.id, runner, &claim, at(14)).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))));
    let listed = db.list_runners(ours.id, "", 10).await;
    assert_eq!(listed.expect("it answers"), vec![]);
    let shown = db.runner_for_authentication(runner).await;
    let shown = shown.expect("it answers").expect("it says why");
    assert_eq!(shown.revoked_at, Some(at(11)));
}

async fn a_replica_finds_its_links_whose_runners_were_revoked_or_locked(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let [revoked, locked, lives, elsewhere] = ["revoked", "locked", "lives", "elsewhere"];
    let [revoked, locked, lives] = [
        ours.runner(revoked).await,
        ours.runner(locked).await,
        ours.runner(lives).await,
    ];
    let elsewhere = ours.runner(elsewhere).await;
    let barred = async || {
        let barred = db.barred_but_linked(REPLICA).await;
        BTreeMap::from_iter(barred.expect("it answers"))
    };
    let link = ours.link(revoked, at(10)).await;
    ours.link(locked, at(10)).await;
    ours.link(lives, at(10)).await;
    let claim = LinkClaim {
        replica: ReplicaId::from_u128(2),
        ..link_claim(1, 0)
    };
    let linked = db.link_claim(ours.id, elsewhere, &claim, at(10)).await;
    linked.expect("the runner is there");
    assert_eq!(barred().await, BTreeMap::new());
    for runner in [revoked, elsewhere] {
        let done = db.revoke_runner(ours.id, runner, ours.owner, at(11)).await;
        done.expect("it is there");
    }
    let mut tx = db.write(ours.id).await.expect("it answers");
    query("UPDATE runners SET locked_at = 1 WHERE id = $1")
        .bind(locked.to_string())
        .execute(&mut tx)
        .await
        .expect("it is there");
    tx.commit().await.expect("the disk takes it");
    assert_eq!(
        barred().await,
        BTreeMap::from([(revoked, true), (locked, false)])
    );
    let ended = db.link_ended(ours.id, revoked, heard_at(link.generation, at(12), 0));
    assert!(ended.await.expect("it answers"));
    assert_eq!(barred().await, BTreeMap::from([(locked, false)]));
}

async fn the_version_for_which_a_runner_was_refused_is_known_until_it_links(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    let refused = async || {
        let row = db.runner(ours.id, runner).await;
        row.expect("it is there").refused_version
    };
    assert_eq!(refused().await, None);
    for version in [0, 1, 1] {
        let noted = db.link_version_refused(ours.id, runner, version).await;
        noted.expect("it is there");
        assert_eq!(refused().await, Some(version));
    }
    ours.link(runner, at(10)).await;
    assert_eq!(refused().await, None);
}

async fn a_runner_is_found_by_name_and_by_id_and_the_id_goes_first(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let laptop = ours.runner("laptop").await;
    let impostor = ours.runner(&laptop.to_string()).await;
    for (text, id) in [
        ("laptop".to_owned(), laptop),
        (laptop.to_string(), laptop),
        (impostor.to_string(), impostor),
    ] {
        let found = db.find_runner(ours.id, &text).await;
        assert_eq!(found.expect("it is there").id, id);
    }
    let none = db.find_runner(ours.id, "desktop").await;
    assert!(matches!(none, Err(StoreError::NotFound)));
}

async fn runners_are_listed_by_name_in_pages(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    for name in ["c", "a", "b"] {
        ours.runner(name).await;
    }
    let page = async |after| {
        let rows = db.list_runners(ours.id, after, 2).await;
        let rows = rows.expect("it answers").into_iter();
        rows.map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(page("").await, ["a", "b"]);
    assert_eq!(page("b").await, ["c"]);
}

async fn what_a_runner_reports_is_bounded(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let runner = ours.runner("laptop").await;
    let mut claim = link_claim(1, 0);
    claim.hello.sandboxes[0].root = "/".repeat(4097);
    let long = db.link_claim(ours.id, runner, &claim, at(1)).await;
    assert!(matches!(long, Err(StoreError::TooLarge { .. })));
    claim.hello.features = vec!["f".to_owned(); 1001];
    let many = db.link_claim(ours.id, runner, &claim, at(1)).await;
    assert!(matches!(many, Err(StoreError::Full(_))));
    let row = db.runner(ours.id, runner).await.expect("it is there");
    assert_eq!(row.generation, Generation(0), "nothing was written");
}

async fn a_request_to_enrol_that_comes_twice_enrols_one_runner(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let token = ephemeral_token(&ours).await;
    let first = new_runner("a");
    let again = NewRunner {
        name: "b".to_owned(),
        public_key: first.public_key,
        ..new_runner("b")
    };
    let enrolled = fixture.db.enrol(&token, &first, at(1)).await;
    enrolled.expect("the token is good");
    let refusal = fixture.db.enrol(&token, &again, at(1)).await;
    assert!(matches!(refusal, Err(EnrolRefusal::KeyTaken)));
    let token = fixture.db.join_token_by_hash(&token).await;
    let token = token.expect("it answers").expect("it is there");
    assert_eq!(token.used, 1);
}

async fn only_ephemeral_runners_without_a_link_go_when_they_leave_or_stay_away(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let stays = ours.runner("stays").await;
    let token = ephemeral_token(&ours).await;
    let mut ephemeral = Vec::new();
    for name in ["left", "back", "linked", "silent", "late"] {
        let row = db.enrol(&token, &new_runner(name), at(1)).await;
        ephemeral.push(row.expect("there is a use left").id);
    }
    let [left, back, linked, silent, late] = ephemeral[..] else {
        unreachable!("five were enrolled")
    };
    for (runner, ends) in [(left, true), (back, false), (linked, false), (late, true)] {
        let link = ours.link(runner, at(10)).await;
        if ends {
            let ended = db.link_ended(ours.id, runner, heard_at(link.generation, at(20), 0));
            assert!(ended.await.expect("it answers"));
        }
    }
    for (runner, gone) in [(left, true), (left, false), (back, false), (stays, false)] {
        let answer = db.runner_left(ours.id, runner, at(21)).await;
        assert_eq!(answer.expect("it answers").is_some(), gone, "{runner}");
    }
    let swept_after = async |seconds| {
        count_silence(db, Duration::from_secs(seconds)).await;
        // Far ahead, as a wall clock may be.
        let silent_for = Duration::from_secs(100);
        let swept = db.remove_silent_runners(silent_for, at(1_000_000));
        swept.await.expect("it answers")
    };
    assert_eq!(swept_after(100).await, [], "it was heard of until now");
    assert_eq!(swept_after(50).await, []);
    let link = ours.link(late, at(30)).await;
    let ended = db.link_ended(ours.id, late, heard_at(link.generation, at(31), 0));
    assert!(ended.await.expect("it answers"));
    assert_eq!(swept_after(50).await, [(silent, vec![])]);
    assert_eq!(swept_after(100).await, [(late, vec![])]);
    let audit = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    let gone = audit.iter().filter(|row| {
        ["runner.left", "runner.stayed_away", "runner.revoked"].contains(&row.kind.as_str())
    });
    let gone: Vec<_> = gone.map(|row| (&*row.actor, &*row.subject)).collect();
    let [left, silent, late] = [left, silent, late].map(|id| id.to_string());
    assert_eq!(
        gone,
        [(&*left, &*left), ("system", &*silent), ("system", &*late)]
    );
}

/// A token with which five ephemeral runners can enrol.
async fn ephemeral_token(ours: &Tenant) -> TokenHash {
    let token = NewJoinToken {
        id: JoinTokenId::from_u128(77),
        owner: ours.owner,
        name: String::new(),
        labels: Default::default(),
        hash: token_hash(),
        expires_at: at(600),
        uses: 5,
        ephemeral: true,
        from: None,
        origin: Default::default(),
    };
    let made = ours.db.create_join_token(ours.id, &token, at(0)).await;
    made.expect("it is made");
    token.hash
}

async fn a_fleet_token_enrols_as_many_runners_as_it_says_and_no_more(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let token = ephemeral_token(&ours).await;
    for name in ["a", "b", "c", "d", "e"] {
        let row = fixture.db.enrol(&token, &new_runner(name), at(1)).await;
        assert!(row.expect("there is a use left").ephemeral);
    }
    let refusal = fixture.db.enrol(&token, &new_runner("f"), at(1)).await;
    assert!(matches!(refusal, Err(EnrolRefusal::Spent)));
    let runners = fixture.db.list_runners(ours.id, "", 10).await;
    assert_eq!(runners.expect("it answers").len(), 5);
}
