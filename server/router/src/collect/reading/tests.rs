use std::task::Poll;

use futures_util::poll;
use shared_types::OperationId;
use tokio::sync::Notify;

use super::*;
use server_records::Outputs;

const STDOUT: OutputStream = OutputStream::Stdout;

/// Output of which nothing was kept when somebody looked, which is told late.
#[derive(Default)]
struct Late(Notify);

#[async_trait]
impl Outputs for Late {
    async fn read(&self, _: OperationId, _: OutputStream, _: u64) -> StoredPiece {
        self.0.notified().await;
        Ok(None)
    }

    async fn keep_all(&self, _: OperationId) -> Result<(), PortError> {
        Ok(())
    }

    async fn append(
        &self,
        _: OperationId,
        _: OutputStream,
        _: u64,
        _: Bytes,
    ) -> Result<(), PortError> {
        Ok(())
    }

    async fn resume(&self, _: OperationId) -> Result<[u64; 2], PortError> {
        Ok([0, 0])
    }

    async fn synced(&self, _: OperationId) -> Result<[u64; 2], PortError> {
        Ok([0, 0])
    }
}

#[tokio::test]
async fn what_comes_while_a_reader_looks_for_what_is_kept_is_not_taken_for_missing() {
    let outputs = Arc::new(Late::default());
    let id = OperationId::from_u128(1);
    let board = Board::open(id, outputs.clone(), [0, 0], false);
    let mut reader = OperationReader::new(Arc::clone(&board), [0, 0]);
    let gap = OperationEvent::Gap {
        stream: STDOUT,
        from: 0,
        to: 10,
    };
    board.note(gap.clone());
    let mut next = Box::pin(reader.next());
    assert_eq!(poll!(&mut next), Poll::Pending);
    let end = OperationEvent::Output {
        stream: STDOUT,
        offset: 10,
        data: Bytes::from_static(b"the end"),
    };
    board.note(end.clone());
    outputs.0.notify_one();
    assert_eq!(next.await, Some(gap));
    assert_eq!(reader.next().await, Some(end));
}
