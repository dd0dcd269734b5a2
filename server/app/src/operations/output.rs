//! Reading the output of an operation, while it runs and afterwards.

use std::time::Duration;

use server_store::{KeptOutput, OutputKey};
use shared_sandbox::{OperationEvent, Outcome, OutputStream};
use shared_types::OperationId;
use tokio::time::{Instant, sleep, timeout_at};

use super::Operations;
use crate::{AppError, OpContext, rights::Action};

/// Longest time for which a page waits for output.
const OUTPUT_AWAITED_AT_MOST: Duration = Duration::from_secs(60);

/// The pause between two looks for more output of an operation whose collector is not here.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The time in which the server that stored an end also stores the output before it, so that another one reads it.
const STORED_WITHIN: Duration = Duration::from_secs(3);

/// Most bytes that are read at once.
pub const MAX_OUTPUT_PAGE_BYTES: usize = 1024 * 1024;

/// A run of bytes, and where it stands in its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPage {
    /// The offset of `data`. The bytes between the offset that was asked for and this one are not
    /// kept.
    pub base: u64,
    /// The bytes; none where there are no more.
    pub data: Vec<u8>,
    /// The end of the stream, as far as this server knows it.
    pub end: u64,
    /// True if the operation has ended, so that its streams grow no more.
    pub ended: bool,
}

impl Operations {
    /// The first bytes that are kept of a stream from this offset on; a negative one counts from
    /// the end. At most `limit` of them and [`MAX_OUTPUT_PAGE_BYTES`]. Where there are none yet, waits
    /// so long for some, or for the end.
    ///
    /// # Errors
    /// If the user has no such operation, or its output cannot be read.
    pub async fn output(
        &self,
        ctx: &OpContext,
        operation: OperationId,
        stream: OutputStream,
        offset: i64,
        limit: usize,
        wait: Duration,
    ) -> Result<OutputPage, AppError> {
        let began = Instant::now();
        let until = began + wait.min(OUTPUT_AWAITED_AT_MOST);
        loop {
            let (page, is_short) = self.page(ctx, operation, stream, offset, limit).await?;
            if is_short && began.elapsed() < STORED_WITHIN {
                sleep(LOOK_AGAIN_AFTER).await;
                continue;
            }
            if !page.data.is_empty() || page.ended || Instant::now() >= until {
                return Ok(page);
            }
            // Looked at once more either way.
            let _ = timeout_at(until, self.until_more(operation, stream, page.end)).await;
        }
    }

    /// Waits until there is more of the stream than this, or the end.
    async fn until_more(&self, operation: OperationId, stream: OutputStream, from: u64) {
        if let Some(collected) = self.links.collected(operation) {
            let mut at = [u64::MAX; 2];
            at[stream as usize] = from;
            let mut reading = collected.read(at);
            while let Some(event) = reading.next().await {
                match event {
                    OperationEvent::Output { .. }
                    | OperationEvent::Gap { .. }
                    | OperationEvent::Ended(_) => return,
                    _ => {}
                }
            }
        }
        sleep(LOOK_AGAIN_AFTER).await;
    }

    /// A page, and true if it is empty and the operation has written more than is stored so far.
    async fn page(
        &self,
        ctx: &OpContext,
        operation: OperationId,
        stream: OutputStream,
        offset: i64,
        limit: usize,
    ) -> Result<(OutputPage, bool), AppError> {
        let outcome = self.outcome(ctx, operation).await?;
        if outcome.is_none() {
            // What it writes from now on is for those alone who may use its runner now.
            self.require(ctx, Action::FollowOperation, operation)
                .await?;
        }
        let key = OutputKey {
            tenant: ctx.tenant,
            operation,
            stream,
        };
        let written = match (&outcome, stream) {
            (Some(Outcome::Exited(record)), OutputStream::Stdout) => record.stdout.offset,
            (Some(Outcome::Exited(record)), OutputStream::Stderr) => record.stderr.offset,
            _ => 0,
        };
        let stored = self.ports.outputs.end(key).await?;
        let end = stored.max(written);
        let from = match u64::try_from(offset) {
            Ok(from) => from,
            Err(_) => end.saturating_sub(offset.unsigned_abs()),
        };
        let limit = limit.clamp(1, MAX_OUTPUT_PAGE_BYTES);
        let kept = self.ports.outputs.read(key, from, limit).await?;
        // After it was read, so nothing is among it that was written after the right had ended.
        self.right(ctx.tenant, operation).require().await?;
        let KeptOutput { offset, data } = kept.unwrap_or_else(|| KeptOutput {
            offset: from.max(end),
            data: Vec::new(),
        });
        let is_short = data.is_empty() && stored < written;
        let page = OutputPage {
            base: offset,
            end: end.max(offset.saturating_add(data.len() as u64)),
            data,
            ended: outcome.is_some(),
        };
        Ok((page, is_short))
    }

    /// The outcome of the user's operation, if it has ended.
    async fn outcome(
        &self,
        ctx: &OpContext,
        operation: OperationId,
    ) -> Result<Option<Outcome>, AppError> {
        self.view(ctx, operation).await?;
        let row = self.store.operation(ctx.tenant, operation).await?;
        let stored = row.outcome.map(|stored| stored.decode());
        stored.transpose().map_err(AppError::unavailable)
    }
}
