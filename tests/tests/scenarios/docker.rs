//! A runner that makes a container for each person, on a real Docker engine.

use serde_json::json;
use shared_api::RoleName;
use shared_types::RunnerId;

use tests::{
    docker::{Containers, Engine, MortalEngine},
    gantry::{Gantry, Runner, binary, eventually},
    model_server::{ModelServer, Reply},
};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::api::{Api, SANDBOXES, document};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// A runner of this name that serves no folder; what is left of its containers goes with the second.
async fn pool(gantry: &Gantry, name: &str) -> (Runner, Containers) {
    pool_on(gantry, name, &Engine::of_the_tests()).await
}

/// The same on another engine. It has no container wait for a sandbox.
async fn pool_on(gantry: &Gantry, name: &str, engine: &Engine) -> (Runner, Containers) {
    pool_with(gantry, name, engine, &[]).await
}

/// The same with more options.
async fn pool_with(
    gantry: &Gantry,
    name: &str,
    engine: &Engine,
    more: &[&str],
) -> (Runner, Containers) {
    let token = gantry.join_token(name).await;
    let mut runner = Runner::enrol(gantry.url(), &token, name).await;
    let socket = engine.socket();
    let options = ["--docker-host", &socket, "--warm", "0"];
    runner.options(&[&["--backend", "docker"], &options[..], more].concat());
    runner.start();
    gantry.until_online(name, true).await;
    // What is kept apart was tried out, so that the link is begun anew no more.
    runner.until_logged("isolation is proved").await;
    let proved = async || {
        let runners = gantry.client().runners().await.expect("they are listed");
        let pool = runners.into_iter().find(|one| one.name == name)?.pool?;
        (pool.isolation != "none").then_some(())
    };
    eventually("the runner says what is kept apart", proved).await;
    let id: RunnerId = gantry.client().runners().await.expect("a list")[0].id;
    (runner, engine.containers_of(id))
}

async fn exec(gantry: &Gantry, token: &str, script: &str) -> (Option<i32>, String, String) {
    let words = ["exec", "-r", "dock", "--", "sh", "-c", script];
    let mut command = gantry.terminal(&words);
    command.env("GANTRY_TOKEN", token);
    let ended = command.output().await.expect("it runs");
    (
        ended.status.code(),
        text(&ended.stdout),
        text(&ended.stderr),
    )
}

async fn state(gantry: &Gantry, wanted: &str) -> shared_api::Sandbox {
    let is = async || {
        let all = gantry.client().sandboxes().await.expect("they are listed");
        all.into_iter().find(|one| one.state == wanted)
    };
    eventually(&format!("a sandbox is {wanted}"), is).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_person_has_a_container_whose_files_stay_and_sees_no_other() {
    let gantry = Gantry::practice().await;
    let (mut runner, containers) = pool(&gantry, "dock").await;
    let shared = gantry
        .cli(&["runners", "share", "dock", "--with", "everyone"])
        .await;
    assert!(shared.status.success(), "{}", text(&shared.stderr));
    let (owner, ann) = (
        gantry.token().to_owned(),
        gantry.person("ann", RoleName::Member).await,
    );
    let write = "hostname; whoami; pwd; echo mine > file";
    let (code, said, wrong) = exec(&gantry, &owner, write).await;
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "sandbox\nuser\n/workspace\n"),
        "{wrong}"
    );
    let (code, said, _) = exec(&gantry, &ann, "ls -A; echo hers > file").await;
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(containers.ids().len(), 2);
    // Admins see all of them, others their own.
    let as_owner = gantry.client().sandboxes().await.expect("a list");
    assert_eq!(as_owner.len(), 2);
    let as_ann = gantry.client_with(Some(ann.clone())).sandboxes().await;
    let [hers] = &as_ann.expect("a list")[..] else {
        panic!("not one");
    };
    assert_eq!(hers.owner, "ann");
    let (mut paged, mut query) = (Vec::new(), "limit=1".to_owned());
    loop {
        let path = format!("{SANDBOXES}?{query}");
        let page = gantry.ask("get", &path, None).await.body;
        paged.push(page["sandboxes"][0]["id"].as_str().map(str::to_owned));
        let Some(next) = page["next"].as_str() else {
            break;
        };
        query = format!("limit=1&after={next}");
    }
    let all = as_owner.iter().map(|one| Some(one.id.to_string()));
    assert_eq!(paged, all.collect::<Vec<_>>());
    let owners = as_owner.iter().find(|one| one.owner != "ann");
    let owners = owners.expect("the other").id.to_string();
    for (method, verb) in [
        ("get", ""),
        ("get", "/changes"),
        ("patch", ""),
        ("delete", ""),
        ("post", "/start"),
        ("post", "/stop"),
    ] {
        let ask = async |id: &str| {
            let body = (method == "patch").then(|| "{}".to_owned());
            let path = format!("{SANDBOXES}/{id}{verb}");
            let answer = gantry.ask_as(&ann, method, &path, body).await;
            (answer.status, answer.body)
        };
        let nothing = ask("sbx_00000000000000000000000000").await;
        assert_eq!(ask(&owners).await, nothing, "{method} {verb}");
        assert_eq!(nothing.0, 404);
    }
    // The next day: the container is gone, by hand and with its daemon.
    runner.kill().await;
    containers.remove();
    runner.start();
    gantry.until_online("dock", true).await;
    let (code, said, wrong) = exec(&gantry, &owner, "cat file").await;
    assert_eq!((code, said.as_str()), (Some(0), "mine\n"), "{wrong}");
    let (code, said, _) = exec(&gantry, &ann, "cat file").await;
    assert_eq!((code, said.as_str()), (Some(0), "hers\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_gives_root_inside_lists_say_so_and_policy_forbids_it_at_once() {
    let gantry = Gantry::practice().await;
    let engine = Engine::of_the_tests();
    let template = ["--template", "root=gantry/base:1,sudo"];
    let (_runner, _containers) = pool_with(&gantry, "dock", &engine, &template).await;
    let owner = gantry.token().to_owned();
    let script = "id -u; sudo id -u; sudo sh -c 'exit 7'";
    let (code, said, wrong) = exec(&gantry, &owner, script).await;
    assert_eq!((code, said.as_str()), (Some(7), "1000\n0\n"), "{wrong}");
    let has_sudo = state(&gantry, "running").await;
    assert_eq!(has_sudo.privilege, "sudo");
    let runners = gantry.cli(&["runners"]).await;
    assert!(text(&runners.stdout).contains("root with sudo"));
    let policy = async |word: &str| {
        let set = ["config", "set", "sudo", word, "--tenant"];
        let set = gantry.cli(&set).await;
        assert!(set.status.success(), "{}", text(&set.stderr));
    };
    // What runs as root then is stopped, though nothing else is sent there.
    let mut command = gantry.terminal(&["exec", "-r", "dock", "--", "sudo", "sh"]);
    command
        .args(["-c", "echo up; sleep 1000"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true);
    let mut root = command.spawn().expect("it runs");
    let mut lines = BufReader::new(root.stdout.take().expect("a pipe")).lines();
    let up = lines.next_line().await.expect("readable");
    assert_eq!(up.as_deref(), Some("up"));
    policy("forbid").await;
    let ended = root.wait_with_output().await.expect("it ends");
    assert!(!ended.status.success(), "{ended:?}");
    let stopped = state(&gantry, "stopped").await;
    let reason = stopped.reason.unwrap_or_default();
    assert!(reason.contains("policy forbids"), "{reason}");
    let (code, said, wrong) = exec(&gantry, &owner, script).await;
    assert_eq!(said, "");
    assert!(
        code != Some(7) && wrong.contains("policy forbids"),
        "{wrong}"
    );
    let start = gantry.cli(&["sandboxes", "start", "dock"]).await;
    assert!(text(&start.stderr).contains("policy forbids"));
    policy("allow").await;
    let (code, _, wrong) = exec(&gantry, &owner, script).await;
    assert_eq!(code, Some(7), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_a_container_outlives_its_daemon_and_the_server_with_each_effect_once() {
    let mut gantry = Gantry::practice().await;
    let (mut runner, _containers) = pool(&gantry, "dock").await;
    let script = "for i in $(seq 1 60); do echo $i; echo $i >> effects; sleep 0.05; done";
    let words = ["exec", "-r", "dock", "--", "sh", "-c", script];
    let mut command = gantry.terminal(&words);
    command
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    let running = command.spawn().expect("it runs");
    state(&gantry, "running").await;
    runner.kill().await;
    runner.start();
    gantry.kill_server().await;
    gantry.start_server().await;
    let ended = running.wait_with_output().await.expect("it ends");
    let lines: Vec<String> = (1..=60).map(|line| line.to_string()).collect();
    assert_eq!(text(&ended.stdout).lines().collect::<Vec<_>>(), lines);
    assert_eq!(ended.status.code(), Some(0));
    let token = gantry.token().to_owned();
    let (_, effects, _) = exec(&gantry, &token, "cat effects").await;
    assert_eq!(effects.lines().collect::<Vec<_>>(), lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_works_in_the_container_and_a_stopped_pool_is_an_error_that_says_since_when() {
    let model = ModelServer::start().await;
    model.script(vec![
        Reply::call(
            "Write",
            r#"{"path": "made/by.txt", "content": "an agent "}"#,
        ),
        Reply::call("Shell", r#"{"command": "cat made/by.txt; id -un"}"#),
        Reply::text("done"),
    ]);
    let gantry = Gantry::scripted(&model).await;
    let (mut runner, _containers) = pool(&gantry, "dock").await;
    let chosen = gantry.cli(&["runners", "use", "dock"]).await;
    assert!(chosen.status.success(), "{}", text(&chosen.stderr));
    let said = gantry.cli(&["chat", "write a file"]).await;
    assert!(said.status.success(), "{}", text(&said.stderr));
    let seen = model.requests();
    let last = seen.last().expect("a request").to_string();
    assert!(last.contains("an agent user"), "{last}");
    assert_eq!(runner.file("made/by.txt"), None, "it ran on the host");
    runner.stop().await;
    gantry.until_online("dock", false).await;
    let token = gantry.token().to_owned();
    let (code, _, wrong) = exec(&gantry, &token, "true").await;
    assert_ne!(code, Some(0));
    assert!(wrong.contains("offline since"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_stopped_limited_and_removed_and_says_so() {
    let gantry = Gantry::practice().await;
    let (_runner, containers) = pool(&gantry, "dock").await;
    let token = gantry.token().to_owned();
    exec(&gantry, &token, "echo mine > file").await;
    let ran = state(&gantry, "running").await;
    assert_eq!(
        (ran.template.as_str(), ran.network.as_str()),
        ("base", "none")
    );
    let verb = async |words: &[&str]| {
        let said = gantry.cli(&[&["sandboxes"], words].concat()).await;
        assert!(said.status.success(), "{}", text(&said.stderr));
    };
    verb(&["set", "dock", "--memory", "128MiB", "--processes", "50"]).await;
    verb(&["stop", "dock"]).await;
    let stopped = state(&gantry, "stopped").await;
    assert_eq!(stopped.reason.as_deref(), Some("it was stopped on request"));
    assert_eq!(stopped.memory_bytes, 128 << 20);
    let limit = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; cat file";
    let (_, said, _) = exec(&gantry, &token, limit).await;
    assert_eq!(said, format!("{}\nmine\n", 128 << 20));
    containers.remove();
    state(&gantry, "stopped").await;
    assert_eq!(containers.volumes().len(), 2);
    verb(&["remove", "--yes", "dock"]).await;
    let gone = async || containers.volumes().is_empty().then_some(());
    eventually("its files are gone", gone).await;
    let (_, said, _) = exec(&gantry, &token, "ls -A").await;
    assert_eq!(said, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_good_answer_about_a_sandbox_has_the_documented_shape() {
    let gantry = Gantry::practice().await;
    let (_runner, containers) = pool(&gantry, "dock").await;
    let document = document(&gantry).await;
    let mut api = Api::new(&gantry, &document);
    let wish = json!({ "runner": "dock" });
    let made = api.call("post", SANDBOXES, "", Some(wish.clone())).await;
    let again = api.call("post", SANDBOXES, "", Some(wish)).await;
    assert_eq!(made["id"], again["id"], "it is made once");
    let id = made["id"].as_str().expect("an id").to_owned();
    let of = format!("{SANDBOXES}/{{id}}");
    let nothing = json!({ "template": "nothing" }).to_string();
    let path = of.replace("{id}", &id);
    let refused = gantry.ask("patch", &path, Some(nothing)).await;
    let said = refused.body["detail"].as_str().unwrap_or_default();
    assert_eq!(refused.status, 422);
    assert!(said.contains("no such template, only: base"), "{said}");
    let limits = json!({ "memory_bytes": 128 << 20, "network": "none", "template": "base" });
    let changed = api.call("patch", &of, &id, Some(limits)).await;
    assert_eq!(changed["memory_bytes"], 128 << 20);
    api.call("post", &format!("{of}/start"), &id, None).await;
    state(&gantry, "running").await;
    let seen = api.call("get", &of, &id, None).await;
    assert_eq!(seen["state"], "running");
    api.call("post", &format!("{of}/stop"), &id, None).await;
    state(&gantry, "stopped").await;
    let log = api.call("get", &format!("{of}/changes"), &id, None).await;
    let log = log["changes"].as_array().expect("a list").clone();
    let states: Vec<_> = log
        .iter()
        .filter_map(|change| change["state"].as_str())
        .collect();
    assert!(states.ends_with(&["running", "stopped"]), "{states:?}");
    assert_eq!(log[log.len() - 1]["reason"], "it was stopped on request");
    let said = gantry.cli(&["sandboxes", "logs", "dock"]).await.stdout;
    assert!(text(&said).contains("it was stopped on request"));
    let listed = api.call("get", SANDBOXES, "", None).await;
    assert_eq!(listed["sandboxes"].as_array().map(Vec::len), Some(1));
    api.call("delete", &of, &id, None).await;
    let gone = async || containers.volumes().is_empty().then_some(());
    eventually("its files are gone", gone).await;
    api.was_seen_whole(|path| path.starts_with(SANDBOXES));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_demands_is_kept_apart_in_a_container_whose_runner_is_trusted() {
    let gantry = Gantry::practice().await;
    let (_runner, _containers) = pool(&gantry, "dock").await;
    let token = gantry.token().to_owned();
    let demand = [
        "config",
        "set",
        "isolation",
        "network+credential",
        "--tenant",
    ];
    assert!(gantry.cli(&demand).await.status.success());
    let (code, _, wrong) = exec(&gantry, &token, "true").await;
    assert!(
        code != Some(0) && wrong.contains("its word does not count"),
        "{wrong}"
    );
    let trusted = gantry.cli(&["runners", "trust", "dock"]).await;
    assert!(trusted.status.success());
    let (code, _, wrong) = exec(&gantry, &token, "true").await;
    assert_eq!(code, Some(0), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_engine_is_killed_ends_as_not_known_and_is_not_run_again() {
    let gantry = Gantry::practice().await;
    let mortal = MortalEngine::start();
    let (_runner, containers) = pool_on(&gantry, "dock", mortal.engine()).await;
    let words = ["exec", "-r", "dock", "--", "sh", "-c"];
    let script = "echo begun >> effects; echo begun; sleep 1000";
    let mut command = gantry.terminal(&[&words[..], &[script]].concat());
    let running = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut running = running.kill_on_drop(true).spawn().expect("it runs");
    let mut line = String::new();
    let mut said = BufReader::new(running.stdout.take().expect("piped"));
    said.read_line(&mut line).await.expect("a line");
    assert_eq!(line, "begun\n");
    mortal.kill();
    let problem = async || {
        let runners = gantry.client().runners().await.expect("they are listed");
        runners[0].pool.as_ref()?.problem.clone()
    };
    let words = eventually("the pool says what is wrong", problem).await;
    assert!(
        words.contains("engine does not answer; start it"),
        "{words}"
    );
    let token = gantry.token().to_owned();
    let (code, _, wrong) = exec(&gantry, &token, "true").await;
    assert!(
        code != Some(0) && wrong.contains("can make no sandbox now"),
        "{wrong}"
    );
    mortal.start_again();
    let ended = running.wait_with_output().await.expect("it ends");
    let wrong = text(&ended.stderr);
    assert!(ended.status.code() == Some(255) && wrong.contains("it is not known what it had done"));
    let well = async || problem().await.is_none().then_some(());
    eventually("the pool is well again", well).await;
    let (_, effects, wrong) = exec(&gantry, &token, "cat effects").await;
    assert_eq!(effects, "begun\n", "{wrong}");
    // What is removed while the engine is away is gone once it is back.
    assert_eq!(containers.volumes().len(), 2);
    mortal.kill();
    let removed = gantry.cli(&["sandboxes", "remove", "--yes", "dock"]).await;
    assert!(removed.status.success());
    mortal.start_again();
    let gone = async || containers.volumes().is_empty().then_some(());
    eventually("its files are gone", gone).await;
    assert_eq!(containers.ids().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_in_a_container_makes_containers_beside_it_and_takes_them_up_once_it_is_back() {
    const PROGRAM: &str = "/opt/gantry/gantry-runner";
    let gantry = Gantry::practice().await;
    let engine = Engine::of_the_tests();
    let token = gantry.join_token("dock").await;
    let programs = binary("gantry-runner");
    let programs = programs.parent().expect("a folder");
    let enrol = [
        PROGRAM,
        "enrol",
        "--server",
        gantry.url(),
        "--name",
        "dock",
        "-",
    ];
    let name = format!("gantry-test-{}", std::process::id());
    let inner = engine.run_inner(&name, programs, &enrol, &token);
    let id = gantry.client().runners().await.expect("a list")[0].id;
    let _containers = engine.containers_of(id);
    inner.start(programs, &[PROGRAM, "run", "--backend", "docker"]);
    gantry.until_online("dock", true).await;
    let script = "for i in $(seq 1 40); do echo $i; echo $i >> effects; sleep 0.1; done";
    let words = ["exec", "-r", "dock", "--", "sh", "-c", script];
    let mut command = gantry.terminal(&words);
    command
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    let running = command.spawn().expect("it runs");
    state(&gantry, "running").await;
    inner.kill_and_start();
    let ended = running.wait_with_output().await.expect("it ends");
    let lines: Vec<String> = (1..=40).map(|line| line.to_string()).collect();
    assert_eq!(text(&ended.stdout).lines().collect::<Vec<_>>(), lines);
    let token = gantry.token().to_owned();
    let (_, effects, wrong) = exec(&gantry, &token, "cat effects").await;
    assert_eq!(effects.lines().collect::<Vec<_>>(), lines, "{wrong}");
}
