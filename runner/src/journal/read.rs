//! Reads a journal from its start, one line in memory at a time.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
};

use serde::{Deserialize, de::DeserializeOwned};

use super::{FORMAT, Header, MAX_JOURNAL_BYTES, MAX_LINE_BYTES, line::JournalEnd};

/// The content of a journal.
#[derive(Debug)]
pub(super) struct Contents<R> {
    pub(super) header: Header,
    pub(super) records: Vec<R>,
    /// Behind the last record.
    pub(super) end: JournalEnd,
    /// The size in bytes of the unfinished line that follows there.
    pub(super) torn: u64,
}

/// A journal that is damaged.
#[derive(Debug)]
pub(super) struct Damaged<R> {
    /// The records before the damage.
    pub(super) before: Vec<R>,
    /// The damage and its place.
    pub(super) damage: String,
}

impl<R> From<String> for Damaged<R> {
    fn from(damage: String) -> Self {
        let before = Vec::new();
        Self { before, damage }
    }
}

/// Reads it; the inner error says how it is damaged.
pub(super) fn read<R: DeserializeOwned>(
    file: &File,
) -> io::Result<Result<Contents<R>, Damaged<R>>> {
    let bytes = file.metadata()?.len();
    if bytes > MAX_JOURNAL_BYTES {
        let damage = format!("{bytes} bytes are too many for a journal");
        return Ok(Err(damage.into()));
    }
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let JournalLine::Whole = next(&mut reader, &mut line)? else {
        return Ok(Err("it has no header".to_owned().into()));
    };
    let (header, mut end) = match header(&line) {
        Ok(read) => read,
        Err(damage) => return Ok(Err(damage.into())),
    };
    let (mut records, mut torn) = (Vec::new(), 0);
    for number in 2.. {
        let record = match next(&mut reader, &mut line)? {
            JournalLine::None => break,
            JournalLine::Whole => end.read(&line),
            JournalLine::TooLong => Err("it is too long"),
            JournalLine::Unfinished(bytes) => {
                torn = bytes;
                break;
            }
        };
        match record {
            Ok(record) => records.push(record),
            Err(damage) => {
                return Ok(Err(Damaged {
                    before: records,
                    damage: format!("line {number}: {damage}"),
                }));
            }
        }
    }
    Ok(Ok(Contents {
        header,
        records,
        end,
        torn,
    }))
}

fn header(line: &[u8]) -> Result<(Header, JournalEnd), String> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let damaged = |damage| format!("its header: {damage}");
    let Format { format } = JournalEnd::default().read(line).map_err(damaged)?;
    if format != FORMAT {
        return Err(format!(
            "it has format {format}, and this runner knows format {FORMAT}"
        ));
    }
    let mut end = JournalEnd::default();
    let header = end.read(line).map_err(damaged)?;
    Ok((header, end))
}

/// The next line in the file.
enum JournalLine {
    None,
    /// It is in the buffer, with its end.
    Whole,
    /// The rest of the file has this many bytes, and no line's end among them.
    Unfinished(u64),
    /// It has an end, but far away.
    TooLong,
}

fn next(reader: &mut BufReader<&File>, line: &mut Vec<u8>) -> io::Result<JournalLine> {
    line.clear();
    reader
        .by_ref()
        .take(MAX_LINE_BYTES as u64)
        .read_until(b'\n', line)?;
    if line.ends_with(b"\n") {
        return Ok(JournalLine::Whole);
    }
    if line.is_empty() {
        return Ok(JournalLine::None);
    }
    let mut bytes = line.len() as u64;
    loop {
        let more = reader.fill_buf()?;
        if more.is_empty() {
            return Ok(JournalLine::Unfinished(bytes));
        }
        if more.contains(&b'\n') {
            return Ok(JournalLine::TooLong);
        }
        let length = more.len();
        bytes += length as u64;
        reader.consume(length);
    }
}
