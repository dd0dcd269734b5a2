//! The names of the places of trees, by which a daemon knows its own.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use super::{KillMethod, Leaf, cgroup::Mounts};
use crate::{ProcessId, process::boot_id};

/// The names of the places for the trees of all operations in one folder. Each begins with the
/// host's identity of the folder, because several daemons may share a host.
#[derive(Debug)]
pub struct LeafNames {
    prefix: String,
}

impl LeafNames {
    /// Of the operations in this folder.
    ///
    /// # Errors
    /// When it is not there.
    pub fn below(root: &Path) -> io::Result<Self> {
        let folder = fs::metadata(root)?;
        let prefix = format!("{:x}.{:x}-", folder.dev(), folder.ino());
        Ok(Self { prefix })
    }

    /// The name of this supervisor's.
    pub fn of(&self, supervisor: &ProcessId) -> String {
        let ProcessId {
            pid, start_ticks, ..
        } = supervisor;
        format!("{}{pid}-{start_ticks}", self.prefix)
    }

    /// The supervisor that has the place of this name, where it is one of these.
    fn supervisor(&self, name: &str, boot_id: &str) -> Option<ProcessId> {
        let mut rest = name.strip_prefix(&self.prefix)?.split('-');
        Some(ProcessId {
            pid: rest.next()?.parse().ok()?,
            start_ticks: rest.next()?.parse().ok()?,
            boot_id: boot_id.to_owned(),
        })
    }
}

/// Removes the empty places of dead supervisors of operations in this folder, and returns their
/// number. Such places remain because a supervisor can be killed before it has written down what it
/// made. Call it only once every operation there is settled.
///
/// # Errors
/// When the folder is not there.
pub fn remove_abandoned(root: &Path) -> io::Result<usize> {
    let names = LeafNames::below(root)?;
    let boot_id = boot_id()?;
    let mut removed = 0;
    for folder in Mounts::read().folders() {
        // Most hosts do not have all of them.
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let supervisor = name
                .to_str()
                .and_then(|name| names.supervisor(name, &boot_id));
            if supervisor.is_none_or(|supervisor| supervisor.is_alive(&boot_id)) {
                continue;
            }
            // The host removes no cgroup in which a process runs.
            if let Ok(Some(leaf)) = Leaf::reopen(KillMethod::CgroupKill, Some(&entry.path())) {
                removed += usize::from(leaf.remove().is_ok());
            }
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_knows_its_own_places_and_whose_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("operations");
        fs::create_dir(&root).expect("a folder");
        let names = LeafNames::below(&root).expect("names");
        let supervisor = ProcessId {
            pid: 12,
            start_ticks: 345,
            boot_id: "boot".to_owned(),
        };
        let name = format!("{}-0", names.of(&supervisor));
        assert_eq!(names.supervisor(&name, "boot"), Some(supervisor));
        let others = LeafNames::below(folder.path()).expect("names");
        assert_eq!(others.supervisor(&name, "boot"), None);
        for strange in ["", "supervisors", "12-345-0", &names.prefix] {
            assert_eq!(names.supervisor(strange, "boot"), None, "{strange}");
        }
    }
}
