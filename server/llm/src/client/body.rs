//! The bytes of a response, each wait bounded, decompressed where they have to be.

use std::{io::Write as _, time::Duration};

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
use reqwest::header::CONTENT_ENCODING;
use tokio::time::timeout;

use super::{Reply, ReplyBody, broken, json::BOM};
use crate::ModelError;

/// Most compressed bytes that are decompressed at a time. They become a thousand times as many
/// at most, so a few MiB.
const COMPRESSED_BYTES: usize = 4096;

/// The body of a response.
pub(super) struct ResponseBody {
    bytes: Box<dyn ReplyBody>,
    unpacking: Option<Unpacking>,
    /// The error for a server that sends nothing for that long.
    silent: Box<dyn Fn(Duration) -> ModelError + Send + Sync>,
}

struct Unpacking {
    packed: Bytes,
    decoder: MultiGzDecoder<Vec<u8>>,
}

impl ResponseBody {
    /// # Errors
    /// Fails if it is compressed in another way than with gzip.
    pub(super) fn of(
        response: Reply,
        silent: impl Fn(Duration) -> ModelError + Send + Sync + 'static,
    ) -> Result<Self, ModelError> {
        let encoding = response.headers.get(CONTENT_ENCODING);
        let encoding = encoding.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let unpacking = match encoding.as_deref().map(str::trim) {
            None | Some("" | "identity") => None,
            Some("gzip" | "x-gzip") => Some(Unpacking {
                packed: Bytes::new(),
                decoder: MultiGzDecoder::new(Vec::new()),
            }),
            Some(_) => {
                return Err(ModelError::Refused(
                    "the model server's answer is compressed, and not with gzip: turn compression off in what stands before the model".to_owned(),
                ));
            }
        };
        Ok(Self {
            bytes: response.body,
            unpacking,
            silent: Box::new(silent),
        })
    }

    /// The first bytes that are more than white space and a byte order mark, without these.
    pub(super) async fn first(&mut self, within: Duration) -> Result<Option<Bytes>, ModelError> {
        timeout(within, self.not_blank())
            .await
            .unwrap_or_else(|_| Err((self.silent)(within)))
    }

    /// The next bytes; `None` at the end.
    pub(super) async fn next(&mut self, within: Duration) -> Result<Option<Bytes>, ModelError> {
        timeout(within, self.chunk())
            .await
            .unwrap_or_else(|_| Err((self.silent)(within)))
    }

    async fn not_blank(&mut self) -> Result<Option<Bytes>, ModelError> {
        let mut held = Bytes::new();
        while let Some(chunk) = self.chunk().await? {
            let bytes = [held, chunk].concat();
            let begun = bytes.trim_ascii_start();
            let begun = begun.strip_prefix(BOM.as_bytes()).unwrap_or(begun);
            let begun = begun.trim_ascii_start();
            let is_torn_mark = BOM.as_bytes().starts_with(begun);
            held = Bytes::copy_from_slice(begun);
            if !is_torn_mark {
                return Ok(Some(held));
            }
        }
        Ok((!held.is_empty()).then_some(held))
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        loop {
            if let Some(unpacking) = &mut self.unpacking
                && unpacking.packed.has_remaining()
            {
                match unpacking.some()? {
                    bytes if bytes.is_empty() => continue,
                    bytes => return Ok(Some(bytes)),
                }
            }
            let chunk = self.bytes.chunk().await?;
            match (chunk, &mut self.unpacking) {
                (Some(chunk), Some(unpacking)) => unpacking.packed = chunk,
                (chunk, _) => return Ok(chunk),
            }
        }
    }
}

impl Unpacking {
    /// Unpacks the next packed bytes.
    fn some(&mut self) -> Result<Bytes, ModelError> {
        let length = self.packed.len().min(COMPRESSED_BYTES);
        let packed = self.packed.split_to(length);
        self.decoder
            .write_all(&packed)
            .and_then(|()| self.decoder.flush())
            .map_err(|error| {
                broken(&format!("the model server's gzip cannot be read ({error})"))
            })?;
        Ok(std::mem::take(self.decoder.get_mut()).into())
    }
}
