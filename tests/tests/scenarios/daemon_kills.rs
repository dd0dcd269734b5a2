//! Daemons that are killed and replaced in the middle of a command: commands do not notice. The
//! oracles: each effect is there once, every byte of output has the right SHA-256, and nothing is
//! lost.

use std::time::Duration;

use shared_types::{Entropy as _, entropy::SeededEntropy, event::CallOutcome};
use tests::{
    gantry::{Gantry, Runner, Setup, eventually},
    model_server::{ModelServer, Reply},
    report::report,
    work::{Job, Work, finish, tally},
};
use tokio::time::sleep;

/// Storms where nobody asks for more; `make soak` asks for 50.
const STORMS: u64 = 2;

/// Rounds of a storm, and how many commands begin in each.
const ROUNDS: u32 = 8;
const AT_ONCE: u32 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_command_goes_on_when_its_daemon_is_killed_again_and_again() {
    let (gantry, mut runner) = setting().await;
    let job = Job::begin(&gantry, &runner, Work(62)).await;
    for _ in 0..3 {
        runner.kill().await;
        runner.start();
        gantry.until_online("laptop", true).await;
    }
    job.finish(&runner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ends_while_its_daemon_is_dead_is_told_whole() {
    let (gantry, mut runner) = setting().await;
    let job = Job::begin(&gantry, &runner, Work(63)).await;
    runner.kill().await;
    job.work.is_enough(&runner.workspace());
    job.work.lines(&runner).await;
    runner.start();
    job.finish(&runner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_goes_on_when_server_and_daemon_are_killed_at_once() {
    let (mut gantry, mut runner) = setting().await;
    for (seed, server_first) in [(64, true), (65, false)] {
        let job = Job::begin(&gantry, &runner, Work(seed)).await;
        tokio::join!(gantry.kill_server(), runner.kill());
        if server_first {
            gantry.start_server().await;
            runner.start();
        } else {
            runner.start();
            gantry.start_server().await;
        }
        gantry.until_online("laptop", true).await;
        job.finish(&runner).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_of_the_runner_does_not_touch_running_commands() {
    let (gantry, mut runner) = setting().await;
    let jobs = [68, 69].map(Work);
    let jobs = [
        Job::begin(&gantry, &runner, jobs[0]).await,
        Job::begin(&gantry, &runner, jobs[1]).await,
    ];
    assert_eq!(runner.stop().await, Some(0));
    gantry.until_online("laptop", false).await;
    runner.start();
    gantry.until_online("laptop", true).await;
    finish(jobs.into(), &runner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_nobody_comes_back_for_has_its_own_time_and_its_end_is_told_later() {
    let model = ModelServer::start().await;
    let gantry = Gantry::with(Setup {
        model: Some(model.base_url()),
        ..Setup::with_short_links()
    })
    .await;
    let mut runner = gantry.runner("laptop").await;
    runner.kill().await;
    gantry.until_online("laptop", false).await;
    // Cut off for longer than that it would be stopped, if it had less time of its own.
    runner.options(&["--disconnect-for", "1"]);
    runner.start();
    gantry.until_online("laptop", true).await;
    model.script(vec![
        Reply::call(
            "Shell",
            r#"{"command":"echo before; echo $$ > pid; sleep 1000","idle_timeout_ms":5000}"#,
        ),
        Reply::text("I see"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    talk.until_output("before").await;
    let said = || async { runner.file("pid").filter(|pid| pid.ends_with('\n')) };
    let pid = eventually("it says its pid", said).await;
    runner.kill().await;
    let process = std::path::PathBuf::from(format!("/proc/{}", pid.trim()));
    eventually("it is stopped", || async {
        (!process.exists()).then_some(())
    })
    .await;
    runner.start();
    let told = talk.ended(turn).await;
    let [(CallOutcome::TimedOut, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.contains("before"), "{text}");
    assert!(text.contains("said nothing for 5 s"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_made_once_whatever_is_killed_around_it() {
    let (mut gantry, mut runner) = setting().await;
    let random = Random::of(3);
    let mut edits = Vec::new();
    for round in 0..ROUNDS {
        for nth in 0..AT_ONCE {
            let file = format!("edited-{round}-{nth}");
            std::fs::write(runner.workspace().join(&file), "x").expect("it is written");
            let mut talk = gantry.talk().await;
            let turn = talk.send(&format!("edit {file}: x => xy")).await;
            edits.push((file, talk, turn));
        }
        random.fault(&mut gantry, &mut runner).await;
    }
    let (mut lost, mut made, of) = (Vec::new(), 0, edits.len());
    for (file, mut talk, turn) in edits {
        let told = talk.ended(turn).await;
        let text = runner.file(&file).expect("it is there");
        // Made twice it would be "xyy".
        match told.calls()[..] {
            [(CallOutcome::Completed, _), (CallOutcome::Completed, _)] => {
                assert_eq!(text, "xy");
                made += 1;
            }
            [(CallOutcome::Completed, _), (CallOutcome::Refused, _)] => assert_eq!(text, "x"),
            [(CallOutcome::Completed, _), (CallOutcome::Unknown, why)] => {
                lost.push(format!("{file}: {why}"));
            }
            // The edit reads the file first.
            [(CallOutcome::Refused | CallOutcome::Unknown, _)] => assert_eq!(text, "x"),
            ref other => panic!("{file}: {other:?}"),
        }
    }
    report(&format!("LOST: {} of {of} edits, made: {made}", lost.len()));
    assert!(made > 0, "no edit was made");
    assert!(lost.is_empty(), "{lost:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_killed_servers_and_daemons_loses_nothing_and_repeats_nothing() {
    let first = asked_for("GANTRY_STORMS_FIRST").unwrap_or(1);
    let count = asked_for("GANTRY_STORMS").unwrap_or(STORMS);
    for seed in first..first + count {
        println!("storm of seed {seed}");
        storm(seed).await;
    }
}

/// Each round a few commands are asked for and killed around at once, while those of the round
/// before end.
async fn storm(seed: u64) {
    let (mut gantry, mut runner) = setting().await;
    let random = Random::of(seed);
    let mut jobs: Vec<Job> = Vec::new();
    for round in 0..ROUNDS {
        for job in &jobs {
            job.work.is_enough(&runner.workspace());
        }
        for nth in 0..AT_ONCE {
            let work = Work(1000 * (round + 1) + nth);
            jobs.push(Job::ask(&gantry, &work.until_enough(), work).await);
        }
        random.fault(&mut gantry, &mut runner).await;
    }
    let tally = tally(jobs, &runner).await;
    assert!(tally.completed > 0, "the storm left something to look at");
}

/// What a storm does next.
struct Random(SeededEntropy);

impl Random {
    fn of(seed: u64) -> Self {
        Self(SeededEntropy::new(seed))
    }

    /// Ends the server, the daemon or both, by force or in order, at any moment; starts them again,
    /// and waits until they are linked.
    async fn fault(&self, gantry: &mut Gantry, runner: &mut Runner) {
        self.pause().await;
        match self.below(5) {
            0 => gantry.kill_server().await,
            1 => runner.kill().await,
            2 => assert_eq!(runner.stop().await, Some(0), "{}", runner.log()),
            3 => assert_eq!(gantry.stop_server().await, Some(0), "{}", gantry.log()),
            _ => drop(tokio::join!(gantry.kill_server(), runner.kill())),
        }
        self.pause().await;
        gantry.start_server_if_dead().await;
        runner.start_if_dead();
        gantry.until_online("laptop", true).await;
    }

    async fn pause(&self) {
        sleep(Duration::from_millis(self.below(60))).await;
    }

    fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_be_bytes(bytes) % bound
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs the tests chooses how long they soak"
)]
fn asked_for(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("storms are counted and numbered"))
}

async fn setting() -> (Gantry, Runner) {
    let gantry = Gantry::with(Setup::with_short_links()).await;
    let runner = gantry.runner("laptop").await;
    (gantry, runner)
}
