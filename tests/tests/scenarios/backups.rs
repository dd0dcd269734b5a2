//! What an operator does with the server's database: check, migrate, move, back up and restore.

use std::{fs, path::Path, process::Output};

use shared_types::{SessionEvent, SessionId, event::TurnOutcome};
use tests::{
    gantry::{Gantry, Runner, eventually},
    postgres::Postgres,
    work::{Job, Work, finish},
};

/// What `tests/postgres` gives the role `gantry`.
const PASSWORD: &str = "gantry-test-secret";

/// A verb that succeeds, and what it prints.
async fn done(gantry: &Gantry, arguments: &[&str]) -> String {
    let output = gantry
        .operator(arguments)
        .output()
        .await
        .expect("it starts");
    let told = text(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {told}");
    text(&output.stdout)
}

/// A verb that is refused, and its one sentence.
async fn refused(gantry: &Gantry, arguments: &[&str]) -> String {
    let output: Output = gantry
        .operator(arguments)
        .output()
        .await
        .expect("it starts");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
    assert!(
        told.starts_with("gantry-server: ") && told.lines().count() == 1,
        "{told}"
    );
    assert!(!told.contains(PASSWORD), "{told}");
    told
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn events(gantry: &Gantry, session: SessionId) -> Vec<SessionEvent> {
    let events = gantry.client().events(session, 0, 100).await;
    events.expect("the session is there").events
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_moves_to_postgres_and_its_session_and_running_command_go_on() {
    let postgres = Postgres::start();
    let mut gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut old = gantry.talk().await;
    old.say("run echo one >> effects").await;
    let before = events(&gantry, old.session()).await;
    let job = Job::begin(&gantry, &runner, Work(91)).await;
    let url = postgres.database();
    let without = url.replace(&format!(":{PASSWORD}"), "");
    assert!(
        refused(&gantry, &["move", "--to", &without])
            .await
            .contains("in use by another server")
    );
    gantry.stop_server().await;
    assert!(
        refused(&gantry, &["move", "--to", &url])
            .await
            .contains("PGPASSWORD")
    );
    assert!(
        refused(&gantry, &["move", "--to", &without])
            .await
            .contains("the user or the password")
    );
    let mut moving = gantry.operator(&["move", "--to", &without]);
    let moved = moving
        .env("PGPASSWORD", PASSWORD)
        .output()
        .await
        .expect("it starts");
    let told = text(&moved.stdout);
    assert!(
        moved.status.success() && told.contains(&format!("url = \"{without}\"")),
        "{told}"
    );
    let again = moving.output().await.expect("it starts");
    assert!(
        text(&again.stderr).contains("has rows already"),
        "{again:?}"
    );
    gantry.use_database(&url);
    assert!(
        refused(&gantry, &["move", "--to", &without])
            .await
            .contains("name already")
    );
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    assert_eq!(events(&gantry, old.session()).await, before);
    job.finish(&runner).await;
    old.say("run echo two >> effects").await;
    assert_eq!(runner.file("effects").as_deref(), Some("one\ntwo\n"));
    gantry.stop_server().await;
    // And back again, into a file.
    let _ = fs::remove_file(gantry.home().join("server/gantry.db"));
    let told = done(&gantry, &["move", "--to", "sqlite"]).await;
    assert!(told.contains("are the same"), "{told}");
}

/// A server with a conversation that is over, and commands that run.
async fn at_work() -> (Gantry, Runner, SessionId, Vec<Job>) {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut old = gantry.talk().await;
    old.say("run echo one >> effects").await;
    let mut jobs = Vec::new();
    for seed in 92..95 {
        jobs.push(Job::begin(&gantry, &runner, Work(seed)).await);
    }
    (gantry, runner, old.session(), jobs)
}

/// The path of a new backup.
async fn backed_up(gantry: &Gantry, name: &str) -> String {
    let path = gantry.home().join(name).display().to_string();
    let told = done(gantry, &["backup", &path]).await;
    assert!(told.contains("rows of"), "{told}");
    path
}

/// As on a machine on which there is nothing yet.
fn forget(gantry: &Gantry) {
    fs::remove_dir_all(gantry.home().join("server")).expect("it is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_busy_server_is_restored_and_its_runner_comes_back_by_itself() {
    let (mut gantry, runner, session, mut jobs) = at_work().await;
    let before = events(&gantry, session).await;
    let backup = backed_up(&gantry, "backup.tar.gz").await;
    // The server takes more of their output, and says so to the runner, before it dies.
    let later = Work(92).output(150);
    let later = later.lines().last().expect("150 lines");
    jobs[0].talk.until_output(later).await;
    gantry.kill_server().await;
    forget(&gantry);
    if let Some(url) = tests::postgres::database_of_run() {
        gantry.use_database(&url);
    }
    let told = done(&gantry, &["restore", &backup]).await;
    assert!(told.starts_with("restored "), "{told}");
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    assert_eq!(events(&gantry, session).await, before);
    let listed = gantry.client().sessions(100).await.expect("a list");
    assert_eq!(listed.len(), 4);
    finish(jobs, &runner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_server_that_went_on_is_restored_and_nothing_is_run_twice() {
    let (mut gantry, runner, session, jobs) = at_work().await;
    let backup = backed_up(&gantry, "backup.tar.gz").await;
    // After the backup the commands end, and the server has the runner forget them.
    let sessions: Vec<_> = jobs.iter().map(|job| job.talk.session()).collect();
    finish(jobs, &runner).await;
    gantry.kill_server().await;
    forget(&gantry);
    if let Some(url) = tests::postgres::database_of_run() {
        gantry.use_database(&url);
    }
    done(&gantry, &["restore", &backup]).await;
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    for session in sessions {
        eventually("its turn ends", || async {
            let events = events(&gantry, session).await;
            let is_end = |event: &SessionEvent| {
                matches!(event.known(), Some(shared_types::Event::TurnEnded { outcome, .. })
                    if *outcome == TurnOutcome::Completed)
            };
            events.last().is_some_and(is_end).then_some(())
        })
        .await;
    }
    for seed in 92..95 {
        let effects = runner.file(&format!("effects-{seed}"));
        assert_eq!(effects.as_deref(), Some("effect\n"));
    }
    let client = gantry.client();
    let sent = client
        .send(session, "run echo two >> effects", "after the restoration")
        .await;
    sent.expect("it is taken");
    eventually("it runs on the same runner", || async {
        (runner.file("effects")? == "one\ntwo\n").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_restored_is_refused_and_leaves_everything_as_it_was() {
    let mut gantry = Gantry::practice().await;
    let backup = backed_up(&gantry, "backup.tar.gz").await;
    let told = refused(&gantry, &["backup", &backup]).await;
    assert!(told.contains("there is such a file already"), "{told}");
    let told = refused(&gantry, &["backup", "/no/such/folder/b.tar.gz"]).await;
    assert!(told.contains("choose a folder"), "{told}");
    let restore = ["restore", &backup];
    assert!(
        refused(&gantry, &restore)
            .await
            .contains("in use by another server")
    );
    gantry.stop_server().await;
    assert!(
        refused(&gantry, &restore)
            .await
            .contains("keys is not empty")
    );
    let server = gantry.home().join("server");
    fs::remove_dir_all(server.join("keys")).expect("it is there");
    assert!(
        refused(&gantry, &restore)
            .await
            .contains("has rows already")
    );
    assert!(!server.join("restoring").exists());
    // As after a loss of power between the commit and the last rename.
    fs::create_dir(server.join("restoring")).expect("it is made");
    let told = refused(&gantry, &restore).await;
    assert!(
        told.contains("a restoration ended half-way: remove"),
        "{told}"
    );

    forget(&gantry);
    if let Some(url) = tests::postgres::database_of_run() {
        gantry.use_database(&url);
    }
    let whole = fs::read(&backup).expect("it is there");
    let cut = gantry.home().join("cut.tar.gz").display().to_string();
    fs::write(&cut, &whole[..whole.len() / 2]).expect("it is written");
    let told = refused(&gantry, &["restore", &cut]).await;
    assert!(told.contains("cut off, so take another backup"), "{told}");
    assert!(
        refused(&gantry, &["restore", "/etc/hostname"])
            .await
            .contains("is no backup")
    );
    assert!(!server.exists());
    // As after a loss of power in its middle.
    fs::create_dir_all(server.join("restoring/keys")).expect("it is made");
    for verb in ["run", "sign-in-code", "migrate", "check-config"] {
        let told = refused(&gantry, &[verb]).await;
        assert!(told.contains("half restored"), "{told}");
    }
    done(&gantry, &restore).await;
    gantry.start_server().await;
    gantry
        .client()
        .sessions(1)
        .await
        .expect("the token is known");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_and_the_schema_are_checked_without_a_change() {
    let mut gantry = Gantry::practice().await;
    let secret = "sk-secret";
    let mut checked = gantry.operator(&["check-config"]);
    checked.envs([("OPENAI_API_KEY", secret), ("GANTRY_MODEL", "m")]);
    let told = text(&checked.output().await.expect("it starts").stdout);
    for words in [
        "gantry.toml",
        "up to date",
        "identity.pem, link.pem",
        "m, in openai-responses, with a key",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains(PASSWORD) && !told.contains(secret), "{told}");
    let told = done(&gantry, &["migrate", "--check"]).await;
    assert!(told.contains("nothing is to be done"), "{told}");
    gantry.stop_server().await;
    let elsewhere = gantry.home().join("elsewhere");
    let home = elsewhere.display().to_string();
    gantry.use_database("");
    let told = done(&gantry, &["check-config", "--home", &home]).await;
    assert!(told.contains("none yet; the server makes"), "{told}");
    let told = refused(&gantry, &["migrate", "--check", "--home", &home]).await;
    assert!(told.contains("run gantry-server migrate"), "{told}");
    assert!(!Path::new(&home).exists());
    let told = done(&gantry, &["migrate", "--home", &home]).await;
    assert!(
        told.contains("had no schema yet, and is now at schema"),
        "{told}"
    );
    done(&gantry, &["migrate", "--check", "--home", &home]).await;
    gantry.use_database("postgres://gantry@127.0.0.1:1/gantry");
    let told = refused(&gantry, &["check-config"]).await;
    assert!(told.contains("start PostgreSQL"), "{told}");
    fs::write(gantry.home().join("gantry.toml"), "[server]\nlissten = 1\n").expect("it is written");
    let told = refused(&gantry, &["check-config"]).await;
    assert!(told.contains("lissten"), "{told}");
}
