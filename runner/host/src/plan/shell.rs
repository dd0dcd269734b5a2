//! The choice of the shell that runs a script, and the memory of the last choice.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::fs::{Access, AtFlags, CWD};
use shared_sandbox::NotStarted;
use shared_types::Clock;

/// The shells for a script, the best first.
const SHELLS: [&str; 2] = ["bash", "sh"];

/// The shell that every Unix has, for an environment without a useful PATH.
const LAST_SHELL: &str = "/bin/sh";

/// The time for which a shell that was found is taken to be there. If it was removed since, the
/// start of the command fails.
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// Finds shells.
pub(crate) struct Shells {
    clock: Arc<dyn Clock>,
    /// The last one.
    found: Mutex<Option<CachedShell>>,
}

struct CachedShell {
    path: OsString,
    shell: &'static str,
    /// Of the monotonic clock.
    until: Duration,
}

impl Shells {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            found: Mutex::default(),
        }
    }

    /// The best one under this PATH. Asks the host's file system.
    pub(super) fn find(&self, path: &OsStr) -> Result<&'static str, NotStarted> {
        let shell = find(path)?;
        *self.found() = Some(CachedShell {
            path: path.to_owned(),
            shell,
            until: self.clock.monotonic().saturating_add(KNOWN_FOR),
        });
        Ok(shell)
    }

    /// The one that was found under this PATH a while ago, if it was.
    pub(super) fn known(&self, path: &OsStr) -> Option<&'static str> {
        let now = self.clock.monotonic();
        let found = self.found();
        let known = found.as_ref()?;
        (known.path == path && now < known.until).then_some(known.shell)
    }

    fn found(&self) -> MutexGuard<'_, Option<CachedShell>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(path: &OsStr) -> Result<&'static str, NotStarted> {
    let in_path = |shell: &&str| {
        std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .any(|directory| can_run(&directory.join(shell)))
    };
    SHELLS
        .into_iter()
        .find(in_path)
        .or_else(|| can_run(Path::new(LAST_SHELL)).then_some(LAST_SHELL))
        .ok_or(NotStarted::MissingShell)
}

fn can_run(file: &Path) -> bool {
    rustix::fs::accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use shared_types::{Timestamp, clock::ManualClock};

    use super::*;

    #[test]
    fn a_shell_is_known_for_a_while() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(0)));
        let shells = Shells::new(clock.clone());
        let path = OsStr::new("/usr/bin:/bin");
        assert_eq!(shells.known(path), None);
        let found = shells.find(path).expect("a shell");
        assert_eq!(shells.known(path), Some(found));
        clock.advance(KNOWN_FOR);
        assert_eq!(shells.known(path), None);
    }
}
