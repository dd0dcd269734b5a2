//! Commands that outlast their calls: they go on as tasks, whatever dies meanwhile, and are never run
//! again (docs/internals/contracts.md#a18).

use std::process::Stdio;

use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, PATIENCE, Runner, eventually, processes_marked},
    model_server::{ModelServer, Reply},
};
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, ChildStdout},
    time::timeout,
};

/// Has one effect, and ends when it is told to.
const BUILD: &str = r#"{"command":"echo effect >> effects; echo before; while [ ! -e go-on ]; do sleep 0.02; done; echo after","timeout_ms":300}"#;

/// Reads on behind `before`.
const READ_ON: &str = r#"{"task":1,"stdout_from":7,"wait_ms":30000}"#;

/// Writes a line for each file that it waits for.
const LINES: &str = r#"{"command":"echo line 0; for n in 1 2 3; do until [ -e go-$n ]; do sleep 0.02; done; echo line $n; done","timeout_ms":300}"#;

/// What a terminal client shows.
struct Shown {
    client: Child,
    stdout: ChildStdout,
    text: String,
}

impl Shown {
    fn by(gantry: &Gantry, arguments: &[&str]) -> Self {
        let mut client = gantry.terminal(arguments);
        let mut client = client.stdout(Stdio::piped()).spawn().expect("it starts");
        let stdout = client.stdout.take().expect("it is piped");
        Self {
            client,
            stdout,
            text: String::new(),
        }
    }

    async fn until(&mut self, what: &str) {
        while !self.text.contains(what) {
            let mut piece = [0; 1024];
            let read = timeout(PATIENCE, self.stdout.read(&mut piece)).await;
            let read = read.unwrap_or_else(|_| panic!("no {what:?} in {}", self.text));
            let read = read.expect("it can be read");
            assert!(read > 0, "no {what:?} in {}", self.text);
            self.text.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    }
}

fn go_on(runner: &Runner) {
    std::fs::write(runner.workspace().join("go-on"), "").expect("it can be written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_outlasts_its_call_goes_on_and_is_read_from_where_it_was_read_to() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call("Shell", BUILD),
        Reply::call("task_read", r#"{"task":1,"stdout_from":7,"wait_ms":1000}"#),
        Reply::text("it runs"),
        Reply::call("task_read", READ_ON),
        Reply::call("task_status", "{}"),
        Reply::text("it is done"),
    ]);
    let mut talk = gantry.talk().await;
    let told = talk.say("build").await;
    let [
        (CallOutcome::Background, begun),
        (CallOutcome::Completed, still),
    ] = told.calls()[..]
    else {
        panic!("{:?}", told.calls())
    };
    assert!(
        begun.starts_with(
            "before\n[it still ran after 300 ms and goes on in the background as task 1"
        ),
        "{begun}"
    );
    assert!(begun.contains(r#""stdout_from":7"#), "{begun}");
    assert!(still.starts_with("[task 1 still runs"), "{still}");
    go_on(&runner);
    let told = talk.say("go on").await;
    let [
        (CallOutcome::Completed, end),
        (CallOutcome::Completed, status),
    ] = told.calls()[..]
    else {
        panic!("{:?}", told.calls())
    };
    assert!(end.starts_with("after\n[exit code 0"), "{end}");
    assert!(status.starts_with("task 1, on laptop: "), "{status}");
    assert_eq!(runner.file("effects").as_deref(), Some("effect\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_outlives_server_and_runner_and_its_end_is_told_with_the_next_message() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let mut runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call("Shell", BUILD),
        Reply::text("it runs"),
        Reply::call("task_read", r#"{"task":1}"#),
        Reply::text("it is done"),
    ]);
    let mut talk = gantry.talk().await;
    let told = talk.say("build").await;
    assert_eq!(told.calls()[0].0, CallOutcome::Background);
    gantry.kill_server().await;
    runner.kill().await;
    go_on(&runner);
    runner.start();
    gantry.start_server().await;
    let summary = talk.until_settled().await;
    assert!(summary.contains("exit code 0"), "{summary}");
    // What it wrote is kept by the server, too.
    runner.kill().await;
    gantry.until_online("laptop", false).await;
    let told = talk.say("and now?").await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.starts_with("before\nafter\n[exit code 0"), "{text}");
    assert_eq!(runner.file("effects").as_deref(), Some("effect\n"));
    let asked = model.requests().last().expect("it was asked").to_string();
    assert!(asked.contains("task 1 has ended meanwhile: "), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_for_a_task_goes_on_waiting_after_a_death_of_the_server() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call("Shell", BUILD),
        Reply::call("task_read", r#"{"task":1,"wait_ms":600000}"#),
        Reply::text("it is done"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("build").await;
    talk.until_asked_for("task_read").await;
    gantry.kill_server().await;
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    go_on(&runner);
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let text = told.calls()[1].1;
    assert!(text.starts_with("before\nafter\n[exit code 0"), "{text}");
    assert_eq!(runner.file("effects").as_deref(), Some("effect\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_stops_a_task_and_the_model_hears_of_it_with_the_next_message() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call("Shell", r#"{"command":"sleep 1000","background":true}"#),
        Reply::text("it runs"),
        Reply::text("I see"),
    ]);
    let mut talk = gantry.talk().await;
    talk.say("serve").await;
    let client = gantry.client();
    let tasks = client.tasks(talk.session()).await.expect("they are listed");
    let [task] = &tasks[..] else {
        panic!("{tasks:?}")
    };
    assert_eq!((task.number, task.ended.as_deref()), (1, None));
    let cancelled = client.cancel_operation(task.operation).await;
    assert_eq!(cancelled.expect("it is stopped").answer, "cancelled");
    let summary = talk.until_settled().await;
    let tasks = client.tasks(talk.session()).await.expect("they are listed");
    assert_eq!(tasks[0].ended, Some(summary));
    talk.say("well?").await;
    let asked = model.requests().last().expect("it was asked").to_string();
    assert!(asked.contains("task 1 has ended meanwhile: "), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_stopped_with_all_that_it_started() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let marker = format!("MARKER=task-{}", std::process::id());
    let mut talk = gantry.talk().await;
    let begin = format!(
        "run in the background: {marker} bash -c '(setsid sleep 1000 &); (nohup setsid sleep 1000 &); sleep 1000'"
    );
    let told = talk.say(&begin).await;
    assert_eq!(told.calls()[0].0, CallOutcome::Background);
    eventually("the whole tree is there", || async {
        (processes_marked(&marker).len() >= 3).then_some(())
    })
    .await;
    let told = talk.say("stop task 1").await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.contains("[stopped on request; "), "{text}");
    let left = processes_marked(&marker);
    assert!(left.is_empty(), "processes {left:?} outlived the stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_task_writes_is_shown_live_without_a_turn_and_once_though_the_server_dies() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    model.script(vec![Reply::call("Shell", LINES), Reply::text("it runs")]);
    let mut talk = gantry.talk().await;
    let told = talk.say("write").await;
    assert_eq!(told.calls()[0].0, CallOutcome::Background);
    let go = |number: u32| {
        let file = runner.workspace().join(format!("go-{number}"));
        std::fs::write(file, "").expect("it can be written");
    };
    let session = talk.session().to_string();
    let mut shown = Shown::by(&gantry, &["show", "--follow", &session]);
    shown.until("it runs\n").await;
    go(1);
    shown.until("[task 1] line 1\n").await;
    gantry.kill_server().await;
    go(2);
    shown.until("connection lost").await;
    gantry.start_server().await;
    shown.until("[task 1] line 2\n").await;
    go(3);
    shown.until("[task 1] ended: exit code 0\n").await;
    // That the runner is away is told where it links later than the terminal asks.
    let is_output = |line: &&str| {
        let is_of_task = line.starts_with("  │ ") || line.starts_with("[task 1] ");
        is_of_task && !line.starts_with("[task 1] its runner ")
    };
    let output: Vec<&str> = shown.text.lines().filter(is_output).collect();
    let expected = [
        "  │ line 0",
        "[task 1] line 1",
        "[task 1] line 2",
        "[task 1] line 3",
        "[task 1] ended: exit code 0",
    ];
    assert_eq!(output, expected, "{}", shown.text);
    let pid = shown
        .client
        .id()
        .expect("it was not waited for")
        .to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(sent.expect("kill starts").success());
    let left = shown.client.wait().await.expect("it ends");
    assert_eq!(left.code(), Some(130), "{}", shown.text);
}
