//! The digest of what a file holds, however large it is.

use std::{
    io::{ErrorKind, Read as _},
    path::Path,
};

use shared_types::{DigestAlgorithm, FileDigest, FileHasher};

use super::{Allowance, Failure, failure, io_failure};
use crate::workspace::{Links, PathTarget, open_ordinary};

/// Read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// The digest of an ordinary file that is there.
pub(super) fn digest(
    target: &PathTarget,
    asked: &str,
    algorithm: DigestAlgorithm,
    allowance: &Allowance,
) -> Result<FileDigest, Failure> {
    let (mut file, _) = open_ordinary(&target.directory, Path::new(&target.name), Links::Refuse)
        .map_err(|errno| failure(asked, errno))?;
    let (mut hasher, mut buffer) = (FileHasher::new(algorithm), vec![0; BUFFER_BYTES]);
    loop {
        allowance.check()?;
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => hasher.update(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(io_failure(asked, &error)),
        }
    }
    Ok(hasher.finish())
}
