//! The service that runs the daemon: a unit of systemd, for the machine or for its user, or, where there is
//! no systemd, a process of its own session.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::ErrorKind,
    os::unix::{
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;

/// The time between two looks at something that is waited for.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// The unit's name.
const UNIT: &str = "gantry-runner.service";

/// The unit as it stands in the repository, for a user's own services.
const TEMPLATE: &str = include_str!("../../../deploy/gantry-runner.service");

/// The line with which the template starts the daemon.
const TEMPLATE_START: &str = "ExecStart=%h/.local/bin/gantry-runner run\n";

/// Gantry's home in the home of its user, where no other is named.
const USUAL_HOME: &str = ".gantry";

/// The option before the home in a unit that was installed.
const HOME_OPTION: &str = " --home ";

/// The folder that exists while systemd runs.
const SYSTEMD_RUNS: &str = "/run/systemd/system";

/// A daemon may need this long to stop what it runs, and to say goodbye.
const STOPS_WITHIN: Duration = Duration::from_secs(40);

/// The way in which a daemon is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonStopMode {
    /// Commands go on.
    HandsOver,
    /// Commands are stopped.
    Ends,
}

/// The service of one home.
#[derive(Debug)]
pub(crate) struct InstalledService {
    is_root: bool,
    unit: PathBuf,
    gantry_home: PathBuf,
    /// True if that is the home that is used where none is named.
    is_usual_home: bool,
    home: Home,
}

impl InstalledService {
    pub(crate) fn of(is_root: bool, user_home: &Path, gantry_home: &Path, home: Home) -> Self {
        let folder = match is_root {
            true => PathBuf::from("/etc/systemd/system"),
            false => user_home.join(".config/systemd/user"),
        };
        Self {
            is_root,
            unit: folder.join(UNIT),
            gantry_home: gantry_home.to_owned(),
            is_usual_home: gantry_home == user_home.join(USUAL_HOME),
            home,
        }
    }

    /// True if there is the unit, for this home. A unit that names no home is for the usual home.
    fn has_unit(&self) -> bool {
        let Ok(text) = fs::read_to_string(&self.unit) else {
            return false;
        };
        match text.split_once(HOME_OPTION) {
            None => self.is_usual_home,
            Some((_, home)) => {
                home.starts_with(&quoted(&self.gantry_home))
                    || home.split_whitespace().next() == self.gantry_home.to_str()
            }
        }
    }

    /// True if the unit runs the daemon of another home.
    pub(crate) fn is_anothers(&self) -> bool {
        self.unit.exists() && !self.has_unit()
    }

    /// # Errors
    /// The unit runs the daemon of another home, and there is one unit.
    pub(crate) fn require_free(&self) -> anyhow::Result<()> {
        if self.is_anothers() {
            bail!(
                "{} runs a runner with another home: uninstall that one first, with its --home, or start this one yourself with `gantry-runner run`",
                self.unit.display()
            );
        }
        Ok(())
    }

    /// The option for the home, as it stands in the unit.
    fn home_option(&self) -> String {
        format!("{HOME_OPTION}{} run\n", quoted(&self.gantry_home))
    }

    /// The service's name for people.
    pub(crate) fn name(&self) -> &'static str {
        match (self.has_unit(), self.is_root) {
            (true, true) => "the system service gantry-runner",
            (true, false) => "your service gantry-runner",
            (false, _) => "a process of its own",
        }
    }

    /// Starts the daemon, now and where possible with the machine. Returns what a person should know.
    ///
    /// # Errors
    /// The unit cannot be written or started, or the process.
    pub(crate) fn install(&self, daemon: &Path) -> anyhow::Result<Vec<String>> {
        let mut notes = Vec::new();
        if let Err(reason) = self.systemd() {
            self.remove()?;
            self.start_process(daemon)?;
            notes.push(format!(
                "{reason}, so the runner does not start by itself after a reboot: start it with `gantry-runner install`"
            ));
        } else {
            let folder = self.unit.parent().unwrap_or(Path::new("/"));
            let written =
                fs::create_dir_all(folder).and_then(|()| fs::write(&self.unit, self.text(daemon)));
            written.with_context(|| format!("cannot write {}", self.unit.display()))?;
            self.systemctl(&["daemon-reload"])?;
            self.systemctl(&["enable", UNIT])?;
            self.systemctl(&["restart", UNIT])?;
            if !self.is_root && !lingers() {
                notes.push("it ends with your last sign-in: `loginctl enable-linger` lets it run from the start of the machine on".to_owned());
            }
        }
        if self.is_root {
            notes.push(
                "it runs as root, and so do its commands: `gantry-runner install` as another user gives them less"
                    .to_owned(),
            );
        }
        Ok(notes)
    }

    /// Restarts the daemon, with the version that counts now. False where a person started the daemon by hand.
    ///
    /// # Errors
    /// It cannot be stopped or started.
    pub(crate) fn restart(&self, daemon: &Path) -> anyhow::Result<bool> {
        if self.has_unit() {
            self.systemctl(&["restart", UNIT])?;
            return Ok(true);
        }
        if !self.stop(DaemonStopMode::HandsOver)? {
            return Ok(false);
        }
        self.start_process(daemon)?;
        Ok(true)
    }

    /// Stops the daemon. False where it was started by hand, in a terminal.
    ///
    /// # Errors
    /// It does not stop in time.
    pub(crate) fn stop(&self, how: DaemonStopMode) -> anyhow::Result<bool> {
        let Some(daemon) = self.home.daemon() else {
            return Ok(!self.home.is_taken());
        };
        if !self.has_unit() && !daemon.is_detached {
            return Ok(false);
        }
        let signal = match how {
            DaemonStopMode::HandsOver => Signal::TERM,
            DaemonStopMode::Ends => Signal::INT,
        };
        let pid = Pid::from_raw(daemon.pid).context("the daemon has a number")?;
        match kill_process(pid, signal) {
            Err(error) if error != rustix::io::Errno::SRCH => {
                bail!("cannot stop the daemon, process {}: {error}", daemon.pid);
            }
            _ => {}
        }
        for _ in 0..STOPS_WITHIN.as_millis() / POLL.as_millis() {
            if !self.home.is_taken() {
                return Ok(true);
            }
            std::thread::sleep(POLL);
        }
        bail!(
            "the daemon, process {}, did not stop within {} s: see why with `gantry-runner logs`",
            daemon.pid,
            STOPS_WITHIN.as_secs()
        )
    }

    /// Removes the unit, if there is one. The daemon has stopped.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        if !self.has_unit() {
            return Ok(());
        }
        let runs = self.systemd().is_ok();
        if runs {
            self.systemctl(&["disable", "--now", UNIT])?;
        }
        fs::remove_file(&self.unit)
            .with_context(|| format!("cannot remove {}", self.unit.display()))?;
        if runs {
            self.systemctl(&["daemon-reload"])?;
        }
        Ok(())
    }

    /// Removes the log of a daemon without systemd, and the home where nothing else is in it.
    pub(crate) fn remove_log(&self) {
        let log = self.log();
        let _ = fs::remove_file(&log);
        // Others may have something in these folders; then they stay.
        for folder in log.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(folder);
        }
    }

    /// Becomes a program that shows the log.
    ///
    /// # Errors
    /// There is no log, or the program is missing.
    pub(crate) fn logs(&self, follow: bool, lines: u32) -> anyhow::Result<()> {
        let lines = lines.to_string();
        let mut shows = if self.has_unit() {
            let mut shows = Command::new("journalctl");
            let whose = if self.is_root {
                "--unit"
            } else {
                "--user-unit"
            };
            shows.args([whose, UNIT, "--lines", &lines, "--no-pager"]);
            shows
        } else {
            let log = self.log();
            if !log.exists() {
                bail!(
                    "there is no log at {}: a daemon that was started by hand writes to its terminal",
                    log.display()
                );
            }
            let mut shows = Command::new("tail");
            shows.args(["-n", &lines]).arg(log);
            shows
        };
        if follow {
            shows.arg("-f");
        }
        let program = shows.get_program().to_owned();
        let error = shows.exec();
        Err(error).with_context(|| format!("cannot start {}", program.display()))
    }

    /// A line about it.
    pub(crate) fn state(&self) -> String {
        if self.has_unit() {
            let asked = self.command(&["is-active", UNIT]).output();
            let state = asked.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
            let state = state.unwrap_or_else(|error| error.to_string());
            return format!("{} ({state}): {}", self.name(), self.unit.display());
        }
        match self.home.daemon() {
            Some(daemon) if daemon.is_detached => {
                format!(
                    "process {}; it does not start by itself after a reboot",
                    daemon.pid
                )
            }
            Some(daemon) => format!("none: process {} was started by hand", daemon.pid),
            None => "none".to_owned(),
        }
    }

    fn log(&self) -> PathBuf {
        self.gantry_home.join("log/runner.log")
    }

    /// The daemon as a process that no terminal ends.
    fn start_process(&self, daemon: &Path) -> anyhow::Result<()> {
        let path = self.log();
        let unwritable = || format!("cannot write {}", path.display());
        let mut folder = DirBuilder::new();
        let folder = folder.recursive(true).mode(0o700);
        (folder.create(path.parent().unwrap_or(&path))).with_context(unwritable)?;
        let log: File = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .with_context(unwritable)?;
        let out = log.try_clone().with_context(unwritable)?;
        Command::new(daemon)
            .arg("--home")
            .arg(&self.gantry_home)
            .args(["run", "--detached"])
            .env_remove(crate::token_source::VARIABLE)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", daemon.display()))?;
        Ok(())
    }

    /// The unit, made from the one in the repository.
    fn text(&self, daemon: &Path) -> String {
        let start = format!("ExecStart={}{}", quoted(daemon), self.home_option());
        let text = TEMPLATE.replace(TEMPLATE_START, &start);
        match self.is_root {
            false => text,
            // Of root's own environment systemd sets nothing unless a user is named.
            true => text
                .replace("[Service]\n", "[Service]\nUser=root\n")
                .replace("default.target", "multi-user.target"),
        }
    }

    /// # Errors
    /// The reason why there is no systemd that can run the unit, in words.
    fn systemd(&self) -> Result<(), &'static str> {
        if !Path::new(SYSTEMD_RUNS).exists() {
            return Err("systemd does not run here");
        }
        let asked = self.command(&["show-environment"]).output();
        match asked {
            Ok(said) if said.status.success() => Ok(()),
            _ => Err("systemd does not answer here for this user"),
        }
    }

    fn systemctl(&self, words: &[&str]) -> anyhow::Result<()> {
        let said = self.command(words).output();
        let said = said.context("cannot start systemctl")?;
        if !said.status.success() {
            let error = String::from_utf8_lossy(&said.stderr);
            bail!("systemctl {} failed: {}", words.join(" "), error.trim());
        }
        Ok(())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("systemctl");
        if !self.is_root {
            command.arg("--user");
        }
        command.args(words).stdin(Stdio::null());
        command
    }
}

/// The path for systemd: in quotes, and nothing in it stands for something else (systemd.service(5)).
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('%', "%%").replace('$', "$$"))
}

/// True if this user's services go on without a sign-in. Unknown counts as no.
fn lingers() -> bool {
    let asked = Command::new("loginctl")
        .args(["show-user", "--property=Linger", "--value"])
        .arg(rustix::process::geteuid().as_raw().to_string())
        .output();
    match asked {
        Ok(said) => said.stdout.starts_with(b"yes"),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_the_repositorys_with_this_machines_paths() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = |is_root| {
            let home = Home::within(folder.path());
            let service =
                InstalledService::of(is_root, folder.path(), Path::new("/home/a b/50%"), home);
            service.text(Path::new("/opt/gantry/current/gantry-runner"))
        };
        let start =
            "ExecStart=\"/opt/gantry/current/gantry-runner\" --home \"/home/a b/50%%\" run\n";
        for text in [text(true), text(false)] {
            assert!(text.contains(start), "{text}");
            assert!(text.contains("KillMode=process\n"), "{text}");
        }
        assert!(text(true).contains("User=root\n") && !text(false).contains("User="));
        assert!(text(true).contains("WantedBy=multi-user.target"));
    }

    #[test]
    fn the_unit_of_another_home_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |name: &str| {
            let home = folder.path().join(name);
            InstalledService::of(false, folder.path(), &home, Home::within(&home))
        };
        let (ours, another) = (of("ours"), of("ours2"));
        let write = |text: String| {
            fs::create_dir_all(ours.unit.parent().expect("a folder")).expect("it is made");
            fs::write(&ours.unit, text).expect("it is written");
        };
        assert!(!ours.has_unit());
        write(ours.text(Path::new("/opt/gantry/current/gantry-runner")));
        assert!(ours.has_unit() && !another.has_unit());
        another.remove().expect("there is nothing to do");
        assert!(ours.has_unit());
        assert!(!ours.is_anothers() && another.require_free().is_err());
        write(format!(
            "ExecStart=gantry-runner --home {} run\n",
            ours.gantry_home.display()
        ));
        assert!(ours.has_unit() && !another.has_unit(), "a person wrote it");
        write(TEMPLATE.to_owned());
        assert!(of(USUAL_HOME).has_unit() && !ours.has_unit());
    }
}
