//! The Docker engine that the tests were started with, asked by its own client.

use std::process::Command;

use shared_types::RunnerId;

/// What one runner has on the engine; it goes with this.
#[derive(Debug)]
pub struct Engine {
    runner: RunnerId,
}

impl Engine {
    /// Where the engine listens; `tests/run` says it.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test has no main that could pass it down"
    )]
    pub fn socket() -> String {
        std::env::var("GANTRY_TEST_DOCKER").expect("tests/run says where an engine listens")
    }

    /// What this runner has.
    pub fn of(runner: RunnerId) -> Self {
        Self { runner }
    }

    /// The ids of its containers, running or not.
    pub fn containers(&self) -> Vec<String> {
        let label = format!("label=io.gantry.runner={}", self.runner);
        docker(&["ps", "--all", "--quiet", "--filter", &label])
    }

    /// Removes its containers by hand; their volumes stay.
    pub fn remove_containers(&self) {
        for container in self.containers() {
            docker(&["rm", "--force", &container]);
        }
    }

    /// The volumes of its sandboxes, whether these have a container or not.
    pub fn volumes(&self) -> Vec<String> {
        let label = format!("label=io.gantry.runner={}", self.runner);
        docker(&["volume", "ls", "--quiet", "--filter", &label])
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.remove_containers();
        for volume in self.volumes() {
            docker(&["volume", "rm", "--force", &volume]);
        }
    }
}

/// The lines that the client prints; an object that is gone meanwhile is no failure.
fn docker(words: &[&str]) -> Vec<String> {
    let said = Command::new("docker")
        .args(["--host", &Engine::socket()])
        .args(words)
        .output()
        .expect("the Docker client runs");
    let text = String::from_utf8(said.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}
