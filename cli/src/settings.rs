//! The sign-in of this terminal: one small file that only its owner can read.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

/// Largest file that can be a sign-in, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Bits of a mode that only the file's owner may have, as ssh asks of its keys.
const READABLE_BY_OTHERS: u32 = 0o077;

/// The file that stores the sign-in.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    home: PathBuf,
}

/// The stored sign-in. It has no `Debug`, because it holds the token.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    /// The server that the token is for.
    pub(crate) server: String,
    /// The bearer token.
    pub(crate) token: String,
    /// The name of this sign-in in the server's list; no two are the same.
    pub(crate) device: String,
    /// SHA-256 of the server's certificate, where it is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<String>,
    /// True if plain text may go to another host.
    #[serde(default)]
    pub(crate) allow_plain_text: bool,
}

impl Settings {
    pub(crate) fn in_home(home: PathBuf) -> Self {
        Self { home }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.home.join("cli.toml")
    }

    /// The stored sign-in; `None` if there is none.
    pub(crate) fn load(&self) -> anyhow::Result<Option<SignIn>> {
        let path = self.path();
        let file = match fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("failed to read {}", path.display()));
            }
        };
        let about = file
            .metadata()
            .with_context(|| format!("failed to read {}", path.display()))?;
        let mode = about.mode() & 0o777;
        if mode & READABLE_BY_OTHERS != 0 {
            bail!(
                "others can read or change {path}, which holds your token (its mode is {mode:04o}); if no other \
                 user has, run: chmod 600 {path}, else end that sign-in (gantry keys) and run: gantry login",
                path = path.display()
            );
        }
        let mut text = String::new();
        file.take(MAX_FILE_BYTES)
            .read_to_string(&mut text)
            .with_context(|| format!("failed to read {}", path.display()))?;
        // The parser's message quotes the file, and with it the token; its place says enough.
        match toml::from_str(&text) {
            Ok(sign_in) => Ok(Some(sign_in)),
            Err(error) => bail!(
                "failed to understand {}: {}; correct it, or remove it and run: gantry login",
                path.display(),
                error.message(),
            ),
        }
    }

    /// Keeps a sign-in: whole or not at all, and never readable by others.
    pub(crate) fn store(&self, sign_in: &SignIn) -> anyhow::Result<()> {
        let text = toml::to_string(sign_in).context("failed to write the sign-in as TOML")?;
        let path = self.path();
        self.replace(&path, &text).with_context(|| {
            format!(
                "failed to write {}: check that the folder is yours, or set GANTRY_HOME",
                path.display()
            )
        })
    }

    /// Forgets the sign-in; says whether there was one.
    pub(crate) fn remove(&self) -> anyhow::Result<bool> {
        match fs::remove_file(self.path()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => {
                Err(error).with_context(|| format!("failed to remove {}", self.path().display()))
            }
        }
    }

    fn replace(&self, path: &std::path::Path, text: &str) -> io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.home)?;
        // People keep such files elsewhere, with a link to them here.
        let path = shared_program::files::replaced(path)?;
        let fresh = path.with_extension(format!("toml.{}", std::process::id()));
        let _ = fs::remove_file(&fresh);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn sign_in() -> SignIn {
        SignIn {
            server: "http://127.0.0.1:7000".into(),
            token: "gantry_user_secret".into(),
            device: "laptop-1".into(),
            fingerprint: None,
            allow_plain_text: false,
        }
    }

    #[test]
    fn a_sign_in_is_kept_where_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings::in_home(folder.path().join("new/home"));
        assert!(settings.load().expect("nothing is no error").is_none());
        settings.store(&sign_in()).expect("it is written");
        settings.store(&sign_in()).expect("it is written again");
        let mode = fs::metadata(settings.path())
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(settings.load().expect("it is read") == Some(sign_in()));
        assert!(settings.remove().expect("it is removed"));
        assert!(!settings.remove().expect("nothing is no error"));
    }

    #[test]
    fn a_damaged_file_is_said_without_showing_the_token() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings::in_home(folder.path().to_owned());
        fs::write(
            settings.path(),
            "token = \"gantry_user_secret\"\ncolour = 1\n",
        )
        .expect("written");
        only_ours(&settings);
        let error = settings.load().err().expect("it is damaged");
        let text = format!("{error:#}");
        assert!(text.contains("cli.toml"), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn a_sign_in_that_others_can_read_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings::in_home(folder.path().to_owned());
        settings.store(&sign_in()).expect("it is written");
        for mode in [0o640, 0o604, 0o620] {
            let shown = fs::Permissions::from_mode(mode);
            fs::set_permissions(settings.path(), shown).expect("it is ours");
            let error = settings.load().err().expect("others can read it");
            let text = error.to_string();
            assert!(
                text.contains("chmod 600") && text.contains(&format!("{mode:04o}")),
                "{text}"
            );
        }
        only_ours(&settings);
        assert!(settings.load().expect("it is read") == Some(sign_in()));
    }

    fn only_ours(settings: &Settings) {
        let ours = fs::Permissions::from_mode(0o600);
        fs::set_permissions(settings.path(), ours).expect("it is ours");
    }
}
