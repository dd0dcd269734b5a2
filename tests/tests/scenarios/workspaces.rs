//! A runner with several workspaces: each is a sandbox of its own, and what runs in one is not in another.

use std::path::PathBuf;

use tests::{
    gantry::{Gantry, Runner, eventually},
    model_server::{ModelServer, Reply},
};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// A runner that serves one more folder, and this folder.
async fn with_api(gantry: &Gantry) -> (Runner, PathBuf) {
    let runner = gantry.runner("laptop").await;
    let api = runner.home().join("api");
    std::fs::create_dir(&api).expect("a folder");
    let folder = api.to_str().expect("text");
    let added = runner.say(&["add-workspace", folder]).await;
    assert_eq!(added.status.code(), Some(0), "{}", text(&added.stderr));
    assert!(
        text(&added.stdout).ends_with("it is served now\n"),
        "{}",
        text(&added.stdout)
    );
    until_listed(gantry, &["workspace", "api"]).await;
    (runner, api)
}

async fn until_listed(gantry: &Gantry, names: &[&str]) {
    let listed = async || {
        let runners = gantry.client().runners().await.expect("they are listed");
        let ours = runners.iter().find(|runner| runner.online)?;
        let there = ours.sandboxes.iter().map(|one| one.name.as_str());
        there.eq(names.iter().copied()).then_some(())
    };
    eventually("the runner names its workspaces", listed).await;
}

async fn exec(gantry: &Gantry, place: &str, script: &str) -> (Option<i32>, String, String) {
    let words = ["exec", "-r", place, "--", "sh", "-c", script];
    let ended = gantry.cli(&words).await;
    (
        ended.status.code(),
        text(&ended.stdout),
        text(&ended.stderr),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_in_the_workspace_that_is_named_and_the_runner_alone_is_its_first_one() {
    let gantry = Gantry::practice().await;
    let (runner, api) = with_api(&gantry).await;
    for (place, folder) in [
        ("laptop", runner.workspace()),
        ("laptop/workspace", runner.workspace()),
        ("laptop/api", api),
    ] {
        let (code, said, wrong) = exec(&gantry, place, "touch here; pwd").await;
        assert_eq!(
            (code, said),
            (Some(0), format!("{}\n", folder.display())),
            "{wrong}"
        );
        std::fs::remove_file(folder.join("here")).expect("it was made here");
    }
    let (code, _, wrong) = exec(&gantry, "laptop/nowhere", "true").await;
    assert_eq!(code, Some(255));
    assert!(wrong.contains("only: workspace, api"), "{wrong}");
    assert_eq!(wrong.lines().count(), 1, "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_adds_a_workspace_on_the_machine_of_its_runner_and_nowhere_else() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let api = runner.home().join("api");
    std::fs::create_dir(&api).expect("a folder");
    let folder = api.to_str().expect("text");
    let words = ["runners", "add-workspace", folder];
    let elsewhere = gantry.cli(&words).await;
    let said = text(&elsewhere.stderr);
    assert_eq!(elsewhere.status.code(), Some(1), "{said}");
    assert!(said.contains("gantry-runner add-workspace"), "{said}");
    let mut here = gantry.terminal(&words);
    // The home of the runner is this terminal's as well.
    let added = here.env("GANTRY_HOME", runner.home()).output().await;
    let added = added.expect("it starts");
    assert_eq!(added.status.code(), Some(0), "{}", text(&added.stderr));
    let said = text(&added.stdout);
    assert!(said.ends_with("gantry exec -r laptop/api\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_both_workspaces_survive_a_killed_daemon_each_with_its_own_output() {
    let gantry = Gantry::practice().await;
    let (mut runner, api) = with_api(&gantry).await;
    let script = "touch begun; while [ ! -e go ]; do sleep 0.05; done; pwd; echo x >> effects";
    let words = |place| ["exec", "-r", place, "--", "sh", "-c", script];
    let (first, second) = (words("laptop"), words("laptop/api"));
    let folders = [runner.workspace(), api];
    let killed = async {
        for folder in &folders {
            let begun = async || folder.join("begun").exists().then_some(());
            eventually("the command runs", begun).await;
        }
        runner.kill().await;
        runner.start();
        gantry.until_online("laptop", true).await;
        for folder in &folders {
            std::fs::write(folder.join("go"), "").expect("it is written");
        }
    };
    let (first, second, ()) = tokio::join!(gantry.cli(&first), gantry.cli(&second), killed);
    for (ended, folder) in [first, second].iter().zip(&folders) {
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        assert_eq!(text(&ended.stdout), format!("{}\n", folder.display()));
        let effects = std::fs::read_to_string(folder.join("effects"));
        assert_eq!(effects.expect("it is there"), "x\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_in_a_removed_workspace_ends_and_nothing_new_starts_there_or_elsewhere() {
    let gantry = Gantry::practice().await;
    let (mut runner, api) = with_api(&gantry).await;
    gantry
        .client()
        .use_runner("laptop/api")
        .await
        .expect("it is there");
    let script = "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo done";
    let words = ["exec", "--", "sh", "-c", script];
    let removed = async {
        let begun = async || api.join("begun").exists().then_some(());
        eventually("the command runs", begun).await;
        let said = runner.say(&["remove-workspace", "api"]).await;
        assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
        until_listed(&gantry, &["workspace"]).await;
        let ended = gantry.cli(&["exec", "--", "touch", "never"]).await;
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(255), "{said}");
        assert!(said.contains("is not there any more"), "{said}");
        // The next daemon does not know the workspace at all.
        runner.kill().await;
        runner.start();
        gantry.until_online("laptop", true).await;
        std::fs::write(api.join("go"), "").expect("it is written");
    };
    let (ended, ()) = tokio::join!(gantry.cli(&words), removed);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert_eq!(text(&ended.stdout), "done\n");
    for folder in [runner.workspace(), api] {
        assert!(!folder.join("never").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_of_a_workspace_leads_into_another_one() {
    let gantry = Gantry::practice().await;
    let (_runner, api) = with_api(&gantry).await;
    std::fs::write(api.join("secret"), "of the api").expect("it is written");
    let here = tempfile::tempdir().expect("a folder");
    let target = here.path().to_str().expect("text");
    let secret = format!("laptop:{}/secret", api.display());
    for path in [secret.as_str(), "laptop:../api/secret", "laptop:secret"] {
        let copied = gantry.cli(&["cp", path, target]).await;
        assert_ne!(copied.status.code(), Some(0), "{path}");
        assert!(!here.path().join("secret").exists(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_whose_folder_is_gone_is_said_to_be_and_the_others_serve() {
    let gantry = Gantry::practice().await;
    let (mut runner, api) = with_api(&gantry).await;
    assert_eq!(runner.stop().await, Some(0));
    gantry.until_online("laptop", false).await;
    std::fs::remove_dir(&api).expect("it is empty");
    runner.start();
    gantry.until_online("laptop", true).await;
    let (code, _, wrong) = exec(&gantry, "laptop/api", "true").await;
    assert_eq!(code, Some(255));
    assert!(wrong.contains("it does not exist"), "{wrong}");
    let (code, said, _) = exec(&gantry, "laptop", "echo here").await;
    assert_eq!((code, said.as_str()), (Some(0), "here\n"));
    let listed = text(&gantry.cli(&["runners"]).await.stdout);
    assert!(listed.contains("not served"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_keeps_its_workspace_and_the_next_one_moves_and_the_model_is_told() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let (runner, api) = with_api(&gantry).await;
    let choose = async |place: &str| {
        gantry
            .client()
            .use_runner(place)
            .await
            .expect("it is there");
    };
    choose("laptop/api").await;
    let shell = |command: &str| Reply::call("Shell", serde_json::json!({ "command": command }));
    model.script(vec![
        shell("touch begun; while [ ! -e go ]; do sleep 0.05; done"),
        shell("touch two"),
        Reply::text("done"),
        shell("touch three"),
        Reply::text("done"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    let begun = async || api.join("begun").exists().then_some(());
    eventually("the command runs", begun).await;
    choose("laptop").await;
    std::fs::write(api.join("go"), "").expect("it is written");
    talk.ended(turn).await;
    assert!(api.join("two").exists() && !runner.workspace().join("two").exists());
    talk.say("again").await;
    assert!(runner.workspace().join("three").exists() && !api.join("three").exists());
    let told = format!("{:?}", model.requests().last().expect("one"));
    assert!(
        told.contains("; before this message they worked on runner laptop/api"),
        "{told}"
    );
}
