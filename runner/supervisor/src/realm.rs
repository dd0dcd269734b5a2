//! Whose processes the records of a folder name.
//!
//! Pids mean something only within their pid namespace. What has to do with processes is therefore done by
//! one of the same namespace: by the daemon for its own host, by the entry process for a container. Where
//! that does not run, no process of the container does, and the records alone tell.

use std::io;

use crate::{
    Cause, Directory, Fate, RecordError, Recovered,
    entry::{self, Answer, Order},
    operation::Line,
    process::boot_id,
    recover,
};

/// See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Realm {
    /// Those of this host, and of this pid namespace.
    #[default]
    Host,
    /// Those of the container whose entry process listens in the folder of the operations.
    Container,
}

impl Realm {
    /// Finds out what an operation has become: [`settle`](crate::settle).
    ///
    /// # Errors
    /// When the records cannot be read, or its supervisor neither answers nor ends; it can be tried again.
    pub fn settle(self, directory: Directory) -> Result<Recovered, RecordError> {
        match self {
            Self::Host => recover::settle(directory),
            Self::Container => {
                let settle = |directory| Order::Settle { directory };
                inside(directory, settle, Cause::SandboxStopped)
            }
        }
    }

    /// Asks a command to end where its supervisor is stopped: [`ask_to_end`](crate::ask_to_end).
    ///
    /// # Errors
    /// When the records cannot be read, or the host refuses.
    pub fn ask_to_end(self, directory: &Directory) -> Result<(), RecordError> {
        match self {
            Self::Host => recover::ask_to_end(directory),
            Self::Container => {
                let (root, name) = entry::place(directory.path())?;
                let asked = entry::ask(&root, &Order::AskToEnd { directory: name })?;
                asked.map_or(Ok(()), done)
            }
        }
    }

    /// Ends a command and its supervisor: [`end_by_force`](crate::end_by_force).
    ///
    /// # Errors
    /// As there.
    pub fn end_by_force(
        self,
        directory: Directory,
        cause: Cause,
    ) -> Result<Recovered, RecordError> {
        match self {
            Self::Host => recover::end_by_force(directory, cause),
            Self::Container => {
                let end = |directory| Order::EndByForce { directory, cause };
                inside(directory, end, cause)
            }
        }
    }

    /// Removes an operation that is over: [`remove`](crate::remove).
    ///
    /// # Errors
    /// When the directory cannot be removed; it can be tried again.
    pub fn remove(self, directory: Directory) -> io::Result<()> {
        if self == Self::Host {
            return recover::remove(directory);
        }
        // Nobody listens there whose supervisor is dead.
        if let Err(error) = directory.connect()
            && matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            )
        {
            return directory.remove();
        }
        let (root, name) = entry::place(directory.path())?;
        match entry::ask(&root, &Order::Remove { directory: name })? {
            None => directory.remove(),
            Some(Answer::Done) => Ok(()),
            Some(Answer::Failed { reason, .. }) => Err(io::Error::other(reason)),
        }
    }

    /// Ends a supervisor that has nothing left to do and ends by itself as a rule.
    pub(crate) fn clear(self, directory: &Directory) {
        match self {
            Self::Host => recover::clear(directory, std::time::Duration::ZERO),
            // It ends with its socket, and its directory goes with it.
            Self::Container => {}
        }
    }
}

/// Has it done in the container, and reads what came of it. Where the container does not run, what ran
/// there has ended for `cause`.
fn inside(
    directory: Directory,
    order: impl FnOnce(String) -> Order,
    cause: Cause,
) -> Result<Recovered, RecordError> {
    let (root, name) = entry::place(directory.path())?;
    match entry::ask(&root, &order(name))? {
        Some(answer) => {
            done(answer)?;
            found(directory)
        }
        None => recover::settle_dead(directory, cause),
    }
}

/// What the records of a settled operation say: it runs, or is over.
fn found(directory: Directory) -> Result<Recovered, RecordError> {
    if let Some(record) = directory.exit()? {
        return Ok(Recovered::Ended(directory, record));
    }
    match directory.fate()? {
        Some(Fate::Started(_)) => {
            let line = directory.connect().map_err(RecordError::from)?;
            let line = Line::new(line).map_err(io::Error::other)?;
            let operation = crate::Operation::attached(directory, line);
            Ok(Recovered::Running(Box::new(operation)))
        }
        Some(Fate::Fenced { .. }) => Ok(Recovered::Fenced(directory)),
        None => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}

fn done(answer: Answer) -> Result<(), RecordError> {
    match answer {
        Answer::Done => Ok(()),
        Answer::Failed {
            timed_out: true, ..
        } => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        Answer::Failed { reason, .. } => Err(io::Error::other(reason).into()),
    }
}

/// Why what ran in another life of this pid namespace has ended: its container was stopped, or the whole
/// host.
pub(crate) fn cause_of_death(its_boot: &str, cause: Cause) -> Cause {
    let host = |boot: &str| boot.split('.').next().map(str::to_owned);
    match boot_id() {
        Ok(now) if host(&now) == host(its_boot) => cause,
        _ => Cause::HostReboot,
    }
}
