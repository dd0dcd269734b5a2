//! A disk that fills up, which only root can set up. `tests/run` leaves out for other users every
//! test with `on_a_small_disk` in its name.

use std::{fs::File, os::unix::fs::FileExt as _, path::Path, process::Command};

use tempfile::TempDir;

/// A file system with a size.
pub(crate) struct SmallDisk(TempDir);

impl SmallDisk {
    /// Of this size, as mount(8) says it.
    pub(crate) fn mount(size: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "small"])
            .arg(folder.path())
            .status();
        assert!(
            mounted.is_ok_and(|status| status.success()),
            "only root can mount a small disk; `make test` leaves this out for others"
        );
        Self(folder)
    }

    /// Its root.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room that is left, as another program would.
    pub(crate) fn fill(&self) {
        let file = File::create(self.path().join("filler")).expect("a file");
        let mut at = 0;
        while file.write_all_at(&[1; 4096], at).is_ok() {
            at += 4096;
        }
    }

    /// And gives it back.
    pub(crate) fn free(&self) {
        std::fs::remove_file(self.path().join("filler")).expect("a file");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a supervisor may still be about to end in it.
        let unmounted = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
        assert!(unmounted.is_ok());
    }
}
