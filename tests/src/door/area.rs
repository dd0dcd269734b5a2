//! Where the output of a door's operations is kept: the server's own area of files.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use server_records::{Outputs, PortError};
use server_store::{OutputKey, OutputKind};
use shared_sandbox::OutputStream;
use shared_types::{OperationId, TenantId, limits::OUTPUT_CHUNK_BYTES};

/// The server's own area, for the only tenant here.
pub(super) struct Area(server_store::Outputs);

impl Area {
    /// Starts it over a folder.
    pub(super) fn start(folder: &Path) -> Self {
        Self(server_store::Outputs::start(folder).expect("a folder"))
    }
}

/// A stream in that area.
pub fn output_key(operation: OperationId, stream: OutputStream) -> OutputKey {
    OutputKey {
        tenant: TenantId::from_u128(1),
        operation,
        kind: match stream {
            OutputStream::Stdout => OutputKind::Stdout,
            OutputStream::Stderr => OutputKind::Stderr,
        },
    }
}

const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

#[async_trait]
impl Outputs for Area {
    async fn read(
        &self,
        id: OperationId,
        stream: OutputStream,
        from: u64,
    ) -> Result<Option<(u64, Bytes)>, PortError> {
        let key = output_key(id, stream);
        let kept = self.0.read(key, from, OUTPUT_CHUNK_BYTES).await;
        let kept = kept.map_err(PortError::new)?;
        Ok(kept.map(|kept| (kept.offset, kept.data.into())))
    }

    async fn keep_all(&self, id: OperationId) -> Result<(), PortError> {
        let keys = STREAMS.map(|stream| output_key(id, stream));
        self.0.keep_all(&keys).await.map_err(PortError::new)
    }

    async fn append(
        &self,
        id: OperationId,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), PortError> {
        let key = output_key(id, stream);
        let appended = self.0.append(key, offset, data.into()).await;
        appended.map_err(PortError::new)
    }

    async fn resume(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        let mut kept = [0; 2];
        for stream in STREAMS {
            let up_to = self.0.resume(output_key(id, stream)).await;
            kept[stream as usize] = up_to.map_err(PortError::new)?;
        }
        Ok(kept)
    }

    async fn synced(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        let mut synced = [0; 2];
        for stream in STREAMS {
            let up_to = self.0.synced(output_key(id, stream)).await;
            synced[stream as usize] = up_to.map_err(PortError::new)?;
        }
        Ok(synced)
    }
}
