use shared_sandbox::{OutputStream, StreamEnd};

use super::*;
use crate::tools::{CommandOutput, WholeFile};

fn prepared(arguments: &Arguments) -> Result<Prepared, BadArguments> {
    match ShellTool.prepare(arguments)? {
        Ask::Operation(prepared) => Ok(prepared),
        ask => panic!("{ask:?}"),
    }
}

fn told(stdout: &str, record: ExitRecord) -> Rendered {
    told_of(r#"{"command":"x"}"#, stdout, record)
}

fn told_of(arguments: &str, stdout: &str, record: ExitRecord) -> Rendered {
    let mut output = CommandOutput::new(4096);
    output.push(OutputStream::Stdout, 0, stdout.as_bytes());
    let arguments = Arguments::check(arguments, ShellTool.parameters()).expect("good");
    let prepared = prepared(&arguments).expect("good");
    let ended = Ended {
        request: &prepared.request,
        outcome: &Outcome::Exited(record),
        file: &WholeFile::default(),
        output: &output,
        run_for: prepared.run_for,
    };
    ShellTool.render(&ended, 1024).expect("it is an exit")
}

fn record() -> ExitRecord {
    ExitRecord {
        status: ExitStatus::Code(0),
        cause: ExitCause::Exited,
        stdout: StreamEnd::default(),
        stderr: StreamEnd::default(),
        wall_ms: 12,
        cpu_us: 0,
        max_rss_bytes: 0,
        tree_gone: true,
    }
}

#[test]
fn a_silent_command_is_said_to_be_silent() {
    assert_eq!(told("", record()).text, "[no output]\n[exit code 0]");
}

#[test]
fn milliseconds_are_not_shown_so_that_equal_results_read_equal() {
    let other = ExitRecord {
        wall_ms: 700,
        ..record()
    };
    assert_eq!(told("a", record()), told("a", other));
}

#[test]
fn seconds_and_survivors_are_told() {
    let late = ExitRecord {
        wall_ms: 3400,
        tree_gone: false,
        ..record()
    };
    assert_eq!(
        told("a", late).text,
        "a\n[exit code 0, after 3 s; processes that it started may still run]"
    );
}

#[test]
fn long_output_leaves_room_for_how_it_ended() {
    let told = told(&"x".repeat(100_000), record());
    assert!(told.text.len() <= 1024 && told.text.ends_with("[exit code 0]"));
}

#[test]
fn a_command_may_run_for_a_day_and_its_end_is_waited_for_as_long_as_the_model_says() {
    let asked = |arguments: &str| {
        let arguments = Arguments::check(arguments, ShellTool.parameters()).expect("good");
        let prepared = prepared(&arguments).expect("good");
        assert_eq!(prepared.run_for, Duration::from_secs(24 * 60 * 60));
        prepared.wait_for.expect("it is not waited for without end")
    };
    assert_eq!(asked(r#"{"command":"x"}"#), Duration::from_secs(120));
    let said = r#"{"command":"x","timeout_ms":600000}"#;
    assert_eq!(asked(said), Duration::from_secs(600));
    let at_once = r#"{"command":"x","timeout_ms":600000,"background":true}"#;
    assert_eq!(asked(at_once), BACKGROUND_AFTER);
}

#[test]
fn silence_is_bounded_only_where_the_model_asks_for_it() {
    let asked = |arguments: &str| {
        let arguments = Arguments::check(arguments, ShellTool.parameters())?;
        match prepared(&arguments)?.request {
            Request::Exec(exec) => Ok::<_, BadArguments>(exec.idle_for_ms.map(NonZeroU64::get)),
            other => panic!("{other:?}"),
        }
    };
    let idle = |ms: u64| asked(&format!(r#"{{"command":"x","idle_timeout_ms":{ms}}}"#));
    assert_eq!(asked(r#"{"command":"x"}"#), Ok(None));
    assert_eq!(idle(1000), Ok(Some(1000)));
    assert_eq!(idle(MAX_IDLE_TIMEOUT_MS), Ok(Some(MAX_IDLE_TIMEOUT_MS)));
    assert!(idle(999).is_err() && idle(0).is_err() && idle(MAX_IDLE_TIMEOUT_MS + 1).is_err());
}

#[test]
fn a_command_that_was_silent_for_too_long_is_told_so_with_the_time() {
    let silent = ExitRecord {
        cause: ExitCause::Idle,
        status: ExitStatus::Signal(15),
        ..record()
    };
    let told = told_of(r#"{"command":"x","idle_timeout_ms":90000}"#, "a", silent);
    assert_eq!(
        told.text,
        "a\n[stopped because it said nothing for 90 s; ended by signal 15]"
    );
    assert_eq!(told.outcome, CallOutcome::TimedOut);
}

#[test]
fn an_end_that_is_not_the_commands_own_is_told_with_its_cause_and_is_no_success() {
    use shared_sandbox::NotStarted;
    for (outcome, cause, status, text) in [
        (
            CallOutcome::Unknown,
            ExitCause::SupervisorLost,
            ExitStatus::Unknown,
            "[ended because its supervisor on the runner's host was killed; it is not known what it had done]",
        ),
        (
            CallOutcome::Failed,
            ExitCause::OutOfMemory,
            ExitStatus::Signal(9),
            "[killed because its sandbox or host ran out of memory; ended by signal 9]",
        ),
        (
            CallOutcome::Failed,
            ExitCause::DiskFull,
            ExitStatus::Signal(15),
            "[stopped because its output found no room on the runner's disk; ended by signal 15]",
        ),
        (
            CallOutcome::Failed,
            ExitCause::Exited,
            ExitStatus::NotStarted(NotStarted::WorkspaceGone),
            "[it could not be started: the workspace is gone from the runner's host; make its folder again and restart the runner]",
        ),
    ] {
        let record = ExitRecord {
            cause,
            status,
            ..record()
        };
        let told = told("a", record);
        assert_eq!(told.text, format!("a\n{text}"));
        assert_eq!(told.outcome, outcome);
    }
}
