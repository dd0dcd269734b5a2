//! Docker engines, asked by their own client: the one that the tests were started with, and one that dies.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use shared_types::RunnerId;
use tempfile::TempDir;

/// An engine, which goes on when this goes.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Where its data and its socket lie.
    folder: PathBuf,
}

/// An engine of one test alone, with the image of the template `base`. It goes with this.
#[derive(Debug)]
pub struct MortalEngine {
    engine: Engine,
    _folder: TempDir,
}

/// A runner that is in a container itself. It goes with this, and its volume as well.
#[derive(Debug)]
pub struct Inner {
    engine: Engine,
    name: String,
}

/// What one runner has on an engine. It goes with this.
#[derive(Debug)]
pub struct Containers {
    engine: Engine,
    runner: RunnerId,
}

impl Engine {
    /// The engine that the tests were started with; `tests/run` says where it is.
    pub fn of_the_tests() -> Self {
        Self::of_the_bench().expect("tests/run says where an engine is")
    }

    /// The same, where there is one.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test has no main that could pass it down"
    )]
    pub fn of_the_bench() -> Option<Self> {
        let folder = std::env::var_os("GANTRY_TEST_DOCKER_FOLDER")?;
        let folder = PathBuf::from(folder);
        Some(Self { folder })
    }

    /// Where it listens.
    pub fn socket(&self) -> String {
        format!("unix://{}/socket", self.folder.display())
    }

    /// What this runner has there.
    pub fn containers_of(&self, runner: RunnerId) -> Containers {
        Containers {
            engine: self.clone(),
            runner,
        }
    }

    /// Starts a container of the template `base` on this host's network, with the engine's socket, a volume of
    /// its own at `/var/lib/gantry`, and these programs at `/opt/gantry`; it goes with what is returned.
    pub fn run_inner(&self, name: &str, programs: &Path, words: &[&str], stdin: &str) -> Inner {
        let inner = Inner {
            engine: self.clone(),
            name: name.to_owned(),
        };
        inner.run(programs, words, stdin);
        inner
    }

    /// The lines that the client prints; an object that is gone meanwhile is no failure.
    fn docker(&self, words: &[&str]) -> Vec<String> {
        let said = Command::new("docker")
            .args(["--host", &self.socket()])
            .args(words)
            .output()
            .expect("the Docker client runs");
        let text = String::from_utf8(said.stdout).expect("text");
        text.lines().map(str::to_owned).collect()
    }

    /// Has `tests/docker` do something with this engine.
    fn has(&self, verb: &str, words: &[&Path]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("docker");
        let done = Command::new(script)
            .arg(verb)
            .args(words)
            .arg(&self.folder)
            .status();
        assert!(done.expect("it starts").success(), "{verb}");
    }
}

impl MortalEngine {
    /// Starts one.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = Engine {
            folder: folder.path().to_owned(),
        };
        engine.has("beside", &[&Engine::of_the_tests().folder]);
        Self {
            engine,
            _folder: folder,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Kills it; its containers' processes go on as they may.
    pub fn kill(&self) {
        self.engine.has("kill", &[]);
    }

    /// Starts it again.
    pub fn start_again(&self) {
        self.engine.has("start", &[]);
    }
}

impl Drop for MortalEngine {
    fn drop(&mut self) {
        // Its containers, which an engine that is dead cannot stop.
        self.engine.has("start", &[]);
        self.engine.has("stop", &[]);
    }
}

impl Containers {
    /// The ids of its containers, running or not.
    pub fn ids(&self) -> Vec<String> {
        let label = format!("label=io.gantry.runner={}", self.runner);
        self.engine
            .docker(&["ps", "--all", "--quiet", "--filter", &label])
    }

    /// The ids of those that run.
    pub fn running(&self) -> Vec<String> {
        let label = format!("label=io.gantry.runner={}", self.runner);
        self.engine.docker(&["ps", "--quiet", "--filter", &label])
    }

    /// Removes its containers by hand; their volumes stay.
    pub fn remove(&self) {
        for container in self.ids() {
            self.engine.docker(&["rm", "--force", &container]);
        }
    }

    /// The volumes of its sandboxes, whether these have a container or not.
    pub fn volumes(&self) -> Vec<String> {
        let label = format!("label=io.gantry.runner={}", self.runner);
        self.engine
            .docker(&["volume", "ls", "--quiet", "--filter", &label])
    }
}

impl Inner {
    /// Runs this program of it to its end.
    fn run(&self, programs: &Path, words: &[&str], stdin: &str) {
        use std::io::Write as _;
        let mut child = self
            .command(programs, &["--rm", "--interactive"])
            .args(words)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("the Docker client runs");
        let written = child
            .stdin
            .take()
            .map(|mut pipe| pipe.write_all(stdin.as_bytes()));
        assert!(matches!(written, Some(Ok(()))));
        assert!(child.wait().expect("it ends").success(), "{words:?}");
    }

    /// Starts its daemon.
    pub fn start(&self, programs: &Path, words: &[&str]) {
        let started = self
            .command(programs, &["--detach", "--name", &self.name])
            .args(words)
            .output();
        assert!(started.expect("the Docker client runs").status.success());
    }

    /// Kills its container, and starts that again.
    pub fn kill_and_start(&self) {
        self.engine.docker(&["kill", &self.name]);
        self.engine.docker(&["start", &self.name]);
    }

    fn command(&self, programs: &Path, options: &[&str]) -> Command {
        let mut command = Command::new("docker");
        let socket = self.engine.socket();
        let path = socket.strip_prefix("unix://").unwrap_or(&socket);
        command
            .args(["--host", &socket, "run", "--network", "host"])
            .args(["--env", "GANTRY_HOME=/var/lib/gantry"])
            .arg(format!("--volume={path}:/var/run/docker.sock"))
            .arg(format!("--volume={}:/var/lib/gantry", self.name))
            .arg(format!("--volume={}:/opt/gantry:ro", programs.display()))
            .args(options)
            .arg("gantry/base:1");
        command
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.engine.docker(&["rm", "--force", &self.name]);
        self.engine.docker(&["volume", "rm", "--force", &self.name]);
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        self.remove();
        for volume in self.volumes() {
            self.engine.docker(&["volume", "rm", "--force", &volume]);
        }
    }
}
