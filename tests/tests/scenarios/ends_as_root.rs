//! Ends of commands that only root can bring about: a host without a shell, without room, without
//! memory, or started anew.

use std::path::{Path, PathBuf};

use shared_types::event::CallOutcome;
use tests::gantry::{Gantry, Runner, eventually};

/// A disk that is full soon.
const DISK_BYTES: u64 = 64 * 1024 * 1024;

/// Memory for a runner with a few commands, and not for a greedy one.
const MEMORY_BYTES: u64 = 128 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_a_reboot_ended_says_so_with_its_output_and_is_not_run_again() {
    let gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let turn = talk
        .send("run echo effect >> effects; echo so far; sleep 1000")
        .await;
    talk.until_output("so far").await;
    runner.power_off();
    let boot = runner.home().join("boot");
    std::fs::write(&boot, "another boot\n").expect("it is written");
    let words = format!(
        "mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\"",
        boot.display()
    );
    runner.launch_by(&["unshare", "--mount", "sh", "-c", &words]);
    runner.start();
    let told = talk.ended(turn).await;
    let [(CallOutcome::Unknown, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.starts_with("so far\n"), "{text}");
    assert!(text.contains("the runner's host restarted"), "{text}");
    assert_eq!(runner.file("effects").as_deref(), Some("effect\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_a_shell_says_that_one_is_to_be_installed() {
    let gantry = Gantry::practice().await;
    let no_shell = "mount --bind /dev/null \"$(readlink -f /bin/sh)\" && \
                    exec env PATH=/nowhere \"$0\" \"$@\"";
    let launcher = ["unshare", "--mount", "bash", "-c", no_shell];
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol_by(&launcher, gantry.url(), &token, "laptop").await;
    runner.start();
    gantry.until_online("laptop", true).await;
    gantry
        .tells("run echo here", CallOutcome::Failed, "neither bash nor sh")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_what_is_new_in_clear_words_until_there_is_room_again() {
    let gantry = Gantry::practice().await;
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol_on_disk_of(DISK_BYTES, gantry.url(), &token, "laptop").await;
    // It looks for room a hundred times in that.
    runner.options(&["--disconnect-for", "10"]);
    runner.start();
    gantry.until_online("laptop", true).await;
    let mut patient = gantry.talk().await;
    let waits = "run touch begun; until [ -e go-on ]; do sleep 0.02; done; echo after";
    let turn = patient.send(waits).await;
    eventually("it waits", || async { runner.file("begun") }).await;

    let no_room = "its output found no room on the runner's disk";
    let fills = "run head -c 1G /dev/zero > filler; echo full";
    gantry.tells(fills, CallOutcome::Failed, no_room).await;
    for _ in 0..3 {
        gantry
            .tells(
                "run echo more",
                CallOutcome::Refused,
                "nearly full, and what is left is kept free: free some; try again later",
            )
            .await;
    }
    assert_eq!(runner.log().matches("the disk is nearly full").count(), 1);
    gantry
        .tells("list .", CallOutcome::Completed, "filler")
        .await;
    std::fs::remove_file(runner.workspace().join("filler")).expect("it is there");
    runner.until_logged("the disk has room again").await;
    gantry
        .tells("run echo room", CallOutcome::Completed, "room")
        .await;
    assert_eq!(runner.log().matches("the disk has room again").count(), 1);

    std::fs::write(runner.workspace().join("go-on"), "").expect("it is written");
    let told = patient.ended(turn).await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.starts_with("after\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_the_host_kills_for_want_of_memory_says_so_and_the_runner_lives() {
    let gantry = Gantry::practice().await;
    let bound = MemoryBound::new(MEMORY_BYTES);
    let entered = bound.entered();
    let token = gantry.join_token("laptop").await;
    let launcher = ["sh", "-c", &entered];
    let mut runner = Runner::enrol_by(&launcher, gantry.url(), &token, "laptop").await;
    runner.start();
    gantry.until_online("laptop", true).await;
    let greedy = "run echo so far; head -c 1G /dev/zero | tail";
    gantry
        .tells(greedy, CallOutcome::Failed, "ran out of memory")
        .await;
    gantry
        .tells("run echo lives", CallOutcome::Completed, "lives")
        .await;
    drop(runner);
}

/// A bound on the memory of whatever is started in it.
struct MemoryBound {
    folder: PathBuf,
}

impl MemoryBound {
    fn new(bytes: u64) -> Self {
        let hierarchies = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        let name = format!("gantry-test-{}", std::process::id());
        for (hierarchy, limit) in hierarchies {
            let folder = Path::new(hierarchy).join(&name);
            if std::fs::create_dir(&folder).is_err() {
                continue;
            }
            let bound = Self { folder };
            if std::fs::write(bound.folder.join(limit), bytes.to_string()).is_ok() {
                return bound;
            }
        }
        panic!("root may bound the memory of a cgroup");
    }

    /// Words for the shell that put it, and so what it becomes, within the bound.
    fn entered(&self) -> String {
        format!(
            "echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"",
            self.folder.display()
        )
    }
}

impl Drop for MemoryBound {
    fn drop(&mut self) {
        // Empty by now, or left to the host: nothing here depends on it.
        let _ = std::fs::remove_dir(&self.folder);
    }
}
