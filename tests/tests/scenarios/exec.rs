use std::process::{Output, Stdio};

use tests::{
    gantry::{Gantry, Screen, eventually},
    proxy::Proxy,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Child,
};

const LOST: &str = "gantry: connection lost; trying again\n";
const BACK: &str = "gantry: connected again\n";

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn seq(from: u64, to: u64) -> String {
    (from..=to).map(|number| format!("{number}\n")).collect()
}

async fn exec(gantry: &Gantry, words: &[&str]) -> Output {
    gantry.cli(&[&["exec"], words].concat()).await
}

/// Starts it with pipes on all sides.
fn piped(mut command: tokio::process::Command) -> Child {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

/// Waits until it has written this, and returns all of what it wrote by then.
async fn until_written(from: &mut (impl tokio::io::AsyncRead + Unpin), text: &str) -> String {
    let mut written = Vec::new();
    while !String::from_utf8_lossy(&written).contains(text) {
        let mut piece = [0; 4096];
        let read = tokio::time::timeout(tests::gantry::PATIENCE, from.read(&mut piece)).await;
        let read = read.expect("it is written in time").expect("it is read");
        assert!(read > 0, "{}", String::from_utf8_lossy(&written));
        written.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&written).into_owned()
}

async fn until_nothing_runs(gantry: &Gantry) {
    let ended = async || {
        let listed = gantry.cli(&["ps"]).await;
        listed.stdout.is_empty().then_some(())
    };
    eventually("nothing runs", ended).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_is_the_commands_and_255_where_it_never_started() {
    let gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let ended = exec(&gantry, &["--", "sh", "-c", script]).await;
        assert_eq!(ended.status.code(), Some(code), "{}", text(&ended.stderr));
        assert_eq!(
            (text(&ended.stdout), text(&ended.stderr)),
            Default::default()
        );
    }
    let slow = ["--timeout", "1s", "--", "sleep", "60"];
    let missing = ["--", "no-such-program"];
    let elsewhere = ["-r", "nowhere", "--", "true"];
    for (words, code) in [(&slow[..], 143), (&missing, 255), (&elsewhere, 255)] {
        let ended = exec(&gantry, words).await;
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{words:?}: {said}");
        assert!(
            said.starts_with("gantry: ") && said.lines().count() == 1,
            "{said}"
        );
        assert_eq!(text(&ended.stdout), "");
    }
    runner.stop().await;
    gantry.until_online("laptop", false).await;
    let ended = exec(&gantry, &["--", "true"]).await;
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(255), "{said}");
    assert!(
        said.contains("laptop") && said.contains("offline") && said.contains("-r NAME"),
        "{said}"
    );
    let screen = gantry.screen(&["exec", "--", "true"]);
    screen
        .until_written("it has not started yet; waiting for its runner")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_as_if_it_ran_here() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    std::fs::create_dir(runner.workspace().join("there")).expect("it is made");
    let script = "echo \"$0 $1 $GREETING\"; basename \"$PWD\"; echo wrong >&2";
    let words = [
        "-w",
        "there",
        "-e",
        "GREETING=hi",
        "--",
        "sh",
        "-c",
        script,
        "a b",
        "-r",
    ];
    let ended = exec(&gantry, &words).await;
    assert_eq!(text(&ended.stdout), "a b -r hi\nthere\n");
    assert_eq!(text(&ended.stderr), "wrong\n");
    // Without -i nobody waits for the end of standard input.
    let mut open = piped(gantry.terminal(&["exec", "--", "sh", "-c", "cat; echo read"]));
    let _stdin = open.stdin.take();
    let ended = open.wait_with_output().await.expect("it ends");
    assert_eq!(text(&ended.stdout), "read\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn input_and_output_go_through_cuts_without_a_byte_twice_or_lost() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let proxy = Proxy::before(gantry.url()).await;
    // The first connection is that of the start.
    proxy.set(|weather| (weather.cut_after, weather.cut_later_by) = (600_000, 100_000));
    let command = gantry.terminal_by_way_of(proxy.url(), &["exec", "-i", "--", "tac"]);
    let mut tac = piped(command);
    let mut stdin = tac.stdin.take().expect("a pipe");
    let input = seq(1, 400_000);
    let typing = async {
        stdin.write_all(input.as_bytes()).await.expect("it reads");
        drop(stdin);
    };
    let (ended, ()) = tokio::join!(tac.wait_with_output(), typing);
    let ended = ended.expect("it ends");
    let said = text(&ended.stderr);
    let reversed: String = (1..=400_000)
        .rev()
        .map(|number| format!("{number}\n"))
        .collect();
    assert!(
        ended.stdout == reversed.as_bytes(),
        "another output; {said}"
    );
    assert_eq!(ended.status.code(), Some(0));
    let cuts = said.matches(LOST).count();
    assert!(cuts >= 3, "{said}");
    assert_eq!(said, [LOST, BACK].concat().repeat(cuts));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_interrupts_a_command_only_for_who_watches_it() {
    let mut gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let script = "seq 1 100000; read line; echo $line; until [ -e go ]; do sleep 0.02; done; \
                  seq 100001 200000; exit 3";
    let mut exec = piped(gantry.terminal(&["exec", "-i", "--", "sh", "-c", script]));
    let mut stdin = exec.stdin.take().expect("a pipe");
    let (mut stdout, mut stderr) = (exec.stdout.take().expect("a pipe"), exec.stderr.take());
    let stderr = stderr.as_mut().expect("a pipe");
    let mut written = until_written(&mut stdout, "100000\n").await;
    gantry.kill_server().await;
    assert_eq!(until_written(stderr, "\n").await, LOST);
    // What is typed meanwhile is held.
    stdin
        .write_all(b"typed meanwhile\n")
        .await
        .expect("it reads");
    gantry.start_server().await;
    until_written(stderr, BACK).await;
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    stdout.read_to_string(&mut written).await.expect("text");
    let expected = [
        &seq(1, 100_000),
        "typed meanwhile\n",
        &seq(100_001, 200_000),
    ]
    .concat();
    assert!(written == expected, "another output");
    assert_eq!(exec.wait().await.expect("it ends").code(), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_left_running_listed_taken_up_again_and_stopped() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let script =
        "trap 'echo caught; exit 4' USR1; echo begun; touch begun; while :; do sleep 0.02; done";
    let started = exec(&gantry, &["-d", "--", "sh", "-c", script]).await;
    let id = text(&started.stdout).trim().to_owned();
    assert!(id.starts_with("op_"), "{id}");
    eventually("it begins", || async { runner.file("begun") }).await;
    let listed = text(&gantry.cli(&["ps"]).await.stdout);
    let line = listed
        .lines()
        .find(|line| id.starts_with(line.split(' ').next().expect("words")));
    let line = line.expect("it is listed");
    for word in ["laptop", "owner", "just now", "runs, ", "sh -c"] {
        assert!(line.contains(word), "{word}: {listed}");
    }
    let mut attached = piped(gantry.terminal(&["attach", &id[..12]]));
    until_written(attached.stdout.as_mut().expect("a pipe"), "begun\n").await;
    let killed = gantry.cli(&["kill", "-s", "USR1", &id]).await;
    assert_eq!(killed.status.code(), Some(0), "{}", text(&killed.stderr));
    let ended = attached.wait_with_output().await.expect("it ends");
    assert_eq!(
        (text(&ended.stdout), ended.status.code()),
        ("caught\n".into(), Some(4))
    );
    // What has ended is shown all the same.
    let again = gantry.cli(&["attach", &id]).await;
    assert_eq!(
        (text(&again.stdout), again.status.code()),
        ("begun\ncaught\n".into(), Some(4))
    );

    let started = exec(&gantry, &["-d", "--", "sleep", "600"]).await;
    let id = text(&started.stdout).trim().to_owned();
    let killed = gantry.cli(&["kill", &id]).await;
    assert_eq!(text(&killed.stdout), format!("{id} is stopped\n"));
    until_nothing_runs(&gantry).await;
    let all = text(&gantry.cli(&["ps", "-a"]).await.stdout);
    assert!(
        all.contains("exit code 4") && all.contains("sleep 600"),
        "{all}"
    );
    let json = text(&gantry.cli(&["ps", "-a", "--json"]).await.stdout);
    let first: serde_json::Value =
        serde_json::from_str(json.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        (&first["id"], &first["state"]),
        (&id.into(), &"ended".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn control_c_interrupts_the_command_and_a_second_one_stops_what_it_started() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let script = "trap 'echo interrupted' INT; echo begun; while :; do sleep 0.02; done";
    let mut screen = gantry.screen(&["exec", "--", "sh", "-c", script]);
    screen.until_written("begun").await;
    assert!(screen.echoes(), "the terminal is as it was");
    const STOPPING: &str = "gantry: stopping it with everything that it started";
    // On a slow machine the second one may come too late to stop it, and interrupts it once more.
    for interrupts in 1.. {
        screen.type_in("\x03");
        let shown = || screen.written();
        let heeded = async || {
            let interrupted = shown().matches("interrupted").count() >= interrupts;
            (interrupted || shown().contains(STOPPING)).then_some(())
        };
        eventually("it is heeded", heeded).await;
        if shown().contains(STOPPING) {
            break;
        }
    }
    assert!(screen.written().contains("interrupted"));
    assert_eq!(screen.ended().await, Some(143));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_passed_on_whole_and_restored() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    // A busy machine may time a read out in the middle of the line.
    let script = "echo $TERM; stty size; trap 'stty size' WINCH; trap 'echo caught' INT; \
                  until read -t 0.05 part; do line+=$part; done; echo \"<$line$part>\"; exit 5";
    let mut screen = gantry.screen(&["exec", "-t", "--", "bash", "-c", script]);
    screen.until_written("xterm\r\n24 80\r\n").await;
    assert!(!screen.echoes());
    screen.resize(30, 100);
    screen.until_written("30 100\r\n").await;
    screen.type_in("\x03");
    screen.until_written("caught\r\n").await;
    screen.type_in("漢字 ~.\r");
    screen.until_written("<漢字 ~.>").await;
    assert_eq!(screen.ended().await, Some(5));
    assert!(screen.echoes(), "the terminal is as it was");
    let piped = exec(&gantry, &["-t", "--", "true"]).await;
    assert_eq!(piped.status.code(), Some(255));
    assert!(
        text(&piped.stderr).contains("needs a terminal"),
        "{}",
        text(&piped.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_was_left_goes_on_and_is_taken_up_again() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let mut screen = gantry.screen(&["shell"]);
    screen.type_in("echo $((6 * 7))\r");
    screen.until_written("42\r\n").await;
    screen.type_in("kept=still-here\r~?");
    screen.until_written("~.  leave").await;
    screen.type_in("~.");
    screen
        .until_written("come back with: gantry attach op_")
        .await;
    assert_eq!(screen.ended().await, Some(0));
    assert!(screen.echoes(), "the terminal is as it was");
    let shown = screen.unfolded();
    let id = shown.split("gantry attach ").nth(1).expect("it is said");
    let id = id.split_whitespace().next().expect("an id");

    let mut again = gantry.screen(&["attach", id]);
    again.type_in("echo \"<$kept>\"\r");
    again.until_written("<still-here>").await;
    again.signal("HUP");
    assert_eq!(again.ended().await, Some(129));
    let mut last = gantry.screen(&["attach", id]);
    last.type_in("exit 6\r");
    assert_eq!(last.ended().await, Some(6));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_switched_on_in_the_terminal_is_switched_off_when_it_is_left_or_killed() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let editor = r"printf '\033[?1049h\033[?2004h\033[?25lfull screen'; exec sleep 300";
    let off = "\x1b[?25h\x1b[?2004l\x1b[?1049l";
    let mut left = gantry.screen(&["exec", "-t", "--", "sh", "-c", editor]);
    left.until_written("full screen").await;
    left.type_in("\r~.");
    left.until_written("come back with: gantry attach op_")
        .await;
    assert_eq!(left.ended().await, Some(0));
    let shown = left.written();
    let (_, after) = shown.split_once(off).expect("it is switched off");
    assert!(after.contains("come back with"), "{shown:?}");
    let mut killed = gantry.screen(&["exec", "-t", "--", "sh", "-c", editor]);
    killed.until_written("full screen").await;
    let run = gantry.client().operations(false, 10).await;
    for operation in run.expect("they are listed") {
        gantry.cli(&["kill", &operation.id.to_string()]).await;
    }
    killed.ended().await;
    assert!(killed.written().contains(off), "{:?}", killed.written());
    let mut ended = gantry.screen(&["exec", "-t", "--", "printf", r"\033[?25lhidden"]);
    assert_eq!(ended.ended().await, Some(0));
    assert!(!ended.written().contains("[?25h"), "it wanted it so");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_goes_on_over_a_cut_and_says_so() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let proxy = Proxy::before(gantry.url()).await;
    let command = gantry.terminal_by_way_of(proxy.url(), &["exec", "-t", "--", "cat"]);
    let screen = Screen::start(&command);
    screen.type_in("before\r");
    screen.until_written("before\r\nbefore\r\n").await;
    proxy.set(|weather| weather.refuses = true);
    proxy.cut();
    screen
        .until_written("\r\ngantry: connection lost; trying again\r\n")
        .await;
    screen.type_in("meanwhile\r");
    proxy.clear();
    screen
        .until_written("\r\ngantry: connected again\r\n")
        .await;
    screen.until_written("meanwhile\r\nmeanwhile\r\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn control_c_while_the_server_is_away_is_sent_once_it_is_back() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let proxy = Proxy::before(gantry.url()).await;
    let script = "trap 'echo interrupted; exit 7' INT; echo begun; while :; do sleep 0.02; done";
    let command = gantry.terminal_by_way_of(proxy.url(), &["exec", "--", "sh", "-c", script]);
    let mut screen = Screen::start(&command);
    screen.until_written("begun").await;
    proxy.set(|weather| weather.refuses = true);
    proxy.cut();
    screen.type_in("\x03");
    screen
        .until_written("Ctrl-C has not reached the server; it is sent again until it has")
        .await;
    proxy.clear();
    screen.until_written("interrupted").await;
    assert_eq!(screen.ended().await, Some(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_before_the_server_has_answered_is_told_how_to_stop_the_command() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let proxy = Proxy::before(gantry.url()).await;
    let script = "echo begun; while :; do sleep 0.02; done";
    let command = gantry.terminal_by_way_of(proxy.url(), &["exec", "--", "sh", "-c", script]);
    let mut screen = Screen::start(&command);
    screen.until_written("begun").await;
    proxy.set(|weather| weather.refuses = true);
    proxy.cut();
    let said = async |words: &str| screen.written().contains(words).then_some(());
    // Only two that follow each other soon stop it.
    let stopping = async || {
        screen.type_in("\x03");
        said("stopping it with everything").await
    };
    eventually("it is to be stopped", stopping).await;
    screen.type_in("\x03");
    screen
        .until_written("it may still run: gantry kill op_")
        .await;
    assert_eq!(screen.ended().await, Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_gone_ends_the_command() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let mut exec = piped(gantry.terminal(&["exec", "--", "yes"]));
    until_written(exec.stdout.as_mut().expect("a pipe"), "y\n").await;
    drop(exec.stdout.take());
    assert_eq!(exec.wait().await.expect("it ends").code(), Some(141));
    until_nothing_runs(&gantry).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_followed_to_its_end() {
    let mut gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let script = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; echo err >&2";
    let started = exec(&gantry, &["-d", "--", "sh", "-c", script]).await;
    let id = text(&started.stdout).trim().to_owned();
    let mut follow = piped(gantry.terminal(&["output", "-f", &id]));
    until_written(follow.stdout.as_mut().expect("a pipe"), "one\n").await;
    gantry.kill_server().await;
    until_written(follow.stderr.as_mut().expect("a pipe"), LOST).await;
    gantry.start_server().await;
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    let ended = follow.wait_with_output().await.expect("it ends");
    assert_eq!(
        (text(&ended.stdout), ended.status.code()),
        ("two\n".into(), Some(0))
    );
}
