//! A check that a download that arrived is one state of the file.

use shared_types::{DigestAlgorithm, FileHasher};

use super::{Downloaded, FileFailure};
use crate::{OperationEvent, OutputStream};

/// Follows a download as it arrives. The file is served while others may write to it, so its
/// digest is computed on both sides.
#[derive(Debug, Clone, Default)]
pub struct DownloadCheck {
    hasher: FileHasher,
    bytes: u64,
}

impl DownloadCheck {
    /// A check before any output has arrived, with a digest of this algorithm.
    pub fn new(algorithm: DigestAlgorithm) -> Self {
        Self {
            hasher: FileHasher::new(algorithm),
            bytes: 0,
        }
    }

    /// Takes the next event of the download. Output counts only if it follows what came before it.
    pub fn event(&mut self, event: &OperationEvent) {
        if let OperationEvent::Output {
            stream: OutputStream::Stdout,
            offset,
            data,
        } = event
            && *offset == self.bytes
        {
            self.hasher.update(data);
            self.bytes = self.bytes.saturating_add(data.len() as u64);
        }
    }

    /// Compares what arrived with the end of the download.
    ///
    /// # Errors
    /// The size or the digest differs: the file was changed while it was read.
    pub fn end(self, path: &str, downloaded: &Downloaded) -> Result<(), FileFailure> {
        if self.bytes == downloaded.bytes && self.hasher.finish() == downloaded.digest {
            return Ok(());
        }
        Err(FileFailure::Changed {
            path: path.to_owned(),
            since_read: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(offset: u64, data: &'static [u8]) -> OperationEvent {
        OperationEvent::Output {
            stream: OutputStream::Stdout,
            offset,
            data: data.into(),
        }
    }

    #[test]
    fn what_arrived_whole_passes_and_anything_else_says_to_try_again() {
        let downloaded = Downloaded {
            bytes: 6,
            digest: DigestAlgorithm::Blake3.of(b"abcdef"),
        };
        let ends = |events: &[OperationEvent]| {
            let mut check = DownloadCheck::new(DigestAlgorithm::Blake3);
            events.iter().for_each(|event| check.event(event));
            check.end("file", &downloaded)
        };
        assert_eq!(ends(&[output(0, b"abc"), output(3, b"def")]), Ok(()));
        let path = "file".to_owned();
        let changed = Err(FileFailure::Changed {
            path,
            since_read: false,
        });
        assert_eq!(ends(&[output(0, b"abc"), output(3, b"deF")]), changed);
        assert_eq!(ends(&[output(0, b"abc")]), changed);
        assert_eq!(ends(&[output(0, b"ab"), output(3, b"def")]), changed);
    }
}
