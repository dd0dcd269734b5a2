//! The PostgreSQL of `tests/postgres`: an empty database for each test, copied from one that is migrated
//! once, and dropped by a later test.

use std::{env, path::Path, process};

use shared_types::{Entropy as _, OsEntropy};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, postgres::PgConnectOptions};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{PostgresUrl, Store};

/// What a password looks like that must be seen nowhere.
pub(in crate::tests) const PASSWORD: &str = "gantry-test-secret";

/// A database that has all of the schema and no rows.
pub(in crate::tests) async fn migrated() -> PostgresUrl {
    let mut admin = admin("postgres").await;
    drop_ended(&mut admin).await;
    let template = format!("template_{}", schema());
    run(&mut admin, "SELECT pg_advisory_lock(1)".to_owned()).await;
    let found = format!("SELECT 1 FROM pg_database WHERE datname = '{template}'");
    let found = sqlx::query(AssertSqlSafe(found)).fetch_optional(&mut admin);
    if found.await.expect("it answers").is_none() {
        let making = format!("making_{template}");
        run(&mut admin, format!("DROP DATABASE IF EXISTS {making}")).await;
        run(&mut admin, format!("CREATE DATABASE {making} OWNER gantry")).await;
        let made = Store::open_postgres(&url(&making, PASSWORD)).await;
        made.expect("an empty database is fine").close().await;
        run(
            &mut admin,
            format!("ALTER DATABASE {making} RENAME TO {template}"),
        )
        .await;
    }
    run(&mut admin, "SELECT pg_advisory_unlock(1)".to_owned()).await;
    let name = unique();
    run(
        &mut admin,
        format!("CREATE DATABASE {name} OWNER gantry TEMPLATE {template}"),
    )
    .await;
    url(&name, PASSWORD)
}

/// A database without a schema, made so.
pub(in crate::tests) async fn empty(how: &str) -> (String, PostgresUrl) {
    let name = unique();
    let mut admin = admin("postgres").await;
    drop_ended(&mut admin).await;
    run(
        &mut admin,
        format!("CREATE DATABASE {name} OWNER gantry {how}"),
    )
    .await;
    let url = url(&name, PASSWORD);
    (name, url)
}

/// The superuser in a database.
pub(in crate::tests) async fn admin(database: &str) -> PgConnection {
    let options = PgConnectOptions::new_without_pgpass()
        .socket(setting("GANTRY_TEST_POSTGRES"))
        .port(port())
        .username("postgres")
        .database(database);
    let connected = PgConnection::connect_with(&options).await;
    connected.expect("tests/postgres runs it")
}

pub(in crate::tests) fn url(database: &str, password: &str) -> PostgresUrl {
    url_at(port(), database, password)
}

pub(in crate::tests) fn url_at(port: u16, database: &str, password: &str) -> PostgresUrl {
    let url = format!("postgres://gantry:{password}@127.0.0.1:{port}/{database}");
    url.parse().expect("it is a URL")
}

/// The port of a PgBouncer that pools in this mode.
pub(in crate::tests) fn pooler(mode: &str) -> u16 {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/postgres");
    let started = process::Command::new(script)
        .args(["pooler", mode])
        .output()
        .expect("it is there");
    let port = String::from_utf8_lossy(&started.stdout).into_owned();
    port.trim().parse().expect("a port")
}

pub(in crate::tests) async fn run(connection: &mut PgConnection, sql: String) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    done.expect("it is done");
}

pub(in crate::tests) fn port() -> u16 {
    setting("GANTRY_TEST_POSTGRES_PORT")
        .parse()
        .expect("a port")
}

#[expect(clippy::disallowed_methods, reason = "tests/postgres says where it is")]
fn setting(name: &str) -> String {
    env::var(name).expect("run it as: tests/postgres run cargo nextest run -p server-store")
}

/// Names this test, and at random: on a busy machine the ids of processes come again.
fn unique() -> String {
    let mut random = [0; 8];
    OsEntropy.fill(&mut random);
    let random = u64::from_be_bytes(random);
    format!("test_{}_{random:016x}", process::id())
}

/// Drops the databases of tests that have ended: all of them together take gigabytes.
async fn drop_ended(admin: &mut PgConnection) {
    let all = sqlx::query("SELECT datname FROM pg_database").fetch_all(&mut *admin);
    for row in all.await.expect("it answers") {
        let name: String = row.get("datname");
        let test = name.strip_prefix("test_").and_then(|of| of.split_once('_'));
        if test.is_some_and(|(id, _)| !Path::new("/proc").join(id).exists()) {
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            // Another test may be dropping it, and then this fails.
            let _ = sqlx::raw_sql(AssertSqlSafe(drop))
                .execute(&mut *admin)
                .await;
        }
    }
}

/// The schema that this program makes, in a few letters.
fn schema() -> String {
    let all = crate::database::POSTGRES_SCHEMA.iter();
    let checksums: Vec<u8> = all
        .flat_map(|migration| migration.checksum.to_vec())
        .collect();
    shared_types::Digest::of(&checksums).to_string()[..12].to_owned()
}

pub(in crate::tests) fn name(url: &PostgresUrl) -> String {
    let shown = url.to_string();
    let (_, name) = shown.rsplit_once('/').expect("it has a path");
    name.to_owned()
}

/// As PostgreSQL's own superuser, over the socket.
pub(in crate::tests) fn of_superuser(database: &str) -> PostgresUrl {
    let folder = setting("GANTRY_TEST_POSTGRES");
    let url = format!(
        "postgres://postgres@localhost:{}/{database}?host={folder}",
        port()
    );
    url.parse().expect("it is a URL")
}

/// Until so many connections of the database are asleep.
pub(in crate::tests) async fn wait_for_sleepers(url: &PostgresUrl, many: i64) {
    let mut admin = admin("postgres").await;
    let count = format!(
        "SELECT COUNT(*) FROM pg_stat_activity
         WHERE datname = '{}' AND wait_event = 'PgSleep' AND state = 'active'",
        name(url)
    );
    loop {
        let row = sqlx::query(AssertSqlSafe(count.clone())).fetch_one(&mut admin);
        if row.await.expect("it answers").get::<i64, _>(0) >= many {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Passes connections on, until it is told to let those that are there fall silent.
pub(in crate::tests) struct Freezer {
    url: PostgresUrl,
    freeze: watch::Sender<bool>,
}

impl Freezer {
    pub(in crate::tests) async fn before(url: &PostgresUrl) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let here = listener.local_addr().expect("it has one").port();
        let (freeze, frozen) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut frozen = frozen.clone();
                // Those that come once it has frozen are passed on.
                frozen.mark_unchanged();
                tokio::spawn(async move {
                    let server = TcpStream::connect(("127.0.0.1", port())).await;
                    let mut server = server.expect("it listens");
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = frozen.changed() => std::future::pending().await,
                    }
                });
            }
        });
        let through = format!(
            "postgres://gantry:{PASSWORD}@127.0.0.1:{here}/{}",
            name(url)
        );
        Self {
            url: through.parse().expect("it is a URL"),
            freeze,
        }
    }

    pub(in crate::tests) fn url(&self) -> &PostgresUrl {
        &self.url
    }

    pub(in crate::tests) fn freeze(&self) {
        self.freeze.send_replace(true);
    }
}
