//! Takes output from its pipe, counts it, and keeps it within its bounds.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::Path,
    time::Duration,
};

use runner_supervisor::{Gap, GapLog, SpoolBounds, SpoolEnd, SpoolStream, Tail, WhenFull};
use rustix::{fd::OwnedFd, fs::FallocateFlags, io::Errno};

/// Bytes that are read at once.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// Reads in one turn of the loop, so that one loud stream starves nothing.
const READS_AT_ONCE: usize = 4;

/// The most that a pipe or terminal holds, and that is taken after the end.
const REST_BYTES: u64 = 2 * 1024 * 1024;

/// Committed bytes are given back to the disk in pieces of this size.
const EVICT_BYTES: u64 = 1024 * 1024;

/// One output stream.
#[derive(Debug)]
pub(crate) struct Pump {
    stream: SpoolStream,
    /// Absent once no process can write to it any more.
    source: Option<OwnedFd>,
    file: File,
    bounds: SpoolBounds,
    checksum: crc32fast::Hasher,
    /// Bytes taken from the command.
    taken: u64,
    /// Up to here the file is as it should be.
    written: u64,
    committed: u64,
    evicted: u64,
    /// The newest of what does not fit, and then everything goes through here.
    tail: Option<Tail>,
    /// True if the disk took no more: from then on output is only counted.
    disk_full: bool,
    last_output: Duration,
}

impl Pump {
    pub(crate) fn new(
        stream: SpoolStream,
        source: Option<OwnedFd>,
        file: File,
        bounds: SpoolBounds,
        now: Duration,
    ) -> Self {
        Self {
            stream,
            source,
            file,
            bounds,
            checksum: crc32fast::Hasher::new(),
            taken: 0,
            written: 0,
            committed: 0,
            evicted: 0,
            tail: None,
            disk_full: false,
            last_output: now,
        }
    }

    /// The descriptor to listen to, if output is wanted now.
    pub(crate) fn wanted(&self) -> Option<&OwnedFd> {
        self.source.as_ref().filter(|_| self.room() > 0)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.source.is_none()
    }

    pub(crate) fn is_disk_full(&self) -> bool {
        self.disk_full
    }

    /// True if the command has to wait until output is committed: that is no silence of its own.
    pub(crate) fn is_held(&self) -> bool {
        !self.is_closed() && self.room() == 0
    }

    /// When something was read last, or could be again.
    pub(crate) fn last_output(&self) -> Duration {
        self.last_output
    }

    /// Up to here it can be read.
    pub(crate) fn readable(&self) -> u64 {
        self.written
    }

    /// Takes the output that there is, within the bounds.
    pub(crate) fn pump(&mut self, buffer: &mut [u8], now: Duration) {
        for _ in 0..READS_AT_ONCE {
            let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
            let length = buffer.len().min(room);
            if length == 0 || !self.take(&mut buffer[..length], now) {
                return;
            }
        }
    }

    /// Takes all that a command that is gone has left in its pipe, beyond the bounds too.
    pub(crate) fn take_rest(&mut self, buffer: &mut [u8], now: Duration) {
        let limit = self.taken.saturating_add(REST_BYTES);
        while self.taken < limit && self.take(buffer, now) {}
    }

    /// Reports that output is durable elsewhere, which makes room here.
    pub(crate) fn commit(
        &mut self,
        offset: u64,
        buffer: &mut [u8],
        gaps: &mut GapLog,
        now: Duration,
    ) {
        if self.is_held() {
            self.last_output = now;
        }
        self.committed = self.committed.max(offset.min(self.written));
        let until = self.committed - self.committed % EVICT_BYTES;
        if until > self.evicted && gaps.evict(self.stream, until).is_ok() {
            // A file system without holes keeps the bytes; that is no error of the command's.
            let _ = rustix::fs::fallocate(
                &self.file,
                FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                self.evicted,
                until - self.evicted,
            );
            self.evicted = until;
        }
        let fits = self
            .tail
            .as_ref()
            .is_some_and(|tail| tail.length() <= self.head_room());
        if fits && gaps.has_room() {
            self.put_tail(buffer, gaps);
        }
    }

    /// Writes what has no place yet and says how much it was.
    pub(crate) fn finish(&mut self, buffer: &mut [u8], gaps: &mut GapLog) -> SpoolEnd {
        self.put_tail(buffer, gaps);
        if self.written < self.taken {
            let gap = self.gap_until(self.taken);
            // Without it the end's offset still tells that bytes are missing.
            let _ = gaps.add(gap);
            self.written = self.taken;
        }
        SpoolEnd {
            offset: self.taken,
            checksum: Some(self.checksum.clone().finalize()),
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Reads once; `false` where there is nothing more now.
    fn take(&mut self, buffer: &mut [u8], now: Duration) -> bool {
        let Some(source) = &self.source else {
            return false;
        };
        match rustix::io::read(source, &mut *buffer) {
            // A terminal whose last user is gone says EIO.
            Ok(0) | Err(Errno::IO) => {
                self.source = None;
                false
            }
            Ok(length) => {
                self.last_output = now;
                self.keep(&buffer[..length]);
                true
            }
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => false,
            Err(_) => {
                self.source = None;
                false
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.checksum.update(bytes);
        self.taken += bytes.len() as u64;
        if self.disk_full {
            return;
        }
        let WhenFull::Gap { tail } = self.bounds.when_full else {
            self.write(bytes);
            return;
        };
        let room = match self.tail {
            Some(_) => 0,
            None => usize::try_from(self.head_room()).unwrap_or(usize::MAX),
        };
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.write(head);
        if !rest.is_empty() && !self.disk_full {
            self.keep_tail(rest, tail);
        }
    }

    fn keep_tail(&mut self, bytes: &[u8], most: u32) {
        let tail = match self.tail.take() {
            Some(tail) => Ok(tail),
            // The operation's directory is where this process is.
            None => Tail::create(self.tail_path(), most, self.taken - bytes.len() as u64),
        };
        let kept = tail.and_then(|mut tail| {
            let kept = tail.push(bytes);
            self.tail = Some(tail);
            kept
        });
        self.disk_full |= kept.is_err();
    }

    /// Puts the tail where it belongs, behind a gap of what lies between.
    fn put_tail(&mut self, buffer: &mut [u8], gaps: &mut GapLog) {
        let Some(tail) = self.tail.take() else {
            return;
        };
        if tail.from() > self.written {
            if gaps.add(self.gap_until(tail.from())).is_err() {
                self.tail = Some(tail);
                self.disk_full = true;
                return;
            }
            self.written = tail.from();
        }
        while !self.disk_full {
            match tail.read(self.written, buffer) {
                Ok(0) => break,
                Ok(length) => self.write(&buffer[..length]),
                // The rest has no place any more: what comes is counted, and the end tells the gap.
                Err(_) => self.disk_full = true,
            }
        }
        // It is of no use any more, and removed with its directory at last.
        let _ = fs::remove_file(self.tail_path());
    }

    fn tail_path(&self) -> &'static Path {
        Path::new(Tail::file_name(self.stream))
    }

    fn gap_until(&self, offset: u64) -> Gap {
        Gap {
            stream: self.stream,
            offset: self.written,
            length: offset - self.written,
        }
    }

    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.disk_full {
            match self.file.write_at(bytes, self.written) {
                Ok(length) if length > 0 => {
                    self.written += length as u64;
                    bytes = &bytes[length..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => self.disk_full = true,
            }
        }
    }

    /// The number of bytes that may be read now.
    fn room(&self) -> u64 {
        match self.bounds.when_full {
            WhenFull::Gap { .. } => u64::MAX,
            WhenFull::Wait if self.disk_full => u64::MAX,
            WhenFull::Wait => self
                .bounds
                .bytes
                .saturating_sub(self.written - self.committed),
        }
    }

    /// The number of bytes that may be written now, with the tail kept free.
    fn head_room(&self) -> u64 {
        let tail = match self.bounds.when_full {
            WhenFull::Gap { tail } => tail.into(),
            WhenFull::Wait => 0,
        };
        let used = self.written - self.committed;
        self.bounds.bytes.saturating_sub(tail).saturating_sub(used)
    }
}
