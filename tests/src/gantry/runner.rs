//! A runner on "another machine": a home and a workspace of its own.
//!
//! What its commands left running is killed when it is dropped, as a machine that is switched off
//! would: commands survive their daemon.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

use super::{
    eventually,
    process::{Process, log_of, path, processes_in, program, signal, tell_in_a_panic},
};

/// The longest wait before another attempt to connect, in seconds: a test cuts links more often
/// than a network does.
const LONGEST_WAIT: &str = "0.2";

/// How often a folder that changes is copied before a test gives up.
const COPIES: usize = 20;

/// An enrolled runner.
pub struct Runner {
    /// Declared first, because it goes before the folder that it is mounted on.
    disk: Option<Disk>,
    home: TempDir,
    /// What starts its programs, if not we ourselves.
    launcher: Vec<String>,
    process: Option<Process>,
    /// Of the daemon.
    options: Vec<String>,
}

/// The exit code of a daemon whose runner was removed or locked.
pub const TO_BE_ENROLLED: i32 = 77;

impl Runner {
    /// Enrols with the token on standard input, as a script would.
    pub async fn enrol(server: &str, token: &str, name: &str) -> Self {
        let runner = Self::stranger();
        runner.enrolled(server, token, name).await
    }

    /// Enrols on a machine whose programs are started by these words, which become the program:
    /// another network namespace, another root, a bound on memory.
    pub async fn enrol_by(launcher: &[&str], server: &str, token: &str, name: &str) -> Self {
        let mut runner = Self::stranger();
        runner.launch_by(launcher);
        runner.enrolled(server, token, name).await
    }

    /// Enrols on a machine whose whole disk has so many bytes. Needs root.
    pub async fn enrol_on_disk_of(bytes: u64, server: &str, token: &str, name: &str) -> Self {
        let mut runner = Self::stranger();
        runner.disk = Some(Disk::mount(runner.home.path(), bytes));
        std::fs::create_dir(runner.workspace()).expect("a workspace");
        runner.enrolled(server, token, name).await
    }

    /// Starts its programs by these words from now on.
    pub fn launch_by(&mut self, launcher: &[&str]) {
        self.launcher = launcher.iter().map(|word| (*word).to_owned()).collect();
    }

    async fn enrolled(self, server: &str, token: &str, name: &str) -> Self {
        let output = self.try_enrol(server, token, name).await;
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        self
    }

    /// A home that is not enrolled anywhere.
    pub fn stranger() -> Self {
        let runner = Self {
            disk: None,
            home: tempfile::tempdir().expect("a temporary folder"),
            launcher: Vec::new(),
            process: None,
            options: Vec::new(),
        };
        std::fs::create_dir(runner.workspace()).expect("a workspace");
        runner
    }

    /// Somebody's copy of a runner's whole folder, in the same workspace.
    pub fn copy_of(original: &Runner) -> Self {
        let home = tempfile::tempdir().expect("a temporary folder");
        copy(&original.home.path().join("runner"), home.path());
        Self {
            disk: None,
            home,
            launcher: Vec::new(),
            process: None,
            options: Vec::new(),
        }
    }

    /// A copy of the folder of its state, for [`Runner::restore`].
    pub fn snapshot(&self) -> TempDir {
        // A supervisor that has served may clear its folder away in the middle of it.
        for _ in 0..COPIES {
            let kept = tempfile::tempdir().expect("a temporary folder");
            if is_copied(&self.home.path().join("runner"), kept.path()) {
                return kept;
            }
        }
        panic!("its folder does not stand still");
    }

    /// Puts the folder of its state back to what it was; nothing of it may run.
    pub fn restore(&self, snapshot: &TempDir) {
        let folder = self.home.path().join("runner");
        std::fs::remove_dir_all(&folder).expect("it is there");
        copy(&snapshot.path().join("runner"), self.home.path());
    }

    /// Tries to enrol and returns what the program said.
    pub async fn try_enrol(&self, server: &str, token: &str, name: &str) -> std::process::Output {
        let mut enrol = program(&self.launcher, "gantry-runner")
            .args(["enrol", "--server", server, "--name", name, "--workspace"])
            .arg(self.workspace())
            .arg("-")
            .env_clear()
            .env("PATH", path())
            .env("GANTRY_HOME", self.home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the runner starts");
        let mut stdin = enrol.stdin.take().expect("stdin is piped");
        stdin
            .write_all(token.as_bytes())
            .await
            .expect("the token can be written");
        drop(stdin);
        enrol.wait_with_output().await.expect("the runner ends")
    }

    /// Tries to change where it reaches its server, and returns what the program said.
    pub async fn try_servers(&self, servers: &[&str]) -> std::process::Output {
        self.say(&[&["servers"], servers].concat()).await
    }

    /// What the program says of its state.
    pub async fn status(&self) -> std::process::Output {
        self.say(&["status"]).await
    }

    /// Runs the program in its home with these words, and returns what it said.
    pub async fn say(&self, words: &[&str]) -> std::process::Output {
        let said = program(&self.launcher, "gantry-runner")
            .args(words)
            .env_clear()
            .env("PATH", path())
            .env("GANTRY_HOME", self.home.path())
            .kill_on_drop(true)
            .output();
        said.await.expect("the runner starts")
    }

    /// From its next start on the daemon has these options as well.
    pub fn options(&mut self, options: &[&str]) {
        self.options = options.iter().map(|option| (*option).to_owned()).collect();
    }

    /// Starts the daemon.
    pub fn start(&mut self) {
        assert!(self.process.is_none(), "the runner runs already");
        // A variable that no command may see.
        let mut environment = vec![("RUNNER_SECRET".to_owned(), "do-not-leak".to_owned())];
        // Many runners share this host, and nobody asks them.
        environment.push(("GANTRY_RUNNER_METRICS".to_owned(), "off".to_owned()));
        self.process = Some(Process::start_by(
            &self.launcher,
            "gantry-runner",
            &[
                &["run", "--longest-wait", LONGEST_WAIT].map(str::to_owned),
                &self.options[..],
            ]
            .concat(),
            self.home.path(),
            &environment,
        ));
    }

    /// Starts the daemon where it was killed.
    pub fn start_if_dead(&mut self) {
        if self.process.is_none() {
            self.start();
        }
    }

    /// Kills the daemon with SIGKILL.
    pub async fn kill(&mut self) {
        self.process.take().expect("the runner runs").kill().await;
    }

    /// Kills the daemon and all that it ever started, as a machine does that loses its power.
    pub fn power_off(&mut self) {
        // The daemon first, so that it starts nothing more.
        self.process = None;
        for pid in processes_in(self.home.path()) {
            // It may have ended by itself meanwhile.
            let _ = std::process::Command::new("kill")
                .args(["-KILL", &pid.to_string()])
                .stderr(Stdio::null())
                .status();
        }
    }

    /// Asks the daemon to stop with SIGTERM and returns its exit code.
    pub async fn stop(&mut self) -> Option<i32> {
        self.process
            .take()
            .expect("the runner runs")
            .terminate()
            .await
    }

    /// Waits for the daemon's own end and returns its exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        let mut process = self.process.take().expect("the runner runs");
        process.ended().await
    }

    /// Sends a signal to the daemon.
    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// The daemon's process id.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the runner runs").pid()
    }

    /// The directory that its tools see.
    pub fn workspace(&self) -> PathBuf {
        self.home.path().join("workspace")
    }

    /// The folder of its state.
    pub fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// A file of the workspace; `None` where there is none.
    pub fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace().join(name)).ok()
    }

    /// Waits until the daemon has logged this.
    pub async fn until_logged(&self, words: &str) {
        let logged = || async { self.log().contains(words).then_some(()) };
        eventually(&format!("the runner logs {words}"), logged).await;
    }

    /// What the daemon has logged.
    pub fn log(&self) -> String {
        log_of("gantry-runner", self.home.path())
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        tell_in_a_panic("gantry-runner", &self.log());
        self.power_off();
    }
}

/// A small file system in memory; unmounted when it is dropped.
pub struct Disk(PathBuf);

impl Disk {
    /// Needs root.
    ///
    /// # Panics
    /// If it may not be mounted there.
    pub fn mount(place: &Path, bytes: u64) -> Self {
        let size = format!("size={bytes},mode=755");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "gantry-test"])
            .arg(place)
            .status();
        assert!(mounted.expect("mount starts").success(), "root may mount");
        Self(place.to_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("--lazy")
            .arg(&self.0)
            .status();
    }
}

/// Copies a folder into another one, with all that is in it and its permissions.
fn copy(folder: &Path, into: &Path) {
    assert!(is_copied(folder, into));
}

/// Says whether all of it was there to be copied.
fn is_copied(folder: &Path, into: &Path) -> bool {
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([folder, into])
        .status();
    copied.expect("cp starts").success()
}
