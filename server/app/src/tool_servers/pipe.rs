//! The standard input and output of a program on a runner, by offsets: a link that is lost and found again loses nothing
//! and reorders nothing.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use server_mcp::{Pipe, PipeReader, PipeWriter};
use server_router::SandboxRouter;
use shared_sandbox::{Controls, ExitStatus, Input, OperationEvent, Outcome, OutputStream};
use shared_types::{OperationId, TenantId, clean::clean_line, event::ShownValue};

use crate::operations::{Operations, Program, ProgramEvents};

/// The bytes of standard error that are kept, to say why a program ended.
const LAST_WORDS_BYTES: usize = 2048;

/// The letters of them that people are shown.
const LAST_WORDS_SHOWN: usize = 240;

/// The pause before input is offered again where there was no room for it.
const OFFER_AGAIN: Duration = Duration::from_millis(20);

/// The last words of a program on its standard error.
#[derive(Clone)]
pub(super) struct LastWords {
    kept: Arc<Mutex<Vec<u8>>>,
    /// The values that it was given; they are hidden in its words.
    hidden: Arc<[String]>,
}

impl LastWords {
    fn new(mut hidden: Vec<String>) -> Self {
        // A shorter one is no secret, and stands in other words. One may be a part of another.
        hidden.retain(|value| value.len() >= 4);
        hidden.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self {
            kept: Arc::default(),
            hidden: hidden.into(),
        }
    }

    fn add(&self, words: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(words);
        let more = kept.len().saturating_sub(LAST_WORDS_BYTES);
        kept.drain(..more);
    }

    /// The last of them, harmless and on one line; may be empty.
    pub(super) fn shown(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut words = String::from_utf8_lossy(&kept).into_owned();
        for value in self.hidden.iter() {
            words = words.replace(value, ShownValue::HIDDEN);
        }
        let letters = words.trim().chars().count();
        let more = letters.saturating_sub(LAST_WORDS_SHOWN);
        let words: String = words.trim().chars().skip(more).collect();
        clean_line(&words, LAST_WORDS_SHOWN)
    }
}

/// Both ends of a program, and its last words, in which these values are hidden. The line is written before all else.
pub(super) fn of(
    program: Program,
    operations: Operations,
    first: Option<String>,
    hidden: Vec<String>,
) -> (Pipe, LastWords) {
    let (tenant, id) = (program.tenant, program.id);
    let (events, controls, sandbox) = program.into_parts();
    let last_words = LastWords::new(hidden);
    let pipe = Pipe {
        reader: Box::new(Output {
            events,
            controls: Arc::clone(&controls),
            read: [0, 0],
            last_words: last_words.clone(),
            operations,
            sandbox,
            tenant,
            id,
        }),
        writer: Box::new(ProgramInput {
            controls,
            written: 0,
            first: first.map(Bytes::from),
        }),
    };
    (pipe, last_words)
}

struct Output {
    events: ProgramEvents,
    controls: Arc<dyn Controls>,
    /// The bytes of stdout and of stderr that came.
    read: [u64; 2],
    last_words: LastWords,
    operations: Operations,
    sandbox: SandboxRouter,
    tenant: TenantId,
    id: OperationId,
}

#[async_trait]
impl PipeReader for Output {
    async fn read(&mut self) -> Result<Bytes, String> {
        loop {
            let event = self.events.next().await;
            let event = event.map_err(|refusal| refusal.message.to_string())?;
            match event {
                Some(OperationEvent::Output {
                    stream,
                    offset,
                    data,
                }) => {
                    let data = self.new_of(stream, offset, data);
                    let read = self.read[place(stream)];
                    self.controls.commit(stream, read).await;
                    match stream {
                        OutputStream::Stdout if !data.is_empty() => return Ok(data),
                        OutputStream::Stdout => {}
                        OutputStream::Stderr => self.last_words.add(&data),
                    }
                }
                Some(OperationEvent::Gap {
                    stream: OutputStream::Stdout,
                    ..
                }) => {
                    return Err("a part of its output is lost".to_owned());
                }
                Some(OperationEvent::Ended(outcome)) => {
                    self.operations
                        .close_program(self.tenant, self.id, &self.sandbox)
                        .await;
                    return Err(self.ended(&outcome));
                }
                Some(_) => {}
                None => return Err("its runner has no output of it any more".to_owned()),
            }
        }
    }
}

impl Output {
    /// The part of the bytes that did not come before.
    fn new_of(&mut self, stream: OutputStream, offset: u64, mut data: Bytes) -> Bytes {
        let read = &mut self.read[place(stream)];
        let known = read.saturating_sub(offset);
        let known = usize::try_from(known).unwrap_or(usize::MAX).min(data.len());
        let new = data.split_off(known);
        *read = (*read).max(offset.saturating_add((known + new.len()) as u64));
        new
    }

    fn ended(&self, outcome: &Outcome) -> String {
        let how = match outcome {
            Outcome::Exited(exit) => match &exit.status {
                ExitStatus::Code(code) => format!("it exited with code {code}"),
                other => format!("it was ended ({other:?})"),
            },
            Outcome::Refused(refusal) => refusal.message.to_string(),
            _ => "it has ended".to_owned(),
        };
        let words = self.last_words.shown();
        match words.is_empty() {
            true => how,
            false => format!("{how}: {words}"),
        }
    }
}

fn place(stream: OutputStream) -> usize {
    match stream {
        OutputStream::Stdout => 0,
        OutputStream::Stderr => 1,
    }
}

struct ProgramInput {
    controls: Arc<dyn Controls>,
    written: u64,
    first: Option<Bytes>,
}

#[async_trait]
impl PipeWriter for ProgramInput {
    async fn write(&mut self, bytes: Bytes) -> Result<(), String> {
        if let Some(first) = self.first.take() {
            self.pass(first).await?;
        }
        self.pass(bytes).await
    }
}

impl ProgramInput {
    async fn pass(&mut self, mut data: Bytes) -> Result<(), String> {
        while !data.is_empty() {
            let input = Input {
                offset: self.written,
                data: data.clone(),
                end: false,
            };
            let taken = self.controls.input(input).await;
            let taken = taken.map_err(|refusal| refusal.message.to_string())?;
            let Some(new) = taken.checked_sub(self.written) else {
                return Err("its runner has lost a part of its input".to_owned());
            };
            if new == 0 {
                tokio::time::sleep(OFFER_AGAIN).await;
            }
            let new = usize::try_from(new).unwrap_or(usize::MAX).min(data.len());
            self.written += new as u64;
            data = data.split_off(new);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_hide_the_values_that_the_program_was_given() {
        let words = LastWords::new(vec!["s3cret".into(), "s3cret-long".into(), "a".into()]);
        words.add(b"bad key s3cret-long, s3");
        words.add(b"cret at all");
        assert_eq!(words.shown(), "bad key (hidden), (hidden) at all");
    }
}
