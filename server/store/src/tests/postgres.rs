//! What only PostgreSQL does.

use shared_telemetry::{MetricsHandle, server};
use sqlx::{AssertSqlSafe, Row as _};

use super::fixture::{Fixture, at};
use crate::{
    PostgresUrl, Store, StoreError, StoreOpenError,
    columns::Columns as _,
    copy,
    database::{BELIEVED_FOR, Connection, query, retried},
};

pub(in crate::tests) mod cluster;

async fn refusal(url: &PostgresUrl) -> StoreOpenError {
    let error = Store::open_postgres(url).await.expect_err("it is refused");
    let told = format!("{error} {error:?}");
    assert!(!told.contains(cluster::PASSWORD), "{told}");
    assert!(!error.to_string().contains('\n'), "{error}");
    error
}

#[tokio::test]
async fn servers_that_start_at_once_bring_one_database_up_to_date_together() {
    let (_, url) = cluster::empty("").await;
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let url = url.clone();
        starting.spawn(async move { Store::open_postgres(&url).await });
    }
    for started in starting.join_all().await {
        let store = started.expect("one waits for the other");
        store.check().await.expect("it answers");
    }
}

#[tokio::test]
async fn a_change_of_the_schema_that_fails_leaves_nothing_and_says_so() {
    let (name, url) = cluster::empty("").await;
    let mut admin = cluster::admin(&name).await;
    cluster::run(&mut admin, "CREATE TABLE sessions (id TEXT)".to_owned()).await;
    let error = refusal(&url).await;
    assert!(
        matches!(error, StoreOpenError::Migration { schema: 1, .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("as it was before that step"),
        "{error}"
    );
    let left = sqlx::query("SELECT to_regclass('tenants') IS NULL").fetch_one(&mut admin);
    assert!(left.await.expect("it answers").get::<bool, _>(0));
    cluster::run(&mut admin, "DROP TABLE sessions".to_owned()).await;
    Store::open_postgres(&url).await.expect("the cause is gone");
}

#[tokio::test]
async fn a_database_of_a_newer_program_or_another_history_is_refused() {
    for (sql, hint) in [
        (
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (9999, 'from the future', true, '', 0)",
            "a newer version of Gantry wrote it (schema 9999",
        ),
        (
            "UPDATE _sqlx_migrations SET checksum = '' WHERE version = 1",
            "its schema 1 is not this program's",
        ),
    ] {
        let url = cluster::migrated().await;
        let mut admin = cluster::admin(&cluster::name(&url)).await;
        cluster::run(&mut admin, sql.to_owned()).await;
        let error = refusal(&url).await.to_string();
        assert!(error.contains(hint), "{error}");
        let beside = Store::open_postgres_beside(&url).await;
        let beside = beside.expect_err("refused too").to_string();
        assert!(beside.contains(hint), "{beside}");
    }
}

#[tokio::test]
async fn a_job_beside_the_server_neither_makes_nor_changes_the_schema() {
    let (name, url) = cluster::empty("").await;
    let error = Store::open_postgres_beside(&url).await;
    let error = error.expect_err("there is none");
    assert!(matches!(error, StoreOpenError::Missing { .. }), "{error}");
    let server = Store::open_postgres(&url).await;
    server.expect("an empty database is fine").close().await;
    Store::open_postgres_beside(&url)
        .await
        .expect("it is there");
    let mut admin = cluster::admin(&name).await;
    let older = "DELETE FROM _sqlx_migrations WHERE version > 1".to_owned();
    cluster::run(&mut admin, older).await;
    let error = Store::open_postgres_beside(&url).await;
    let error = error.expect_err("it is older");
    assert!(matches!(error, StoreOpenError::Older { .. }), "{error}");
}

#[tokio::test]
async fn what_stands_in_the_way_is_told_in_one_sentence_without_the_password() {
    let (name, good) = cluster::empty("").await;
    let unfit = async |url: &PostgresUrl, hint: &str| {
        let error = refusal(url).await;
        assert!(error.to_string().contains(hint), "{error}");
    };
    let port = good.to_string();
    let nobody_listens = port.replace(&format!(":{}", cluster::port()), ":1");
    let secret = format!("gantry:{}@", cluster::PASSWORD);
    let nobody_listens = nobody_listens.replace("gantry@", &secret);
    unfit(&nobody_listens.parse().expect("a URL"), "start PostgreSQL").await;
    unfit(
        &cluster::url(&name, "gantry-test-secret-of-another"),
        "the user or the password",
    )
    .await;
    unfit(
        &cluster::url("no_such_database", cluster::PASSWORD),
        "CREATE DATABASE",
    )
    .await;
    let (_, latin) = cluster::empty("ENCODING 'LATIN1' TEMPLATE template0").await;
    unfit(&latin, "ENCODING 'UTF8'").await;
    unfit(
        &cluster::of_superuser(&name),
        "may bypass row-level security",
    )
    .await;
    let (owned, foreign) = cluster::empty("").await;
    let mut admin = cluster::admin(&owned).await;
    let taken = format!("ALTER DATABASE {owned} OWNER TO postgres");
    cluster::run(&mut admin, taken).await;
    unfit(&foreign, "ALTER DATABASE gantry OWNER TO gantry").await;
}

#[tokio::test]
async fn a_pooler_that_pools_sessions_is_passed_and_one_that_pools_transactions_is_refused() {
    let (name, _) = cluster::empty("").await;
    let through = |mode| cluster::url_at(cluster::pooler(mode), &name, cluster::PASSWORD);
    let error = refusal(&through("transaction")).await;
    assert!(error.to_string().contains("pool_mode = session"), "{error}");
    let db = Store::open_postgres(&through("session")).await;
    let db = db.expect("it is as without one");
    let turns = db.unfinished_turns(None, 1).await;
    assert_eq!(turns.expect("it answers"), []);
}

#[tokio::test]
async fn a_statement_that_forgets_the_tenant_sees_the_named_one_alone() {
    let fixture = Fixture::postgres().await;
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let (session, _) = (ours.session().await, theirs.session().await);
    let forgetful = "SELECT id FROM sessions";
    let mut reading = fixture.db.read(ours.id).await.expect("it answers");
    let seen = query(forgetful).fetch_all(&mut reading).await;
    let seen = seen.expect("it answers");
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].text("id").expect("an id"), session.to_string());
    let mut writing = fixture.db.write(ours.id).await.expect("it answers");
    let changed = query("UPDATE sessions SET title = ''").execute(&mut writing);
    assert_eq!(changed.await.expect("it answers"), 1);
    let foreign = query("UPDATE sessions SET tenant_id = $1").bind(theirs.id.to_string());
    let error = foreign.execute(&mut writing).await.expect_err("a policy");
    assert!(error.to_string().contains("row-level security"), "{error}");
    let mut any = fixture.db.read_any("a test").await.expect("it answers");
    let all = query(forgetful).fetch_all(&mut any).await;
    assert_eq!(all.expect("it answers").len(), 2);
    for reading in [&mut reading, &mut any] {
        let change = query("UPDATE sessions SET title = ''").execute(reading);
        let error = change.await.expect_err("it may only read");
        assert!(error.to_string().contains("read-only"), "{error}");
    }
}

#[tokio::test]
async fn connections_that_are_lent_for_one_tenant_after_another_show_each_its_own() {
    let fixture = Fixture::postgres().await;
    let tenants = [fixture.tenant().await.id, fixture.tenant().await.id];
    let mut readers = tokio::task::JoinSet::new();
    for number in 0..32 {
        let db = fixture.db.clone();
        readers.spawn(async move {
            for round in 0..20 {
                let whose = tenants[(number + round) % 2];
                let own = match round % 5 {
                    3 => {
                        let mut any = db.read_any("a test").await.expect("it answers");
                        assert_eq!(seen(&mut any).await.len(), 2);
                        continue;
                    }
                    // Given back without a commit.
                    4 => seen(&mut db.write(whose).await.expect("it answers")).await,
                    _ => seen(&mut db.read(whose).await.expect("it answers")).await,
                };
                assert_eq!(own, [whose.to_string()]);
            }
        });
    }
    while let Some(read) = readers.join_next().await {
        read.expect("it sees its own");
    }
}

/// The tenants that a statement sees which names none.
async fn seen(lent: &mut Connection) -> Vec<String> {
    let rows = query("SELECT id FROM tenants").fetch_all(lent).await;
    let rows = rows.expect("it answers");
    rows.iter()
        .map(|row| row.text("id").expect("an id"))
        .collect()
}

#[tokio::test]
async fn every_table_with_a_tenant_has_the_policy_also_for_its_owner() {
    let url = cluster::migrated().await;
    let mut admin = cluster::admin(&cluster::name(&url)).await;
    let open = sqlx::query(
        "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
         WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attname = 'tenant_id'
             AND NOT (relrowsecurity AND relforcerowsecurity AND EXISTS
                 (SELECT 1 FROM pg_policy WHERE polrelid = pg_class.oid AND polname = 'of_tenant'))",
    );
    let open = open.fetch_all(&mut admin).await.expect("it answers");
    let names: Vec<String> = open.iter().map(|row| row.get("relname")).collect();
    assert_eq!(names, Vec::<String>::new());
}

#[tokio::test]
async fn reads_that_are_given_up_and_connections_that_die_do_not_use_the_pool_up() {
    let fixture = Fixture::postgres().await;
    let ours = fixture.tenant().await;
    for _ in 0..3 {
        let mut asleep = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let db = fixture.db.clone();
            asleep.spawn(async move {
                let mut reading = db.read_any("a test").await.expect("it answers");
                query("SELECT pg_sleep(60)").execute(&mut reading).await
            });
        }
        cluster::wait_for_sleepers(fixture.url(), 16).await;
        asleep.shutdown().await;
    }
    let tenant = fixture.db.tenant(ours.id).await;
    tenant.expect("there is room");
    let name = cluster::name(fixture.url());
    let kill = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = '{name}' AND pid <> pg_backend_pid()"
    );
    let mut admin = cluster::admin(&name).await;
    let killed = sqlx::query(AssertSqlSafe(kill)).fetch_all(&mut admin);
    assert!(!killed.await.expect("it answers").is_empty());
    let tenant = fixture.db.tenant(ours.id).await;
    tenant.expect("a new connection takes the place of a dead one");
}

#[tokio::test]
async fn connections_that_fell_silent_are_given_up_together() {
    let fixture = Fixture::postgres().await;
    let ours = fixture.tenant().await;
    let frozen = cluster::Freezer::before(fixture.url()).await;
    let db = Store::open_postgres(frozen.url()).await.expect("it passes");
    let held = [db.read(ours.id).await, db.read(ours.id).await];
    drop(held);
    // So long that they are not believed to answer.
    tokio::time::pause();
    tokio::time::advance(BELIEVED_FOR).await;
    tokio::time::resume();
    frozen.freeze();
    let tenant = db.tenant(ours.id).await;
    tenant.expect("a new connection takes the place of the silent ones");
    let session = ours.session().await;
    let hello = ours.input("hello");
    let sent = db.send_input(ours.id, session, &hello, at(1));
    sent.await.expect("it writes as well");
}

#[tokio::test]
async fn a_database_that_was_copied_is_planned_for_with_the_rows_that_it_has() {
    let (from, to) = (Fixture::sqlite().await, Fixture::postgres().await);
    let ours = from.tenant().await;
    for _ in 0..3 {
        ours.session().await;
    }
    copy(&from.db, &to.db).await.expect("it is empty");
    let planned = "SELECT reltuples::bigint AS rows FROM pg_class WHERE relname = 'sessions'";
    let mut reading = to.db.read_any("a test").await.expect("it answers");
    let row = query(planned).fetch_one(&mut reading).await;
    let rows = row.expect("it answers").get_integer("rows");
    assert_eq!(rows.expect("a number"), Some(3));
}

/// Work that gives way to another transaction.
async fn give_way(db: &Store) -> Result<(), StoreError> {
    let mut tx = db.write_any("it is a test").await?;
    query("DO $$ BEGIN RAISE 'another one is preferred' USING ERRCODE = '40001'; END $$")
        .execute(&mut tx)
        .await?;
    Ok(())
}

#[tokio::test]
async fn work_that_gives_way_is_an_error_only_where_it_is_not_done_again() {
    let metrics = shared_telemetry::install_metrics(server::ALL, "1.2.3").expect("the first");
    let db = Store::open_postgres(&cluster::migrated().await).await;
    let db = db.expect("it is there");
    let errors = |metrics: &MetricsHandle, count: u32| {
        let line = format!("gantry_store_errors_total{{reason=\"database\"}} {count}\n");
        assert!(metrics.render().contains(&line), "{}", metrics.render());
    };
    let mut left = 3;
    let done: Result<(), StoreError> = retried!({
        match left {
            0 => Ok(()),
            _ => {
                left -= 1;
                give_way(&db).await
            }
        }
    });
    done.expect("it is done again");
    errors(&metrics, 0);
    let given_up: Result<(), StoreError> = retried!(give_way(&db).await);
    given_up.expect_err("it gives way each time");
    errors(&metrics, 1);
    give_way(&db).await.expect_err("it is tried once");
    errors(&metrics, 2);
}
