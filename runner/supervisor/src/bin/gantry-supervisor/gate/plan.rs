//! The plan for a child, and the way in which the child gets it.

use std::{
    ffi::{CStr, CString},
    io::{self, IoSlice, IoSliceMut, Read as _, Write as _},
    mem::MaybeUninit,
    os::unix::net::UnixStream,
};

use rustix::{
    fd::{BorrowedFd, OwnedFd},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};

use runner_supervisor::CommandUser;

use crate::{privilege, root, sys};

/// Descriptors that come with a plan: the directory, then standard input, output and error.
const DESCRIPTORS: usize = 4;

/// Longest strings of a plan, in bytes: more than a kernel takes.
const MAX_STRINGS_BYTES: usize = 32 * 1024 * 1024;

/// The size of the head before the strings, in bytes: eight numbers. They are the length of the
/// strings in bytes; whether there is a terminal; the number of words; the number of variables;
/// whether the child has a user of its own; that user; the group; and whether the child is
/// confined.
const HEAD_BYTES: usize = 8 * 4;

/// All that a child needs.
#[derive(Debug)]
pub(crate) struct ChildPlan<'a> {
    /// The directory in which it runs.
    pub(crate) directory: BorrowedFd<'a>,
    /// Its input, output and error output.
    pub(crate) stdio: [BorrowedFd<'a>; 3],
    /// True if its input is a terminal that becomes its own.
    pub(crate) terminal: bool,
    /// The user whose rights it has, if not this process's.
    pub(crate) user: Option<CommandUser>,
    /// True if it may change only what commands may change where some of them can be root.
    pub(crate) confined: bool,
    pub(crate) program: &'a CStr,
    pub(crate) argv: &'a [CString],
    pub(crate) environment: &'a [CString],
}

impl ChildPlan<'_> {
    /// Hands it over, which opens the gate.
    pub(crate) fn send(&self, mut gate: &UnixStream) -> io::Result<()> {
        let bytes = self.to_bytes()?;
        let [input, output, error] = self.stdio;
        let descriptors = [self.directory, input, output, error];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let sent = sendmsg(
            gate,
            &[IoSlice::new(&bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        gate.write_all(&bytes[sent..])
    }

    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let number = |value: usize| u32::try_from(value).map_err(io::Error::other);
        let mut bytes = vec![0; HEAD_BYTES];
        let strings = self.argv.iter().chain(self.environment);
        for string in [self.program]
            .into_iter()
            .chain(strings.map(CString::as_c_str))
        {
            bytes.extend_from_slice(string.to_bytes_with_nul());
        }
        let head = [
            number(bytes.len() - HEAD_BYTES)?,
            u32::from(self.terminal),
            number(self.argv.len())?,
            number(self.environment.len())?,
            u32::from(self.user.is_some()),
            self.user.map_or(0, |user| user.uid),
            self.user.map_or(0, |user| user.gid),
            u32::from(self.confined),
        ];
        for (room, value) in bytes.chunks_exact_mut(4).zip(head) {
            room.copy_from_slice(&value.to_le_bytes());
        }
        Ok(bytes)
    }
}

/// A plan as the child has got it.
#[derive(Debug)]
pub(crate) struct ReceivedPlan {
    pub(crate) descriptors: [OwnedFd; DESCRIPTORS],
    terminal: bool,
    user: Option<CommandUser>,
    confined: bool,
    pub(crate) program: CString,
    pub(crate) argv: Vec<CString>,
    pub(crate) environment: Vec<CString>,
}

impl ReceivedPlan {
    /// Waits for the gate to open.
    pub(crate) fn receive(mut gate: &UnixStream) -> io::Result<Self> {
        let mut head = [0; HEAD_BYTES];
        let (taken, descriptors) = receive(gate, &mut head)?;
        gate.read_exact(&mut head[taken..])?;
        let [
            length,
            terminal,
            words,
            variables,
            has_user,
            uid,
            gid,
            confined,
        ] = numbers(head);
        let id = |number| u32::try_from(number).map_err(|_| io::ErrorKind::InvalidData);
        let user = CommandUser {
            uid: id(uid)?,
            gid: id(gid)?,
        };
        if length > MAX_STRINGS_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut strings = vec![0; length];
        gate.read_exact(&mut strings)?;
        let mut strings = strings
            .split_inclusive(|byte| *byte == 0)
            .filter_map(|string| CString::from_vec_with_nul(string.to_vec()).ok());
        let program = strings.next().ok_or(io::ErrorKind::InvalidData)?;
        let argv: Vec<_> = strings.by_ref().take(words).collect();
        let environment: Vec<_> = strings.collect();
        if argv.len() != words || environment.len() != variables {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self {
            descriptors,
            terminal: terminal != 0,
            user: (has_user != 0).then_some(user),
            confined: confined != 0,
            program,
            argv,
            environment,
        })
    }

    /// Becomes the command. Returns only where that fails, and says why.
    pub(super) fn carry_out(&self) -> io::Error {
        match self.prepare() {
            Ok(()) => sys::execute(&self.program, &self.argv, &self.environment),
            Err(error) => error,
        }
    }

    fn prepare(&self) -> io::Result<()> {
        let [directory, input, output, error] = &self.descriptors;
        // Only a terminal needs a session of its own. The scheduler gives each new one a share of
        // its own (autogroup), and on a busy host its first turn is milliseconds away.
        if self.terminal {
            rustix::process::setsid()?;
        } else {
            rustix::process::setpgid(None, None)?;
        }
        rustix::process::fchdir(directory)?;
        rustix::stdio::dup2_stdin(input)?;
        rustix::stdio::dup2_stdout(output)?;
        rustix::stdio::dup2_stderr(error)?;
        if self.terminal {
            rustix::process::ioctl_tiocsctty(input)?;
        }
        // Its folders are looked up with the rights of who starts it, and it has no others than its own then.
        let confinement = match self.confined {
            true => Some(root::confinement(false)?),
            false => None,
        };
        self.user.map_or(Ok(()), privilege::become_user)?;
        match confinement {
            Some(rules) => sys::confine(&rules),
            None => Ok(()),
        }
    }
}

/// The first bytes, and the descriptors that come with them.
fn receive(gate: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, [OwnedFd; DESCRIPTORS])> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut room = [IoSliceMut::new(bytes)];
    let received = loop {
        match recvmsg(gate, &mut room, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    let mut descriptors = Vec::with_capacity(DESCRIPTORS);
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    let descriptors = descriptors.try_into();
    let descriptors = descriptors.map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    Ok((received.bytes, descriptors))
}

fn numbers(head: [u8; HEAD_BYTES]) -> [usize; HEAD_BYTES / 4] {
    let mut numbers = [0; HEAD_BYTES / 4];
    for (number, bytes) in numbers.iter_mut().zip(head.as_chunks::<4>().0) {
        *number = usize::try_from(u32::from_le_bytes(*bytes)).unwrap_or(0);
    }
    numbers
}
