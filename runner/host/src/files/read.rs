//! Reads lines of a file without loading the rest.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read as _},
    os::unix::fs::FileExt,
};

use shared_sandbox::{FileFailure, Read, ReadContent};
use shared_types::{Digest, limits::MAX_INLINE_FILE_BYTES};

use super::{Allowance, Failure, bytes, io_failure};
use crate::{text, workspace::Workspace};

/// A NUL byte within this many bytes of a file's beginning makes it a binary file.
pub(super) const PROBED_BYTES: usize = 8 * 1024;

/// Read at once; the most memory that skipped lines cost.
const BUFFER_BYTES: usize = 64 * 1024;

/// The lines that were asked for, within the bounds, and the digest of a file that can be edited.
pub(super) fn read(
    read: &Read,
    workspace: &Workspace,
    allowance: &Allowance,
) -> Result<ReadContent, Failure> {
    let (file, stat) = workspace.open_file(&read.path)?;
    let failed = |error: std::io::Error| io_failure(&read.path, &error);
    if is_binary(&file).map_err(failed)? {
        let path = read.path.clone();
        return Err(FileFailure::Binary { path }.into());
    }
    let limit = MAX_INLINE_FILE_BYTES as u64;
    // A small file is read once, so that the lines and the digest are of the same bytes.
    let mut all = Vec::new();
    if bytes(stat.st_size) <= limit {
        let read = (&file).take(limit + 1).read_to_end(&mut all);
        read.map_err(failed)?;
    }
    let is_small = bytes(stat.st_size) <= limit && all.len() as u64 <= limit;
    let digest = is_small.then(|| Digest::of(&all).into());
    let rest = file.take(if is_small { 0 } else { u64::MAX });
    let found = |content, lines, more| ReadContent {
        content,
        first_line: read.first_line.max(1),
        lines,
        file_bytes: bytes(stat.st_size),
        more,
        digest,
    };
    let mut lines = FileLines {
        reader: BufReader::with_capacity(BUFFER_BYTES, Cursor::new(all).chain(rest)),
        path: &read.path,
        allowance,
    };
    for _ in 1..read.first_line {
        if !lines.skip()? {
            break;
        }
    }
    let max_bytes = usize::try_from(read.max_bytes)
        .unwrap_or(usize::MAX)
        .min(MAX_INLINE_FILE_BYTES);
    let (mut content, mut taken) = (Vec::new(), 0);
    while taken < read.max_lines {
        let start = content.len();
        // One byte more than fits is enough to know that the line does not.
        lines.take(&mut content, max_bytes + 1)?;
        if content.len() == start {
            break;
        }
        if content.len() > max_bytes {
            if taken == 0 && max_bytes > 0 {
                content.truncate(text::cut(&content, max_bytes).len());
                taken = 1;
            } else {
                content.truncate(start);
            }
            return Ok(found(content, taken, true));
        }
        taken += 1;
    }
    let more = !lines.at_end()?;
    Ok(found(content, taken, more))
}

/// The marks at the beginning of text in UTF-16, which is full of NUL bytes.
const UTF_16_MARKS: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

/// True if the file's mark says that it is text in UTF-16.
pub(super) fn is_utf_16(file: &File) -> std::io::Result<bool> {
    let mut head = [0; 2];
    Ok(file.read_at(&mut head, 0)? == 2 && UTF_16_MARKS.contains(&head))
}

/// True if the file begins as no text does.
pub(super) fn is_binary(file: &File) -> std::io::Result<bool> {
    let mut head = [0; PROBED_BYTES];
    let length = file.read_at(&mut head, 0)?;
    Ok(memchr::memchr(0, &head[..length]).is_some())
}

/// A file line by line, buffer by buffer.
struct FileLines<'a, R> {
    reader: BufReader<R>,
    path: &'a str,
    allowance: &'a Allowance,
}

impl<R: io::Read> FileLines<'_, R> {
    /// Passes over a line; `false` at the end of the file.
    fn skip(&mut self) -> Result<bool, Failure> {
        let mut any = false;
        loop {
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return Ok(any);
            }
            any = true;
            let end = memchr::memchr(b'\n', buffer);
            let length = end.map_or(buffer.len(), |at| at + 1);
            self.reader.consume(length);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// Appends a line with its end, until `content` has `max` bytes.
    fn take(&mut self, content: &mut Vec<u8>, max: usize) -> Result<(), Failure> {
        while content.len() < max {
            let room = max - content.len();
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let end = memchr::memchr(b'\n', buffer);
            let length = end.map_or(buffer.len(), |at| at + 1).min(room);
            content.extend_from_slice(&buffer[..length]);
            self.reader.consume(length);
            if content.ends_with(b"\n") {
                return Ok(());
            }
        }
        Ok(())
    }

    fn at_end(&mut self) -> Result<bool, Failure> {
        Ok(self.fill()?.is_empty())
    }

    fn fill(&mut self) -> Result<&[u8], Failure> {
        self.allowance.check()?;
        let path = self.path;
        self.reader
            .fill_buf()
            .map_err(|error| io_failure(path, &error))
    }
}
