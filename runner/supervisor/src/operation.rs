//! The daemon's end of one operation.
//!
//! Nothing here needs an async runtime: an [`SupervisedOperation`] is a descriptor ([`AsFd`]) that becomes
//! readable when there is an event. A daemon with a runtime takes [`SupervisedOperation::next_event`], which
//! never waits; when that says [`Cut`], it lets [`settle`](crate::settle) find out what holds, where
//! waiting does no harm. [`SupervisedOperation::event`] is both at once for a daemon that can wait.

mod line;

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    time::Duration,
};

use rustix::fd::{AsFd, BorrowedFd};

use crate::{
    CommandRequest, Directory, ExitRecord, FrameError, FromSupervisor, MAX_INPUT_BYTES,
    ProcessIdentity, RecordError, RequestError, SpoolPiece, SpoolReader, SpoolStream, StartRecord,
    ToSupervisor,
};
pub(crate) use line::SupervisorLine;

/// A supervisor that waits for its request, its directory made and its files open.
#[derive(Debug)]
pub struct IdleSupervisor {
    directory: Directory,
    identity: ProcessIdentity,
    line: SupervisorLine,
}

/// A supervisor whose command has ended, and which can serve another one.
#[derive(Debug)]
pub struct Spent {
    pub(crate) directory: Directory,
    pub(crate) line: SupervisorLine,
}

/// A running or ended operation.
#[derive(Debug)]
pub struct SupervisedOperation {
    directory: Directory,
    identity: Option<ProcessIdentity>,
    line: SupervisorLine,
    readers: [Option<SpoolReader>; 2],
    ended: Option<OperationEnd>,
    last_id: u64,
    input: u64,
}

/// News of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorEvent {
    /// Its fate is that it runs. Left out for a command that is over within its first moment.
    Started(Box<StartRecord>),
    /// So many bytes of each stream can be read.
    Output {
        /// Of stdout, the merged stream, or the terminal.
        out: u64,
        /// Of stderr.
        err: u64,
    },
    /// Input is taken up to here; what was sent beyond it must be sent again from here. Said first
    /// by an operation that was attached to.
    InputTaken(u64),
    /// The resize or signal with this id was carried out, now or before.
    Done(u64),
    /// The resize or signal with this id cannot be carried out, and why.
    NotDone(u64, String),
    /// The resize or signal with this id was not carried out because a later one was. The text says
    /// so; under a new id it may be carried out.
    Overtaken(u64, String),
    /// Something that was asked for is not possible.
    Refused(String),
    /// It is over. Comes last, and again whenever it is asked for.
    Ended(OperationEnd),
}

/// The end of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationEnd {
    /// It has an exit record.
    Exited(ExitRecord),
    /// It never ran and never will.
    Fenced,
}

/// The connection to the supervisor is gone: it has died, or another daemon took its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection to the supervisor is gone; settle the operation to learn what holds")]
pub struct Cut;

/// The reason why an operation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// The request makes no sense; nothing was sent.
    #[error("the request cannot be carried out")]
    Request(#[from] RequestError),
    /// The supervisor is gone, or does not answer; its records tell what it did.
    #[error("the supervisor does not answer; fence the operation to be sure that it never runs")]
    Gone(#[from] FrameError),
    /// The records cannot be read.
    #[error("the records of the operation cannot be used")]
    Records(#[from] RecordError),
    /// The host reported something.
    #[error("the supervisor cannot be reached")]
    Io(#[from] io::Error),
}

impl IdleSupervisor {
    pub(crate) fn new(
        directory: Directory,
        identity: ProcessIdentity,
        line: SupervisorLine,
    ) -> Self {
        Self {
            directory,
            identity,
            line,
        }
    }

    /// The directory of the operation; a daemon writes it down before it hands the request over.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The supervisor that waits.
    pub fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// For one that is to end without a command.
    pub(crate) fn into_spent(self) -> Spent {
        let Self {
            directory, line, ..
        } = self;
        Spent { directory, line }
    }

    /// True if it still waits.
    pub(crate) fn is_alive(&self) -> bool {
        self.line.is_open()
    }

    /// Hands the request over, with the directory to run in where it says `Inherited`. Never waits.
    ///
    /// # Errors
    /// When the request makes no sense, or the supervisor is gone. After the latter only fencing
    /// [`IdleSupervisor::directory`] tells whether it has started; `directory` is given back for that.
    pub fn start(
        mut self,
        request: &CommandRequest,
        place: Option<OwnedFd>,
    ) -> Result<SupervisedOperation, (Directory, OperationError)> {
        let start = ToSupervisor::Start {
            operation: request.operation,
            words: request.argv.len(),
            variables: request.environment.len(),
            terms: request.terms.clone(),
        };
        if let Some(place) = place {
            self.line.pass(place);
        }
        let sent = request
            .check()
            .map_err(OperationError::from)
            .and_then(|()| self.line.send(&start, &request.strings()));
        match sent {
            Ok(()) => Ok(SupervisedOperation {
                directory: self.directory,
                identity: Some(self.identity),
                line: self.line,
                readers: [None, None],
                ended: None,
                last_id: 0,
                input: 0,
            }),
            Err(error) => Err((self.directory, error)),
        }
    }
}

impl SupervisedOperation {
    /// One that a supervisor still serves.
    pub(crate) fn attached(directory: Directory, line: SupervisorLine) -> Self {
        Self {
            directory,
            identity: None,
            line,
            readers: [None, None],
            ended: None,
            last_id: 0,
            input: 0,
        }
    }

    /// Its files.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Its supervisor; after re-attaching only once an event came.
    pub fn identity(&self) -> Option<&ProcessIdentity> {
        self.identity.as_ref()
    }

    /// The number of input bytes that are known to be taken.
    pub fn input_taken(&self) -> u64 {
        self.input
    }

    /// The largest id of a resize or signal that was carried out before this daemon attached.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// The next event, without waiting; `None` once the socket is read empty.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn next_event(&mut self) -> Result<Option<SupervisorEvent>, Cut> {
        loop {
            if let Some(ended) = &self.ended {
                return Ok(Some(SupervisorEvent::Ended(ended.clone())));
            }
            match self.line.hear() {
                Ok(None) => return Ok(None),
                Ok(Some(said)) => {
                    if let Some(event) = self.heard(said) {
                        return Ok(Some(event));
                    }
                }
                Err(_) => return Err(Cut),
            }
        }
    }

    /// Sends what was too much before; to be called when [`SupervisedOperation::is_behind`] and the socket
    /// takes more.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn flush(&mut self) -> Result<(), Cut> {
        self.line.flush().map_err(|_| Cut)
    }

    /// True if something is left to send.
    pub fn is_behind(&self) -> bool {
        self.line.is_behind()
    }

    /// Reads a stream from `offset` on.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn read(
        &mut self,
        stream: SpoolStream,
        offset: u64,
        bytes: &mut [u8],
    ) -> io::Result<SpoolPiece> {
        let reader = &mut self.readers[stream.index()];
        if reader.is_none() {
            *reader = Some(SpoolReader::open(&self.directory, stream)?);
        }
        reader
            .as_ref()
            .map_or(Ok(SpoolPiece::Nothing), |reader| reader.read(offset, bytes))
    }

    /// Reports that output below `offset` is durable elsewhere and may be evicted here.
    ///
    /// # Errors
    /// When the supervisor is gone; [`SupervisedOperation::event`] tells more.
    pub fn commit(&mut self, stream: SpoolStream, offset: u64) -> Result<(), OperationError> {
        self.say(&ToSupervisor::Commit { stream, offset })
    }

    /// Sends input; pieces longer than [`MAX_INPUT_BYTES`] are cut.
    ///
    /// # Errors
    /// When the supervisor is gone; [`SupervisedOperation::event`] tells more.
    pub fn input(&mut self, offset: u64, bytes: &[u8], end: bool) -> Result<(), OperationError> {
        let mut pieces = bytes.chunks(MAX_INPUT_BYTES).peekable();
        let mut offset = offset;
        if pieces.peek().is_none() {
            return self.say(&ToSupervisor::Input { offset, end });
        }
        while let Some(piece) = pieces.next() {
            let end = end && pieces.peek().is_none();
            let head = ToSupervisor::Input { offset, end };
            self.line.send(&head, piece)?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    /// Ends it: politely, then by force. Its end comes as an event.
    ///
    /// # Errors
    /// When the supervisor is gone; [`SupervisedOperation::event`] tells more.
    pub fn cancel(&mut self) -> Result<(), OperationError> {
        self.say(&ToSupervisor::Cancel)
    }

    /// It is not orphaned before this time is over.
    ///
    /// # Errors
    /// When the supervisor is gone; [`SupervisedOperation::event`] tells more.
    pub fn renew(&mut self, orphan_for: Duration) -> Result<(), OperationError> {
        self.say(&ToSupervisor::Renew { orphan_for })
    }

    /// Gives its terminal another size. `id` must be larger than any before.
    ///
    /// # Errors
    /// When the supervisor is gone; [`SupervisedOperation::event`] tells more.
    pub fn resize(&mut self, id: u64, rows: u16, columns: u16) -> Result<(), OperationError> {
        self.say(&ToSupervisor::Resize { id, rows, columns })
    }

    /// Sends a signal to its process group. `id` must be larger than any before.
    ///
    /// # Errors
    /// When the supervisor is gone; [`SupervisedOperation::event`] tells more.
    pub fn signal(&mut self, id: u64, signal: i32) -> Result<(), OperationError> {
        self.say(&ToSupervisor::Signal { id, signal })
    }

    /// Its supervisor, for another command; `None` where it can serve none. That must be asked for
    /// within a second ([`SupervisorPool::reclaim`](crate::SupervisorPool::reclaim)), or the supervisor ends.
    pub fn into_spent(self) -> Option<Spent> {
        let Self {
            directory,
            line,
            ended,
            ..
        } = self;
        match ended {
            Some(OperationEnd::Exited(record)) if record.tree_gone => {
                Some(Spent { directory, line })
            }
            _ => None,
        }
    }

    fn say(&mut self, what: &ToSupervisor) -> Result<(), OperationError> {
        self.line.send(what, &[])
    }

    fn heard(&mut self, said: FromSupervisor) -> Option<SupervisorEvent> {
        Some(match said {
            FromSupervisor::Hello {
                identity,
                input,
                last_id,
                ..
            } => {
                self.identity = Some(identity);
                self.last_id = last_id;
                self.input = input;
                SupervisorEvent::InputTaken(input)
            }
            FromSupervisor::Started(start) => SupervisorEvent::Started(Box::new(start)),
            FromSupervisor::Output { out, err } => SupervisorEvent::Output { out, err },
            FromSupervisor::InputTaken { offset } => {
                self.input = offset;
                SupervisorEvent::InputTaken(offset)
            }
            FromSupervisor::Done { id } => SupervisorEvent::Done(id),
            FromSupervisor::NotDone {
                id,
                reason,
                overtaken: true,
            } => SupervisorEvent::Overtaken(id, reason),
            FromSupervisor::NotDone { id, reason, .. } => SupervisorEvent::NotDone(id, reason),
            FromSupervisor::Refused { reason } | FromSupervisor::Unfit { reason, .. } => {
                SupervisorEvent::Refused(reason)
            }
            FromSupervisor::Fenced => {
                self.ended = Some(OperationEnd::Fenced);
                return None;
            }
            FromSupervisor::Exited(record) => {
                self.ended = Some(OperationEnd::Exited(record));
                return None;
            }
            FromSupervisor::Unknown => return None,
        })
    }

    /// True if there is something to read from the supervisor; waits at most this long for it.
    pub(crate) fn is_ready(&mut self, within: Duration) -> Result<bool, OperationError> {
        self.line.ready(within)
    }

    /// Goes on over the connection of a newer attachment to the same operation.
    pub(crate) fn go_on_as(&mut self, attached: Self) {
        self.line = attached.line;
    }

    /// It has ended like this, by its records.
    pub(crate) fn has_ended(&mut self, ended: OperationEnd) {
        self.ended = Some(ended);
    }
}

impl AsRawFd for SupervisedOperation {
    fn as_raw_fd(&self) -> RawFd {
        self.line.as_fd().as_raw_fd()
    }
}

impl AsFd for SupervisedOperation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}
