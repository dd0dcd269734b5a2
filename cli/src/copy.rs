//! Copying a file between here and a runner. Its SHA-256 is compared at the end, and until then the
//! target is what it was before. A lost connection or runner only interrupts it.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{Context as _, bail};
use shared_api::OperationEnd;
use shared_client::{Attached, Client, ClientError};
use shared_types::{Digest, OperationId};

use crate::{args, exit::Exit, remote::Signals, screen::Screen};

mod download;
mod progress;
mod upload;

use progress::Progress;

/// Bytes that are read from a file at once.
const PIECE_BYTES: usize = 64 * 1024;

/// One side of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Here(PathBuf),
    There {
        runner: String,
        /// Relative to the workspace.
        path: String,
    },
}

impl FromStr for Place {
    type Err = std::convert::Infallible;

    /// What stands before the first colon names a runner, as for `scp`, unless it has a slash.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once(':') {
            Some((runner, path)) if !runner.is_empty() && !runner.contains('/') => Self::There {
                runner: runner.to_owned(),
                path: path.to_owned(),
            },
            _ => Self::Here(text.into()),
        })
    }
}

/// Copies a file one way or the other.
pub(crate) async fn run(client: Client, screen: Screen, args: args::Copy) -> anyhow::Result<Exit> {
    match (args.source, args.target) {
        (Place::Here(source), Place::There { runner, path }) => {
            upload::run(client, screen, &source, runner, path).await
        }
        (Place::There { runner, path }, Place::Here(target)) => {
            download::run(client, screen, runner, path, &target).await
        }
        (Place::Here(_), Place::Here(_)) => {
            bail!("one of the two has to be on a runner: write it as NAME:PATH")
        }
        (Place::There { .. }, Place::There { .. }) => {
            bail!(
                "one of the two has to be here: copy it here first, and from here to the other runner"
            )
        }
    }
}

/// The last part of a path, where it names a file.
fn file_name(path: &Path) -> anyhow::Result<&str> {
    path.file_name()
        .and_then(std::ffi::OsStr::to_str)
        .with_context(|| format!("{} names no file", path.display()))
}

/// What both ways do with what is no data: the operation's id once it is known, or its end.
fn follow(
    item: Option<Result<Attached, ClientError>>,
    id: &mut Option<OperationId>,
    progress: &mut Progress,
) -> anyhow::Result<Option<OperationEnd>> {
    match item.context("the operation ended without a word")?? {
        Attached::Operation(operation) => *id = Some(operation.id),
        Attached::Unreachable { .. } => {
            progress.note("the runner cannot be reached; waiting for it")
        }
        Attached::Reachable => progress.note("the runner is back"),
        Attached::Lost { .. } => progress.note("connection lost; trying again"),
        Attached::Recovered => progress.note("connected again"),
        Attached::Problem(problem) => progress.note(&problem.detail),
        Attached::Gap { from, .. } => bail!("the file is not kept from byte {from} on"),
        Attached::Ended(operation) => {
            return Ok(Some(
                operation
                    .end
                    .context("the operation ended without a word")?,
            ));
        }
        Attached::Output { .. } | Attached::InputTaken { .. } | Attached::InputWanted { .. } => {}
    }
    Ok(None)
}

/// Checks that the runner has, or had, the very same file.
fn check(end: &OperationEnd, ours: Digest, our_bytes: u64) -> anyhow::Result<()> {
    let (bytes, digest) = match end {
        OperationEnd::Done { bytes, digest, .. } => (bytes, digest),
        end => bail!("{}", end.words()),
    };
    if bytes.is_some_and(|bytes| bytes != our_bytes) || digest.is_some_and(|digest| digest != ours)
    {
        bail!(
            "the two files differ: {our_bytes} bytes with SHA-256 {ours} here, {} with {} on the runner; copy it again",
            bytes.map_or("unknown".to_owned(), |bytes| bytes.to_string()),
            digest.map_or("unknown".to_owned(), |digest| digest.to_string()),
        );
    }
    Ok(())
}

/// Does something that a signal may interrupt, and stops its operation where it was not done: a copy
/// is of no use without this end.
async fn until_interrupted(
    client: &Client,
    id: &mut Option<OperationId>,
    copy: impl AsyncFnOnce(&mut Option<OperationId>) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen().context("failed to listen for signals")?;
    let result = tokio::select! {
        done = copy(id) => done.map(|()| Exit::Done),
        code = signals.ended() => Ok(Exit::Code(code)),
    };
    if !matches!(result, Ok(Exit::Done))
        && let Some(id) = *id
    {
        // What went wrong before says more than why this may fail.
        let _ = client.cancel_operation(id).await;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_on_a_runner_is_written_as_for_scp() {
        let place = |text: &str| text.parse::<Place>().expect("any text is a place");
        let there = |runner: &str, path: &str| Place::There {
            runner: runner.to_owned(),
            path: path.to_owned(),
        };
        assert_eq!(place("laptop:a/b:c"), there("laptop", "a/b:c"));
        assert_eq!(place("laptop:"), there("laptop", ""));
        for here in ["a/b", "./a:b", "/a:b", ":a"] {
            assert_eq!(place(here), Place::Here(here.into()), "{here}");
        }
    }

    #[test]
    fn a_file_that_is_another_one_on_the_runner_is_no_copy() {
        let digest = Digest::of(b"here");
        let done = |bytes, digest| OperationEnd::Done {
            words: String::new(),
            bytes: Some(bytes),
            digest: Some(digest),
            entry: None,
            listing: None,
        };
        assert!(check(&done(4, digest), digest, 4).is_ok());
        assert!(check(&done(5, digest), digest, 4).is_err());
        let other = check(&done(4, Digest::of(b"other")), digest, 4).expect_err("it differs");
        assert!(
            other.to_string().contains("the two files differ"),
            "{other}"
        );
    }
}
