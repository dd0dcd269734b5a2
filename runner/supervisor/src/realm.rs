//! The realm of the processes that the records of a folder name.
//!
//! Pids mean something only within their pid namespace. So work on processes is done by a process of the
//! same namespace: by the daemon for its own host, by the entry process for a container. Where the entry
//! process does not run, no process of the container does, and only the records can be read.

use std::io;

use crate::{
    Cause, Directory, Fate, RecordError, Recovered,
    entry::{self, Order, OrderOutcome},
    operation::SupervisorLine,
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
            Self::Container => settle_inside(directory),
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
        // A dead supervisor does not listen there.
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
            Some(OrderOutcome::Done) => Ok(()),
            Some(OrderOutcome::Failed { reason, .. }) => Err(io::Error::other(reason)),
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

/// Has it settled in the container. Where that has no room for one more process, or is paused, the records
/// may tell all the same.
fn settle_inside(directory: Directory) -> Result<Recovered, RecordError> {
    let (root, name) = entry::place(directory.path())?;
    let answer = match entry::ask(&root, &Order::Settle { directory: name }) {
        Ok(None) => return recover::settle_dead(directory, Cause::SandboxStopped),
        Ok(Some(answer)) => done(answer),
        Err(error) => Err(error.into()),
    };
    match answer {
        Ok(()) => found(directory),
        Err(RecordError::Io(error)) if error.kind() == io::ErrorKind::TimedOut => {
            unanswered(directory)
        }
        Err(error) => Err(error),
    }
}

/// The result that the records give for an operation, where the entry process does not help for now. An
/// operation that only the container's own processes can settle may be tried again.
fn unanswered(directory: Directory) -> Result<Recovered, RecordError> {
    if directory.exit()?.is_none() && directory.fate()?.is_none() {
        directory.fence("its daemon found it without a fate")?;
    }
    match found(directory) {
        // Its supervisor is gone, or accepts no connection.
        Err(RecordError::Io(_)) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        found => found,
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

/// The result that the records of a settled operation give: it runs, or is over.
fn found(directory: Directory) -> Result<Recovered, RecordError> {
    if let Some(record) = directory.exit()? {
        return Ok(Recovered::Ended(directory, record));
    }
    match directory.fate()? {
        Some(Fate::Started(_)) => {
            let line = directory.connect().map_err(RecordError::from)?;
            let line = SupervisorLine::new(line).map_err(io::Error::other)?;
            let operation = crate::SupervisedOperation::attached(directory, line);
            Ok(Recovered::Running(Box::new(operation)))
        }
        Some(Fate::Fenced { .. }) => Ok(Recovered::Fenced(directory)),
        None => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}

fn done(answer: OrderOutcome) -> Result<(), RecordError> {
    match answer {
        OrderOutcome::Done => Ok(()),
        OrderOutcome::Failed {
            timed_out: true, ..
        } => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        OrderOutcome::Failed { reason, .. } => Err(io::Error::other(reason).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{IoSliceMut, Write as _},
        mem::MaybeUninit,
        os::unix::net::UnixListener,
        path::Path,
        thread,
    };

    use rustix::{
        fd::OwnedFd,
        net::{
            AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix,
            SocketFlags, SocketType, accept, bind, listen, recvmsg, socket_with,
        },
    };
    use shared_types::OperationId;

    use super::*;
    use crate::{KillMethod, MAX_ORDER_BYTES, ORDERS, ProcessId, ProcessIdentity, StartRecord};

    /// Answers one order as an entry process does that has no room for a process to carry it out.
    fn without_room(root: &Path) -> thread::JoinHandle<()> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let socket = socket.expect("a socket");
        let path = root.join(ORDERS);
        // Of the one before.
        let _ = std::fs::remove_file(&path);
        let address = SocketAddrUnix::new(path).expect("a short path");
        bind(&socket, &address).expect("a free name");
        listen(&socket, 4).expect("it listens");
        thread::spawn(move || {
            let daemon = accept(&socket).expect("a daemon");
            let answer = OrderOutcome::Failed {
                reason: "no room".to_owned(),
                timed_out: true,
            };
            let text = serde_json::to_vec(&answer).expect("JSON");
            File::from(answers_to(&daemon))
                .write_all(&text)
                .expect("it is read");
        })
    }

    /// The socket on which an order is answered.
    fn answers_to(daemon: &OwnedFd) -> OwnedFd {
        let mut text = [0; MAX_ORDER_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut room = [IoSliceMut::new(&mut text)];
        recvmsg(daemon, &mut room, &mut control, RecvFlags::CMSG_CLOEXEC).expect("an order");
        let socket = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        socket.expect("a socket")
    }

    fn started() -> Fate {
        Fate::Started(StartRecord {
            operation: OperationId::from_u128(1),
            identity: ProcessIdentity {
                supervisor: ProcessId {
                    pid: 1,
                    start_ticks: 1,
                    boot_id: "another".to_owned(),
                },
                kill: KillMethod::Sweep,
                cgroup: None,
            },
            child: None,
            times: None,
            claim: None,
        })
    }

    #[test]
    fn a_command_goes_on_whose_container_has_no_room_for_another_process() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("op");
        let directory = Directory::create(&path).expect("a directory");
        directory.publish("fate", &started()).expect("a fate");
        let settle = || {
            let entry = without_room(root.path());
            let settled = Realm::Container.settle(Directory::open(&path).expect("a directory"));
            entry.join().expect("it was asked");
            settled
        };
        let Err(RecordError::Io(error)) = settle() else {
            panic!("nobody knows what became of it");
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "to be tried again");
        let _supervisor = UnixListener::bind(path.join("sock")).expect("a socket");
        assert!(matches!(settle(), Ok(Recovered::Running(_))));
    }

    #[test]
    fn what_has_no_fate_never_runs_even_where_the_container_has_no_room_to_say_so() {
        let root = tempfile::tempdir().expect("a folder");
        let directory = Directory::create(&root.path().join("op")).expect("a directory");
        let entry = without_room(root.path());
        let settled = Realm::Container.settle(directory);
        entry.join().expect("it was asked");
        assert!(matches!(settled, Ok(Recovered::Fenced(_))), "{settled:?}");
    }
}
