//! The ways to get a waiting supervisor: a fork, or a request to serve once more.

use std::{
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use super::{PoolError, PoolOptions, fork_server::ForkServer, spent::SpentOnes};
use crate::{
    Directory, FromSupervisor, IdleSupervisor, ProcessIdentity, Spent, ToSupervisor,
    operation::SupervisorLine,
};

/// The longest time that a supervisor may take to make its files.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// The longest time that it may take to clear them away for another command. It is short because
/// the caller that waits could have a new one.
const AGAIN_WITHIN: Duration = Duration::from_secs(1);

/// Starts supervisors.
#[derive(Debug, Clone)]
pub(super) struct Starter {
    pub(super) server: Arc<ForkServer>,
    pub(super) spent: Arc<SpentOnes>,
    /// The next name.
    next: Arc<AtomicU32>,
}

impl Starter {
    pub(super) fn new(options: PoolOptions) -> Self {
        let realm = options.realm;
        Self {
            server: Arc::new(ForkServer::new(options)),
            spent: Arc::new(SpentOnes::new(realm)),
            next: Arc::default(),
        }
    }

    /// A name that no directory ever had.
    fn name(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.server.options().prefix)
    }

    /// One that has served another command before.
    pub(super) fn again(&self) -> Option<IdleSupervisor> {
        while let Some(mut spent) = self.spent.take() {
            match again(&mut spent, &self.name()) {
                Ok(identity) => {
                    let Spent { directory, line } = spent;
                    return Some(IdleSupervisor::new(directory, identity, line));
                }
                // Where one is stopped others may be, and the caller must not wait for them all.
                Err(PoolError::Silent(None)) => {
                    self.spent.kill(spent);
                    return None;
                }
                // As good as one that was not kept.
                Err(_) => self.spent.dismiss(spent),
            }
        }
        None
    }

    pub(super) fn start(&self) -> Result<IdleSupervisor, PoolError> {
        match self.try_start() {
            // The process that had to do it was killed or stopped.
            Err(PoolError::NotForked(_) | PoolError::Silent(_)) => self.try_start(),
            started => started,
        }
    }

    fn try_start(&self) -> Result<IdleSupervisor, PoolError> {
        let name = self.name();
        let root = &self.server.options().root;
        let directory = Directory::create(&root.join(&name))?;
        let (socket, server) = match self.server.order(&name) {
            Ok(ordered) => ordered,
            Err(error) => {
                let _ = directory.remove();
                return Err(error.into());
            }
        };
        let error = match greeting(socket) {
            Ok((identity, line)) => return Ok(IdleSupervisor::new(directory, identity, line)),
            Err(error) => error,
        };
        let nobody = matches!(directory.identity(), Ok(None));
        if nobody && matches!(error, PoolError::Silent(None)) {
            // One that is stopped would keep the next order waiting as well.
            self.server.end(server, &name);
        }
        // It got no request, so it was promised to no caller.
        self.server.options().realm.clear(&directory);
        let _ = directory.remove();
        Err(match error {
            PoolError::Silent(cause) if nobody => PoolError::NotForked(cause),
            error => error,
        })
    }
}

/// One that has served is asked to wait again. The new name is given once everything is cleared
/// away, so that a directory of that name never holds anything older, not even after a host's
/// death.
fn again(spent: &mut Spent, name: &str) -> Result<ProcessIdentity, PoolError> {
    let asked = spent.line.send(&ToSupervisor::Again, &[]);
    asked.map_err(|error| PoolError::Silent(Some(error)))?;
    let identity = ready(&mut spent.line, AGAIN_WITHIN)?;
    spent.directory.rename(name)?;
    Ok(identity)
}

/// The greeting of a new supervisor that is ready.
fn greeting(socket: UnixStream) -> Result<(ProcessIdentity, SupervisorLine), PoolError> {
    let mut line = SupervisorLine::new(socket).map_err(|error| PoolError::Silent(Some(error)))?;
    let identity = ready(&mut line, READY_WITHIN)?;
    Ok((identity, line))
}

fn ready(line: &mut SupervisorLine, within: Duration) -> Result<ProcessIdentity, PoolError> {
    match line.receive(within) {
        Ok(Some(FromSupervisor::Hello { identity, .. })) => Ok(identity),
        Ok(Some(FromSupervisor::Unfit { reason, errno })) => {
            Err(PoolError::Unfit { reason, errno })
        }
        Ok(Some(FromSupervisor::Refused { reason })) => Err(PoolError::Unfit {
            reason,
            errno: None,
        }),
        Ok(_) => Err(PoolError::Silent(None)),
        Err(error) => Err(PoolError::Silent(Some(error.into()))),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::{KillMethod, Outbox, ProcessId};

    #[test]
    fn a_supervisor_of_a_version_too_far_away_is_not_used() {
        let (near, far) = UnixStream::pair().expect("a socket");
        let hello = FromSupervisor::Hello {
            version: 99,
            identity: ProcessIdentity {
                supervisor: ProcessId {
                    pid: 1,
                    start_ticks: 1,
                    boot_id: String::new(),
                },
                kill: KillMethod::Sweep,
                cgroup: None,
            },
            input: 0,
            last_id: 0,
        };
        let mut outbox = Outbox::default();
        outbox.push(&hello, &[]).expect("short");
        outbox.flush(&far, None).expect("sent");
        let error = greeting(near).expect_err("it speaks another version");
        let reason = error.source().and_then(|source| source.source());
        assert!(reason.is_some_and(|reason| reason.to_string().contains("version is too far")));
    }
}
