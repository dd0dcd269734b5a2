use proptest::prelude::*;
use shared_sandbox::OutputStream::{Stderr, Stdout};

use super::*;

fn output(stdout: &[u8], stderr: &[u8]) -> CommandOutput {
    let mut output = CommandOutput::new(10 * 1024);
    output.push(Stdout, 0, stdout);
    output.push(Stderr, 0, stderr);
    output
}

#[test]
fn one_stream_alone_needs_no_heading_unless_it_is_stderr() {
    assert_eq!(output(b"a\n", b"").show(1024), "a\n");
    assert_eq!(output(b"", b"b\n").show(1024), "[stderr]\nb\n");
    assert_eq!(output(b"", b"").show(1024), "");
}

#[test]
fn both_streams_are_told_apart() {
    assert_eq!(output(b"a", b"b").show(1024), "[stdout]\na\n[stderr]\nb");
}

#[test]
fn a_long_stdout_does_not_push_a_short_stderr_out() {
    let shown = output(&[b'x'; 50_000], b"the reason").show(2048);
    assert!(shown.ends_with("[stderr]\nthe reason"));
    assert!(
        shown.len() > 1600,
        "stderr leaves the room that it does not need"
    );
}

#[test]
fn output_that_is_not_utf_8_is_said_to_be() {
    assert!(
        output(b"\xff\xfe", b"")
            .show(1024)
            .contains("not all UTF-8")
    );
}

#[test]
fn of_a_line_that_is_written_over_only_the_last_state_takes_room() {
    let mut written = b"begin\r\n".to_vec();
    for percent in 0..=100 {
        written.extend(format!("\r{percent:3} % of a large file {}", "#".repeat(100)).bytes());
    }
    written.extend(b"\r\nthe one important line\n");
    for frame in 0..2000 {
        written.extend(format!("frame {frame} of many\r").bytes());
    }
    let mut output = CommandOutput::new(2048);
    for (number, piece) in written.chunks(7).enumerate() {
        output.push(Stdout, number as u64 * 7, piece);
    }
    let text = output.show(2048);
    assert!(text.starts_with("begin\r\n100 % of"), "{text}");
    assert!(
        text.contains("\nthe one important line\nframe 1999 of many\r"),
        "{text}"
    );
    assert!(text.ends_with("only the last state is shown]"), "{text}");
    assert!(!text.contains("left out"), "{text}");
    assert_eq!(output.ends(), [written.len() as u64, 0]);
}

proptest! {
    #[test]
    fn both_streams_together_stay_within_the_limit(
        stdout in proptest::collection::vec(any::<u8>(), 0..4000),
        stderr in proptest::collection::vec(any::<u8>(), 0..4000),
        limit in 512..3000usize,
    ) {
        prop_assert!(output(&stdout, &stderr).show(limit).len() <= limit);
    }
}
