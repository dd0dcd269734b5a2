//! Modes in a terminal, and how it is found after a panic and after `kill -9`.
//!
//! A program of its own is this test executable again, with one of the ignored tests below.

use std::process::{Child, Command};

use nix::unistd::Pid;
use rustix::termios::LocalModes;

use crate::surface::{guardian, pty::Pty};

use super::*;

/// A shell in a terminal of its own, which runs a program and waits for a key.
struct Shell {
    pty: Pty,
    shell: Child,
}

impl Shell {
    fn run(program: &str) -> Self {
        let pty = Pty::open();
        let end = || pty.program.try_clone().expect("a descriptor");
        let exe = std::env::current_exe().expect("this test");
        let shell = Command::new("setsid")
            .args(["--ctty", "sh", "-c", "\"$0\" \"$@\"; echo END; read key"])
            .arg(exe)
            .args(arguments(program))
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("setsid starts");
        Self { pty, shell }
    }

    /// Waits until the program says its process id.
    fn pid(&mut self) -> Pid {
        self.pty.until("pid=");
        let pid = self.pty.until(".");
        Pid::from_raw(pid.parse().expect("a process id"))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// The arguments that make this executable one of the programs.
fn arguments(program: &str) -> [String; 4] {
    let name = format!("surface::modes::tests::{program}");
    ["--ignored", "--exact", "--nocapture", &name].map(str::to_owned)
}

fn guardian(terminal: &Terminal) -> Guardian {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(arguments("program_that_guards"));
    Guardian::spawn(&mut command, terminal).expect("it starts")
}

/// Says its process id and waits to be killed.
fn wait(terminal: &Terminal) -> ! {
    let pid = format!("pid={}.", std::process::id());
    terminal.write(pid.as_bytes()).expect("it is there");
    loop {
        std::thread::park();
    }
}

#[test]
#[ignore = "other tests run it"]
fn program_that_guards() {
    guardian::run();
}

#[test]
#[ignore = "other tests run it"]
fn program_that_panics() {
    let terminal = Terminal::open().expect("a terminal");
    let _modes = Modes::begin(&terminal, WANTED, None).expect("they are on");
    panic!("PANIC");
}

#[test]
#[ignore = "other tests run it"]
fn program_that_waits() {
    let terminal = Terminal::open().expect("a terminal");
    let guardian = guardian(&terminal);
    let _modes = Modes::begin(&terminal, WANTED, Some(guardian)).expect("they are on");
    wait(&terminal);
}

#[test]
#[ignore = "other tests run it"]
fn program_that_shows_a_pager() {
    let terminal = Terminal::open().expect("a terminal");
    let guardian = guardian(&terminal);
    let modes = Modes::begin(&terminal, WANTED, Some(guardian)).expect("they are on");
    modes.full_screen(true).expect("it is full");
    wait(&terminal);
}

const WANTED: Wanted = Wanted {
    enhanced_keys: true,
    full_screen: false,
};

const ON: &str = "\x1b[?2004h\x1b[?1004h\x1b[>1u";
const OFF: &str = "\x1b[?2026l\x1b[?7h\x1b[?25h\x1b[0m\x1b[<u\x1b[?1004l\x1b[?2004l";

fn is_raw(pty: &Pty) -> bool {
    let raw = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
    !pty.termios().local_modes.intersects(raw)
}

#[test]
fn modes_are_on_until_they_are_suspended_or_dropped() {
    let mut pty = Pty::open();
    let before = format!("{:?}", pty.termios());
    let terminal = pty.terminal();
    let modes = Modes::begin(&terminal, WANTED, None).expect("they are on");
    pty.until(ON);
    assert!(is_raw(&pty) && modes.is_on());
    modes.suspend();
    modes.suspend();
    pty.until(OFF);
    assert_eq!(format!("{:?}", pty.termios()), before);
    assert!(!modes.is_on());
    modes.resume().expect("they are on");
    assert_eq!(pty.until(ON), "");
    modes.full_screen(true).expect("it is full");
    assert_eq!(pty.until("\x1b[?1049h\x1b[>1u"), "");
    modes.full_screen(false).expect("it is usual");
    assert_eq!(pty.until("\x1b[<u\x1b[?1049l"), "");
    assert!(is_raw(&pty));
    drop(modes);
    assert_eq!(pty.until(OFF), "");
    assert_eq!(format!("{:?}", pty.termios()), before);
    terminal.write(b"end").expect("it is there");
    assert_eq!(pty.until("end"), "");
}

#[test]
fn the_linux_console_is_not_sent_what_it_would_print() {
    assert!(!Wanted::for_terminal("linux-16color").on().contains('>'));
    assert!(!Wanted::for_terminal("linux").off(true).contains('<'));
    assert_eq!(Wanted::for_terminal("xterm-256color").on(), ON);
}

#[test]
fn a_panic_restores_the_terminal_before_its_message() {
    let mut shell = Shell::run("program_that_panics");
    shell.pty.until(ON);
    let before_message = shell.pty.until("PANIC");
    assert!(before_message.contains(OFF), "{before_message:?}");
    shell.pty.until("END");
    assert!(!is_raw(&shell.pty));
}

#[test]
fn a_killed_program_leaves_a_terminal_that_is_restored() {
    let mut shell = Shell::run("program_that_waits");
    let pid = shell.pid();
    assert!(is_raw(&shell.pty));
    kill(pid, Signal::SIGKILL).expect("it runs");
    shell.pty.until(OFF);
    shell.pty.until("\r\n\x1b[J");
    assert!(!is_raw(&shell.pty));
}

#[test]
fn a_program_killed_in_a_pager_leaves_the_usual_screen() {
    let mut shell = Shell::run("program_that_shows_a_pager");
    let pid = shell.pid();
    kill(pid, Signal::SIGKILL).expect("it runs");
    let off = shell.pty.until(OFF);
    assert!(off.contains("\x1b[<u\x1b[?1049l"), "{off:?}");
}

#[test]
fn a_guardian_leaves_the_modes_of_the_program_that_has_taken_the_terminal() {
    let mut shell = Shell::run("program_that_waits");
    let pid = shell.pid();
    // As a shell's line editor does.
    let mut taken = shell.pty.termios();
    taken.local_modes |= LocalModes::ISIG;
    tcsetattr(&shell.pty.program, OptionalActions::Now, &taken).expect("it is a terminal");
    kill(pid, Signal::SIGKILL).expect("it runs");
    shell.pty.until("\x1b[<u\x1b[?1004l");
    // The guardian's end is the last that the pipe's other end is told.
    let rest = shell.pty.until("test result");
    assert!(!rest.contains("\x1b[?2004l"), "{rest:?}");
    assert_eq!(format!("{:?}", shell.pty.termios()), format!("{taken:?}"));
}
