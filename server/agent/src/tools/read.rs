//! Read: lines of a file, numbered; or an image.

use std::fmt::Write as _;

use shared_sandbox::{Download, Downloaded, Outcome, Read, ReadContent, Request};
use shared_types::{
    DigestAlgorithm, Effect, ImageFormat,
    limits::{FILE_OPERATION_WITHIN, MAX_IMAGE_BYTES},
};

use super::{Arguments, Ask, BadArguments, Ended, Kind, Parameter, Prepared, Rendered, Tool};

const DEFAULT_LINES: u64 = 2000;

/// Asked of the sandbox at once: more than a result can show, so that the result's own limit is
/// what cuts.
const MAX_BYTES: u64 = 64 * 1024;

/// Room for the notes after the lines.
const NOTES_BYTES: usize = 320;

/// Reads a text file or an image.
#[derive(Debug, Clone, Copy)]
pub struct ReadTool;

impl Tool for ReadTool {
    fn name(&self) -> &str {
        "Read"
    }

    fn aliases(&self) -> &[&str] {
        &["read_file", "cat", "view"]
    }

    fn description(&self) -> &str {
        "Reads lines of a text file. Each line is shown with its number and a tab, which are not \
         part of the file. A long file is shown in part; the result says where to read on. An image \
         (.png, .jpg, .gif, .webp) is shown as an image."
    }

    fn guidance(&self) -> Option<&str> {
        Some("Read a file with Read before you change it.")
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "path",
                Kind::PATH,
                "The file, relative to the workspace root.",
            ),
            Parameter::optional(
                "first_line",
                Kind::Number {
                    from: 1,
                    to: u32::MAX as u64,
                },
                "The first line wanted, from 1; default 1.",
            ),
            Parameter::optional(
                "max_lines",
                Kind::Number {
                    from: 1,
                    to: u32::MAX as u64,
                },
                "At most this many lines; default 2000.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn reads_on(&self) -> bool {
        true
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let path = arguments.text("path").to_owned();
        if ImageFormat::of_path(&path).is_some() {
            let download = Download {
                path,
                algorithm: DigestAlgorithm::Blake3,
                max_bytes: MAX_IMAGE_BYTES as u64,
            };
            return Ok(Prepared::within(
                FILE_OPERATION_WITHIN,
                Request::Download(download),
            ));
        }
        Ok(Prepared::within(
            FILE_OPERATION_WITHIN,
            Request::Read(Read {
                path,
                first_line: arguments.number("first_line").unwrap_or(1),
                max_lines: arguments.number("max_lines").unwrap_or(DEFAULT_LINES),
                max_bytes: MAX_BYTES,
            }),
        ))
    }

    fn render(&self, ended: &Ended<'_>, limit: usize) -> Option<Rendered> {
        match ended.outcome {
            Outcome::Read(content) => Some(Rendered::completed(numbered(content, limit))),
            Outcome::Downloaded(downloaded) => Some(image(ended, downloaded)),
            _ => None,
        }
    }
}

/// An image that came whole, in the state in which its runner read it.
fn image(ended: &Ended<'_>, downloaded: &Downloaded) -> Rendered {
    let whole = ended.file.all(downloaded.bytes);
    let digest = downloaded.digest;
    let whole = whole.filter(|bytes| digest.algorithm.of(bytes) == digest);
    let Some(bytes) = whole else {
        return Rendered::failed("the file was changed while it was read; read it again");
    };
    let Some(format) = ImageFormat::of(&bytes) else {
        return Rendered::failed(format!(
            "its name is that of an image, and its content is none of {}; look at it with Shell",
            ImageFormat::NAMES
        ));
    };
    Rendered {
        image: Some((format, bytes)),
        ..Rendered::completed(String::new())
    }
}

/// The numbered lines that fit, and the line at which to read on. A first line that is too long for
/// any result is cut, so that the file can be read on after it.
fn numbered(read: &ReadContent, limit: usize) -> String {
    if read.content.is_empty() {
        return match read.file_bytes {
            0 => "[the file is empty]".to_owned(),
            _ => format!("[the file ends before line {}]", read.first_line),
        };
    }
    let room = limit.saturating_sub(NOTES_BYTES);
    let content = String::from_utf8_lossy(&read.content);
    let mut text = String::new();
    let mut next = read.first_line;
    let mut notes = Vec::new();
    for line in content.split_inclusive('\n') {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let left = room.saturating_sub(text.len() + next.to_string().len() + 2);
        if line.len() > left && next > read.first_line {
            break;
        }
        let shown = &line[..line.floor_char_boundary(left)];
        if shown.len() < line.len() {
            notes.push(format!(
                "[line {next} has at least {} bytes and is cut; use Shell to see the rest of it]",
                line.len()
            ));
        }
        let _ = writeln!(text, "{next}\t{shown}");
        next = next.saturating_add(1);
    }
    if read.more || next < read.first_line.saturating_add(read.lines) {
        notes.push(format!(
            "[the file has {} bytes; read on with first_line {next}]",
            read.file_bytes
        ));
    }
    if std::str::from_utf8(&read.content).is_err() {
        notes.push(
            "[these lines are not all UTF-8; other bytes are shown as \u{FFFD}, so Edit cannot match them]".to_owned(),
        );
    }
    text + &notes.join("\n")
}

#[cfg(test)]
mod tests;
