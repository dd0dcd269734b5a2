//! Standard input as part of a message: what `git diff | gantry chat "review this"` sends.
//!
//! A pipe whose writer is slow looks like one that a program left open by mistake. So a
//! pipe that brings nothing is noted after a second, and is an error after a minute of silence:
//! a message without its input is never sent. A `-` as the last word waits as long as it takes.

use std::{
    io::{IsTerminal as _, Read},
    time::Duration,
};

use anyhow::{Context as _, bail};
use shared_types::limits::MAX_MESSAGE_BYTES;
use tokio::{sync::mpsc, time::timeout};

use crate::screen::Screen;

/// The silence of standard input after which a note says that the client reads it.
const NOTE_AFTER: Duration = Duration::from_secs(1);

/// The longest silence of the pipe, if the person did not type `-`.
const SILENT_AT_MOST: Duration = Duration::from_secs(60);

/// Bytes of one read.
const PIECE_BYTES: usize = 64 * 1024;

/// The parts of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Its words are all of it.
    Ignored,
    /// Standard input is added to the words, unless it is a terminal.
    Added,
    /// `-`: it is waited for, also on a terminal.
    Wanted,
}

/// The words of a message without the `-`, and what becomes of standard input.
pub(super) fn asked(words: &[String], is_terminal: bool) -> (&[String], Input) {
    match words {
        [before @ .., dash] if dash == "-" => (before, Input::Wanted),
        words if is_terminal => (words, Input::Ignored),
        words => (words, Input::Added),
    }
}

/// The message that these words and standard input make.
pub(super) async fn message(screen: Screen, words: &[String]) -> anyhow::Result<String> {
    let is_terminal = std::io::stdin().is_terminal();
    let (words, input) = asked(words, is_terminal);
    let text = words.join(" ");
    let piped = match input {
        Input::Ignored => return Ok(text),
        Input::Wanted if is_terminal => {
            screen.note("type the message, and end it with Ctrl-D");
            read(screen, std::io::stdin(), None).await?
        }
        Input::Wanted => read(screen, std::io::stdin(), None).await?,
        Input::Added => read(screen, std::io::stdin(), Some(SILENT_AT_MOST)).await?,
    };
    joined(screen, text, piped)
}

fn joined(screen: Screen, text: String, piped: Vec<u8>) -> anyhow::Result<String> {
    let piped = String::from_utf8(piped).unwrap_or_else(|error| {
        screen.note("standard input is not all UTF-8: other bytes are sent as �");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    let message = match (text.trim().is_empty(), piped.trim().is_empty()) {
        (_, true) => text,
        (true, false) => piped,
        (false, false) => format!("{text}\n\n{piped}"),
    };
    if message.len() > MAX_MESSAGE_BYTES {
        bail!("{}", too_long());
    }
    Ok(message)
}

fn too_long() -> String {
    format!(
        "the message with its standard input is longer than {} KiB: send less of it, or put it into \
         a file on the runner and name the file",
        MAX_MESSAGE_BYTES / 1024
    )
}

/// Reads to the end, at most what a message may have.
async fn read(
    screen: Screen,
    input: impl Read + Send + 'static,
    silent_at_most: Option<Duration>,
) -> anyhow::Result<Vec<u8>> {
    let (pieces, mut next) = mpsc::channel(1);
    // The process ends without waiting for a read that never returns.
    std::thread::spawn(move || read_pieces(input, &pieces));
    let mut whole = Vec::new();
    let mut is_noted = false;
    loop {
        let mut piece = timeout(NOTE_AFTER, next.recv()).await;
        if piece.is_err() {
            if !std::mem::replace(&mut is_noted, true) {
                screen.note("reading standard input to its end; without any: </dev/null");
            }
            piece = match silent_at_most {
                None => Ok(next.recv().await),
                Some(longest) => timeout(longest.saturating_sub(NOTE_AFTER), next.recv()).await,
            };
        }
        let Ok(piece) = piece else {
            let longest = silent_at_most.unwrap_or_default().as_secs();
            bail!(
                "standard input brought nothing for {longest} s and did not end; nothing was sent: \
                 add </dev/null to send the words alone, or - as the last word to wait for it"
            );
        };
        let Some(piece) = piece else {
            return Ok(whole);
        };
        whole.extend(piece.context("failed to read standard input")?);
        if whole.len() > MAX_MESSAGE_BYTES {
            bail!("{}", too_long());
        }
    }
}

fn read_pieces(mut input: impl Read, pieces: &mpsc::Sender<std::io::Result<Vec<u8>>>) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = match input.read(&mut piece) {
            Ok(0) => return,
            Ok(read) => Ok(piece[..read].to_vec()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_over = read.is_err();
        if pieces.blocking_send(read).is_err() || is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn screen() -> Screen {
        Screen::new(true, true)
    }

    #[test]
    fn a_dash_at_the_end_asks_for_standard_input() {
        let review = words("review this");
        assert_eq!(asked(&review, true), (&review[..], Input::Ignored));
        assert_eq!(asked(&review, false), (&review[..], Input::Added));
        let dash = words("review -");
        assert_eq!(asked(&dash, true), (&dash[..1], Input::Wanted));
        assert_eq!(asked(&words("-"), false), (&[][..], Input::Wanted));
    }

    #[test]
    fn words_and_input_are_one_message_of_bounded_size() {
        let join = |text: &str, piped: &[u8]| joined(screen(), text.to_owned(), piped.to_vec());
        assert_eq!(join("review", b"+1\n").expect("it fits"), "review\n\n+1\n");
        assert_eq!(join("review", b"\n").expect("it fits"), "review");
        assert_eq!(join("", b"alone").expect("it fits"), "alone");
        assert_eq!(join("a", b"\xff").expect("it fits"), "a\n\n\u{fffd}");
        let error = join("a", &vec![b'x'; MAX_MESSAGE_BYTES]).expect_err("it is too long");
        assert!(error.to_string().contains("256 KiB"), "{error}");
    }

    #[tokio::test]
    async fn an_endless_input_is_refused_and_not_read_to_its_end() {
        let error = read(screen(), std::io::repeat(b'x'), None).await;
        assert!(
            error
                .expect_err("it is too long")
                .to_string()
                .contains("256 KiB")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_pipe_that_nobody_ends_is_an_error_and_not_a_wait_without_end() {
        let (open, _writer) = std::io::pipe().expect("a pipe");
        let error = read(screen(), open, Some(SILENT_AT_MOST)).await;
        let error = error.expect_err("it is silent").to_string();
        assert!(
            error.contains("60 s") && error.contains("</dev/null"),
            "{error}"
        );
    }
}
