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

impl Drop for Containers {
    fn drop(&mut self) {
        self.remove();
        for volume in self.volumes() {
            self.engine.docker(&["volume", "rm", "--force", &volume]);
        }
    }
}
