//! Copying files and folders between here and a runner. The digest of everything that passes is
//! compared, a file takes the place of another one only once all of it is there, and a lost connection
//! or runner only interrupts it.

use std::path::Path;

use anyhow::{Context as _, bail};
use shared_client::Client;

use crate::{
    args::{self, CopyPlace},
    exit::Exit,
    remote::Signals,
    screen::Screen,
};

mod archive;
mod copying;
mod download;
mod file;
mod folder;
mod local;
mod progress;
mod there;
mod upload;

use copying::Copying;
use progress::Progress;

/// Copies a file or folder one way or the other.
pub(crate) async fn run(client: Client, screen: Screen, args: args::Copy) -> anyhow::Result<Exit> {
    let here = file_here(&args.source);
    match (args.source, args.target) {
        (CopyPlace::Here(source), CopyPlace::There { runner, path }) => {
            let copying = Copying::new(client, runner, Progress::new(screen), args.preserve);
            until_interrupted(&copying, upload::run(&copying, &source, &path)).await
        }
        (CopyPlace::There { runner, path }, CopyPlace::Here(target)) => {
            let copying = Copying::new(client, runner, Progress::new(screen), args.preserve);
            let copied = until_interrupted(&copying, download::run(&copying, &path, &target)).await;
            if let (Err(_), Some(file)) = (&copied, here) {
                copying.note(&format!(
                    "there is a file {file} here as well; ./{file} names that one"
                ));
            }
            copied
        }
        (CopyPlace::Here(_), CopyPlace::Here(_)) => {
            bail!("one of the two has to be on a runner: write it as NAME:PATH")
        }
        (CopyPlace::There { .. }, CopyPlace::There { .. }) => {
            if let Some(file) = here {
                bail!(
                    "{file} names a path on a runner, though there is such a file here; write ./{file} for that one"
                );
            }
            bail!(
                "one of the two has to be here: copy it here first, and from here to the other runner"
            )
        }
    }
}

/// A file here whose name looks like a path on a runner.
fn file_here(place: &CopyPlace) -> Option<String> {
    let CopyPlace::There { runner, path } = place else {
        return None;
    };
    let name = format!("{runner}:{path}");
    Path::new(&name).symlink_metadata().is_ok().then_some(name)
}

/// Copies until a signal comes, and then stops the running operations, because an incomplete copy is useless.
async fn until_interrupted(
    copying: &Copying,
    copy: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen().context("failed to listen for signals")?;
    let result = tokio::select! {
        done = copy => done.map(|()| copying.finish()),
        code = signals.ended() => Ok(Exit::Code(code)),
    };
    copying.stop_all().await;
    result
}

/// The last name of a path. `None` for a path that ends in `.` or `..` or that has no name: its content is copied.
fn own_name(path: &Path) -> anyhow::Result<Option<&str>> {
    let text = path.as_os_str().as_encoded_bytes();
    if text.ends_with(b"/.") || text == b"." {
        return Ok(None);
    }
    let Some(name) = path.file_name() else {
        return Ok(None);
    };
    let name = name.to_str();
    name.map(Some).with_context(|| {
        format!(
            "the name of {} is not UTF-8, and only such names can be copied; rename it",
            path.display()
        )
    })
}

/// A path on a runner with something beneath it.
fn beneath(folder: &str, below: &str) -> String {
    match (folder.trim_end_matches('/'), below) {
        ("", below) if folder.starts_with('/') => format!("/{below}"),
        ("", below) => below.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, below) => format!("{folder}/{below}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_on_a_runner_is_written_as_for_scp() {
        let place = |text: &str| text.parse::<CopyPlace>().expect("any text is a place");
        let there = |runner: &str, path: &str| CopyPlace::There {
            runner: runner.to_owned(),
            path: path.to_owned(),
        };
        assert_eq!(place("laptop:a/b:c"), there("laptop", "a/b:c"));
        assert_eq!(place("laptop:"), there("laptop", ""));
        for here in ["a/b", "./a:b", "/a:b", ":a"] {
            assert_eq!(place(here), CopyPlace::Here(here.into()), "{here}");
        }
    }

    #[test]
    fn a_path_that_ends_in_a_dot_has_no_name_of_its_own() {
        let name = |path: &str| own_name(Path::new(path)).expect("text").map(str::to_owned);
        for named in ["a", "a/", "b/a", "/a"] {
            assert_eq!(name(named).as_deref(), Some("a"), "{named}");
        }
        for unnamed in ["", ".", "./", "a/.", "..", "a/..", "/"] {
            assert_eq!(name(unnamed), None, "{unnamed}");
        }
        assert_eq!(beneath("", "a"), "a");
        assert_eq!(beneath("b/", "a"), "b/a");
        assert_eq!(beneath("/", "a"), "/a");
    }
}
