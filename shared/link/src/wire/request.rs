//! Requests.

use std::num::NonZeroU64;

use proto::v1::{self, operation::Request as Wire};
use shared_sandbox::{
    Command, Download, Edit, Exec, Glob, Grep, List, Read, Request, Retention, Upload, Write,
};
use shared_types::{Digest, Refusal, RefusalCode};

use super::{control, invalid};

/// A request in its wire form.
pub fn request(request: &Request) -> v1::operation::Request {
    match request.clone() {
        Request::Exec(exec) => Wire::Exec(v1::Exec {
            command: Some(match exec.command {
                Command::Shell(script) => v1::exec::Command::Shell(script),
                Command::Argv(words) => v1::exec::Command::Argv(v1::Argv { words }),
            }),
            directory: exec.directory,
            environment: exec.environment.into_iter().collect(),
            merged: exec.merged,
            input: exec.input,
            terminal: exec.terminal.map(control::size_to_wire),
            retention: retention_to_wire(exec.retention),
            idle_for_ms: exec.idle_for_ms.map_or(0, NonZeroU64::get),
        }),
        Request::Read(read) => Wire::Read(v1::Read {
            path: read.path,
            first_line: read.first_line,
            max_lines: read.max_lines,
            max_bytes: read.max_bytes,
        }),
        Request::Write(write) => Wire::Write(v1::Write {
            path: write.path,
            content: write.content,
        }),
        Request::Edit(edit) => Wire::Edit(v1::Edit {
            path: edit.path,
            old: edit.old,
            new: edit.new,
            every: edit.every,
        }),
        Request::List(list) => Wire::List(v1::List {
            path: list.path,
            max_entries: list.max_entries,
        }),
        Request::Glob(glob) => Wire::Glob(v1::Glob {
            path: glob.path,
            pattern: glob.pattern,
            max_paths: glob.max_paths,
        }),
        Request::Grep(grep) => Wire::Grep(v1::Grep {
            path: grep.path,
            pattern: grep.pattern,
            files: grep.files,
            ignore_case: grep.ignore_case,
            max_matches: grep.max_matches,
        }),
        Request::Download(Download { path }) => Wire::Download(v1::Download { path }),
        Request::Upload(upload) => Wire::Upload(v1::Upload {
            path: upload.path,
            bytes: upload.bytes,
            digest: upload.digest.as_bytes().to_vec(),
        }),
    }
}

/// The request in a frame.
pub(crate) fn read_request(wire: Wire) -> Result<Request, Refusal> {
    Ok(match wire {
        Wire::Exec(wire) => Request::Exec(exec(wire)?),
        Wire::Read(wire) => Request::Read(Read {
            path: wire.path,
            first_line: wire.first_line,
            max_lines: wire.max_lines,
            max_bytes: wire.max_bytes,
        }),
        Wire::Write(wire) => Request::Write(Write {
            path: wire.path,
            content: wire.content,
        }),
        Wire::Edit(wire) => Request::Edit(Edit {
            path: wire.path,
            old: wire.old,
            new: wire.new,
            every: wire.every,
        }),
        Wire::List(wire) => Request::List(List {
            path: wire.path,
            max_entries: wire.max_entries,
        }),
        Wire::Glob(wire) => Request::Glob(Glob {
            path: wire.path,
            pattern: wire.pattern,
            max_paths: wire.max_paths,
        }),
        Wire::Grep(wire) => Request::Grep(Grep {
            path: wire.path,
            pattern: wire.pattern,
            files: wire.files,
            ignore_case: wire.ignore_case,
            max_matches: wire.max_matches,
        }),
        Wire::Download(wire) => Request::Download(Download { path: wire.path }),
        Wire::Upload(wire) => Request::Upload(Upload {
            path: wire.path,
            bytes: wire.bytes,
            digest: Digest::from_slice(&wire.digest).ok_or_else(|| invalid("digest of a file"))?,
        }),
    })
}

fn exec(wire: v1::Exec) -> Result<Exec, Refusal> {
    let command = match wire.command {
        Some(v1::exec::Command::Shell(script)) => Command::Shell(script),
        Some(v1::exec::Command::Argv(argv)) => Command::Argv(argv.words),
        None => return Err(invalid("command")),
    };
    Ok(Exec {
        command,
        directory: wire.directory,
        environment: wire.environment.into_iter().collect(),
        merged: wire.merged,
        input: wire.input,
        terminal: wire.terminal.map(control::size).transpose()?,
        retention: retention(wire.retention)?,
        idle_for_ms: NonZeroU64::new(wire.idle_for_ms),
    })
}

fn retention_to_wire(retention: Retention) -> i32 {
    match retention {
        Retention::Bounded => v1::Retention::Bounded,
        Retention::All => v1::Retention::All,
        Retention::None => v1::Retention::None,
    }
    .into()
}

fn retention(wire: i32) -> Result<Retention, Refusal> {
    match v1::Retention::try_from(wire) {
        Ok(v1::Retention::Bounded) => Ok(Retention::Bounded),
        Ok(v1::Retention::All) => Ok(Retention::All),
        Ok(v1::Retention::None) => Ok(Retention::None),
        Err(_) => Err(Refusal::new(
            RefusalCode::Unsupported,
            "the runner does not know this kind of retention: update gantry-runner",
        )),
    }
}
