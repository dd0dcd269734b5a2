//! What other processes of the same user see of server and runner. Root sees everything, so where the
//! tests run as root the programs, copied to where others may run them, run as another user.

use std::{os::unix::fs::chown, path::Path, process::Output};

use tempfile::TempDir;
use tests::gantry::{Gantry, Process, Runner, binary, children_of, eventually};

/// The user and group `nobody` and `nogroup` of most systems; it need not exist.
const ORDINARY: u32 = 65534;

/// The programs, and what starts them as an ordinary user, as hidden as they are by default.
struct Ordinary {
    programs: TempDir,
    is_root: bool,
}

impl Ordinary {
    fn new() -> Self {
        let programs = tempfile::tempdir().expect("a temporary folder");
        for name in ["gantry-server", "gantry-runner", "gantry-supervisor"] {
            std::fs::copy(binary(name), programs.path().join(name)).expect("it is copied");
        }
        let is_root = tests::gantry::is_root();
        let ordinary = Self { programs, is_root };
        ordinary.give(ordinary.programs.path());
        ordinary
    }

    /// Gives a folder with what is in it to the ordinary user.
    fn give(&self, folder: &Path) {
        if !self.is_root {
            return;
        }
        chown(folder, Some(ORDINARY), Some(ORDINARY)).expect("we are root");
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            chown(entry.path(), Some(ORDINARY), Some(ORDINARY)).expect("we are root");
        }
    }

    /// Words that become the program behind them, run from our copy.
    fn launcher(&self) -> Vec<String> {
        let become_user = match self.is_root {
            true => format!("setpriv --reuid={ORDINARY} --regid={ORDINARY} --clear-groups"),
            false => "env".to_owned(),
        };
        let programs = self.programs.path().display();
        let words =
            format!("unset GANTRY_DUMPABLE; exec {become_user} {programs}/\"${{0##*/}}\" \"$@\"");
        ["sh", "-c", &words].map(str::to_owned).to_vec()
    }

    /// What `cat` as the same user says of a process's environment.
    async fn environment_of(&self, pid: u32) -> Output {
        let mut cat = tokio::process::Command::new("cat");
        cat.arg(format!("/proc/{pid}/environ"));
        if self.is_root {
            cat.uid(ORDINARY).gid(ORDINARY);
        }
        cat.output().await.expect("there is a cat")
    }

    async fn is_refused(&self, pid: u32) {
        let read = self.environment_of(pid).await;
        let said = String::from_utf8_lossy(&read.stderr);
        assert!(!read.status.success() && read.stdout.is_empty(), "{read:?}");
        assert!(said.contains("Permission denied"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_of_the_same_user_does_not_read_the_models_key_from_the_server() {
    let (ordinary, home) = (Ordinary::new(), tempfile::tempdir().expect("a folder"));
    ordinary.give(home.path());
    let environment = [
        ("OPENAI_API_KEY".to_owned(), "sk-secret".to_owned()),
        ("GANTRY_MODEL".to_owned(), "some-model".to_owned()),
    ];
    let arguments = ["run", "--listen", "127.0.0.1:0"].map(str::to_owned);
    let mut server = Process::start_by(
        &ordinary.launcher(),
        "gantry-server",
        &arguments,
        home.path(),
        &environment,
    );
    while !server.line().await.starts_with("listening on ") {}
    ordinary.is_refused(server.pid()).await;
    assert_eq!(server.terminate().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_hidden_from_its_user_works_as_ever_and_its_commands_are_not_hidden() {
    let (ordinary, gantry) = (Ordinary::new(), Gantry::practice().await);
    let mut runner = Runner::stranger();
    ordinary.give(&runner.home());
    let launcher = ordinary.launcher();
    runner.launch_by(&launcher.iter().map(String::as_str).collect::<Vec<_>>());
    let token = gantry.join_token("laptop").await;
    let enrolled = runner.try_enrol(gantry.url(), &token, "laptop").await;
    assert!(enrolled.status.success(), "{enrolled:?}");
    runner.start();
    gantry.until_online("laptop", true).await;
    ordinary.is_refused(runner.pid()).await;

    let mut talk = gantry.talk().await;
    for (message, answer) in [
        ("write notes/a.txt: one", "notes/a.txt"),
        ("edit notes/a.txt: one => two", "notes/a.txt"),
        ("read notes/a.txt", "two"),
        ("search two", "notes/a.txt"),
        (
            "run cat notes/a.txt; cat /proc/self/environ >environment",
            "two",
        ),
    ] {
        let told = talk.say(message).await;
        assert!(
            told.answer().contains(answer),
            "{message}: {}",
            told.answer()
        );
    }
    let seen = runner.file("environment").expect("it was written");
    assert!(
        seen.contains("PATH=") && !seen.contains("do-not-leak"),
        "{seen}"
    );
    let supervisors = eventually("supervisors wait", || async {
        Some(children_of(runner.pid())).filter(|children| !children.is_empty())
    });
    let read = ordinary.environment_of(supervisors.await[0]).await;
    assert!(read.status.success(), "{read:?}");

    // Its commands outlive it, and the next daemon takes them up.
    let turn = talk
        .send("run echo up; until [ -e go-on ]; do sleep 0.02; done; echo over")
        .await;
    talk.until_output("up").await;
    runner.kill().await;
    runner.start();
    gantry.until_online("laptop", true).await;
    let go_on = runner.workspace().join("go-on");
    std::fs::write(go_on, "").expect("it is written");
    let told = talk.ended(turn).await;
    assert!(told.answer().contains("over"), "{}", told.answer());
}
