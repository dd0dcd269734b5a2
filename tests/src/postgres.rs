//! PostgreSQL for scenarios, as `tests/postgres` runs it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use shared_types::{Entropy as _, OsEntropy};

/// Says on which database servers of scenarios keep everything, where a test does not say it.
pub const DATABASE: &str = "GANTRY_TEST_DATABASE";

/// A PostgreSQL of one test, which may stop it.
#[derive(Debug)]
pub struct Postgres {
    folder: tempfile::TempDir,
}

impl Postgres {
    /// Starts one, which syncs nothing to the disk.
    pub fn start() -> Self {
        Self::start_by("start")
    }

    /// Starts one that syncs every commit, as an installed one does: for figures.
    pub fn start_synced() -> Self {
        Self::start_by("start-synced")
    }

    fn start_by(verb: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), all).expect("it is ours");
        let postgres = Self { folder };
        postgres.run(verb);
        postgres
    }

    /// Kills it, as a crash of its machine would.
    pub fn stop(&self) {
        self.run("stop");
    }

    /// Starts it where it was stopped.
    pub fn start_again(&self) {
        self.run("start");
    }

    /// Has it count the rows of its tables, for which it plans: by itself it does so within a minute.
    pub fn analyze(&self) {
        self.run("analyze");
    }

    /// The URL of a new, empty database.
    pub fn database(&self) -> String {
        database(Some(self.folder.path()))
    }

    fn run(&self, verb: &str) {
        script(&[verb.as_ref(), self.folder.path()], None);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = Command::new(path())
            .arg("stop")
            .arg(self.folder.path())
            .status();
    }
}

/// The URL of a new database of the test run's PostgreSQL, if scenarios are to use that.
#[expect(
    clippy::disallowed_methods,
    reason = "tests/run says which database it is"
)]
pub fn database_of_run() -> Option<String> {
    let wanted = std::env::var(DATABASE).ok()?;
    assert_eq!(wanted, "postgres", "{DATABASE} names a database");
    Some(database(None))
}

fn database(folder: Option<&Path>) -> String {
    // At random: on a busy machine the ids of processes come again.
    let mut random = [0; 8];
    OsEntropy.fill(&mut random);
    let random = u64::from_be_bytes(random);
    let name = format!("scenario_{}_{random:016x}", std::process::id());
    script(&["create".as_ref(), name.as_ref()], folder)
}

fn script(arguments: &[&Path], folder: Option<&Path>) -> String {
    let mut command = Command::new(path());
    command.args(arguments);
    if let Some(folder) = folder {
        command.env("GANTRY_TEST_POSTGRES", folder);
    }
    let done = command.output().expect("the script is there");
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "tests/postgres {arguments:?}: {told}"
    );
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("postgres")
}
