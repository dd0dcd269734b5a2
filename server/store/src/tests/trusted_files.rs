//! Files with a project's rules that a user trusts.

use server_records::TrustedFile;
use shared_types::{
    Digest, Event, Isolation, RuleId, SandboxId, UserId,
    event::{Place, ProjectFile},
};

use super::fixture::{AtWork, Fixture, Tenant, at, unique};
use crate::{By, NewTrustedFile, StoreError};

on_every_backend!(
    trusting_a_newer_text_takes_the_place_of_the_older_one,
    a_file_is_trusted_by_its_user_alone,
    a_user_trusts_a_bounded_number_of_files,
    a_look_marks_the_files_that_it_does_not_find_as_they_are_trusted,
    the_file_that_the_last_look_found_has_its_text,
);

const RULES: &str = "deny = [\"Shell(git push *)\"]";
const OTHERS: &str = "allow = [\"Write(src/**)\"]";

fn sandbox(work: &AtWork) -> SandboxId {
    SandboxId::derive(work.runner, "workspace")
}

async fn trust(
    ours: &Tenant,
    work: &AtWork,
    folder: &str,
    text: &str,
) -> Result<TrustedFile, StoreError> {
    let new = NewTrustedFile {
        id: RuleId::from_u128(unique()),
        user: ours.owner,
        sandbox: sandbox(work),
        folder,
        text,
    };
    let by = By::from(ours.owner);
    ours.db.trust_file(ours.id, new, &by, at(5)).await
}

async fn files(ours: &Tenant, user: UserId) -> Vec<TrustedFile> {
    let files = ours.db.trusted_files(ours.id, user).await;
    files.expect("it answers")
}

/// Records a look that found this text of the file at the root; without the text where it was found before.
async fn look(ours: &Tenant, work: &AtWork, text: Option<(&str, bool)>) {
    let looked = Event::PlaceSurveyed {
        turn: work.turn,
        place: Some(Box::new(Place {
            runner: work.runner,
            runner_name: "laptop".to_owned(),
            sandbox: sandbox(work),
            isolation: Isolation::none(),
        })),
        system: String::new(),
        folder: String::new(),
        branch: None,
        instructions: None,
        unread: Vec::new(),
        project: text.map(|(text, is_new)| {
            Box::new(ProjectFile {
                path: ".gantry/permissions.toml".to_owned(),
                digest: Digest::of(text.as_bytes()),
                text: is_new.then(|| text.to_owned()),
                trusted: false,
            })
        }),
    };
    let events = [looked];
    let appended = ours
        .db
        .append(ours.id, work.session, work.epoch, &events, at(6));
    appended.await.expect("the turn runs");
}

async fn trusting_a_newer_text_takes_the_place_of_the_older_one(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = ours.at_work().await;
    let first = trust(&ours, &work, "app", RULES).await.expect("trusted");
    assert_eq!(first.path(), "app/.gantry/permissions.toml");
    assert_eq!(
        (first.runner, &*first.workspace),
        (work.runner, "workspace")
    );
    let newer = trust(&ours, &work, "app", OTHERS).await.expect("trusted");
    assert_eq!(newer.id, first.id);
    let rules: Vec<_> = newer
        .counting(true)
        .map(|set| set.rule.to_string())
        .collect();
    assert_eq!(rules, ["Write(app/src/**)"]);
    let root = trust(&ours, &work, "", RULES).await.expect("trusted");
    assert_eq!(files(&ours, ours.owner).await, [root.clone(), newer]);
    let by = By::from(ours.owner);
    let untrust = ours
        .db
        .untrust_file(ours.id, root.id, ours.owner, &by, at(7))
        .await;
    untrust.expect("it is there");
    let again = ours
        .db
        .untrust_file(ours.id, root.id, ours.owner, &by, at(7))
        .await;
    assert!(matches!(again, Err(StoreError::NotFound)), "{again:?}");
    let log = ours.db.audit_after(ours.id, 0, 100).await;
    let kinds: Vec<_> = log
        .expect("it answers")
        .into_iter()
        .map(|row| row.kind)
        .filter(|kind| kind.starts_with("permission."))
        .collect();
    assert_eq!(
        kinds,
        [
            "permission.file_trusted",
            "permission.file_trusted",
            "permission.file_trusted",
            "permission.file_untrusted",
        ]
    );
}

async fn a_file_is_trusted_by_its_user_alone(fixture: Fixture) {
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let work = ours.at_work().await;
    let file = trust(&ours, &work, "", RULES).await.expect("trusted");
    assert_eq!(files(&theirs, theirs.owner).await, []);
    assert_eq!(files(&ours, UserId::from_u128(unique())).await, []);
    for (tenant, user) in [(ours.id, theirs.owner), (theirs.id, theirs.owner)] {
        let by = By::from(user);
        let gone = ours
            .db
            .untrust_file(tenant, file.id, user, &by, at(7))
            .await;
        assert!(matches!(gone, Err(StoreError::NotFound)), "{gone:?}");
    }
    assert_eq!(files(&ours, ours.owner).await, [file]);
}

async fn a_user_trusts_a_bounded_number_of_files(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = ours.at_work().await;
    for number in 0..200 {
        let folder = format!("app{number}");
        trust(&ours, &work, &folder, RULES)
            .await
            .expect("there is room");
    }
    let more = trust(&ours, &work, "one-more", RULES).await;
    assert!(matches!(more, Err(StoreError::Full(_))), "{more:?}");
    let newer = trust(&ours, &work, "app7", OTHERS).await;
    newer.expect("it is no further one");
    assert_eq!(files(&ours, ours.owner).await.len(), 200);
}

async fn a_look_marks_the_files_that_it_does_not_find_as_they_are_trusted(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = ours.at_work().await;
    trust(&ours, &work, "", RULES).await.expect("trusted");
    // The session works above this one.
    trust(&ours, &work, "app", RULES).await.expect("trusted");
    let changed = async || {
        let files = files(&ours, ours.owner).await;
        files.iter().map(|file| file.changed).collect::<Vec<_>>()
    };
    assert_eq!(changed().await, [false, false]);
    for (found, is_changed) in [
        (Some((OTHERS, true)), true),
        (Some((RULES, true)), false),
        (None, true),
    ] {
        look(&ours, &work, found).await;
        assert_eq!(changed().await, [is_changed, false], "{found:?}");
    }
    trust(&ours, &work, "", RULES).await.expect("trusted");
    assert_eq!(changed().await, [false, false]);
}

async fn the_file_that_the_last_look_found_has_its_text(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = ours.at_work().await;
    let found = async || {
        let found = ours.db.found_file(ours.id, work.session).await;
        found.expect("it answers").map(|found| found.text)
    };
    assert_eq!(found().await, None);
    look(&ours, &work, Some((OTHERS, true))).await;
    look(&ours, &work, Some((RULES, true))).await;
    for _ in 0..40 {
        look(&ours, &work, Some((RULES, false))).await;
    }
    assert_eq!(found().await.as_deref(), Some(RULES));
    look(&ours, &work, None).await;
    assert_eq!(found().await, None);
}
