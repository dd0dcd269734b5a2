//! The output of one tenant's operations.

use async_trait::async_trait;
use bytes::Bytes;
use server_records::PortError;
use shared_sandbox::OutputStream;
use shared_telemetry::server::OUTPUT_BYTES;
use shared_types::{OperationId, TenantId, limits::OUTPUT_CHUNK_BYTES};

use crate::{OutputKey, Outputs, StoreError};

/// Both streams of an operation.
const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

/// The output of one tenant's operations.
#[derive(Debug, Clone)]
pub struct TenantOutputs {
    outputs: Outputs,
    tenant: TenantId,
}

impl Outputs {
    /// The output of this tenant's operations.
    pub fn of(&self, tenant: TenantId) -> TenantOutputs {
        TenantOutputs {
            outputs: self.clone(),
            tenant,
        }
    }
}

impl TenantOutputs {
    /// The durable bytes of stdout and stderr of each of these operations, in their order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the server stops.
    pub async fn durable(&self, operations: &[OperationId]) -> Result<Vec<[u64; 2]>, StoreError> {
        let keys = operations.iter().flat_map(|id| self.keys(*id));
        let durable = self.outputs.durable(&keys.collect::<Vec<_>>()).await?;
        let (pairs, _) = durable.as_chunks();
        Ok(pairs.to_vec())
    }

    fn key(&self, operation: OperationId, stream: OutputStream) -> OutputKey {
        OutputKey {
            tenant: self.tenant,
            operation,
            stream,
        }
    }

    fn keys(&self, operation: OperationId) -> [OutputKey; 2] {
        STREAMS.map(|stream| self.key(operation, stream))
    }
}

#[async_trait]
impl server_records::Outputs for TenantOutputs {
    async fn read(
        &self,
        id: OperationId,
        stream: OutputStream,
        from: u64,
    ) -> Result<Option<(u64, Bytes)>, PortError> {
        let key = self.key(id, stream);
        let kept = self.outputs.read(key, from, OUTPUT_CHUNK_BYTES).await;
        let kept = kept.map_err(PortError::new)?;
        Ok(kept.map(|kept| (kept.offset, kept.data.into())))
    }

    async fn keep_all(&self, id: OperationId) -> Result<(), PortError> {
        let kept = self.outputs.keep_all(&self.keys(id)).await;
        kept.map_err(PortError::new)
    }

    async fn append(
        &self,
        id: OperationId,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), PortError> {
        let (key, bytes) = (self.key(id, stream), data.len() as u64);
        let appended = self.outputs.append(key, offset, data.into()).await;
        appended.map_err(PortError::new)?;
        OUTPUT_BYTES.add(&[], bytes);
        Ok(())
    }

    async fn resume(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        let [stdout, stderr] = self.keys(id).map(|key| self.outputs.resume(key));
        let (stdout, stderr) = tokio::try_join!(stdout, stderr).map_err(PortError::new)?;
        Ok([stdout, stderr])
    }

    async fn synced(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        let [stdout, stderr] = self.keys(id).map(|key| self.outputs.synced(key));
        let (stdout, stderr) = tokio::try_join!(stdout, stderr).map_err(PortError::new)?;
        Ok([stdout, stderr])
    }
}
