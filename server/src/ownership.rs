//! The owner of the files in a home.
//!
//! A service has a user of its own, and root runs the verbs on its home. The service's user could not read files of
//! root's there, so they are given to the owner of the home. The verbs still work as root: they read and write backups
//! elsewhere, and only root reaches the home of a systemd service with `DynamicUser=yes`.
//!
//! The owner of the home may rename its entries at any time. So the verbs use no path of several names and follow no
//! symbolic link. A file with a second name, which may be outside of the home, stays root's.

use std::{
    ffi::CStr,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use anyhow::{Context as _, ensure};
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, chownat, fstat, open, openat},
    io::Errno,
    process::{Gid, Uid, geteuid},
};

/// The server's folder in the home.
const FOLDER: &CStr = c"server";

/// Most levels of folders below the home; the server makes five.
const LEVELS_AT_MOST: u32 = 16;

/// Carries out a verb that writes to the home. Then gives root's files there to the home's owner, even if the verb
/// failed.
///
/// # Errors
/// Fails if the verb fails, or a file cannot be given away.
pub(crate) async fn of_home(
    home: &Path,
    verb: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let ended = verb.await;
    ended.and(give_to_owner(home))
}

/// Gives all that is root's in the server's folder to the owner of the home. Does nothing unless this process is
/// root's and the home is another user's.
///
/// # Errors
/// Fails if a file cannot be given away.
pub(crate) fn give_to_owner(home: &Path) -> anyhow::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let opened = match open(home, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened.with_context(|| format!("{} cannot be read", home.display()))?,
    };
    let owner = Owner::of(&fstat(&opened)?);
    if owner.user.is_root() {
        return Ok(());
    }
    owner.take(&opened, FOLDER, LEVELS_AT_MOST).with_context(|| {
        let (user, group) = (owner.user, owner.group);
        let folder = home.join("server");
        format!(
            "files of root's in {} cannot be given to user {user}, who has the home: run chown -R {user}:{group} on it before the server starts",
            folder.display()
        )
    })
}

struct Owner {
    user: Uid,
    group: Gid,
}

impl Owner {
    fn of(about: &Stat) -> Self {
        Self {
            user: Uid::from_raw(about.st_uid),
            group: Gid::from_raw(about.st_gid),
        }
    }

    /// Takes the entry of this name in the folder, with its content.
    fn take(&self, folder: impl AsFd, name: &CStr, levels: u32) -> anyhow::Result<()> {
        ensure!(levels > 0, "the folders are too deep: move {name:?} away");
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let entry = match openat(folder, name, flags, Mode::empty()) {
            // A running server has removed it.
            Err(Errno::NOENT) => return Ok(()),
            entry => entry?,
        };
        let about = fstat(&entry)?;
        let kind = FileType::from_raw_mode(about.st_mode);
        if kind.is_dir() {
            self.take_content(&entry, levels - 1)?;
        }
        let has_one_name = kind.is_file() && about.st_nlink == 1;
        if Owner::of(&about).user.is_root() && (kind.is_dir() || has_one_name) {
            let (user, group) = (Some(self.user), Some(self.group));
            chownat(&entry, c"", user, group, AtFlags::EMPTY_PATH)?;
        }
        Ok(())
    }

    fn take_content(&self, folder: &OwnedFd, levels: u32) -> anyhow::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for entry in Dir::new(openat(folder, c".", flags, Mode::empty())?)? {
            let entry = entry?;
            match entry.file_name().to_bytes() {
                b"." | b".." => {}
                _ => self.take(folder, entry.file_name(), levels)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, chown, symlink},
    };

    use super::*;

    const OWNER: u32 = 65534;

    #[test]
    fn the_owner_of_a_home_gets_what_is_only_there_and_nothing_that_is_reached_from_there() {
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (home, outside) = (folder.path().join("home"), folder.path().join("outside"));
        let keys = home.join("server/keys");
        fs::create_dir_all(&keys).expect("folders");
        for file in [&outside, &keys.join("link.pem"), &home.join("gantry.toml")] {
            fs::write(file, "").expect("a file");
        }
        symlink(&outside, keys.join("symbolic")).expect("a link");
        fs::hard_link(&outside, keys.join("second name")).expect("a link");
        let owner = |path: &Path| fs::metadata(path).expect("it is there").uid();

        give_to_owner(&home).expect("a home of root's");
        assert_eq!(owner(&keys), 0);
        chown(&home, Some(OWNER), Some(OWNER)).expect("we are root");
        give_to_owner(&home).expect("they are given");
        let given =
            ["", "keys", "keys/link.pem"].map(|name| owner(&home.join("server").join(name)));
        assert_eq!(given, [OWNER; 3]);
        assert_eq!([owner(&outside), owner(&home.join("gantry.toml"))], [0, 0]);
    }
}
