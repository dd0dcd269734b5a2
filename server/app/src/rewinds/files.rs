//! Putting files back, by operations of the person where the agent's calls ran.

use std::{collections::HashSet, time::Duration};

use server_agent::{Before, NotKnown, TouchedFile};
use server_store::StoreError;
use shared_sandbox::{
    Download, Edit, FileFailure, OperationEvent, Outcome, OutputStream, Remove, Request, Stat,
    Write,
};
use shared_types::{
    DigestAlgorithm, OperationId, SessionEvent, TurnId,
    event::Place,
    limits::{FILE_OPERATION_WITHIN, MAX_FRAME_BYTES, MAX_INLINE_FILE_BYTES},
};
use tokio::time::timeout;

use super::Rewinds;
use crate::{AppError, Attached, OpContext};

/// Most files that one step back puts back.
const FILES_AT_MOST: usize = 200;

/// Most changes of one file that are looked up.
const CHANGES_AT_MOST: usize = 1000;

/// The time after which an operation is not waited for any more.
const WAITS_FOR: Duration = FILE_OPERATION_WITHIN.saturating_add(Duration::from_secs(15));

/// Most bytes of the two texts of an edit, so that it fits into a frame.
const EDIT_BYTES: usize = MAX_FRAME_BYTES - 64 * 1024;

/// The mark at the beginning of some text files. The runner keeps it over an edit.
const MARK: char = '\u{feff}';

/// A file that calls have changed since, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePutBack {
    /// The name of its runner.
    pub runner: String,
    /// Its path, relative to the root of the sandbox.
    pub path: String,
    /// The reason why it is as it is now; nothing if it is as it was before the message.
    pub left: Option<String>,
}

impl Rewinds {
    /// Puts back the files that calls have changed since this message.
    pub(super) async fn put_back(
        &self,
        ctx: &OpContext,
        log: &[SessionEvent],
        turn: TurnId,
    ) -> Result<Vec<FilePutBack>, AppError> {
        let touched = server_agent::touched_since(log, turn);
        let touched = touched.ok_or(AppError::NotFound("message"))?;
        self.reach_all(ctx, &touched).await?;
        let mut files = Vec::with_capacity(touched.len());
        for (number, mut file) in touched.into_iter().enumerate() {
            let left = match number < FILES_AT_MOST {
                true => self.put_one_back(ctx, &mut file).await?,
                false => Some(format!("more than {FILES_AT_MOST} files were changed")),
            };
            files.push(FilePutBack {
                runner: file.place.runner_name,
                path: file.path,
                left,
            });
        }
        Ok(files)
    }

    /// Fails before anything is changed if one of the places cannot be reached.
    async fn reach_all(&self, ctx: &OpContext, touched: &[TouchedFile]) -> Result<(), AppError> {
        let mut reached = HashSet::new();
        for TouchedFile { place, .. } in touched.iter().take(FILES_AT_MOST) {
            if reached.insert((place.runner, place.sandbox)) {
                let root = Request::Stat(Stat {
                    path: String::new(),
                    follow: false,
                });
                self.done(ctx, place, root).await?;
            }
        }
        Ok(())
    }

    /// Returns the reason why the file is left as it is.
    async fn put_one_back(
        &self,
        ctx: &OpContext,
        file: &mut TouchedFile,
    ) -> Result<Option<String>, AppError> {
        if file.changes.len() > CHANGES_AT_MOST {
            return Ok(Some(NotKnown::Content.to_string()));
        }
        for change in &mut file.changes {
            match self.store.operation(ctx.tenant, change.operation).await {
                Ok(row) => {
                    let outcome = row.outcome.and_then(|stored| stored.decode().ok());
                    outcome
                        .iter()
                        .for_each(|outcome| change.ended_with(outcome));
                }
                Err(StoreError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let download = Request::Download(Download {
            path: file.path.clone(),
            algorithm: DigestAlgorithm::Sha256,
            max_bytes: MAX_INLINE_FILE_BYTES as u64,
        });
        let now = match self.done(ctx, &file.place, download).await? {
            (content, Outcome::Downloaded(whole)) => {
                match DigestAlgorithm::Sha256.of(&content) == whole.digest {
                    true => Some(content),
                    false => return Ok(Some(NotKnown::ChangedSince.to_string())),
                }
            }
            (_, Outcome::Failed(FileFailure::NotFound { .. })) => None,
            (_, other) => return Ok(Some(words(&other))),
        };
        let before = match file.before(now.as_deref()) {
            Ok(before) => before,
            Err(reason) => return Ok(Some(reason.to_string())),
        };
        let Some(request) = request(&file.path, now, before) else {
            return Ok(None);
        };
        let (_, outcome) = self.done(ctx, &file.place, request).await?;
        Ok(match outcome {
            Outcome::Edited(_) | Outcome::Written(_) | Outcome::Removed(_) => None,
            Outcome::Failed(FileFailure::Changed { .. }) => {
                Some(NotKnown::ChangedSince.to_string())
            }
            other => Some(words(&other)),
        })
    }

    /// Has a request carried out, and returns its output and its end.
    async fn done(
        &self,
        ctx: &OpContext,
        place: &Place,
        request: Request,
    ) -> Result<(Vec<u8>, Outcome), AppError> {
        let within = FILE_OPERATION_WITHIN;
        let operations = &self.operations;
        let started = operations.start_there(ctx, place.runner, place.sandbox, request, within);
        let id = started.await?;
        match timeout(WAITS_FOR, self.read(ctx, id)).await {
            Ok(Ok(Some(end))) => Ok(end),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) | Err(_) => Err(AppError::Conflict(format!(
                "runner {} did not answer in time; send the same again once it is online, or go back in the conversation \
                 alone",
                place.runner_name
            ))),
        }
    }

    /// Nothing if the runner went offline.
    async fn read(
        &self,
        ctx: &OpContext,
        id: OperationId,
    ) -> Result<Option<(Vec<u8>, Outcome)>, AppError> {
        let attached = self.operations.attach(ctx, id, [0, 0]).await?;
        let Attached {
            mut reading,
            controls,
            ..
        } = attached;
        let mut content = Vec::new();
        while let Some(event) = reading.next().await? {
            match event {
                OperationEvent::Output {
                    stream: OutputStream::Stdout,
                    data,
                    ..
                } if content.len() + data.len() <= MAX_INLINE_FILE_BYTES => {
                    content.extend_from_slice(&data);
                    let taken = content.len() as u64;
                    controls.commit(OutputStream::Stdout, taken).await;
                }
                OperationEvent::Ended(outcome) => {
                    let taken = content.len() as u64;
                    controls.commit(OutputStream::Stdout, taken).await;
                    return Ok(Some((content, outcome)));
                }
                OperationEvent::Unreachable { .. } => return Ok(None),
                _ => {}
            }
        }
        Ok(None)
    }
}

/// The request that brings the file from its content now to the one before; nothing if they are the same.
///
/// The runner compares the content once more where an edit of the whole file does it. It cannot where the file is empty,
/// goes, is no text, or is too long for that.
fn request(path: &str, now: Option<Vec<u8>>, before: Before) -> Option<Request> {
    let path = path.to_owned();
    let new = match before {
        Before::AsNow => return None,
        Before::Absent => return Some(Request::Remove(Remove { path, tree: false })),
        Before::Content(content) => content,
    };
    let now = now.and_then(|now| String::from_utf8(now).ok());
    let now = now.filter(|now| {
        let keeps_mark = now.starts_with(MARK) && !new.starts_with(MARK);
        !now.is_empty() && !keeps_mark && now.len() + new.len() <= EDIT_BYTES
    });
    Some(match now {
        Some(old) => Request::Edit(Edit {
            path,
            expected: Some(DigestAlgorithm::Sha256.of(old.as_bytes())),
            old,
            new,
            every: false,
        }),
        None => Request::Write(Write {
            path,
            content: new.into_bytes(),
        }),
    })
}

/// The end of an operation that did not do it.
fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed(failure) => failure.to_string(),
        Outcome::Refused(refusal) => refusal.message.clone(),
        _ => "the runner answered something that was not asked".to_owned(),
    }
}
