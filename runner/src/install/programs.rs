//! The programs of a runner on this machine: a folder for each version, and links to the one that counts.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind, Read as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use flate2::read::GzDecoder;
use shared_types::{Digest, DigestAlgorithm, FileHasher};

use super::download::Offered;

/// The program that is started; the others stand beside it.
const MAIN: &str = "gantry-runner";

/// The programs, and whether a runner can do without.
const PROGRAMS: [(&str, bool); 3] = [
    (MAIN, true),
    ("gantry-supervisor", true),
    // Only containers need it.
    ("gantry-files", false),
];

/// In a version's folder: the checksum of the archive that it came in.
const ARCHIVE: &str = "archive.sha256";

/// The beginning of the name of a folder that is not finished.
const UNFINISHED: &str = ".unfinished-";

/// The folder of an archive in which the programs are.
const IN_ARCHIVE: &str = "gantry-runner";

/// The most bytes that an archive may unpack to: against one that would fill the disk.
const MAX_UNPACKED_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// The place of installed programs.
#[derive(Debug)]
pub(crate) struct Programs {
    /// The folders of the versions, and `current`.
    root: PathBuf,
    /// The folder where people find programs.
    bin: PathBuf,
}

/// A folder that is removed with this.
pub(crate) struct Unpacked {
    folder: PathBuf,
}

impl Unpacked {
    /// The path of the programs in it.
    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let whole = self.folder.parent().unwrap_or(&self.folder);
        let _ = fs::remove_dir_all(whole);
    }
}

impl Programs {
    /// The programs of the whole machine, installed by root.
    pub(crate) fn of_the_machine() -> Self {
        Self {
            root: "/opt/gantry".into(),
            bin: "/usr/local/bin".into(),
        }
    }

    /// The programs of one user, installed by that user.
    pub(crate) fn of_a_user(user_home: &Path) -> Self {
        Self {
            root: user_home.join(".local/lib/gantry"),
            bin: user_home.join(".local/bin"),
        }
    }

    /// The path of the daemon's program in the version that counts.
    pub(crate) fn daemon(&self) -> PathBuf {
        self.root.join("current").join(MAIN)
    }

    /// The folder of the version that counts.
    pub(crate) fn current(&self) -> Option<PathBuf> {
        let name = fs::read_link(self.root.join("current")).ok()?;
        Some(self.root.join(name)).filter(|folder| folder.is_dir())
    }

    /// The checksum of the archive in which this version came, where that is known.
    pub(crate) fn archive_of(&self, folder: &Path) -> Option<Digest> {
        let text = fs::read_to_string(folder.join(ARCHIVE)).ok()?;
        Digest::from_hex(text.trim())
    }

    /// Copies the programs of a folder into a folder of their own, whole or not at all.
    ///
    /// # Errors
    /// One is missing, or cannot be copied.
    pub(crate) fn add(
        &self,
        from: &Path,
        version: &str,
        archive: Option<Digest>,
    ) -> anyhow::Result<PathBuf> {
        let mut all = FileHasher::new(DigestAlgorithm::Sha256);
        let mut present = Vec::new();
        for (name, is_needed) in PROGRAMS {
            let path = from.join(name);
            match digest(&path) {
                Ok(digest) => {
                    all.update(name.as_bytes());
                    all.update(digest.as_bytes());
                    present.push(name);
                }
                Err(error) if error.kind() == ErrorKind::NotFound && !is_needed => {}
                Err(error) if error.kind() == ErrorKind::NotFound => bail!(
                    "{} is not there: unpack the whole archive, and run the {MAIN} in it",
                    path.display()
                ),
                Err(error) => return Err(error).with_context(|| unreadable(&path)),
            }
        }
        let digest = all.finish().value.to_string();
        let folder = self.root.join(format!("{version}-{}", &digest[..12]));
        if !folder.is_dir() {
            let unfinished = self.unfinished("copy")?;
            for name in present {
                let to = unfinished.join(name);
                fs::copy(from.join(name), &to).with_context(|| unwritable(&to))?;
                fs::set_permissions(&to, fs::Permissions::from_mode(0o755))
                    .and_then(|()| fs::File::open(&to)?.sync_all())
                    .with_context(|| unwritable(&to))?;
            }
            fs::rename(&unfinished, &folder).with_context(|| unwritable(&folder))?;
        }
        if let Some(archive) = archive {
            let note = folder.join(ARCHIVE);
            fs::write(&note, format!("{archive}\n")).with_context(|| unwritable(&note))?;
        }
        Ok(folder)
    }

    /// Makes this version the one that counts; returns where people find it.
    ///
    /// # Errors
    /// A link cannot be made, or another program has its name.
    pub(crate) fn select(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let name = folder.file_name().context("a version has a name")?;
        put_link(Path::new(name), &self.root.join("current"))?;
        let link = self.bin.join(MAIN);
        if fs::symlink_metadata(&link).is_ok_and(|found| !found.is_symlink()) {
            bail!(
                "{} is another program: move it away, and run this once more",
                link.display()
            );
        }
        make_folder(&self.bin)?;
        put_link(&self.daemon(), &link)?;
        Ok(link)
    }

    /// Loads an archive, compares its checksum, and unpacks it.
    ///
    /// # Errors
    /// It does not come whole, is not what the server signed, or cannot be unpacked.
    pub(crate) async fn unpack(&self, offered: &mut Offered) -> anyhow::Result<Unpacked> {
        let whole = self.unfinished("archive")?;
        let unpacked = Unpacked {
            folder: whole.join(IN_ARCHIVE),
        };
        let path = whole.join("archive");
        let mut file = File::create_new(&path).with_context(|| unwritable(&path))?;
        offered.load(&mut file).await?;
        let archive = File::open(&path).with_context(|| unreadable(&path))?;
        let bounded = GzDecoder::new(archive).take(MAX_UNPACKED_BYTES);
        let mut archive = tar::Archive::new(bounded);
        (archive.unpack(&whole)).context("the server's archive cannot be unpacked")?;
        Ok(unpacked)
    }

    /// The version of the programs in this folder, which shows as well that they run on this machine.
    ///
    /// # Errors
    /// They do not run, or do not say it.
    pub(crate) fn version_of(&self, folder: &Path, within: Duration) -> anyhow::Result<String> {
        let path = folder.join(MAIN);
        let asked = Command::new(&path)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut asked = asked.context("the server's programs do not run on this machine")?;
        let tries = within.as_millis() / super::service::POLL.as_millis();
        for _ in 0..tries {
            if asked.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(super::service::POLL);
        }
        let _ = asked.kill();
        let said = asked.wait_with_output()?.stdout;
        let said = String::from_utf8_lossy(&said);
        let mut words = said.split_whitespace();
        let version = words.nth(1).filter(|version| is_version(version));
        let version = version.context("the server's programs do not say their version")?;
        Ok(version.to_owned())
    }

    /// Removes all versions but these. One that cannot be removed stays.
    pub(crate) fn prune(&self, but: &[&Path]) {
        let Ok(found) = fs::read_dir(&self.root) else {
            return;
        };
        for entry in found.flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && is_ours(&path) && !but.contains(&path.as_path()) {
                let _ = fs::remove_dir_all(path);
            }
        }
    }

    /// Removes everything that was installed.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        let link = self.bin.join(MAIN);
        if fs::read_link(&link).is_ok_and(|to| to.starts_with(&self.root)) {
            fs::remove_file(&link).with_context(|| unwritable(&link))?;
        }
        let current = self.root.join("current");
        if current.is_symlink() {
            fs::remove_file(&current).with_context(|| unwritable(&current))?;
        }
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_ours(&path) {
                fs::remove_dir_all(&path).with_context(|| unwritable(&path))?;
            }
        }
        // Files of other programs stay, with the folder.
        let _ = fs::remove_dir(&self.root);
        Ok(())
    }

    /// A new folder for something that is not finished.
    fn unfinished(&self, what: &str) -> anyhow::Result<PathBuf> {
        make_folder(&self.root)?;
        let name = format!("{UNFINISHED}{what}-{}", std::process::id());
        let folder = self.root.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).with_context(|| unwritable(&folder))?;
        Ok(folder)
    }
}

/// Letters, digits and dots, and not only dots.
fn is_version(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
    text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(allowed)
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .with_context(|| unwritable(folder))
}

/// Puts a link into place, also where there is one.
fn put_link(to: &Path, link: &Path) -> anyhow::Result<()> {
    let unfinished = link.with_extension("new");
    let _ = fs::remove_file(&unfinished);
    symlink(to, &unfinished)
        .and_then(|()| fs::rename(&unfinished, link))
        .with_context(|| unwritable(link))
}

fn digest(path: &Path) -> io::Result<Digest> {
    let mut hasher = FileHasher::new(DigestAlgorithm::Sha256);
    let mut file = File::open(path)?;
    let mut piece = vec![0; 64 * 1024];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish().value),
            some => hasher.update(&piece[..some]),
        }
    }
}

fn unreadable(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

fn unwritable(path: &Path) -> String {
    format!(
        "cannot write {}: make room or give yourself the right",
        path.display()
    )
}

/// True if a folder is a version's, or one that may not be whole.
fn is_ours(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(UNFINISHED) || folder.join(MAIN).is_file()
}

#[cfg(test)]
mod tests;
