//! The supervisor of one command: `gantry-supervisor KILL`, started in the operation's directory
//! with its daemon's socket as standard input. See the library for what it promises.
//!
//! `KILL` is how the tree is to be killed: `strongest`, or one method by its name.
//!
//! It has one thread, waits for everything in one place (`supervise`), and treats a daemon that
//! goes away as detached, never as an error.

mod client;
mod clock;
mod faults;
mod input;
mod launch;
mod memory;
mod prepare;
mod program;
mod stream;
mod supervise;
mod sys;
mod terminal;
mod waiting;

use std::{io, os::fd::AsFd, process::ExitCode};

use runner_supervisor::{FaultPoint, FromSupervisor, KillChoice, VERSION};
use rustix::fd::OwnedFd;

use client::Client;
use faults::Faults;
use launch::Launched;

/// It could not begin to wait.
const UNFIT: u8 = 70;

fn main() -> ExitCode {
    sys::close_inherited();
    let Some(choice) = choice() else {
        return ExitCode::FAILURE;
    };
    match first_client().map(Client::new) {
        Ok(Some(client)) => run(choice, client),
        Ok(None) | Err(_) => {
            eprintln!("this program is started by a runner; its standard input is a socket of its");
            ExitCode::FAILURE
        }
    }
}

/// The one argument; with none that fits it says what it is.
fn choice() -> Option<KillChoice> {
    let mut arguments = std::env::args().skip(1);
    let choice = arguments.next().and_then(|text| text.parse().ok());
    if choice.is_none() {
        println!(
            "gantry-supervisor {}, protocol version {VERSION}",
            env!("CARGO_PKG_VERSION")
        );
    }
    choice
}

/// Standard input, moved to where no child inherits it.
fn first_client() -> io::Result<OwnedFd> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(&input::nothing()?)?;
    Ok(socket)
}

fn run(choice: KillChoice, mut client: Client) -> ExitCode {
    let faults = Faults::from_environment();
    // Its own session keeps it from what happens to the daemon's terminal and process group; it
    // fails only where it is one already. As subreaper it inherits whom a command abandons.
    let _ = rustix::process::setsid();
    let subreaper = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let prepared = match subreaper
        .map_err(io::Error::from)
        .and_then(|()| prepare::prepare(choice, stream::READ_BYTES))
    {
        Ok(prepared) => prepared,
        Err(error) => {
            client.say(&FromSupervisor::Unfit {
                reason: error.to_string(),
                errno: error.raw_os_error(),
            });
            return ExitCode::from(UNFIT);
        }
    };
    faults.at(FaultPoint::Prepared, Some(&client));
    client.say(&waiting::hello(&prepared.identity, 0, 0));
    faults.at(FaultPoint::Waiting, Some(&client));
    let Some((request, directory)) = waiting::request(&prepared, &mut client) else {
        waiting::give_up(prepared, client);
        return ExitCode::SUCCESS;
    };
    faults.at(FaultPoint::Requested, Some(&client));
    match launch::launch(prepared, &request, directory, Some(client), faults) {
        Launched::Running(supervision) => supervision.run(),
        Launched::Over => {}
    }
    ExitCode::SUCCESS
}
