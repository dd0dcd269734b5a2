//! `gantry-runner install`, `update`, `uninstall` and `logs`: the programs of this machine, and the service
//! that runs the daemon.
//!
//! Each version has a folder of its own, named by what is in it, and the link `current` says which one counts.
//! A change of version is a change of that link and a start of the daemon alone: it hands over what runs.

mod download;
mod left;
mod programs;
mod service;

use std::{
    fs,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use rustix::process::geteuid;
use shared_program::say;
use shared_types::{Entropy, Token};

use self::{
    download::Offered,
    programs::Programs,
    service::{DaemonStopMode, InstalledService},
};
use crate::{
    daemon::DaemonError,
    endpoints::Endpoints,
    home::{EnrolledHome, Home},
};

/// The longest wait for a daemon to connect before the person is sent to the log.
const CONNECTED_WITHIN: Duration = Duration::from_secs(20);

/// The longest wait for a daemon to begin, also where systemd starts it once more.
const RUNS_WITHIN: Duration = Duration::from_secs(7);

/// The longest wait for a new version to print its version.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// This machine, as far as an installation has to know it.
pub(crate) struct Machine {
    programs: Programs,
    service: InstalledService,
    home: Home,
    gantry_home: PathBuf,
}

impl Machine {
    /// Of the user who asks. `user_home` is that user's own folder.
    ///
    /// # Errors
    /// The user has no folder.
    pub(crate) fn here(gantry_home: &Path, user_home: Option<&Path>) -> anyhow::Result<Self> {
        let is_root = geteuid().is_root();
        let user_home = user_home.context("no home: set HOME to your own folder")?;
        let gantry_home =
            std::path::absolute(gantry_home).context("cannot tell where Gantry's home is")?;
        let programs = match is_root {
            true => Programs::of_the_machine(),
            false => Programs::of_a_user(user_home),
        };
        let home = Home::within(&gantry_home);
        Ok(Self {
            service: InstalledService::of(is_root, user_home, &gantry_home, home.clone()),
            programs,
            home,
            gantry_home,
        })
    }

    /// True if this token is still to be spent here. A machine that is a runner of the token's server already stays
    /// unchanged, so that the pasted line may be run twice.
    ///
    /// # Errors
    /// The machine is enrolled with another server, or its service runs the daemon of another home.
    pub(crate) fn joins(&self, token: &Token) -> anyhow::Result<bool> {
        self.service.require_free()?;
        match self.home.enrolled()? {
            None => Ok(true),
            Some(enrolled) if token.pin() == Some(&enrolled.server_identity.0) => {
                say!(
                    "this machine is the runner {} of {} already (to enrol it again, run `gantry-runner uninstall --with-home` first)",
                    enrolled.name,
                    enrolled.servers.join(", ")
                )?;
                Ok(false)
            }
            Some(EnrolledHome { name, servers, .. }) => bail!(
                "this machine is the runner {name} of {} already: `gantry-runner install` starts it and `gantry-runner update` updates it; to enrol it again, run `gantry-runner uninstall --with-home` first",
                servers.join(", ")
            ),
        }
    }

    /// Puts the programs beside this one into their place, and says where. The daemon that runs is not touched.
    ///
    /// # Errors
    /// A program is missing, or cannot be copied.
    pub(crate) fn add_programs(&self) -> anyhow::Result<PathBuf> {
        let this = std::env::current_exe().context("cannot tell where this program is")?;
        let from = this.parent().context("cannot tell where this program is")?;
        let folder = self.programs.add(from, shared_program::NUMBER, None)?;
        Ok(folder)
    }

    /// Makes these programs the ones that count, and starts the daemon with them.
    ///
    /// # Errors
    /// A link or the service cannot be made, or the daemon does not start.
    pub(crate) fn start(&self, folder: &Path) -> anyhow::Result<()> {
        if self.home.enrolled()?.is_none() {
            bail!(
                "this machine is not enrolled yet: ask for a line to paste with `gantry runners add`, or give --server and a join token"
            );
        }
        self.service.require_free()?;
        let link = self.programs.select(folder)?;
        say!("installed in {}, as {}", folder.display(), link.display())?;
        let daemon = self.programs.daemon();
        match self.home.is_taken() {
            true if self.service.stop(DaemonStopMode::HandsOver)? => {}
            true => bail!(
                "a daemon that was started by hand runs: stop it (Ctrl-C where it runs), then run `gantry-runner install` once more"
            ),
            false => {}
        }
        // A daemon that was killed may have left it behind.
        self.home.note_link(None);
        let notes = self.service.install(&daemon)?;
        let connected = self.connected(&format!("started as {}", self.service.name()))?;
        say!("{connected}")?;
        for note in notes {
            say!("note: {note}")?;
        }
        Ok(())
    }

    /// Loads the programs that the server hands out, and goes over to them; what runs goes on.
    ///
    /// # Errors
    /// The server cannot be asked or hands out none, what came is not what it signed, or the daemon does
    /// not start.
    pub(crate) fn update(&self, entropy: &dyn Entropy) -> anyhow::Result<()> {
        let enrolled = self.home.enrolled()?.ok_or(DaemonError::NotEnrolled)?;
        let current = self.programs.current().context(
            "nothing is installed here: `gantry-runner install` does that, with the programs beside it",
        )?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (offered, unpacked) = runtime.block_on(async {
            let mut offered = offer(&enrolled, entropy).await?;
            if self.programs.archive_of(&current) == Some(offered.sha256) {
                return anyhow::Ok((offered, None));
            }
            say!("loading {} bytes from {}", offered.bytes, offered.server)?;
            let unpacked = self.programs.unpack(&mut offered).await?;
            Ok((offered, Some(unpacked)))
        })?;
        let folder = match unpacked {
            None => current.clone(),
            Some(unpacked) => {
                let version = self.programs.version_of(unpacked.path(), ANSWERS_WITHIN)?;
                (self.programs).add(unpacked.path(), &version, Some(offered.sha256))?
            }
        };
        let before = match folder == current {
            false => current,
            // An update was interrupted before it restarted the daemon.
            true => match self.another_runs(&current) {
                Some(running) => running,
                None => {
                    say!("already current: {}", current.display())?;
                    return Ok(());
                }
            },
        };
        // Before anything changes: where this cannot be printed, the update ends with the old version in use.
        say!("installed in {}", folder.display())?;
        self.programs.select(&folder)?;
        if !self.home.is_taken() {
            say!("the daemon does not run; it starts with this version")?;
            return Ok(());
        }
        let restarted = self.service.restart(&self.programs.daemon());
        if matches!(restarted, Ok(false)) {
            say!("the daemon was started by hand: restart it yourself; commands go on")?;
            return Ok(());
        }
        let done = "the daemon was started anew, and what runs goes on";
        match restarted.and_then(|_| self.connected(done)) {
            Ok(connected) => {
                self.programs.prune(&[&folder, &before]);
                say!("{connected}")?;
                Ok(())
            }
            Err(error) => {
                // It reached the server a moment ago.
                self.programs.select(&before)?;
                self.service.restart(&self.programs.daemon())?;
                bail!("{error}; went back to {}", before.display());
            }
        }
    }

    /// Stops the daemon and what it runs, and removes the service and the programs; the home too where that
    /// is wanted.
    ///
    /// # Errors
    /// The person does not agree, or something cannot be stopped or removed.
    pub(crate) fn uninstall(&self, yes: bool, with_home: bool) -> anyhow::Result<()> {
        let name = self.home.enrolled()?.map(|enrolled| enrolled.name);
        if !yes {
            let runner = name.as_deref().unwrap_or("(not enrolled)");
            let question = format!(
                "Stop the runner {runner} with all commands that it runs, and remove its service and programs?"
            );
            if !agrees(&question)? {
                bail!("nothing was changed");
            }
        }
        if self.home.is_taken() && !self.service.stop(DaemonStopMode::Ends)? {
            bail!("a daemon that was started by hand runs: stop it first (Ctrl-C where it runs)");
        }
        self.service.remove()?;
        if self.home.folder().is_dir() {
            // A daemon that handed over, or was killed, has left its commands running.
            let _lock = self.home.lock()?;
            left::end(&self.home.commands())?;
        }
        match self.service.is_anothers() {
            true => say!("the programs and the service stay: they run a runner with another home")?,
            false => {
                self.programs.remove()?;
                say!("removed the service and the programs")?;
            }
        }
        let home = self.gantry_home.join("runner");
        let question = format!(
            "Remove {} too? The runner's key is in it: without it the machine has to be enrolled again.",
            home.display()
        );
        let removes_home = with_home || (!yes && home.exists() && agrees(&question)?);
        match removes_home {
            true => {
                self.home.remove()?;
                self.service.remove_log();
                say!("removed {}", home.display())?;
            }
            false if home.exists() => say!("{} stays", home.display())?,
            false => {}
        }
        if let Some(name) = name {
            say!("the server still lists it: gantry runners remove {name}")?;
        }
        Ok(())
    }

    /// Becomes a program that shows the daemon's log.
    ///
    /// # Errors
    /// There is no log, or nothing that shows it.
    pub(crate) fn logs(&self, follow: bool, lines: u32) -> anyhow::Result<()> {
        self.service.logs(follow, lines)
    }

    /// A line about the service, for `status`.
    pub(crate) fn service_state(&self) -> String {
        self.service.state()
    }

    /// The folder of the version that the daemon runs, where that is another installed one.
    fn another_runs(&self, current: &Path) -> Option<PathBuf> {
        let daemon = self.home.daemon()?;
        let program = fs::read_link(format!("/proc/{}/exe", daemon.pid)).ok()?;
        let (running, current) = (program.parent()?, fs::canonicalize(current).ok()?);
        let is_another = running != current && running.parent() == current.parent();
        is_another.then(|| running.to_owned())
    }

    /// Waits until the daemon is connected. Returns what was done and where the link leads, in words.
    fn connected(&self, done: &str) -> anyhow::Result<String> {
        let polls = |time: Duration| time.as_millis() / service::POLL.as_millis();
        let mut down = 0;
        for _ in 0..polls(CONNECTED_WITHIN) {
            match (self.home.is_taken(), self.home.link()) {
                (true, Some(link)) => {
                    return Ok(format!("{done}; connected to {link}"));
                }
                (true, None) => down = 0,
                (false, _) => down += 1,
            }
            if down > polls(RUNS_WITHIN) {
                bail!("{done}, but it does not run: see why with `gantry-runner logs`");
            }
            std::thread::sleep(service::POLL);
        }
        bail!(
            "{done}, but it did not connect within {} s: see why with `gantry-runner logs`",
            CONNECTED_WITHIN.as_secs()
        )
    }
}

/// The programs for this kind of machine, from the first of the server's addresses that answers.
async fn offer(enrolled: &EnrolledHome, entropy: &dyn Entropy) -> anyhow::Result<Offered> {
    let mut endpoints = Endpoints::parse(&enrolled.servers, enrolled.allow_plain_text)?;
    let mut left = endpoints.len();
    loop {
        left -= 1;
        let asked = match endpoints.next().await {
            Ok(route) => Offered::by(&route, &enrolled.server_identity, entropy).await,
            Err(error) => Err(error.into()),
        };
        match asked {
            Err(error) if left > 0 => {
                tracing::warn!(server = %endpoints.last(), %error, "trying the next address");
            }
            asked => return Ok(asked?),
        }
    }
}

/// Asks a person, who has to say yes.
fn agrees(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("it asks before it removes anything, and standard input is no terminal: give --yes");
    }
    let mut out = io::stdout().lock();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    drop(out);
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
