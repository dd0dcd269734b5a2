//! Several servers on one database: beside one another, or one takes the place of another, as in a rolling update.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::{Gantry, Process};
use crate::proxy::Proxy;

/// A free port of the loopback.
const ANY_PORT: &str = "http://127.0.0.1:0";

/// A server whose place another one has taken, and its folder.
struct Old {
    process: Process,
    _home: TempDir,
}

impl Gantry {
    /// Another server on the same database, with the same keys and settings in a folder of its own. The owner's token
    /// is good there too.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn another(&self) -> Self {
        let mut another = Self {
            home: self.home_of_another(),
            environment: self.environment.clone(),
            arguments: self.arguments.clone(),
            server: None,
            url: ANY_PORT.to_owned(),
            trust: self.trust.clone(),
            token: self.token.clone(),
            http: reqwest::Client::new(),
        };
        another.start_server().await;
        another
    }

    /// A new server starts with the same keys and settings in an empty folder; new connections through `front`
    /// go to it; then the old one is asked to stop, and does.
    ///
    /// # Panics
    /// If the new one does not start, or the old one does not stop in order.
    pub async fn roll(&mut self, front: &Proxy) {
        self.roll_behind(front, async {}).await;
    }

    /// The same, and does this while both run and all still go to the old one.
    ///
    /// # Panics
    /// As [`Self::roll`].
    pub async fn roll_behind<T>(&mut self, front: &Proxy, last: impl Future<Output = T>) -> T {
        let (old, last) = self.start_another(front, last).await;
        assert_eq!(old.process.terminate().await, Some(0), "it stops in order");
        last
    }

    /// The same, and the old server is killed.
    ///
    /// # Panics
    /// If the new one does not start.
    pub async fn roll_by_kill(&mut self, front: &Proxy) {
        let (old, ()) = self.start_another(front, async {}).await;
        old.process.kill().await;
    }

    /// Returns the old server and its folder.
    async fn start_another<T>(&mut self, front: &Proxy, last: impl Future<Output = T>) -> (Old, T) {
        let home = self.home_of_another();
        let old_home = std::mem::replace(&mut self.home, home);
        let old = self.server.take().expect("the server runs");
        self.url = ANY_PORT.to_owned();
        self.start_server().await;
        let last = last.await;
        front.leads_to(&self.url);
        let old = Old {
            process: old,
            _home: old_home,
        };
        (old, last)
    }

    /// An empty folder but for the server's keys and settings.
    fn home_of_another(&self) -> TempDir {
        let home = tempfile::tempdir().expect("a temporary folder");
        let keys = Path::new("server/keys");
        fs::create_dir_all(home.path().join(keys)).expect("it is made");
        for key in fs::read_dir(self.home.path().join(keys)).expect("they are there") {
            let key = key.expect("it is there");
            let copied = fs::copy(key.path(), home.path().join(keys).join(key.file_name()));
            copied.expect("it is copied");
        }
        let settings = "gantry.toml";
        if self.home.path().join(settings).exists() {
            let copied = fs::copy(self.home.path().join(settings), home.path().join(settings));
            copied.expect("it is copied");
        }
        home
    }
}
