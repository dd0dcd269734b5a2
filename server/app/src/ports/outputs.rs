//! The router's port for output over the store's area.

use async_trait::async_trait;
use bytes::Bytes;
use server_records::PortError;
use server_store::{OutputKey, OutputKind, Outputs, StoreError};
use shared_sandbox::OutputStream;
use shared_telemetry::server::OUTPUT_BYTES;
use shared_types::{OperationId, TenantId, limits::OUTPUT_CHUNK_BYTES};

/// The output of one tenant's operations.
pub(crate) struct TenantOutputs {
    pub(crate) outputs: Outputs,
    pub(crate) tenant: TenantId,
}

impl TenantOutputs {
    /// The durable bytes of stdout and stderr of each of these operations, in their order.
    pub(crate) async fn durable(
        &self,
        operations: &[OperationId],
    ) -> Result<Vec<[u64; 2]>, StoreError> {
        let streams = [OutputStream::Stdout, OutputStream::Stderr];
        let keys = operations.iter();
        let keys: Vec<_> = keys
            .flat_map(|id| streams.map(|stream| self.key(*id, stream)))
            .collect();
        let durable = self.outputs.durable(&keys).await?;
        let (pairs, _) = durable.as_chunks();
        Ok(pairs.to_vec())
    }

    fn key(&self, operation: OperationId, stream: OutputStream) -> OutputKey {
        OutputKey {
            tenant: self.tenant,
            operation,
            kind: kind(stream),
        }
    }
}

/// The stream in the store's words.
pub(crate) fn kind(stream: OutputStream) -> OutputKind {
    match stream {
        OutputStream::Stdout => OutputKind::Stdout,
        OutputStream::Stderr => OutputKind::Stderr,
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
        let keys = [OutputStream::Stdout, OutputStream::Stderr].map(|stream| self.key(id, stream));
        let kept = self.outputs.keep_all(&keys).await;
        kept.map_err(PortError::new)
    }

    async fn append(
        &self,
        id: OperationId,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), PortError> {
        let bytes = data.len() as u64;
        let appended = self
            .outputs
            .append(self.key(id, stream), offset, data.into())
            .await;
        appended.map_err(PortError::new)?;
        OUTPUT_BYTES.add(&[], bytes);
        Ok(())
    }

    async fn resume(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        let stdout = self.outputs.resume(self.key(id, OutputStream::Stdout));
        let stderr = self.outputs.resume(self.key(id, OutputStream::Stderr));
        let (stdout, stderr) = tokio::try_join!(stdout, stderr).map_err(PortError::new)?;
        Ok([stdout, stderr])
    }

    async fn synced(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        let stdout = self.outputs.synced(self.key(id, OutputStream::Stdout));
        let stderr = self.outputs.synced(self.key(id, OutputStream::Stderr));
        let (stdout, stderr) = tokio::try_join!(stdout, stderr).map_err(PortError::new)?;
        Ok([stdout, stderr])
    }
}
