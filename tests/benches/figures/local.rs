//! The peer: the same commands, spawned here with `posix_spawn`, read to the end and waited for.
//! Programs are named by their files: for a plain name and an environment of its own the standard
//! library would fork instead, which flatters us.

use std::{
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
};

/// Runs a command, throws its output away, and returns how many bytes of stdout it was.
pub(crate) fn run(words: &[&str], directory: &Path) -> u64 {
    let output = command(words, directory).output().expect("it starts");
    assert!(
        output.status.success(),
        "{words:?} ended with {}",
        output.status
    );
    output.stdout.len() as u64
}

/// The same for output that is too much to keep: read in pieces, as a pipe's reader would.
pub(crate) fn drain(words: &[&str], directory: &Path) -> u64 {
    drained(&mut command(words, directory))
}

/// Starts a command, throws its output away in pieces, and returns how many bytes it was.
pub(crate) fn drained(command: &mut Command) -> u64 {
    let mut child = command
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let (mut piece, mut bytes) = (vec![0; 64 * 1024], 0);
    loop {
        match stdout.read(&mut piece).expect("the pipe can be read") {
            0 => break,
            read => bytes += read as u64,
        }
    }
    assert!(child.wait().expect("it can be waited for").success());
    bytes
}

/// What the runner does as well: an environment and a group of its own, in a directory.
fn command(words: &[&str], directory: &Path) -> Command {
    use std::os::unix::process::CommandExt as _;
    assert!(words[0].starts_with('/'), "{} is no file", words[0]);
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env_clear()
        .env("PATH", path())
        .current_dir(directory)
        .process_group(0)
        .stdin(Stdio::null());
    command
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the bench is its own to pass on"
)]
fn path() -> String {
    std::env::var("PATH").expect("there is a PATH")
}
