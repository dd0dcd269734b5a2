//! One server takes the place of another one on the same database, as in a rolling update.

use std::{fs, path::Path};

use super::Gantry;
use crate::proxy::Proxy;

impl Gantry {
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
        // Kept until the old server has stopped.
        let _old_home = std::mem::replace(&mut self.home, home);
        let old = self.server.take().expect("the server runs");
        self.url = "http://127.0.0.1:0".to_owned();
        self.start_server().await;
        let last = last.await;
        front.leads_to(&self.url);
        assert_eq!(old.terminate().await, Some(0), "it stops in order");
        last
    }
}
