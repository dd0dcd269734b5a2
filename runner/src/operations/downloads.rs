//! The files that are downloaded. Their pieces are read on threads of their own, ahead of the link, so
//! that a file system that does not answer holds up its own downloads and nothing else.

use std::{collections::HashMap, io, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use runner_host::OpenFile;
use shared_types::OperationId;
use tokio::task::spawn_blocking;

/// Read at once. A download holds two such blocks at most: the one that is being sent, and the next.
const BLOCK_BYTES: usize = 256 * 1024;

/// Reads that are under way at once; each has a thread, for as long as its file system does not answer.
const READS_AT_ONCE: usize = 64;

/// A reader of a file: at most so many bytes from an offset on.
type BlockSource = Arc<dyn Fn(u64, usize) -> io::Result<Bytes> + Send + Sync>;

/// A read that is under way.
type PendingRead = Pin<Box<dyn Future<Output = ReadBlock> + Send>>;

/// The files of all downloads.
#[derive(Default)]
pub(super) struct Downloads {
    open: HashMap<OperationId, OpenDownload>,
    reads: FuturesUnordered<PendingRead>,
    /// Downloads that there ever were.
    begun: u64,
}

/// One file, and what was read of it ahead of the link.
struct OpenDownload {
    /// Tells it from an earlier one of the same operation.
    number: u64,
    bytes: u64,
    source: BlockSource,
    /// The offset of the link; `now` begins here.
    at: u64,
    now: Bytes,
    /// The result of the read behind `now`.
    next: Option<io::Result<Bytes>>,
    is_reading: bool,
}

/// The result of a read.
struct ReadBlock {
    operation: OperationId,
    number: u64,
    from: u64,
    read: io::Result<Bytes>,
}

impl Downloads {
    /// Opens it to be read.
    pub(super) fn add(&mut self, id: OperationId, file: OpenFile) {
        let bytes = file.bytes();
        self.add_source(id, bytes, Arc::new(move |from, max| file.read(from, max)));
    }

    fn add_source(&mut self, id: OperationId, bytes: u64, source: BlockSource) {
        self.begun += 1;
        let download = OpenDownload {
            number: self.begun,
            bytes,
            source,
            at: 0,
            now: Bytes::new(),
            next: None,
            is_reading: false,
        };
        self.open.insert(id, download);
    }

    /// Closes it, at the latest when a read that is under way has ended.
    pub(super) fn remove(&mut self, id: OperationId) {
        self.open.remove(&id);
    }

    /// True if this operation is a download.
    pub(super) fn contains(&self, id: OperationId) -> bool {
        self.open.contains_key(&id)
    }

    /// At most `max` bytes from an offset on; `None` until they are read ([`Downloads::read_on`]). Needs the
    /// context of a tokio runtime.
    ///
    /// # Errors
    /// When the host refuses. The next call reads again.
    pub(super) fn read(
        &mut self,
        id: OperationId,
        from: u64,
        max: usize,
    ) -> Option<io::Result<Bytes>> {
        let has_room = self.reads.len() < READS_AT_ONCE;
        let Some(download) = self.open.get_mut(&id) else {
            return Some(Ok(Bytes::new()));
        };
        let piece = download.take(from, max);
        // After an error, or the end of a file that has become shorter, nothing is read before the next call.
        let goes_on = match &piece {
            None => true,
            Some(Ok(bytes)) => !bytes.is_empty(),
            Some(Err(_)) => false,
        };
        if goes_on && has_room {
            self.reads.extend(download.read_ahead(id));
        }
        piece
    }

    /// Waits until a read has ended, and returns the operation that may have more to tell now; `None`
    /// where nothing is being read.
    pub(super) async fn read_on(&mut self) -> Option<OperationId> {
        let block = self.reads.next().await?;
        let id = block.operation;
        if let Some(download) = self.open.get_mut(&id)
            && download.number == block.number
        {
            download.came(block);
        }
        Some(id)
    }
}

impl OpenDownload {
    /// Takes what was read.
    fn take(&mut self, from: u64, max: usize) -> Option<io::Result<Bytes>> {
        if from != self.at {
            (self.at, self.now, self.next) = (from, Bytes::new(), None);
        }
        if self.now.is_empty() {
            match self.next.take()? {
                Ok(block) => self.now = block,
                Err(error) => return Some(Err(error)),
            }
        }
        let piece = self.now.split_to(max.min(self.now.len()));
        self.at += piece.len() as u64;
        Some(Ok(piece))
    }

    /// Begins to read what comes behind that which is there, unless that is under way or done.
    fn read_ahead(&mut self, operation: OperationId) -> Option<PendingRead> {
        let from = self.at + self.now.len() as u64;
        if self.is_reading || self.next.is_some() || from >= self.bytes {
            return None;
        }
        self.is_reading = true;
        let (number, source) = (self.number, Arc::clone(&self.source));
        let read = spawn_blocking(move || source(from, BLOCK_BYTES));
        Some(Box::pin(async move {
            ReadBlock {
                operation,
                number,
                from,
                read: read
                    .await
                    .unwrap_or_else(|error| Err(io::Error::other(error))),
            }
        }))
    }

    /// Keeps what was read, unless the link stands elsewhere by now.
    fn came(&mut self, block: ReadBlock) {
        self.is_reading = false;
        if block.from == self.at + self.now.len() as u64 {
            self.next = Some(block.read);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;

    const STUCK: OperationId = OperationId::from_u128(1);
    const OTHER: OperationId = OperationId::from_u128(2);

    /// The content of a file of so many bytes: each is its offset.
    fn content(bytes: u64) -> impl Fn(u64, usize) -> io::Result<Bytes> {
        move |from, max| {
            let up_to = bytes.min(from + max as u64);
            Ok((from..up_to).map(|at| at as u8).collect())
        }
    }

    async fn all(downloads: &mut Downloads, id: OperationId, bytes: u64) -> Vec<u8> {
        let mut read = Vec::new();
        while (read.len() as u64) < bytes {
            match downloads.read(id, read.len() as u64, 50_000) {
                Some(piece) => read.extend(piece.expect("it is read")),
                None => assert!(downloads.read_on().await.is_some(), "nothing is read"),
            }
        }
        read
    }

    #[tokio::test]
    async fn a_file_system_that_does_not_answer_holds_up_its_own_downloads_alone() {
        let mut downloads = Downloads::default();
        let (answer, answered) = mpsc::channel::<()>();
        let answered = Mutex::new(answered);
        let read = content(9);
        let stuck = move |from, max| {
            let _ = answered.lock().map(|answered| answered.recv());
            read(from, max)
        };
        downloads.add_source(STUCK, 9, Arc::new(stuck));
        let bytes = 3 * BLOCK_BYTES as u64 + 5;
        downloads.add_source(OTHER, bytes, Arc::new(content(bytes)));
        assert!(downloads.read(STUCK, 0, 9).is_none());
        let whole = content(bytes)(0, bytes as usize).expect("it is read");
        assert!(all(&mut downloads, OTHER, bytes).await == whole);
        assert!(downloads.read(STUCK, 0, 9).is_none());
        drop(answer);
        assert_eq!(all(&mut downloads, STUCK, 9).await.len(), 9);
    }

    #[tokio::test]
    async fn what_is_read_for_a_download_that_is_gone_is_not_told_to_the_next_one() {
        let mut downloads = Downloads::default();
        downloads.add_source(
            STUCK,
            9,
            Arc::new(|_, _| Ok(Bytes::from_static(b"old file!"))),
        );
        assert!(downloads.read(STUCK, 0, 9).is_none());
        downloads.remove(STUCK);
        downloads.add_source(STUCK, 9, Arc::new(content(9)));
        assert_eq!(downloads.read_on().await, Some(STUCK));
        assert_eq!(
            all(&mut downloads, STUCK, 9).await,
            [0, 1, 2, 3, 4, 5, 6, 7, 8]
        );
    }

    #[tokio::test]
    async fn a_read_that_fails_is_told_once_and_made_again() {
        let mut downloads = Downloads::default();
        downloads.add_source(STUCK, 9, Arc::new(|_, _| Err(io::Error::other("broken"))));
        for _ in 0..2 {
            assert!(downloads.read(STUCK, 0, 9).is_none());
            assert_eq!(downloads.read_on().await, Some(STUCK));
            assert!(
                downloads
                    .read(STUCK, 0, 9)
                    .is_some_and(|read| read.is_err())
            );
            assert_eq!(downloads.read_on().await, None, "nobody has asked");
        }
    }
}
