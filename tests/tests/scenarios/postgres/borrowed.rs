//! Two servers on one database, and the link of the runner at one of them: at the other all works as if it were there.

use std::process::Stdio;

use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, Runner, Setup, eventually},
    postgres::Postgres,
    proxy::Proxy,
    work::{Job, Work},
};
use tokio::io::AsyncWriteExt as _;

/// A server that holds the link of a runner, and another one. The runner connects by way of the proxy.
struct Two {
    holder: Gantry,
    other: Gantry,
    front: Proxy,
    runner: Runner,
}

impl Two {
    async fn start(postgres: &Postgres) -> Self {
        let holder = Gantry::with(Setup {
            database: Some(postgres.database()),
            settings: "[peers]\nlisten = \"127.0.0.1:0\"\n".to_owned(),
            ..Setup::default()
        })
        .await;
        let other = holder.another().await;
        let front = Proxy::before(holder.url()).await;
        let runner = holder.runner_by_way_of(front.url(), "laptop").await;
        Self {
            holder,
            other,
            front,
            runner,
        }
    }

    /// The holder of the link is killed, and its runner finds the other server.
    async fn kill_holder(&mut self) {
        self.front.leads_to(self.other.url());
        self.holder.kill_server().await;
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_at_the_other_server_takes_input_and_gives_its_output_and_exit_code() {
    let postgres = Postgres::start();
    let two = Two::start(&postgres).await;
    let script = "cat; echo to stderr >&2; exit 7";
    let mut command = two
        .other
        .terminal(&["exec", "-i", "--", "sh", "-c", script]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let input: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let mut stdin = child.stdin.take().expect("a pipe");
    let (written, ended) = tokio::join!(
        async move {
            stdin
                .write_all(input.as_bytes())
                .await
                .expect("it is taken");
            input
        },
        child.wait_with_output()
    );
    let ended = ended.expect("it ends");
    assert_eq!(text(&ended.stderr), "to stderr\n");
    assert!(
        text(&ended.stdout) == written,
        "{} bytes came",
        ended.stdout.len()
    );
    assert_eq!(ended.status.code(), Some(7));
    let refused = two.other.cli(&["exec", "--", "/no/such/program"]).await;
    assert_eq!(refused.status.code(), Some(255));
    let why = text(&refused.stderr);
    assert!(why.contains("no program \"/no/such/program\""), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_at_the_other_server_is_typed_in_resized_and_taken_up_again_at_the_first() {
    let postgres = Postgres::start();
    let two = Two::start(&postgres).await;
    let mut screen = two.other.screen(&["shell"]);
    screen.type_in("echo $((6 * 7))\r");
    screen.until_written("42\r\n").await;
    screen.resize(33, 101);
    screen.type_in("until [ \"$(stty size)\" = '33 101' ]; do sleep 0.1; done; echo re''sized\r");
    screen.until_written("resized\r\n").await;
    screen.type_in("kept=still-here\r~.");
    screen
        .until_written("come back with: gantry attach op_")
        .await;
    assert_eq!(screen.ended().await, Some(0));
    let shown = screen.unfolded();
    let id = shown.split("gantry attach ").nth(1).expect("it is said");
    let id = id.split_whitespace().next().expect("an id");
    for (server, answer) in [(&two.holder, "one"), (&two.other, "two")] {
        let mut again = server.screen(&["attach", id]);
        again.type_in(&format!("echo \"<$kept {answer}>\"\r"));
        again.until_written(&format!("<still-here {answer}>")).await;
        again.signal("HUP");
        assert_eq!(again.ended().await, Some(129));
    }
    let mut last = two.other.screen(&["attach", id]);
    last.type_in("exit 6\r");
    assert_eq!(last.ended().await, Some(6));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_copied_both_ways_at_the_other_server() {
    let postgres = Postgres::start();
    let two = Two::start(&postgres).await;
    let here = tempfile::tempdir().expect("a folder");
    let content: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    let path = here.path().join("data.bin");
    std::fs::write(&path, &content).expect("it is written");
    let path = path.to_str().expect("text");
    let sent = two.other.cli(&["cp", path, "laptop:sent.bin"]).await;
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    let there = std::fs::read(two.runner.workspace().join("sent.bin"));
    assert!(there.expect("it is there") == content);
    let back = here.path().join("back.bin");
    let back = back.to_str().expect("text");
    let fetched = two.other.cli(&["cp", "laptop:sent.bin", back]).await;
    assert_eq!(fetched.status.code(), Some(0), "{}", text(&fetched.stderr));
    assert!(std::fs::read(back).expect("it is there") == content);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_the_other_server_works_on_the_runner_and_is_stopped_there() {
    let postgres = Postgres::start();
    let two = Two::start(&postgres).await;
    let mut talk = two.other.talk().await;
    let told = talk.say("run echo hello").await;
    assert_eq!(told.outcome, TurnOutcome::Completed);
    assert!(told.answer().contains("hello"), "{}", told.answer());
    let work = Work(41);
    let turn = talk.send(&format!("run {}", work.until_enough())).await;
    eventually("the work begins", || async { work.effects(&two.runner) }).await;
    talk.cancel().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Cancelled);
    assert!(
        matches!(told.calls()[..], [(CallOutcome::Cancelled, _)]),
        "{:?}",
        told.calls()
    );
    work.had_one_effect(&two.runner);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_holder_is_killed_goes_on_over_the_next_link_with_every_byte() {
    let postgres = Postgres::start();
    let mut two = Two::start(&postgres).await;
    let job = Job::begin(&two.other, &two.runner, Work(42)).await;
    two.kill_holder().await;
    two.other.until_online("laptop", true).await;
    job.finish(&two.runner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_link_goes_to_the_other_server_and_back_loses_no_byte() {
    let postgres = Postgres::start();
    let two = Two::start(&postgres).await;
    let jobs = [
        Job::begin(&two.other, &two.runner, Work(43)).await,
        Job::begin(&two.holder, &two.runner, Work(44)).await,
    ];
    for server in [&two.other, &two.holder] {
        two.front.leads_to(server.url());
        two.front.cut();
        let mut talk = server.talk().await;
        let told = talk.say("run echo still there").await;
        assert!(told.answer().contains("still there"), "{}", told.answer());
    }
    for job in jobs {
        job.finish(&two.runner).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_removed_at_the_other_server_loses_its_link() {
    let postgres = Postgres::start();
    let two = Two::start(&postgres).await;
    let runners = two.other.client().runners().await.expect("they are listed");
    let removed = two.other.client().remove_runner(runners[0].id).await;
    removed.expect("it is removed");
    two.runner.until_logged("revoked").await;
}
