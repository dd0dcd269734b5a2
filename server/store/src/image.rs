//! The images of a session: each is stored once, and found by the digest of its bytes. They go with their session.

use shared_types::{
    Digest, SessionId, TenantId, Timestamp,
    event::Part,
    limits::{MAX_IMAGE_BYTES, MAX_NAME_BYTES},
};

use crate::{
    Full, Store, StoreError,
    columns::Columns as _,
    database::{Connection, FromRow, Row, query, query_as, retried},
    error::bounded,
    session,
};

/// Most images of a session.
pub const IMAGES_OF_SESSION_AT_MOST: u64 = 200;

/// Most bytes of a session's images.
pub const IMAGES_OF_SESSION_BYTES: u64 = 256 * MEBIBYTE;

const MEBIBYTE: u64 = 1024 * 1024;

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRow {
    /// The SHA-256 of its bytes.
    pub digest: Digest,
    /// Its media type, such as `image/png`.
    pub media_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Store {
    /// Stores an image, unless the session has it already. Returns the digest by which it is found.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for more than [`MAX_IMAGE_BYTES`]; [`StoreError::Full`] if the session would have
    /// more than [`IMAGES_OF_SESSION_AT_MOST`] images or [`IMAGES_OF_SESSION_BYTES`]; [`StoreError::NotFound`] if
    /// there is no such session, or it is deleted.
    pub async fn put_image(
        &self,
        tenant: TenantId,
        session: SessionId,
        (media_type, bytes): (&str, &[u8]),
        now: Timestamp,
    ) -> Result<Digest, StoreError> {
        bounded("the image's media type", media_type, MAX_NAME_BYTES)?;
        if bytes.len() > MAX_IMAGE_BYTES {
            return Err(StoreError::TooLarge {
                what: "the image",
                max_bytes: MAX_IMAGE_BYTES,
            });
        }
        let digest = Digest::of(bytes);
        retried!({
            let mut tx = self.write(tenant).await?;
            // Takes the session's lock, so that no other image is counted at the same time.
            session::lock(&mut tx, tenant, session).await?;
            let stored = query(
                "INSERT INTO session_images
                     (tenant_id, session_id, digest, media_type, bytes, created_at)
                 VALUES ($1, $2, $3, $4, $5, $6)
                 ON CONFLICT (tenant_id, session_id, digest) DO NOTHING",
            )
            .bind(tenant.to_string())
            .bind(session.to_string())
            .bind(digest.to_string())
            .bind(media_type)
            .bind(bytes.to_vec())
            .bind(now.as_micros())
            .execute(&mut tx)
            .await?;
            if stored > 0 {
                require_room(&mut tx, tenant, session).await?;
            }
            tx.commit().await?;
            Ok(digest)
        })
    }

    /// The images with these digests as parts of a message, in their order. Those that the session does not have are
    /// left out.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn image_parts(
        &self,
        tenant: TenantId,
        session: SessionId,
        digests: &[Digest],
    ) -> Result<Vec<Part>, StoreError> {
        let mut connection = self.read(tenant).await?;
        let mut parts = Vec::with_capacity(digests.len());
        for digest in digests {
            let row: Option<Row> = query(
                "SELECT media_type, CAST(LENGTH(bytes) AS BIGINT) AS bytes FROM session_images
                 WHERE tenant_id = $1 AND session_id = $2 AND digest = $3",
            )
            .bind(tenant.to_string())
            .bind(session.to_string())
            .bind(digest.to_string())
            .fetch_optional(&mut connection)
            .await?;
            let Some(row) = row else { continue };
            parts.push(Part::Image {
                digest: *digest,
                media_type: row.text("media_type")?,
                bytes: row.count("bytes")?,
            });
        }
        Ok(parts)
    }

    /// The images with these digests, in their order. Those that the session does not have are left out.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn images(
        &self,
        tenant: TenantId,
        session: SessionId,
        digests: &[Digest],
    ) -> Result<Vec<ImageRow>, StoreError> {
        let mut connection = self.read(tenant).await?;
        let mut images = Vec::with_capacity(digests.len());
        for digest in digests {
            let image = query_as(
                "SELECT digest, media_type, bytes FROM session_images
                 WHERE tenant_id = $1 AND session_id = $2 AND digest = $3",
            )
            .bind(tenant.to_string())
            .bind(session.to_string())
            .bind(digest.to_string())
            .fetch_optional(&mut connection)
            .await?;
            images.extend(image);
        }
        Ok(images)
    }
}

async fn require_room(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<(), StoreError> {
    let row: Row = query(
        "SELECT COUNT(*) AS images, CAST(SUM(LENGTH(bytes)) AS BIGINT) AS bytes FROM session_images
         WHERE tenant_id = $1 AND session_id = $2",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .fetch_one(tx)
    .await?;
    let full = |used, at_most, what| Full {
        has: "the session would have",
        used,
        at_most,
        what,
        remedy: "start a new session for more",
    };
    match (row.count("images")?, row.count("bytes")?) {
        (images, _) if images > IMAGES_OF_SESSION_AT_MOST => {
            Err(full(images, IMAGES_OF_SESSION_AT_MOST, "images").into())
        }
        (_, bytes) if bytes > IMAGES_OF_SESSION_BYTES => {
            let at_most = IMAGES_OF_SESSION_BYTES / MEBIBYTE;
            Err(full(bytes.div_ceil(MEBIBYTE), at_most, "MiB of images").into())
        }
        _ => Ok(()),
    }
}

impl FromRow for ImageRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            digest: row.digest("digest")?,
            media_type: row.text("media_type")?,
            bytes: row.bytes("bytes")?,
        })
    }
}
