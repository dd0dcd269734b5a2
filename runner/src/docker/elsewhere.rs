//! Paths as the engine knows them. The engine sees its host's files. A runner that is in a container itself
//! sees others there, but for what was mounted into it.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Length of a container's id, in characters.
const ID_LENGTH: usize = 64;

/// A part of the engine's host that is mounted here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounted {
    /// The path here.
    pub(super) here: PathBuf,
    /// The path on the host.
    pub(super) there: PathBuf,
}

/// The id of the container that this process is in; `None` outside of one.
pub(super) fn own_container() -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    container_in(&mounts)
}

/// The id of the container by its mounts. Engines mount files of a container's own folder into it,
/// such as its `/etc/hostname`. In mountinfo (proc(5)) the fourth field is the root of a mount in
/// its file system, the fifth its place.
fn container_in(mounts: &str) -> Option<String> {
    let roots = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let root = fields.next()?;
        (fields.next()? == "/etc/hostname").then_some(root)
    });
    roots
        .flat_map(|root| root.split('/'))
        .find(|name| name.len() == ID_LENGTH && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .map(str::to_owned)
}

/// The path as the host has it; `None` where it is not mounted from there.
pub(super) fn on_the_host(path: &Path, mounts: &[Mounted]) -> Option<PathBuf> {
    let holding = mounts.iter().filter(|mount| path.starts_with(&mount.here));
    let nearest = holding.max_by_key(|mount| mount.here.components().count())?;
    let rest = path.strip_prefix(&nearest.here).ok()?;
    Some(nearest.there.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_known_by_its_own_files_and_a_host_has_none() {
        let id = "0123456789abcdef".repeat(4);
        let of = |root: &str| {
            format!(
                "1 0 0:1 / / rw - overlay overlay rw\n\
                 2 1 8:1 {root} /etc/hostname rw - ext4 /dev/sda1 rw\n"
            )
        };
        let docker = of(&format!("/var/lib/docker/containers/{id}/hostname"));
        assert_eq!(container_in(&docker), Some(id));
        assert_eq!(container_in(&of("/etc/hostname")), None);
        assert_eq!(container_in("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"), None);
    }

    #[test]
    fn a_path_is_found_by_the_nearest_mount_that_holds_it() {
        let mount = |here: &str, there: &str| Mounted {
            here: here.into(),
            there: there.into(),
        };
        let mounts = [
            mount("/var/lib", "/srv"),
            mount("/var/lib/gantry", "/mnt/volume/_data"),
        ];
        let found = |path: &str| on_the_host(Path::new(path), &mounts);
        let expected = Some("/mnt/volume/_data/runner/sandboxes".into());
        assert_eq!(found("/var/lib/gantry/runner/sandboxes"), expected);
        assert_eq!(found("/var/lib/other"), Some("/srv/other".into()));
        assert_eq!(found("/var/library"), None);
    }
}
