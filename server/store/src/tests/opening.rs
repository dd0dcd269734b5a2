use std::{os::unix::fs::PermissionsExt as _, path::Path};

use shared_types::{Generation, limits::MAX_MESSAGE_BYTES};

use super::fixture::{Fixture, at, link_claim};
use crate::{
    Input, NewTenant, NewUser, Store, StoreError, StoreOpenError,
    columns::Columns as _,
    database::{POSTGRES_SCHEMA, SQLITE_SCHEMA, query},
};

async fn refusal(path: &Path) -> StoreOpenError {
    Store::open(path).await.expect_err("it must be refused")
}

#[tokio::test]
async fn a_database_is_made_for_its_owner_only_and_found_again() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("gantry.db");
    let db = Store::open(&path).await.expect("an empty folder is fine");
    let (tenant, owner) = first();
    let made = db.bootstrap(&tenant, &owner, at(0)).await;
    assert!(made.expect("nothing is there").created);
    for file in [
        "gantry.db",
        "gantry.db-wal",
        "gantry.db-shm",
        "gantry.db.lock",
    ] {
        let about = std::fs::metadata(folder.path().join(file)).expect("the file is there");
        assert_eq!(about.permissions().mode() & 0o777, 0o600, "{file}");
    }
    db.close().await;
    let db = Store::open(&path).await.expect("it opens again");
    db.check().await.expect("it answers");
    let found = db.first_owner().await.expect("it answers");
    assert_eq!(found, Some((tenant.id, owner.id)));
}

#[tokio::test]
async fn sqlite_is_built_to_plan_a_statement_once() {
    let fixture = Fixture::sqlite().await;
    // Without it each run of a statement that binds its LIMIT compiles it anew.
    let built = query("SELECT count(*) AS is_built FROM pragma_compile_options WHERE compile_options = 'ENABLE_QPSG'")
        .fetch_one(&mut fixture.db.read_any("it is about SQLite").await.expect("it answers"))
        .await
        .expect("it answers");
    assert_eq!(
        built.count("is_built").expect("a number"),
        1,
        ".cargo/config.toml says how it is built"
    );
}

#[tokio::test]
async fn a_second_server_is_kept_away_until_the_first_one_stops() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("gantry.db");
    let first = Store::open(&path).await.expect("an empty folder is fine");
    let error = refusal(&path).await;
    assert!(matches!(error, StoreOpenError::InUse { .. }), "{error}");
    assert!(error.to_string().contains("stop that one first"), "{error}");
    drop(first);
    Store::open(&path).await.expect("the first one is gone");
}

#[tokio::test]
async fn what_an_earlier_release_placed_does_not_say_when_it_must_have_started() {
    let fixture = Fixture::sqlite().await;
    let ours = fixture.tenant().await;
    let work = ours.at_work().await;
    let placed = fixture
        .db
        .place_operation(ours.id, work.epoch, &work.operation, at(4));
    placed.await.expect("the turn runs");
    let sql = "UPDATE operations SET start_by_boot = NULL, start_by_us = NULL";
    change(&fixture.db, sql).await;
    let row = fixture.db.operation(ours.id, work.operation.id).await;
    assert_eq!(row.expect("it is there").start_by, None);
}

#[tokio::test]
async fn a_job_beside_the_server_neither_makes_nor_changes_the_database() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("gantry.db");
    let error = Store::open_beside(&path).await.expect_err("there is none");
    assert!(matches!(error, StoreOpenError::Missing { .. }), "{error}");
    assert!(!path.exists());

    let server = Store::open(&path).await.expect("an empty folder is fine");
    let (tenant, owner) = first();
    let beside = Store::open_beside(&path).await.expect("it is there");
    beside
        .bootstrap(&tenant, &owner, at(0))
        .await
        .expect("both may write");
    beside.close().await;
    let found = server.first_owner().await.expect("it answers");
    assert_eq!(found, Some((tenant.id, owner.id)));

    server.close().await;
    let beside = Store::open_beside(&path).await.expect("it is there");
    beside.close().await;
    let server = Store::open(&path).await.expect("the lock was not taken");
    change(&server, "DELETE FROM _sqlx_migrations").await;
    let error = Store::open_beside(&path).await.expect_err("it is older");
    assert!(matches!(error, StoreOpenError::Older { .. }), "{error}");
}

#[tokio::test]
async fn a_job_beside_the_server_waits_for_its_writes_and_the_server_for_the_job() {
    let fixture = Fixture::sqlite().await;
    let ours = fixture.tenant().await;
    let runner = ours.runner("laptop").await;
    let beside = Store::open_beside(fixture.path()).await;
    let beside = beside.expect("it is there");
    let mut writes = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (tenant, claim) = (ours.id, link_claim(1, 0));
        let db = if number % 2 == 0 {
            &fixture.db
        } else {
            &beside
        };
        let db = db.clone();
        writes.spawn(async move { db.link_claim(tenant, runner, &claim, at(1)).await });
    }
    for write in writes.join_all().await {
        write.expect("it had its turn");
    }
    let row = fixture.db.runner(ours.id, runner).await;
    assert_eq!(row.expect("it is there").generation, Generation(40));
}

#[tokio::test]
async fn a_path_that_cannot_be_written_says_who_must_change_what() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    // Root may write everywhere, but nobody can write below a file.
    std::fs::write(folder.path().join("file"), "").expect("the folder is ours");
    for path in ["no/such/folder/gantry.db", "file/gantry.db"] {
        let error = refusal(&folder.path().join(path)).await;
        assert!(
            matches!(error, StoreOpenError::Unwritable { .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains("choose another folder"),
            "{error}"
        );
    }
    let error = refusal(folder.path()).await;
    assert!(
        matches!(error, StoreOpenError::Unwritable { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("gantry.db");
    let text = "Dear diary, ".repeat(1000);
    std::fs::write(&path, &text).expect("the folder is ours");
    let error = refusal(&path).await;
    assert!(
        matches!(error, StoreOpenError::NotADatabase { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("move it away"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
}

#[tokio::test]
async fn a_database_of_a_newer_program_or_another_history_is_refused() {
    for (sql, hint) in [
        (
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (9999, 'from the future', 1, X'00', 0)",
            "a newer version of Gantry wrote it (schema 9999",
        ),
        (
            "UPDATE _sqlx_migrations SET checksum = X'00' WHERE version = 1",
            "its schema 1 is not this program's",
        ),
    ] {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let path = folder.path().join("gantry.db");
        let db = Store::open(&path).await.expect("an empty folder is fine");
        change(&db, sql).await;
        let beside = Store::open_beside(&path).await.expect_err("refused too");
        assert!(beside.to_string().contains(hint), "{beside}");
        db.close().await;
        let error = refusal(&path).await.to_string();
        assert!(error.contains(hint), "{error}");
        assert!(error.contains("restore a backup"), "{error}");
    }
}

#[tokio::test]
async fn commits_are_synced_and_readers_cannot_write() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("gantry.db");
    let db = Store::open(&path).await.expect("an empty folder is fine");
    let mut tx = db.write_any("a test").await.expect("it answers");
    // The pragmas as one row of text: FULL is 2.
    let pragmas = query(
        "SELECT synchronous || ' ' || foreign_keys || ' ' || journal_mode AS pragmas
         FROM pragma_synchronous, pragma_foreign_keys, pragma_journal_mode",
    )
    .fetch_one(&mut tx)
    .await
    .expect("it answers");
    assert_eq!(pragmas.text("pragmas").expect("a text"), "2 1 wal");
    let mut reader = db.read_any("a test").await.expect("it answers");
    let write = query("DELETE FROM events").execute(&mut reader);
    let error = write.await.expect_err("readers only read");
    assert!(error.to_string().contains("readonly"), "{error}");
}

#[test]
fn both_databases_have_the_same_schemas_under_the_same_numbers() {
    let names = |migrator: &sqlx::migrate::Migrator| -> Vec<_> {
        let all = migrator.iter();
        all.map(|it| (it.version, it.description.clone())).collect()
    };
    assert_eq!(names(&SQLITE_SCHEMA), names(&POSTGRES_SCHEMA));
}

async fn change(db: &Store, sql: &'static str) {
    let mut tx = db.write_any("a test").await.expect("it answers");
    let changed = query(sql).execute(&mut tx).await;
    changed.expect("the table is sqlx's");
    tx.commit().await.expect("the disk takes it");
}

fn first() -> (NewTenant, NewUser) {
    let tenant = NewTenant {
        id: shared_types::TenantId::from_u128(1),
        name: "home".to_owned(),
    };
    let owner = NewUser {
        id: shared_types::UserId::from_u128(2),
        name: "me".to_owned(),
    };
    (tenant, owner)
}

#[tokio::test]
async fn a_full_disk_refuses_what_does_not_fit_and_nothing_once_there_is_room_again() {
    let fixture = Fixture::sqlite().await;
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let mut tx = db.write_any("a test").await.expect("the database answers");
    let full = query("PRAGMA max_page_count = 1").execute(&mut tx);
    full.await.expect("it cannot grow from now on");
    tx.commit().await.expect("nothing was written");
    let long = Input {
        text: "x".repeat(MAX_MESSAGE_BYTES),
        images: Vec::new(),
        ..ours.input("")
    };
    let refused = db.send_input(ours.id, session, &long, at(1)).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    // The bound was the connection's, which is replaced.
    let sent = db.send_input(ours.id, session, &long, at(2)).await;
    sent.expect("there is room");
}
