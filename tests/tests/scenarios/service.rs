//! A service has a user of its own, and root runs the verbs on its home: the server can read all that they make.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use tempfile::TempDir;
use tests::{
    gantry::{Process, binary},
    ordinary::{ORDINARY, Ordinary},
};
use tokio::process::Command;

/// A home of the ordinary user's.
struct Service {
    ordinary: Ordinary,
    home: TempDir,
}

impl Service {
    fn new() -> Self {
        let (ordinary, home) = (Ordinary::with_programs(), tempfile::tempdir());
        let home = home.expect("a temporary folder");
        ordinary.give(home.path());
        Self { ordinary, home }
    }

    /// The server, once it listens.
    async fn started(&self) -> Process {
        let arguments = ["run", "--listen", "127.0.0.1:0"].map(str::to_owned);
        let mut server = Process::start_by(
            &self.ordinary.launcher(),
            "gantry-server",
            &arguments,
            self.home.path(),
            &[],
        );
        while !server.line().await.starts_with("listening on ") {}
        server
    }

    /// A verb of the user who runs the tests, and its words.
    async fn verb(&self, words: &[&str]) -> String {
        let mut verb = Command::new(binary("gantry-server"));
        let verb = verb
            .args(words)
            .env_clear()
            .env("GANTRY_HOME", self.home.path());
        let said = verb.output().await.expect("it starts");
        assert!(said.status.success(), "{words:?}: {said:?}");
        String::from_utf8_lossy(&said.stdout).into_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_goes_on_after_root_has_rotated_its_key_and_restored_its_backup() {
    if !tests::gantry::is_root() {
        return;
    }
    let (service, elsewhere) = (Service::new(), tempfile::tempdir().expect("a folder"));
    let server = service.started().await;
    let said = service.verb(&["rotate-link-key"]).await;
    assert!(
        said.contains("accepted for 10 more minutes"),
        "it is used: {said}"
    );
    let backup = elsewhere.path().join("backup.tar.gz");
    service
        .verb(&["backup", backup.to_str().expect("UTF-8")])
        .await;
    let of_backup = fs::metadata(&backup).expect("a backup");
    assert_eq!(of_backup.uid(), 0, "the keys in it are for root alone");
    assert_eq!(server.terminate().await, Some(0));

    let folder = service.home.path().join("server");
    fs::rename(&folder, service.home.path().join("before")).expect("it is renamed");
    service
        .verb(&["restore", backup.to_str().expect("UTF-8")])
        .await;
    assert_all_are_the_services(&folder);
    assert_eq!(service.started().await.terminate().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_starts_on_the_database_that_root_has_migrated_before_its_first_start() {
    let service = Service::new();
    service.verb(&["migrate"]).await;
    assert_eq!(service.started().await.terminate().await, Some(0));
}

fn assert_all_are_the_services(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let (path, about) = entry
            .and_then(|entry| Ok((entry.path(), entry.metadata()?)))
            .expect("it is there");
        assert_eq!(about.uid(), ORDINARY, "{}", path.display());
        if about.is_dir() {
            assert_all_are_the_services(&path);
        }
    }
}
