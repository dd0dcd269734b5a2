//! `gantry-supervisor KILL`: the process that supervisors are forked from (`fork_server`), and each
//! supervisor that is forked from it. It is started in the folder of the operations, with its
//! daemon's socket as standard input. The library describes what they promise.
//!
//! `gantry-supervisor KILL entry UID:GID FOLDER…`: the same as the entry process of a container, which
//! listens there. The folders become this user's where they are still root's: new volumes are.
//!
//! `gantry-supervisor KILL entry-with-sudo DOOR UID:GID FOLDER…`: the same where that user's commands may start
//! others as root (`root`); the folder of the operations comes through the door (`door`).
//!
//! `gantry-supervisor --version` prints the version and nothing else.
//!
//! Called as `sudo`, it is the program by which those commands become root (`sudo`).
//!
//! `KILL` is the way to kill trees: `strongest`, or one method by its name.
//!
//! A supervisor has one thread, waits for everything in one place (`supervise`), and treats a
//! daemon that goes away as detached, never as an error.

// A closed pipe must not end a program with a panic: see `shared_program::say`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod carried;
mod client;
mod clock;
mod door;
mod errand;
mod faults;
mod fork_server;
mod gate;
mod input;
mod last_words;
mod launch;
mod layout;
mod prepare;
mod privilege;
mod program;
mod root;
mod stream;
mod sudo;
mod supervise;
mod sys;
mod terminal;
mod victims;
mod waiting;

use std::{io, os::fd::AsFd, path::Path, process::ExitCode};

use runner_supervisor::{CommandUser, FaultPoint, FromSupervisor, KillChoice, ORDERS, VERSION};
use rustix::{
    fd::OwnedFd,
    net::SocketType,
    process::{Gid, Uid},
};
use shared_program::{note, say};

use client::ControlClient;
use faults::Faults;
use fork_server::{Reception, Supervised};
use launch::Launched;
use prepare::{Prepared, SupervisorHost};
use root::Rules;
use supervise::EndedSupervision;

/// It could not begin to wait.
const UNFIT: u8 = 70;

fn main() -> ExitCode {
    if is_sudo() {
        return sudo::run(std::env::args_os().skip(1), std::env::vars_os());
    }
    sys::close_inherited();
    if std::env::args()
        .nth(1)
        .is_some_and(|word| word == "--version")
    {
        return said(say!("gantry-supervisor {}", shared_program::VERSION));
    }
    let Some(choice) = choice() else {
        return ExitCode::FAILURE;
    };
    let mut rules = None;
    let reception = match is_entry() {
        true => entry().map(|(reception, of_root)| {
            rules = of_root;
            reception
        }),
        false => daemon().map(Reception::Daemon),
    };
    let reception = match reception {
        Ok(reception) => reception,
        Err(error) if is_entry() => {
            note!("cannot listen for the runner: {error}");
            return ExitCode::FAILURE;
        }
        Err(_) => {
            note!("this program is started by a runner; its standard input is a socket of its");
            return ExitCode::FAILURE;
        }
    };
    // A session of their own keeps supervisors from what happens to the daemon's terminal and
    // process group; it fails only where this is one already.
    let _ = rustix::process::setsid();
    let host = SupervisorHost::settle_in(choice, rules);
    match fork_server::serve(reception) {
        Some(order) => supervise(order, host),
        None => ExitCode::SUCCESS,
    }
}

/// The one argument; with none that fits it says what it is.
fn choice() -> Option<KillChoice> {
    let mut arguments = std::env::args().skip(1);
    let choice = arguments.next().and_then(|text| text.parse().ok());
    if choice.is_none() {
        note!(
            "gantry-supervisor {}, protocol version {VERSION}",
            shared_program::VERSION
        );
    }
    choice
}

/// The exit code after the last words of the process.
fn said(said: io::Result<()>) -> ExitCode {
    match said {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("gantry-supervisor: {error}");
            ExitCode::FAILURE
        }
    }
}

/// True if this program was started as `sudo`.
fn is_sudo() -> bool {
    let called = std::env::args_os().next();
    called.is_some_and(|name| {
        Path::new(&name)
            .file_name()
            .is_some_and(|name| name == "sudo")
    })
}

/// True if this is the entry process of a container.
fn is_entry() -> bool {
    let word = std::env::args().nth(2);
    word.is_some_and(|word| word == "entry" || word == WITH_SUDO)
}

/// The word for an entry process whose commands may be root.
const WITH_SUDO: &str = "entry-with-sudo";

/// Listens in the folder of the operations, which only the runner can reach: the folder is root's.
fn entry() -> io::Result<(Reception, Option<Rules>)> {
    // The groups of this container's root are not for commands.
    let _ = rustix::thread::set_thread_groups(&[]);
    let signals = sys::signals()?;
    let mut words = std::env::args().skip(2);
    let with_sudo = words.next().is_some_and(|word| word == WITH_SUDO);
    let folder = match with_sudo {
        true => {
            privilege::stand_apart()?;
            Some(door::enter(&words.next().unwrap_or_default())?)
        }
        false => None,
    };
    let user = give(words)?;
    let rules = match (with_sudo, user) {
        (false, _) => None,
        (true, Some(user)) => Some(Rules::found(user)?),
        (true, None) => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let listener = prepare::listen_at(ORDERS, SocketType::SEQPACKET)?;
    let reception = Reception::Entry {
        listener,
        daemons: Vec::new(),
        signals,
        folder,
    };
    Ok((reception, rules))
}

/// Gives folders to the user of commands; who that is.
fn give(mut words: impl Iterator<Item = String>) -> io::Result<Option<CommandUser>> {
    let Some(user) = words.next() else {
        return Ok(None);
    };
    let number = |text: &str| text.parse::<u32>().ok();
    let user = user.split_once(':');
    let user = user.and_then(|(uid, gid)| Some((number(uid)?, number(gid)?)));
    let (uid, gid) = user.ok_or(io::ErrorKind::InvalidInput)?;
    for folder in words {
        if rustix::fs::stat(&folder)?.st_uid == 0 {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            rustix::fs::chown(&folder, Some(uid), Some(gid))?;
        }
    }
    Ok(Some(CommandUser { uid, gid }))
}

/// Standard input, moved to where no child inherits it.
fn daemon() -> io::Result<OwnedFd> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::net::sockopt::socket_peercred(&socket)?;
    rustix::stdio::dup2_stdin(&input::nothing()?)?;
    Ok(socket)
}

/// The life of one supervisor: one command after another, each in a directory that is its alone.
fn supervise(order: Supervised, host: io::Result<SupervisorHost>) -> ExitCode {
    let Supervised {
        directory,
        mut client,
    } = order;
    let faults = Faults::from_environment();
    let failing = |point| faults.at(point, Some(&client));
    let ready = host.and_then(|host| Ok((alone(&host, &directory, failing)?, host)));
    let (prepared, host) = match ready {
        Ok(ready) => ready,
        Err(error) => {
            client.say(&FromSupervisor::Unfit {
                reason: error.to_string(),
                errno: error.raw_os_error(),
            });
            return ExitCode::from(UNFIT);
        }
    };
    let mut next = Some((prepared, client));
    while let Some((prepared, client)) = next {
        let over = serve(prepared, client, faults);
        next = over.and_then(|over| over.again(&host, faults));
    }
    ExitCode::SUCCESS
}

/// Waits for a command and serves it to its end; `None` where there was none.
fn serve(
    prepared: Prepared,
    mut client: ControlClient,
    faults: Faults,
) -> Option<EndedSupervision> {
    faults.at(FaultPoint::Prepared, Some(&client));
    client.say(&waiting::hello(&prepared.identity, 0, 0));
    faults.at(FaultPoint::Waiting, Some(&client));
    let Some((request, directory)) = waiting::request(&prepared, &mut client) else {
        waiting::give_up(prepared, client);
        return None;
    };
    faults.at(FaultPoint::Requested, Some(&client));
    match launch::launch(prepared, &request, directory, Some(client), faults) {
        Launched::Running(supervision) => Some(supervision.run()),
        Launched::Over => None,
    }
}

/// Prepares for a command, apart from the other supervisors. A session of its own lets its tree be
/// found where there is no cgroup. As subreaper it inherits the processes that a command abandons.
fn alone(
    host: &SupervisorHost,
    directory: &str,
    failing: impl Fn(FaultPoint),
) -> io::Result<Prepared> {
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    prepare::prepare(host, directory, failing)
}
