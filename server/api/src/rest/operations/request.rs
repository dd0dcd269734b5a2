//! The check of a caller's request. A request that could run nowhere is refused here, with the
//! wrong field and the possible values.

use std::{collections::BTreeMap, num::NonZeroU64, time::Duration};

use axum::http::HeaderMap;
use server_app::{AppError, StartOperation};
use shared_api::{Download, Exec, List, MakeDirectory, Move, Pack, Remove, Stat, Unpack, Upload};
use shared_sandbox::{Command, Request, Retention};
use shared_types::limits::{
    MAX_ARCHIVE_BYTES, MAX_ARCHIVE_ENTRIES, MAX_COMMAND_BYTES, MAX_PATH_BYTES, MAX_TRANSFER_BYTES,
};

use super::input::to_size;
use crate::rest::once;

/// Longest such name, in bytes.
const MAX_KEY_BYTES: usize = 128;
/// Most words of a command.
const MAX_WORDS: usize = 4096;
/// Shortest and longest time for an operation, in milliseconds.
const RUN_FOR_MS: [u64; 2] = [1000, 24 * 60 * 60 * 1000];
/// Shortest and longest silence that an operation may be given, in milliseconds.
const IDLE_FOR_MS: [u64; 2] = [1, RUN_FOR_MS[1]];
/// Fewest and most entries of a directory that are listed at once.
const ENTRIES: [u64; 2] = [1, 1000];
/// The permissions that a file can be given.
const MODES: [u64; 2] = [0, 0o777];

/// The idempotency key, if there is one.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, AppError> {
    once::key(headers, MAX_KEY_BYTES)
}

/// The operation that is asked for.
pub(super) fn checked(
    key: Option<String>,
    ask: shared_api::StartOperation,
) -> Result<StartOperation, AppError> {
    let asked = [
        ask.exec.map(exec),
        ask.download.map(download),
        ask.upload.map(upload),
        ask.list.map(list),
        ask.stat.map(stat),
        ask.make_directory.map(make_directory),
        ask.r#move.map(move_to),
        ask.remove.map(remove),
        ask.pack.map(pack),
        ask.unpack.map(unpack),
    ];
    let mut asked = asked.into_iter().flatten();
    let (Some(request), None) = (asked.next(), asked.next()) else {
        return invalid(
            "name exactly one of exec, download, upload, list, stat, make_directory, move, remove, pack and unpack",
        );
    };
    let request = request?;
    let run_for = between("timeout_ms", ask.timeout_ms, RUN_FOR_MS)?;
    Ok(StartOperation {
        key,
        runner: ask.runner,
        request,
        run_for: run_for.map(Duration::from_millis),
    })
}

fn exec(asked: Exec) -> Result<Request, AppError> {
    let command = match (asked.argv, asked.script) {
        (Some(words), None) => argv(words)?,
        (None, Some(script)) => shell(script)?,
        _ => return invalid("exec needs exactly one of argv and script"),
    };
    within("exec.directory", &asked.directory, MAX_PATH_BYTES)?;
    variables(&asked.environment)?;
    let idle_for = between("exec.idle_timeout_ms", asked.idle_timeout_ms, IDLE_FOR_MS)?;
    Ok(Request::Exec(shared_sandbox::Exec {
        command,
        directory: asked.directory,
        environment: asked.environment,
        merged: asked.merged,
        input: asked.input,
        terminal: asked.terminal.map(to_size).transpose()?,
        // A caller may leave and come back, so no output may be dropped.
        retention: Retention::All,
        idle_for_ms: idle_for.and_then(NonZeroU64::new),
    }))
}

fn argv(words: Vec<String>) -> Result<Command, AppError> {
    if words.len() > MAX_WORDS {
        let number = words.len();
        return invalid(format!(
            "exec.argv has {number} words; at most {MAX_WORDS} are possible: write them to a file"
        ));
    }
    if words.first().is_none_or(String::is_empty) {
        return invalid("exec.argv is empty; name a program first, then its arguments");
    }
    for word in &words {
        within("a word of exec.argv", word, MAX_COMMAND_BYTES)?;
    }
    Ok(Command::Argv(words))
}

fn shell(script: String) -> Result<Command, AppError> {
    if script.is_empty() {
        return invalid("exec.script is empty; write a command");
    }
    within("exec.script", &script, MAX_COMMAND_BYTES)?;
    Ok(Command::Shell(script))
}

fn variables(environment: &BTreeMap<String, String>) -> Result<(), AppError> {
    for (name, value) in environment {
        if name.is_empty() || name.contains('=') {
            return invalid(format!(
                "exec.environment has a variable named {name:?}; a name is not empty and holds no \"=\""
            ));
        }
        // The host takes both as one text.
        let variable = format!("{name}={value}");
        within(
            "a variable of exec.environment",
            &variable,
            MAX_COMMAND_BYTES,
        )?;
    }
    Ok(())
}

fn download(asked: Download) -> Result<Request, AppError> {
    let path = file("download.path", asked.path)?;
    Ok(Request::Download(shared_sandbox::Download {
        path,
        algorithm: asked.digest.unwrap_or_default(),
        max_bytes: 0,
    }))
}

fn upload(asked: Upload) -> Result<Request, AppError> {
    if asked.bytes > MAX_TRANSFER_BYTES {
        return invalid(format!(
            "upload.bytes is {}; a file has at most {MAX_TRANSFER_BYTES} bytes",
            asked.bytes
        ));
    }
    Ok(Request::Upload(shared_sandbox::Upload {
        path: file("upload.path", asked.path)?,
        bytes: asked.bytes,
        digest: asked.digest,
        mode: between("upload.mode", asked.mode.map(u64::from), MODES)?.map(|mode| mode as u32),
        modified_us: asked.modified_at.map(|at| at.as_micros()),
    }))
}

fn pack(asked: Pack) -> Result<Request, AppError> {
    within("pack.path", &asked.path, MAX_PATH_BYTES)?;
    if !(1..=MAX_ARCHIVE_ENTRIES).contains(&asked.entries.len()) {
        return invalid(format!(
            "pack.entries has {} paths; name 1 to {MAX_ARCHIVE_ENTRIES}",
            asked.entries.len()
        ));
    }
    for path in &asked.entries {
        within("a path of pack.entries", path, MAX_PATH_BYTES)?;
    }
    Ok(Request::Pack(shared_sandbox::Pack {
        path: asked.path,
        entries: asked.entries,
        algorithm: asked.digest.unwrap_or_default(),
    }))
}

fn unpack(asked: Unpack) -> Result<Request, AppError> {
    within("unpack.path", &asked.path, MAX_PATH_BYTES)?;
    if asked.bytes > MAX_ARCHIVE_BYTES {
        return invalid(format!(
            "unpack.bytes is {}; an archive has at most {MAX_ARCHIVE_BYTES} bytes: send several",
            asked.bytes
        ));
    }
    Ok(Request::Unpack(shared_sandbox::Unpack {
        path: asked.path,
        bytes: asked.bytes,
        digest: asked.digest,
    }))
}

fn list(asked: List) -> Result<Request, AppError> {
    within("list.path", &asked.path, MAX_PATH_BYTES)?;
    within("list.after", &asked.after, MAX_PATH_BYTES)?;
    let limit = between("list.limit", asked.limit.map(u64::from), ENTRIES)?;
    Ok(Request::List(shared_sandbox::List {
        path: asked.path,
        max_entries: limit.map_or(ENTRIES[1] as u32, |limit| limit as u32),
        tree: asked.tree,
        after: asked.after,
    }))
}

fn stat(asked: Stat) -> Result<Request, AppError> {
    within("stat.path", &asked.path, MAX_PATH_BYTES)?;
    Ok(Request::Stat(shared_sandbox::Stat {
        path: asked.path,
        follow: asked.follow,
    }))
}

fn make_directory(asked: MakeDirectory) -> Result<Request, AppError> {
    let path = file("make_directory.path", asked.path)?;
    Ok(Request::MakeDirectory(shared_sandbox::MakeDirectory {
        path,
    }))
}

fn move_to(asked: Move) -> Result<Request, AppError> {
    Ok(Request::Move(shared_sandbox::Move {
        from: file("move.from", asked.from)?,
        to: file("move.to", asked.to)?,
        replace: asked.replace,
    }))
}

fn remove(asked: Remove) -> Result<Request, AppError> {
    Ok(Request::Remove(shared_sandbox::Remove {
        path: file("remove.path", asked.path)?,
        tree: asked.tree,
    }))
}

fn file(field: &str, path: String) -> Result<String, AppError> {
    if path.is_empty() {
        return invalid(format!("{field} is empty; name a path in the workspace"));
    }
    within(field, &path, MAX_PATH_BYTES)?;
    Ok(path)
}

/// Checks that a host can take this text at all.
fn within(field: &str, text: &str, at_most: usize) -> Result<(), AppError> {
    if text.len() > at_most {
        let bytes = text.len();
        return invalid(format!(
            "{field} has {bytes} bytes; at most {at_most} are possible"
        ));
    }
    if text.contains('\0') {
        return invalid(format!(
            "{field} holds a NUL character; no program can be given one"
        ));
    }
    Ok(())
}

fn between(
    field: &str,
    number: Option<u64>,
    [least, most]: [u64; 2],
) -> Result<Option<u64>, AppError> {
    match number {
        Some(number) if number < least || number > most => {
            invalid(format!("{field} is {number}; give {least} to {most}"))
        }
        number => Ok(number),
    }
}

fn invalid<T>(why: impl Into<String>) -> Result<T, AppError> {
    Err(AppError::Invalid(why.into()))
}

#[cfg(test)]
mod tests;
