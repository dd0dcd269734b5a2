//! The images of a session: brought by its user, or read by its tools.

use bytes::Bytes;
use shared_types::{
    Digest, ImageFormat, SessionId,
    event::Part,
    limits::{MAX_IMAGE_BYTES, MAX_IMAGES_OF_MESSAGE},
};

use super::Sessions;
use crate::{AppError, OpContext, rights::Action};

/// An image that a session has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptImage {
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its format.
    pub format: ImageFormat,
    /// Its size, in bytes.
    pub bytes: u64,
}

impl Sessions {
    /// Keeps an image with the session, for a message that follows. Bringing it again changes nothing.
    ///
    /// # Errors
    /// If the user has no such session, the bytes are no image that models read, there are too many of them, or the
    /// user brought too many bytes lately.
    pub async fn add_image(
        &self,
        ctx: &OpContext,
        session: SessionId,
        bytes: Bytes,
    ) -> Result<KeptImage, AppError> {
        self.gate.session(ctx, Action::SendMessage, session).await?;
        if bytes.len() > MAX_IMAGE_BYTES {
            return Err(AppError::Invalid(format!(
                "the image has {} bytes; at most {MAX_IMAGE_BYTES} are taken: make it smaller",
                bytes.len()
            )));
        }
        let format = ImageFormat::of(&bytes).ok_or_else(|| {
            AppError::Invalid(format!("an image is a file of {}", ImageFormat::NAMES))
        })?;
        let allowed = self.allowance.image(ctx, bytes.len())?;
        let image = (format.media_type(), &bytes[..]);
        let kept = self
            .store
            .put_image(ctx.tenant, session, image, self.clock.now());
        match kept.await {
            Ok(digest) => Ok(KeptImage {
                digest,
                format,
                bytes: bytes.len() as u64,
            }),
            Err(error) => {
                self.allowance.back(allowed);
                Err(error.into())
            }
        }
    }

    /// The image with this digest, in hexadecimal: its media type and its bytes.
    ///
    /// # Errors
    /// If the user has no such session, or the session no such image.
    pub async fn image(
        &self,
        ctx: &OpContext,
        session: SessionId,
        digest: &str,
    ) -> Result<(String, Bytes), AppError> {
        self.get(ctx, session).await?;
        let digest = Digest::from_hex(digest).ok_or(AppError::NotFound("image"))?;
        let images = self.store.images(ctx.tenant, session, &[digest]).await?;
        let image = images.into_iter().next();
        let image = image.ok_or(AppError::NotFound("image"))?;
        Ok((image.media_type, image.bytes.into()))
    }

    /// The images of a message, as its parts.
    pub(super) async fn images_of_message(
        &self,
        ctx: &OpContext,
        session: SessionId,
        digests: &[Digest],
    ) -> Result<Vec<Part>, AppError> {
        if digests.len() > MAX_IMAGES_OF_MESSAGE {
            return Err(AppError::Invalid(format!(
                "the message has {} images; at most {MAX_IMAGES_OF_MESSAGE} can be sent at once",
                digests.len()
            )));
        }
        if digests.is_empty() {
            return Ok(Vec::new());
        }
        let parts = self.store.image_parts(ctx.tenant, session, digests).await?;
        match parts.len() == digests.len() {
            true => Ok(parts),
            false => Err(AppError::Invalid(
                "the session does not have an image of the message; add it first".to_owned(),
            )),
        }
    }
}
