//! The state that a runner must not forget, in `$GANTRY_HOME/runner`.
//!
//! - `identity.key`: the runner's own key;
//! - `runner.toml`: the server that it belongs to;
//! - `join-state`: the number that tells the runner from a copy of itself;
//! - `journal/`: its promises;
//! - `commands/`: the output of its commands;
//! - `link`: the endpoint of the link, while there is one;
//! - `serving`: the workspaces that the daemon serves;
//! - `lock`: held by the one process that uses the folder;
//! - `runner.toml.lock`: held while that file is changed.
//!
//! Files are put into place whole, so that a crash leaves the old one or the new one. `runner.toml` comes
//! last, and without it the runner is not enrolled.

mod join_state;
mod watch;

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, ErrorKind, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

pub(crate) use join_state::JoinState;
use serde::{Deserialize, Deserializer, Serialize};
use shared_types::{Digest, Entropy, RunnerId, Token};
pub(crate) use watch::FileWatch;

use crate::key::{KeyError, RunnerKey, ServerIdentity};

/// The file that tells a runner from a copy of itself.
const JOIN_STATE: &str = "join-state";

/// The key of an enrolment that is not known to be finished, and the digest of the token that it is for.
const PREPARED_KEY: &str = "identity.key.new";
/// See [`PREPARED_KEY`].
const PREPARED_FOR: &str = "identity.key.for";

/// The name of the workspace with which a runner is enrolled.
pub(crate) const FIRST_WORKSPACE: &str = "workspace";

/// The folder of one runner.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    directory: PathBuf,
}

/// The facts about a runner and its server (`runner.toml`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnrolledHome {
    /// The server's addresses; each attempt to reach it takes the next. A file with one address may name it
    /// alone, as `server`.
    #[serde(alias = "server", deserialize_with = "one_or_more")]
    pub(crate) servers: Vec<String>,
    /// True if the owner allowed plain text to a host that is not this one.
    #[serde(default)]
    pub(crate) allow_plain_text: bool,
    /// The runner's id and name, as the server gave them.
    pub(crate) runner: RunnerId,
    pub(crate) name: String,
    /// The server's identity, to which every connect is held.
    pub(crate) server_identity: ServerIdentity,
    /// SHA-256 of the certificate that the identity vouched for last; absent where the platform's
    /// roots are trusted, or there is no TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<Digest>,
    /// The folder where commands run and files lie; absolute. Its name is [`FIRST_WORKSPACE`].
    pub(crate) workspace: PathBuf,
    /// Further folders, each a sandbox of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) workspaces: Vec<WorkspaceFolder>,
}

/// A folder in which operations happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkspaceFolder {
    /// With the runner's id it gives the sandbox's id.
    pub(crate) name: String,
    /// Absolute.
    pub(crate) folder: PathBuf,
}

impl EnrolledHome {
    /// All workspaces, the first one first.
    pub(crate) fn all_workspaces(&self) -> impl Iterator<Item = WorkspaceFolder> {
        let first = WorkspaceFolder {
            name: FIRST_WORKSPACE.to_owned(),
            folder: self.workspace.clone(),
        };
        std::iter::once(first).chain(self.workspaces.iter().cloned())
    }
}

/// The state of one workspace in the running daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Served {
    /// Its name.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// The reason why it is not served, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// All workspaces as a file holds them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ServingFile {
    #[serde(default)]
    workspaces: Vec<Served>,
}

/// Held by the one process that uses a home; let go when it is dropped or the process dies.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Notes in the lock's file which daemon holds it, for who wants to stop it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn note_daemon(&mut self, is_detached: bool) -> io::Result<()> {
        let how = if is_detached { DETACHED } else { "by hand" };
        self.0.set_len(0)?;
        (self.0).write_all(format!("{} {how}\n", std::process::id()).as_bytes())
    }
}

/// The number of attempts to take a lock that is held, and the pause between two of them.
const LOCK_TRIES: u32 = 50;
const LOCK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// The word for a daemon without a terminal in the lock's file.
const DETACHED: &str = "detached";

/// The daemon that uses a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Daemon {
    /// Its process.
    pub(crate) pid: i32,
    /// True if `gantry-runner install` started it without a service manager.
    pub(crate) is_detached: bool,
}

impl Home {
    /// The runner's folder in Gantry's home.
    pub(crate) fn within(gantry_home: &Path) -> Self {
        Self {
            directory: gantry_home.join("runner"),
        }
    }

    /// Takes the folder for this process and makes it where it is missing. Waits about a second for another
    /// process that only looks whether the folder is taken.
    ///
    /// # Errors
    /// Another process uses the folder, or it cannot be made.
    pub(crate) fn lock(&self) -> Result<Lock, HomeError> {
        for _ in 0..LOCK_TRIES {
            match self.try_lock() {
                Err(HomeError::Taken(_)) => thread::sleep(LOCK_AGAIN_AFTER),
                taken => return taken,
            }
        }
        self.try_lock()
    }

    fn try_lock(&self) -> Result<Lock, HomeError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(self.failed("create", ""))?;
        let path = self.directory.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(self.failed("open", "lock"))?;
        match file.try_lock() {
            Ok(()) => {
                // A daemon that held it before must not be taken for the process that is noted here.
                file.set_len(0).map_err(self.failed("write", "lock"))?;
                Ok(Lock(file))
            }
            Err(TryLockError::WouldBlock) => Err(HomeError::Taken(self.directory.clone())),
            Err(TryLockError::Error(source)) => Err(self.failed("lock", "lock")(source)),
        }
    }

    /// True if a daemon uses the folder now.
    pub(crate) fn is_taken(&self) -> bool {
        self.directory.is_dir() && matches!(self.try_lock(), Err(HomeError::Taken(_)))
    }

    /// The daemon that uses the folder now, as it has noted itself.
    pub(crate) fn daemon(&self) -> Option<Daemon> {
        let noted = fs::read_to_string(self.directory.join("lock")).ok()?;
        let (pid, how) = noted.trim().split_once(' ')?;
        let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
        let is_detached = how == DETACHED;
        self.is_taken().then_some(Daemon { pid, is_detached })
    }

    /// Removes the folder, with the runner's key.
    ///
    /// # Errors
    /// Something in it cannot be removed.
    pub(crate) fn remove(&self) -> Result<(), HomeError> {
        fs::remove_dir_all(&self.directory).map_err(self.failed("remove", ""))
    }

    /// The content of `runner.toml`; `None` where the runner is not enrolled.
    pub(crate) fn enrolled(&self) -> Result<Option<EnrolledHome>, HomeError> {
        let path = self.directory.join("runner.toml");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed("read", "runner.toml")(error)),
        };
        let enrolled = toml::from_str(&text);
        enrolled.map(Some).map_err(|error| HomeError::Damaged {
            path,
            reason: error.message().to_owned(),
        })
    }

    /// The runner's key.
    pub(crate) fn key(&self) -> Result<RunnerKey, KeyError> {
        RunnerKey::load(&self.directory.join("identity.key"))
    }

    /// The key to enrol with, beside the one in use, so that what cannot be saved is known before a join
    /// token is spent. An enrolment that is tried again with the same token has the same key: where the
    /// answer was lost on its way, the server gives it again.
    pub(crate) fn prepare_key(
        &self,
        token: &Token,
        entropy: &dyn Entropy,
    ) -> Result<RunnerKey, HomeError> {
        let path = self.directory.join(PREPARED_KEY);
        let token = token.hash().to_string();
        let of = fs::read_to_string(self.directory.join(PREPARED_FOR));
        if of.is_ok_and(|of| of == token)
            && let Ok(key) = RunnerKey::load(&path)
        {
            return Ok(key);
        }
        for name in [PREPARED_FOR, PREPARED_KEY] {
            self.take_away(name)?;
        }
        let key = RunnerKey::generate(entropy);
        key.store(&path)
            .map_err(self.failed("write", PREPARED_KEY))?;
        self.put(PREPARED_FOR, &token)
            .map_err(self.failed("write", PREPARED_FOR))?;
        Ok(key)
    }

    fn take_away(&self, name: &'static str) -> Result<(), HomeError> {
        match fs::remove_file(self.directory.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(self.failed("remove", name)(error))
            }
            _ => Ok(()),
        }
    }

    /// Makes the prepared key and `enrolled` those that count.
    pub(crate) fn enrol(&self, enrolled: &EnrolledHome) -> Result<(), HomeError> {
        for name in ["runner.toml", JOIN_STATE, PREPARED_FOR] {
            self.take_away(name)?;
        }
        fs::rename(
            self.directory.join(PREPARED_KEY),
            self.directory.join("identity.key"),
        )
        .map_err(self.failed("write", "identity.key"))?;
        self.save(enrolled)
    }

    /// Replaces `runner.toml`.
    pub(crate) fn save(&self, enrolled: &EnrolledHome) -> Result<(), HomeError> {
        let text = toml::to_string(enrolled).map_err(io::Error::other);
        text.and_then(|text| self.put("runner.toml", &text))
            .map_err(self.failed("write", "runner.toml"))
    }

    /// Changes what `runner.toml` says, while a daemon may run: one change comes after the other.
    ///
    /// # Errors
    /// The file cannot be read or written, or `change` refuses; then it stays as it is.
    pub(crate) fn change<E: From<HomeError>>(
        &self,
        change: impl FnOnce(&mut EnrolledHome) -> Result<(), E>,
    ) -> Result<Option<EnrolledHome>, E> {
        let name = "runner.toml.lock";
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.directory.join(name))
            .and_then(|file| file.lock().map(|()| file))
            .map_err(self.failed("lock", name))?;
        let Some(before) = self.enrolled()? else {
            return Ok(None);
        };
        let mut enrolled = before.clone();
        change(&mut enrolled)?;
        if enrolled != before {
            self.save(&enrolled)?;
        }
        drop(lock);
        Ok(Some(enrolled))
    }

    /// Tells whenever `runner.toml` may have been replaced.
    pub(crate) fn watch(&self) -> Result<FileWatch, HomeError> {
        let watching = FileWatch::begin(&self.directory, "runner.toml");
        watching.map_err(self.failed("watch", ""))
    }

    /// Notes, for people, which workspaces the daemon serves.
    pub(crate) fn note_serving(&self, workspaces: &[Served]) {
        let workspaces = workspaces.to_vec();
        let text = toml::to_string(&ServingFile { workspaces }).map_err(io::Error::other);
        let noted = text.and_then(|text| self.put("serving", &text));
        if let Err(error) = noted {
            tracing::warn!(%error, "it cannot be noted which workspaces are served");
        }
    }

    /// The workspaces that were noted last; none where the file cannot be read.
    pub(crate) fn serving(&self) -> Vec<Served> {
        let text = fs::read_to_string(self.directory.join("serving")).unwrap_or_default();
        let serving: ServingFile = toml::from_str(&text).unwrap_or_default();
        serving.workspaces
    }

    /// The state that the server gave at the newest connect, and wants to see at the next one; 0 before the
    /// first.
    pub(crate) fn join_state(&self) -> Result<JoinState, HomeError> {
        let Some(text) = self.join_state_text()? else {
            return Ok(JoinState::default());
        };
        join_state::newest(&text).ok_or_else(|| HomeError::Damaged {
            path: self.directory.join(JOIN_STATE),
            reason: "it holds no number".to_owned(),
        })
    }

    /// Keeps what the server gave; on disk when this returns. It takes no room but the first time.
    pub(crate) fn save_join_state(&self, state: &JoinState) -> Result<(), HomeError> {
        let text = self.join_state_text()?.unwrap_or_default();
        let path = self.directory.join(JOIN_STATE);
        join_state::write_over(&path, &text, state)
            .and_then(|written| match written {
                true => Ok(()),
                false => {
                    let too_long = || io::Error::other("the server's signature is too long");
                    self.put(JOIN_STATE, &join_state::of(state).ok_or_else(too_long)?)
                }
            })
            .map_err(self.failed("write", JOIN_STATE))
    }

    fn join_state_text(&self) -> Result<Option<String>, HomeError> {
        match fs::read_to_string(self.directory.join(JOIN_STATE)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", JOIN_STATE)(error)),
        }
    }

    /// Notes, for people, whether the daemon has operations happen in containers.
    pub(crate) fn note_containers(&self, has: bool) {
        let path = self.directory.join("containers");
        let noted = match has {
            true => fs::write(path, ""),
            false => fs::remove_file(path),
        };
        match noted {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%error, "it cannot be noted where operations happen");
            }
            _ => {}
        }
    }

    /// True if operations happened in containers at the last start of the daemon.
    pub(crate) fn has_containers(&self) -> bool {
        self.directory.join("containers").exists()
    }

    /// Notes, for people, over which endpoint there is a link, or that there is none.
    pub(crate) fn note_link(&self, over: Option<&str>) {
        let path = self.directory.join("link");
        let noted = match over {
            // `status` and `update` may read the file in that moment, and find it whole.
            Some(over) => {
                let unfinished = self.directory.join("link.new");
                fs::write(&unfinished, over).and_then(|()| fs::rename(unfinished, path))
            }
            None => fs::remove_file(path),
        };
        match noted {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%error, "it cannot be noted where the link is");
            }
            _ => {}
        }
    }

    /// The link that was noted last.
    pub(crate) fn link(&self) -> Option<String> {
        fs::read_to_string(self.directory.join("link")).ok()
    }

    /// The folder of the runner's state.
    pub(crate) fn folder(&self) -> &Path {
        &self.directory
    }

    /// The folder of the journal of operations.
    pub(crate) fn journal(&self) -> PathBuf {
        self.directory.join("journal")
    }

    /// The folder of what commands write.
    pub(crate) fn commands(&self) -> PathBuf {
        self.directory.join("commands")
    }

    /// The folder of the sandboxes of a pool.
    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.directory.join("sandboxes")
    }

    /// Replaces a file, whole or not at all.
    fn put(&self, name: &str, text: &str) -> io::Result<()> {
        let unfinished = self.directory.join(format!("{name}.new"));
        let mut file = File::create(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(unfinished, self.directory.join(name))?;
        File::open(&self.directory)?.sync_all()
    }

    fn failed(&self, action: &'static str, name: &str) -> impl FnOnce(io::Error) -> HomeError {
        let path = self.directory.join(name);
        move |source| HomeError::File {
            action,
            path,
            source,
        }
    }
}

fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "an address, or a list of them")]
    enum Texts {
        One(String),
        More(Vec<String>),
    }
    Ok(match Texts::deserialize(from)? {
        Texts::One(text) => vec![text],
        Texts::More(texts) => texts,
    })
}

/// The reason why a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HomeError {
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "{} is used by a running gantry-runner: stop it first, or give another --home",
        .0.display()
    )]
    Taken(PathBuf),
    #[error(
        "{} cannot be understood ({reason}): correct it, or enrol again with --replace",
        path.display()
    )]
    Damaged { path: PathBuf, reason: String },
}

#[cfg(test)]
mod tests;
