//! A command whose every effect and every byte can be checked: "a 20-minute build in miniature".
//!
//! It appends one line to a file (the effect, which must be there once), and writes a seeded
//! sequence of numbers until it is told that it is enough, or for a given count.

use std::{fmt::Write as _, path::Path};

use shared_types::{
    Digest, TurnId,
    event::{CallOutcome, TurnOutcome},
};

use crate::{
    gantry::{Gantry, Runner, Talk, eventually},
    report::report,
};

/// One piece of work, by its seed, which also names its files.
#[derive(Debug, Clone, Copy)]
pub struct Work(pub u32);

/// The multiplier and modulus of the generator of Park and Miller: every product is exact also in
/// the floating-point numbers of awk.
const MULTIPLIER: u64 = 16_807;
const MODULUS: u64 = 2_147_483_647;

impl Work {
    /// For the shell: writes a number about every 20 ms until [`Work::is_enough`], or until its
    /// workspace is gone.
    pub fn until_enough(self) -> String {
        let seed = self.0;
        format!(
            "echo effect >> effects-{seed}; x={seed}; n=0; \
             until [ -e enough-{seed} ] || [ ! -e effects-{seed} ]; do \
             x=$((x * {MULTIPLIER} % {MODULUS})); n=$((n + 1)); echo $x; sleep 0.02; done; \
             echo $n > lines-{seed}"
        )
    }

    /// For the shell: writes so many numbers as fast as it can.
    pub fn at_once(self, lines: u32) -> String {
        let seed = self.0;
        format!(
            "echo effect >> effects-{seed}; awk 'BEGIN {{ x = {seed}; for (n = 0; n < {lines}; n++) \
             {{ x = (x * {MULTIPLIER}) % {MODULUS}; print x }} }}'; echo {lines} > lines-{seed}"
        )
    }

    /// Tells the command that it is enough.
    pub fn is_enough(self, workspace: &Path) {
        std::fs::write(workspace.join(format!("enough-{}", self.0)), "").expect("it is written");
    }

    /// What a command that wrote so many numbers has written.
    pub fn output(self, lines: u64) -> String {
        let (mut x, mut text) = (u64::from(self.0), String::new());
        for _ in 0..lines {
            x = x * MULTIPLIER % MODULUS;
            writeln!(text, "{x}").expect("a string takes everything");
        }
        text
    }

    /// Waits until the command has written its count, which is its last act, and returns it.
    pub async fn lines(self, runner: &Runner) -> u64 {
        eventually("the command ends", || async {
            runner
                .file(&format!("lines-{}", self.0))?
                .trim()
                .parse()
                .ok()
        })
        .await
    }

    /// Holds a call that ended well to the work: every byte of what the model was told by its
    /// SHA-256, and one effect. A command that ran for long, on a busy machine, has written more than
    /// a model is shown: then see [`Work::is_done_in_part`].
    ///
    /// # Panics
    /// If a byte is missing, doubled or wrong, or the effect is not there exactly once.
    pub async fn is_done(self, runner: &Runner, told: &str) {
        let lines = self.lines(runner).await;
        if told.contains(" bytes left out from offset ") {
            return self.is_done_in_part(runner, lines, told);
        }
        let (output, epilogue) = told.rsplit_once('[').expect("the end of a command is told");
        assert!(epilogue.starts_with("exit code 0"), "{epilogue}");
        // What the model is told where nothing was written.
        let output = if lines == 0 && output == "[no output]\n" {
            ""
        } else {
            output
        };
        self.is_whole(lines, output.as_bytes());
        self.had_one_effect(runner);
    }

    /// Holds output to what a command that wrote so many numbers has written.
    ///
    /// # Panics
    /// If it is anything else; says where it differs first.
    pub fn is_whole(self, lines: u64, output: &[u8]) {
        let expected = self.output(lines).into_bytes();
        if Digest::of(output) == Digest::of(&expected) {
            return;
        }
        let same = output
            .iter()
            .zip(&expected)
            .take_while(|(a, b)| a == b)
            .count();
        panic!(
            "work {} gave {} bytes instead of {}; they differ from byte {same} on",
            self.0,
            output.len(),
            expected.len()
        );
    }

    /// Holds the two ends of a long output, and the number of bytes between them, to what a command
    /// that wrote so many numbers has written; and its effect.
    ///
    /// # Panics
    /// If anything is wrong.
    pub fn is_done_in_part(self, runner: &Runner, lines: u64, told: &str) {
        let parts = told.split_once("\n[… ").and_then(|(head, rest)| {
            let (left_out, rest) = rest.split_once(" bytes left out from offset ")?;
            let (offset, rest) = rest.split_once(" …]\n")?;
            let (rest, _name) = rest.rsplit_once("\n[an excerpt of r")?;
            let (tail, epilogue) = rest.rsplit_once('[')?;
            let number = |text: &str| text.parse::<usize>().ok();
            Some((head, (number(left_out)?, number(offset)?), tail, epilogue))
        });
        let (head, (left_out, offset), tail, epilogue) = parts.expect("a part of it is told");
        assert!(epilogue.starts_with("exit code 0"), "{epilogue}");
        let expected = self.output(lines);
        assert!(expected.starts_with(head), "it begins with {head}");
        assert!(expected.ends_with(tail), "it ends with {tail}");
        assert_eq!(head.len() + left_out + tail.len(), expected.len());
        assert_eq!(offset, head.len());
        self.had_one_effect(runner);
    }

    /// # Panics
    /// If the effect is not there exactly once.
    pub fn had_one_effect(self, runner: &Runner) {
        assert_eq!(
            self.effects(runner).as_deref(),
            Some("effect\n"),
            "work {}",
            self.0
        );
    }

    /// What the work has left of its effects; `None` where it had none.
    pub fn effects(self, runner: &Runner) -> Option<String> {
        runner.file(&format!("effects-{}", self.0))
    }
}

/// Work that a conversation of its own has asked for.
pub struct Job {
    /// What it is.
    pub work: Work,
    /// The conversation.
    pub talk: Talk,
    turn: TurnId,
}

impl Job {
    /// Asks the practice model for the work, and waits until it has had its effect.
    pub async fn begin(gantry: &Gantry, runner: &Runner, work: Work) -> Self {
        let job = Self::ask(gantry, &work.until_enough(), work).await;
        eventually("the work begins", || async { work.effects(runner) }).await;
        job
    }

    /// The same, on the runner of this name, whichever the person uses.
    pub async fn begin_on(gantry: &Gantry, (name, runner): (&str, &Runner), work: Work) -> Self {
        let mut talk = gantry.talk().await;
        let pinned = gantry.client().pin_session(talk.session(), name).await;
        pinned.expect("the session is pinned");
        let turn = talk.send(&format!("run {}", work.until_enough())).await;
        eventually("the work begins", || async { work.effects(runner) }).await;
        Self { work, talk, turn }
    }

    /// The turn that does the work.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// Asks the practice model to run the work's command.
    pub async fn ask(gantry: &Gantry, command: &str, work: Work) -> Self {
        let mut talk = gantry.talk().await;
        let turn = talk.send(&format!("run {command}")).await;
        Self { work, talk, turn }
    }

    /// Tells the command that it is enough, and holds its end to what was promised.
    pub async fn finish(self, runner: &Runner) {
        finish(vec![self], runner).await;
    }
}

/// How calls ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// With every byte of their output and one effect.
    pub completed: usize,
    /// Without any effect, because there was no runner to be had.
    pub refused: usize,
    /// Nobody knows how.
    pub lost: usize,
}

/// Tells every command that it is enough, and holds the end of each to what was promised: all of
/// them ended well.
///
/// # Panics
/// If one did not, or gave other output or another number of effects than it had.
pub async fn finish(jobs: Vec<Job>, runner: &Runner) {
    let of = jobs.len();
    let tally = tally(jobs, runner).await;
    assert_eq!(tally.completed, of, "{tally:?}");
}

/// Tells every command that it is enough, holds the end of each to what was promised, and prints
/// how many were lost.
///
/// # Panics
/// If one was lost, gave other output than it had, or had more effects than one, or fewer than it
/// says.
pub async fn tally(jobs: Vec<Job>, runner: &Runner) -> Tally {
    for job in &jobs {
        job.work.is_enough(&runner.workspace());
    }
    let (mut tally, mut why) = (Tally::default(), Vec::new());
    for mut job in jobs {
        let told = job.talk.ended(job.turn).await;
        assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
        let mut operations = told.operations();
        let placed = operations.len();
        operations.sort();
        operations.dedup();
        // What a runner that stops has refused comes again as another operation.
        assert_eq!(placed, operations.len(), "none is ever placed again");
        match told.calls()[..] {
            [(CallOutcome::Completed, text)] => {
                job.work.is_done(runner, text).await;
                tally.completed += 1;
            }
            [(CallOutcome::Refused, text)] => {
                assert_eq!(job.work.effects(runner), None, "it was refused: {text}");
                tally.refused += 1;
            }
            [(CallOutcome::Unknown, text)] => {
                why.push(format!("work {}: {text}", job.work.0));
                tally.lost += 1;
            }
            ref other => panic!("work {}: {other:?}", job.work.0),
        }
    }
    let Tally {
        completed,
        refused,
        lost,
    } = tally;
    report(&format!(
        "LOST: {lost} of {} commands; refused without an effect: {refused}",
        completed + refused + lost
    ));
    assert_eq!(lost, 0, "{why:#?}");
    tally
}
