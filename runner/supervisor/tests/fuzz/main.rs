//! What a supervisor and its daemon read, as it never should be: frames, records, spools, and
//! whole directories of operations.

mod directories;
mod frames;
mod records;

use std::path::{Path, PathBuf};

use shared_fuzz::Measured;
use tempfile::TempDir;

#[global_allocator]
static MEMORY: Measured = Measured;

/// Where the inputs for one target are stored.
fn corpus(target: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/corpus", target]
        .iter()
        .collect()
}

/// A folder, in memory where the host has such a place: thousands are written.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).expect("a folder")
    } else {
        tempfile::tempdir().expect("a folder")
    }
}

/// Stores an input.
fn store(target: &str, name: &str, bytes: &[u8]) {
    std::fs::create_dir_all(corpus(target)).expect("a folder");
    std::fs::write(corpus(target).join(name), bytes).expect("a file");
}
