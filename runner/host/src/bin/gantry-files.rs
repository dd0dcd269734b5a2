//! `gantry-files ROOT`: serves the files of a container to the daemon outside, as the container's
//! user, beneath the folder `ROOT`. See `runner_host::serve`.
//!
//! It is started with a connected stream socket as standard input, and ends once that is closed.
//! Descriptor 3 may be a lock: it stays open until the end. The program is linked without anything of
//! the container.

// A closed pipe must not end a program with a panic: see `shared_program::say`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![expect(unsafe_code, reason = "close_range has no safe form in a library")]

use std::{
    collections::BTreeMap, env, io, os::fd::AsFd as _, os::unix::net::UnixStream, path::PathBuf,
    process::ExitCode, sync::Arc,
};

use runner_host::{Hello, Host, HostOptions, serve};
use shared_program::{note, say};
use shared_types::{SystemClock, limits::FILE_OPERATION_WITHIN};
use tokio::runtime::Builder;

/// The first descriptor that this program never gets on purpose.
const INHERITED: libc::c_uint = 4;

fn main() -> ExitCode {
    close_inherited();
    if env::args_os()
        .nth(1)
        .is_some_and(|word| word == "--version")
    {
        return ended(say!("gantry-files {}", shared_program::VERSION));
    }
    ended(run())
}

fn ended(result: io::Result<()>) -> ExitCode {
    match result {
        // Work that hangs in a file system is not waited for.
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("gantry-files failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let usage = || io::Error::other("it is started by a runner, with an absolute path");
    let root = env::args_os().nth(1).map(PathBuf::from);
    let root = root.filter(|root| root.is_absolute()).ok_or_else(usage)?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let options = HostOptions {
        root,
        environment: BTreeMap::new(),
        file_operation_within: FILE_OPERATION_WITHIN,
    };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let host = Host::open(options, Arc::new(SystemClock::new())).map_err(io::Error::other)?;
    let served = runtime.block_on(serve(socket, host, Hello::here()));
    runtime.shutdown_background();
    served
}

/// Closes what was inherited by accident. Must come first, before anything here is opened.
fn close_inherited() {
    // SAFETY: nothing in this process owns a descriptor above standard error yet.
    unsafe {
        libc::syscall(libc::SYS_close_range, INHERITED, libc::c_uint::MAX, 0);
    }
}
