//! Finds the directory and the program, so that what is missing has a name.

use std::{
    ffi::{CString, NulError, OsStr},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use runner_supervisor::{CommandRequest, NotStarted, WorkingDirectory};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Access, AtFlags, FileType, Mode, OFlags},
    io::Errno,
};

/// The directory to run in.
pub(crate) fn directory(
    place: &WorkingDirectory,
    inherited: Option<OwnedFd>,
) -> Result<OwnedFd, NotStarted> {
    let path = match (place, inherited) {
        (WorkingDirectory::Inherited, Some(directory)) => return Ok(directory),
        (WorkingDirectory::Inherited, None) => {
            return Err(NotStarted::Host(
                "no directory came with the request".to_owned(),
            ));
        }
        (WorkingDirectory::Path(path), _) => path,
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOENT | Errno::NOTDIR => NotStarted::MissingDirectory(shown(path)),
        Errno::ACCESS => NotStarted::Denied(shown(path)),
        other => NotStarted::Host(other.to_string()),
    })
}

/// The program's file: one with a slash where it says (from the directory to run in), any other
/// in the absolute directories of the request's PATH.
pub(crate) fn find(request: &CommandRequest, directory: &OwnedFd) -> Result<CString, NotStarted> {
    let program = request.argv[0].as_bytes();
    let missing = || NotStarted::MissingProgram(shown(OsStr::from_bytes(program)));
    let mut denied = None;
    for file in candidates(program, &request.environment) {
        if !is_file(directory, &file) {
            continue;
        }
        if rustix::fs::accessat(directory, &file, Access::EXEC_OK, AtFlags::EACCESS).is_ok() {
            return to_c(file).map_err(|_| missing());
        }
        denied.get_or_insert(file);
    }
    Err(denied.map_or_else(missing, |file| NotStarted::Denied(shown(&file))))
}

/// The reason why the host did not execute a program that is there.
pub(crate) fn not_executed(errno: i32, program: &[u8]) -> NotStarted {
    let name = shown(OsStr::from_bytes(program));
    match Errno::from_raw_os_error(errno) {
        Errno::TOOBIG => NotStarted::TooLarge,
        Errno::NOENT | Errno::NOTDIR => NotStarted::MissingInterpreter(name),
        Errno::ACCESS | Errno::PERM => NotStarted::Denied(name),
        Errno::NOEXEC => NotStarted::NotAProgram(name),
        Errno::AGAIN | Errno::NOMEM => NotStarted::NoProcess,
        other => NotStarted::Host(other.to_string()),
    }
}

fn candidates(program: &[u8], environment: &[CString]) -> Vec<PathBuf> {
    let path = environment
        .iter()
        .find_map(|variable| variable.as_bytes().strip_prefix(b"PATH="));
    in_path(program, path.unwrap_or_default())
}

/// The possible files of a program: with a slash its own path, else in the absolute directories of
/// a PATH.
pub(crate) fn in_path(program: &[u8], path: &[u8]) -> Vec<PathBuf> {
    if program.contains(&b'/') {
        return vec![PathBuf::from(OsStr::from_bytes(program))];
    }
    path.split(|byte| *byte == b':')
        .map(|directory| Path::new(OsStr::from_bytes(directory)))
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(OsStr::from_bytes(program)))
        .collect()
}

/// The path as system calls take it.
pub(crate) fn to_c(path: PathBuf) -> Result<CString, NulError> {
    CString::new(path.into_os_string().into_vec())
}

fn is_file(directory: &OwnedFd, file: &Path) -> bool {
    rustix::fs::statat(directory.as_fd(), file, AtFlags::empty())
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

/// The name as a person reads it, no longer than a record allows.
fn shown(name: impl AsRef<OsStr>) -> String {
    let text = name.as_ref().to_string_lossy();
    text.chars().take(MAX_SHOWN_CHARS).collect()
}

/// The most characters of a name that are shown.
const MAX_SHOWN_CHARS: usize = 200;
