//! Reading the output of an operation, while it runs and afterwards.

use server_store::{KeptOutput, OutputKey, Store, StoreError};
use shared_sandbox::{Outcome, OutputStream};
use shared_types::{OperationId, SessionId};

use crate::{AppError, OpContext, ports::kind};

/// Most bytes that are read at once.
pub const MAX_OUTPUT_PAGE_BYTES: usize = 1024 * 1024;

/// The use cases of this file.
#[derive(Clone)]
pub struct Outputs {
    store: Store,
    area: server_store::Outputs,
}

/// A run of bytes, and where it stands in its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPage {
    /// Where `data` begins: what lies between the offset that was asked for and this one is not
    /// kept.
    pub base: u64,
    /// The bytes; none where there are no more.
    pub data: Vec<u8>,
    /// Where the stream ends as far as it is known.
    pub end: u64,
    /// Whether the operation has ended, so that its streams grow no more.
    pub ended: bool,
}

impl Outputs {
    pub(crate) fn new(store: Store, area: server_store::Outputs) -> Self {
        Self { store, area }
    }

    /// The user's operations whose ids begin so, each with its session, by id.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn beginning(
        &self,
        ctx: &OpContext,
        beginning: &str,
        limit: u32,
    ) -> Result<Vec<(OperationId, SessionId)>, AppError> {
        let found = self
            .store
            .operations_beginning(ctx.tenant, ctx.user, beginning, limit);
        Ok(found.await?)
    }

    /// The first bytes that are kept of a stream from this offset on; a negative one counts from
    /// the end. At most `limit` of them and [`MAX_OUTPUT_PAGE_BYTES`].
    ///
    /// # Errors
    /// If the user has no such operation, or its output cannot be read.
    pub async fn read(
        &self,
        ctx: &OpContext,
        operation: OperationId,
        stream: OutputStream,
        offset: i64,
        limit: usize,
    ) -> Result<OutputPage, AppError> {
        let outcome = self.outcome(ctx, operation).await?;
        let key = OutputKey {
            tenant: ctx.tenant,
            operation,
            kind: kind(stream),
        };
        let written = match (&outcome, stream) {
            (Some(Outcome::Exited(record)), OutputStream::Stdout) => record.stdout.offset,
            (Some(Outcome::Exited(record)), OutputStream::Stderr) => record.stderr.offset,
            _ => 0,
        };
        let end = self.area.end(key).await?.max(written);
        let from = match u64::try_from(offset) {
            Ok(from) => from,
            Err(_) => end.saturating_sub(offset.unsigned_abs()),
        };
        let limit = limit.clamp(1, MAX_OUTPUT_PAGE_BYTES);
        let kept = self.area.read(key, from, limit).await?;
        let KeptOutput { offset, data } = kept.unwrap_or_else(|| KeptOutput {
            offset: from.max(end),
            data: Vec::new(),
        });
        Ok(OutputPage {
            base: offset,
            end: end.max(offset.saturating_add(data.len() as u64)),
            data,
            ended: outcome.is_some(),
        })
    }

    /// How the user's operation ended, if it has.
    async fn outcome(
        &self,
        ctx: &OpContext,
        operation: OperationId,
    ) -> Result<Option<Outcome>, AppError> {
        let found = async {
            let row = self.store.operation(ctx.tenant, operation).await?;
            let session = self.store.session(ctx.tenant, row.session).await?;
            Ok((row, session.user))
        };
        let row = match found.await {
            Ok((row, user)) if user == ctx.user => row,
            Ok(_) | Err(StoreError::NotFound) => return Err(AppError::NotFound("operation")),
            Err(error) => return Err(error.into()),
        };
        let stored = row.outcome.map(|stored| serde_json::from_str(&stored.json));
        stored.transpose().map_err(AppError::unavailable)
    }
}
