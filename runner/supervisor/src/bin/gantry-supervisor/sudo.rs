//! `sudo`, as a container's commands find it: asks the supervisor that they come from to start a command as
//! root, and lends it directory, input and output. `root` describes what root may do there.
//!
//! The person who asks and root are one and the same, so no password is asked for. The part of the
//! environment that is kept is a matter of order, not of safety.

use std::{
    ffi::{CString, OsStr, OsString},
    fs, io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        net::UnixStream,
    },
    process::ExitCode,
};

use nix::sys::signal::Signal;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsFd as _, BorrowedFd, OwnedFd},
    fs::{Mode, OFlags},
    io::Errno,
    process::{Pid, getpid},
};
use shared_program::note;

use crate::{
    gate::ChildPlan,
    root::{self, ANSWER_BYTES, EXITED, PATH, SIGNALLED},
    sys,
};

/// The signals that are passed on to the command.
const PASSED_ON: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGCONT,
];

/// Variables that a command as root keeps.
const KEPT: [&str; 8] = [
    "TERM",
    "COLORTERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Beginnings of such, and of variables that not even `-E` keeps.
const KEPT_FAMILY: &str = "LC_";
const NEVER_KEPT: [&str; 4] = ["LD_", "BASH_ENV=", "BASH_FUNC_", "ENV="];

/// Most processes between a command and its supervisor.
const GENERATIONS: usize = 65_536;

const USAGE: &str =
    "usage: sudo [-nEH] [-u root] [--] [NAME=VALUE…] COMMAND [ARGUMENT…]; for a shell: sudo bash";

/// A request for a command.
#[derive(Debug, Default, PartialEq, Eq)]
struct SudoRequest {
    keeps_all: bool,
    variables: Vec<OsString>,
    /// The program and its words; at least one.
    words: Vec<OsString>,
}

/// Runs it with these words and variables.
pub(crate) fn run(
    words: impl Iterator<Item = OsString>,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> ExitCode {
    match read(words).and_then(|ask| obey(&ask, environment)) {
        Ok(code) => code,
        Err(reason) => {
            note!("sudo: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn obey(
    ask: &SudoRequest,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<ExitCode, String> {
    let strings = |all: Vec<OsString>| -> Result<Vec<CString>, String> {
        let all = all.into_iter().map(|text| CString::new(text.into_vec()));
        all.collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    };
    let argv = strings(ask.words.clone())?;
    let environment = strings(kept(ask, environment))?;
    if rustix::process::geteuid().is_root() {
        let error = root::execute(&argv[0], &argv, &environment);
        return Err(root::in_words(&argv[0].to_string_lossy(), &error));
    }
    let socket = supervisor()?;
    // Before the command is there that they are for.
    let signals = sys::arriving(PASSED_ON).map_err(|error| error.to_string())?;
    lend(&socket, &argv, &environment)
        .map_err(|error| format!("its supervisor does not take the command: {error}"))?;
    loop {
        let mut fds = [
            PollFd::new(&socket, PollFlags::IN),
            PollFd::new(&signals, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
        let answered = !fds[0].revents().is_empty();
        while let Ok(Some(signal)) = signals.read_signal() {
            let number = u8::try_from(signal.ssi_signo).unwrap_or(0);
            // One that ends now needs no signal.
            let _ = rustix::io::write(&socket, &[number]);
        }
        if answered {
            return ended(&socket);
        }
    }
}

/// Ends as the command did.
fn ended(mut socket: &UnixStream) -> Result<ExitCode, String> {
    let mut answer = [0; ANSWER_BYTES];
    io::Read::read_exact(&mut socket, &mut answer)
        .map_err(|_| "the command was not started, or was ended with what supervised it")?;
    let [kind, a, b, c, d] = answer;
    let number = i32::from_le_bytes([a, b, c, d]);
    match kind {
        EXITED => Ok(ExitCode::from(u8::try_from(number).unwrap_or(u8::MAX))),
        SIGNALLED => {
            sys::default_signals();
            if let Some(signal) = rustix::process::Signal::from_named_raw(number) {
                let _ = rustix::process::kill_process(getpid(), signal);
            }
            // It is not one that ends a process, or not yet.
            Ok(ExitCode::from(
                u8::try_from(128 + number).unwrap_or(u8::MAX),
            ))
        }
        _ => Err("its supervisor is of another version; restart the sandbox".to_owned()),
    }
}

/// The socket of the supervisor that this process comes from, which is the one whose parent is the first
/// process.
fn supervisor() -> Result<UnixStream, String> {
    let nobody =
        || "sudo works in the commands of a sandbox, and this process comes from none".to_owned();
    let mut pid = getpid();
    let mut supervisor = None;
    for _ in 0..GENERATIONS {
        let above = parent(pid).ok_or_else(nobody)?;
        if above == Pid::INIT {
            supervisor = Some(pid);
            break;
        }
        pid = above;
    }
    let supervisor = supervisor.ok_or_else(nobody)?.as_raw_nonzero().get();
    let address = root::address(supervisor).map_err(|error| error.to_string())?;
    let socket = UnixStream::connect_addr(&address).map_err(|_| nobody())?;
    // Any process can take a name that is free.
    match sys::peer(socket.as_fd()) {
        Some(peer) if peer.user == 0 && peer.pid == supervisor => Ok(socket),
        _ => Err("another process has taken the supervisor's place; stop the sandbox".to_owned()),
    }
}

fn parent(pid: Pid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Pid::from_raw(parent.trim().parse().ok()?)
}

/// Says what is wanted, with all that the command is to have.
fn lend(socket: &UnixStream, argv: &[CString], environment: &[CString]) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(".", flags, Mode::empty())?;
    let standard = [
        io::stdin().as_fd(),
        io::stdout().as_fd(),
        io::stderr().as_fd(),
    ]
    .map(own);
    let [input, output, error] = standard;
    let (input, output, error) = (input?, output?, error?);
    let plan = ChildPlan {
        directory: directory.as_fd(),
        stdio: [input.as_fd(), output.as_fd(), error.as_fd()],
        terminal: false,
        user: None,
        confined: false,
        program: &argv[0],
        argv,
        environment,
    };
    plan.send(socket)
}

/// A copy, or nothing in the place of what is closed.
fn own(standard: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    match rustix::io::fcntl_dupfd_cloexec(standard, 3) {
        Err(Errno::BADF) => {
            let nothing = fs::File::options()
                .read(true)
                .write(true)
                .open("/dev/null")?;
            Ok(nothing.into())
        }
        copied => Ok(copied?),
    }
}

/// The environment of the command.
fn kept(
    ask: &SudoRequest,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<OsString> {
    let assigned = |name: &OsStr, value: &OsStr| {
        let mut variable = name.to_owned();
        variable.push("=");
        variable.push(value);
        variable
    };
    let always = [
        ("PATH", PATH),
        ("HOME", "/root"),
        ("USER", "root"),
        ("LOGNAME", "root"),
        ("SHELL", "/bin/sh"),
        ("SUDO_USER", "user"),
    ];
    let mut all: Vec<(OsString, OsString)> = always
        .map(|(name, value)| (name.into(), value.into()))
        .into();
    for (name, value) in environment {
        let is_known = KEPT.iter().any(|kept| name == *kept)
            || name.as_bytes().starts_with(KEPT_FAMILY.as_bytes());
        let whole = assigned(&name, &value);
        let is_never = NEVER_KEPT
            .iter()
            .any(|start| whole.as_bytes().starts_with(start.as_bytes()));
        let is_ours = all.iter().any(|(ours, _)| *ours == name);
        if (is_known || ask.keeps_all) && !is_never && !is_ours {
            all.push((name, value));
        }
    }
    let mut all: Vec<_> = all
        .iter()
        .map(|(name, value)| assigned(name, value))
        .collect();
    for variable in &ask.variables {
        let name = variable
            .as_bytes()
            .split_inclusive(|byte| *byte == b'=')
            .next();
        let name = name.unwrap_or_default();
        all.retain(|before| !before.as_bytes().starts_with(name));
        all.push(variable.clone());
    }
    all
}

fn read(mut words: impl Iterator<Item = OsString>) -> Result<SudoRequest, String> {
    let mut ask = SudoRequest::default();
    let not_root = || {
        "in a sandbox only root can be named; for another user: sudo su USER -c COMMAND".to_owned()
    };
    while let Some(word) = words.next() {
        let text = word.as_bytes();
        match text {
            b"--" => {
                ask.words.extend(words);
                break;
            }
            b"-u" | b"--user" => match words.next() {
                Some(user) if is_root(&user) => {}
                Some(_) => return Err(not_root()),
                None => return Err(USAGE.to_owned()),
            },
            b"--non-interactive" | b"--set-home" => {}
            b"--preserve-env" => ask.keeps_all = true,
            _ if text.starts_with(b"--user=") => {
                if !is_root(OsStr::from_bytes(&text[b"--user=".len()..])) {
                    return Err(not_root());
                }
            }
            [b'-', b'u', user @ ..] if is_root(OsStr::from_bytes(user)) => {}
            [b'-', b'u', ..] => return Err(not_root()),
            [b'-', letters @ ..]
                if !letters.is_empty() && letters.iter().all(|letter| b"nEH".contains(letter)) =>
            {
                ask.keeps_all |= letters.contains(&b'E');
            }
            [b'-', ..] => {
                return Err(format!(
                    "{} is not supported in a sandbox; {USAGE}",
                    word.to_string_lossy()
                ));
            }
            _ if is_assignment(text) => ask.variables.push(word),
            _ => {
                ask.words.push(word);
                ask.words.extend(words);
                break;
            }
        }
    }
    match ask.words.is_empty() {
        true => Err(USAGE.to_owned()),
        false => Ok(ask),
    }
}

fn is_root(user: &OsStr) -> bool {
    user == "root" || user == "#0"
}

fn is_assignment(word: &[u8]) -> bool {
    let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() < word.len()
        && name.first().is_some_and(|byte| !byte.is_ascii_digit())
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

#[cfg(test)]
mod tests {
    use rustix::fd::AsRawFd as _;

    use super::*;

    fn asked(words: &[&str]) -> Result<SudoRequest, String> {
        read(words.iter().map(OsString::from))
    }

    #[test]
    fn common_forms_are_understood_and_others_named() {
        let plain = asked(&["id", "-u"]).expect("a command");
        assert_eq!(plain.words, ["id", "-u"]);
        let all = ["-n", "-EH", "-u", "root", "A=1", "--", "-x", "B=2"];
        let ask = asked(&all).expect("a command");
        assert!(ask.keeps_all);
        assert_eq!(
            (ask.variables, ask.words),
            (vec!["A=1".into()], vec!["-x".into(), "B=2".into()])
        );
        for wrong in [&["-i"][..], &["-u", "www-data", "id"], &["-n"], &[]] {
            assert!(asked(wrong).is_err(), "{wrong:?}");
        }
        assert!(asked(&["-i"]).is_err_and(|reason| reason.contains("-i is not supported")));
    }

    #[test]
    fn what_loads_code_into_programs_is_not_kept_and_what_is_assigned_counts() {
        let environment = || {
            [
                ("LD_PRELOAD", "x"),
                ("TERM", "t"),
                ("MINE", "m"),
                ("HOME", "/home/user"),
            ]
            .map(|(name, value)| (name.into(), value.into()))
            .into_iter()
        };
        let ask = asked(&["HOME=/x", "id"]).expect("a command");
        let some = kept(&ask, environment());
        assert!(some.contains(&"TERM=t".into()) && some.contains(&"HOME=/x".into()));
        assert_eq!(
            some.iter()
                .filter(|one| one.as_bytes().starts_with(b"HOME="))
                .count(),
            1
        );
        assert!(!some.contains(&"MINE=m".into()));
        let ask = asked(&["-E", "id"]).expect("a command");
        let all = kept(&ask, environment());
        assert!(all.contains(&"MINE=m".into()) && all.contains(&"HOME=/root".into()));
        assert!(
            !all.iter().any(|one| one.as_bytes().starts_with(b"LD_")),
            "{all:?}"
        );
    }

    #[test]
    fn a_descriptor_that_is_lent_is_another_one() {
        let copy = own(io::stdin().as_fd()).expect("a copy");
        assert!(copy.as_raw_fd() >= 3);
    }
}
