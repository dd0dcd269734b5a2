//! Stop stops: whatever a command has become, it is gone after a cancel.

use shared_types::{
    TurnId,
    event::{CallOutcome, TurnOutcome},
};
use tests::gantry::{Gantry, Runner, Setup, Talk, eventually, processes_marked};

/// Leaves its session and its parents in every way that a shell knows, and ignores every polite
/// signal.
const TREE: &str = r#"
trap '' TERM HUP INT
( setsid bash -c 'while :; do sleep 1000; done' & )
( ( setsid sleep 1000 & ) & )
( nohup setsid setsid sleep 1000 > /dev/null 2>&1 & )
echo ready
while :; do sleep 1000; done
"#;

/// Lineages that fork, leave the session and end, without end: each is one process at a time, so
/// that the host survives a stop that does not. They end with their workspace. Each leaves a file, because
/// whoever looks at the processes meets few that still live.
const STORM: &str = r#"
trap '' TERM HUP INT
if [ "$1" = "" ]; then
    for lineage in 1 2 3 4 5 6 7 8; do setsid bash ./command.sh $lineage & done
    echo ready
    while :; do sleep 1000; done
fi
[ -e command.sh ] || exit 0
: > lineage-$1
setsid bash ./command.sh $1 &
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_left_its_session_and_ignores_every_signal_is_gone_after_a_cancel() {
    let mut running = Running::tree("tree").await;
    running.cancel().await;
    running.is_gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_gone_after_a_cancel_also_when_its_daemon_was_killed_in_between() {
    let mut running = Running::tree("orphan").await;
    running.runner.kill().await;
    running.gantry.until_online("laptop", false).await;
    running.runner.start();
    running.gantry.until_online("laptop", true).await;
    running.cancel().await;
    running.is_gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_is_cancelled_while_its_daemon_is_dead_is_gone_soon_after_it_is_back() {
    let mut running = Running::tree("late").await;
    running.runner.kill().await;
    running.talk.until_notice("offline since").await;
    running.talk.cancel().await;
    let told = running.talk.ended(running.turn).await;
    assert_eq!(told.outcome, TurnOutcome::Cancelled);
    assert!(
        !processes_marked(&running.marker).is_empty(),
        "nobody was there to stop it"
    );
    running.runner.start();
    eventually("the tree is gone", || async {
        processes_marked(&running.marker).is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_processes_that_fork_and_leave_is_killed_whole() {
    let mut running = Running::begin(STORM, "storm").await;
    let workspace = running.runner.workspace();
    eventually("every lineage has begun", || async {
        let begun = (1..=8).all(|lineage| workspace.join(format!("lineage-{lineage}")).exists());
        begun.then_some(())
    })
    .await;
    running.cancel().await;
    running.is_gone();
}

/// A command under way whose every process can be told by its environment.
struct Running {
    gantry: Gantry,
    runner: Runner,
    talk: Talk,
    turn: TurnId,
    marker: String,
}

impl Running {
    async fn tree(name: &str) -> Self {
        let running = Self::begin(TREE, name).await;
        eventually("the whole tree is there", || async {
            (processes_marked(&running.marker).len() >= 4).then_some(())
        })
        .await;
        running
    }

    async fn begin(script: &str, name: &str) -> Self {
        let gantry = Gantry::with(Setup::with_short_links()).await;
        let runner = gantry.runner("laptop").await;
        std::fs::write(runner.workspace().join("command.sh"), script).expect("it is written");
        let marker = format!("MARKER={name}-{}", std::process::id());
        let mut talk = gantry.talk().await;
        let turn = talk.send(&format!("run {marker} bash ./command.sh")).await;
        talk.until_output("ready").await;
        Self {
            gantry,
            runner,
            talk,
            turn,
            marker,
        }
    }

    async fn cancel(&mut self) {
        self.talk.cancel().await;
        let told = self.talk.ended(self.turn).await;
        assert_eq!(told.outcome, TurnOutcome::Cancelled);
        assert_eq!(
            told.calls()[0].0,
            CallOutcome::Cancelled,
            "{:?}",
            told.calls()
        );
        assert!(
            !told.calls()[0].1.contains("may still run"),
            "{:?}",
            told.calls()
        );
    }

    fn is_gone(&self) {
        let left = processes_marked(&self.marker);
        assert!(left.is_empty(), "processes {left:?} outlived the cancel");
    }
}
