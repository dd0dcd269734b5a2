//! Programs that run as an ordinary user, also where the tests run as root: as copies, because others may not
//! run what lies in root's folders.

use std::{os::unix::fs::chown, path::Path};

use tempfile::TempDir;

use crate::gantry::{binary, is_root};

/// The user and group `nobody` and `nogroup` of most systems; it need not exist.
pub const ORDINARY: u32 = 65534;

/// The programs, and what starts them as an ordinary user, as hidden as they are by default.
pub struct Ordinary {
    programs: TempDir,
    is_root: bool,
}

impl Ordinary {
    /// Copies the programs.
    ///
    /// # Panics
    /// If they were not built.
    pub fn with_programs() -> Self {
        let programs = tempfile::tempdir().expect("a temporary folder");
        for name in ["gantry-server", "gantry-runner", "gantry-supervisor"] {
            std::fs::copy(binary(name), programs.path().join(name)).expect("it is copied");
        }
        let ordinary = Self {
            programs,
            is_root: is_root(),
        };
        ordinary.give(ordinary.programs.path());
        ordinary
    }

    /// Gives a folder with what is in it to the ordinary user.
    ///
    /// # Panics
    /// If it cannot be given.
    pub fn give(&self, folder: &Path) {
        if !self.is_root {
            return;
        }
        chown(folder, Some(ORDINARY), Some(ORDINARY)).expect("we are root");
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            chown(entry.path(), Some(ORDINARY), Some(ORDINARY)).expect("we are root");
        }
    }

    /// Words that become the program behind them, run from our copy.
    pub fn launcher(&self) -> Vec<String> {
        let become_user = match self.is_root {
            true => format!("setpriv --reuid={ORDINARY} --regid={ORDINARY} --clear-groups"),
            false => "env".to_owned(),
        };
        let programs = self.programs.path().display();
        let words =
            format!("unset GANTRY_DUMPABLE; exec {become_user} {programs}/\"${{0##*/}}\" \"$@\"");
        ["sh", "-c", &words].map(str::to_owned).to_vec()
    }

    /// Has a command run as the ordinary user.
    pub fn becomes(&self, command: &mut tokio::process::Command) {
        if self.is_root {
            command.uid(ORDINARY).gid(ORDINARY);
        }
    }
}
