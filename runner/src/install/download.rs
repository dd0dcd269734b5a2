//! The programs that the server hands out. Its identity signs which archive it is, over a nonce of
//! ours, so that a proxy that ends TLS on the way can put nothing in its place.

use std::{fs::File, io::Write as _, time::Duration};

use bytes::Bytes;
use proto::signing;
use serde::Deserialize;
use shared_types::{
    Digest, DigestAlgorithm, Entropy, FileHasher, limits::MAX_RUNNER_ARCHIVE_BYTES,
};
use tokio::time::timeout;
use tonic::Status;

use crate::{
    connection::{
        Accept, ConnectError, Http1, MAX_ANSWER_BYTES, Offer, Route, ServerConnection, Transport,
        Wire, heard,
    },
    key::ServerIdentity,
    server_url::ServerUrl,
};

/// Time for the answer to begin, and for each further piece of it.
const PIECE_WITHIN: Duration = Duration::from_secs(30);

/// The programs that the server hands out to this kind of machine, and the connection over which
/// they come.
pub(crate) struct Offered {
    connection: Http1,
    name: String,
    pub(crate) server: ServerUrl,
    pub(crate) sha256: Digest,
    pub(crate) bytes: u64,
}

/// The answer; `shared_api`'s `SignedArchive`.
#[derive(Deserialize)]
struct Signed {
    archive: OfferedArchive,
    signature: String,
}

#[derive(Deserialize)]
struct OfferedArchive {
    sha256: String,
    name: String,
    bytes: u64,
}

impl Offered {
    /// Asks the server at the end of this route.
    ///
    /// # Errors
    /// It cannot be reached, has none, or its identity did not sign the answer.
    pub(crate) async fn by(
        route: &Route,
        identity: &ServerIdentity,
        entropy: &dyn Entropy,
    ) -> Result<Self, DownloadError> {
        let plain = Offer::Only(Transport::WebSocket);
        let opened = ServerConnection::open(route, Accept::Any, plain).await?;
        let Wire::Http1(mut connection) = opened.wire else {
            return Err(DownloadError::Nonsense);
        };
        let arch = std::env::consts::ARCH;
        let mut nonce = [0; 32];
        entropy.fill(&mut nonce);
        let path = format!("/install/runner/{arch}?nonce={}", Digest::from(nonce));
        let answer = connection.get(&path, MAX_ANSWER_BYTES).await;
        let answer =
            answer.map_err(|status| DownloadError::Refused(route.url.clone(), heard(status)))?;
        let Signed { archive, signature } =
            serde_json::from_slice(&answer).map_err(|_| DownloadError::Nonsense)?;
        let sha256 = Digest::from_hex(&archive.sha256).ok_or(DownloadError::Nonsense)?;
        let signature = from_hex(&signature).ok_or(DownloadError::Nonsense)?;
        if !identity.signed(&signing::programs(&nonce, arch, &sha256), &signature) {
            return Err(DownloadError::Unsigned(route.url.clone()));
        }
        if archive.bytes > MAX_RUNNER_ARCHIVE_BYTES || !archive.name.starts_with("gantry-runner-") {
            return Err(DownloadError::Nonsense);
        }
        Ok(Self {
            connection,
            name: archive.name,
            server: route.url.clone(),
            sha256,
            bytes: archive.bytes,
        })
    }

    /// Loads the archive into a file, which is to be used only where this succeeds.
    ///
    /// # Errors
    /// It does not come whole, or has another checksum.
    pub(crate) async fn load(&mut self, file: &mut File) -> Result<(), DownloadError> {
        let path = format!("/install/{}/{}", self.sha256, self.name);
        let broken = |status| DownloadError::Refused(self.server.clone(), heard(status));
        let began = self.connection.begin_get(&path);
        let mut body = in_time(began).await.map_err(broken)?;
        let mut hasher = FileHasher::new(DigestAlgorithm::Sha256);
        let mut loaded = 0;
        while let Some(piece) = in_time(body.next()).await.map_err(broken)? {
            let piece: Bytes = piece;
            loaded += piece.len() as u64;
            if loaded > self.bytes {
                break;
            }
            hasher.update(&piece);
            file.write_all(&piece).map_err(DownloadError::Unsaved)?;
        }
        match loaded == self.bytes && hasher.finish().value == self.sha256 {
            true => Ok(()),
            false => Err(DownloadError::Altered(self.server.clone())),
        }
    }
}

async fn in_time<T>(step: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let silent = || Status::deadline_exceeded("it said nothing for 30 s");
    timeout(PIECE_WITHIN, step)
        .await
        .unwrap_or_else(|_| Err(silent()))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 128 || !text.is_ascii() {
        return None;
    }
    let pairs = text.as_bytes().chunks_exact(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}

/// The reason why there are no programs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{0} hands out no programs for this machine ({message}): copy an archive here, unpack it, and run the gantry-runner in it with `install`", message = .1.message())]
    Refused(ServerUrl, Status),
    #[error(
        "the server's identity did not sign what {0} hands out: check what stands between here and there"
    )]
    Unsigned(ServerUrl),
    #[error(
        "what {0} sent is not the archive that it signed: try again, and check what stands between here and there"
    )]
    Altered(ServerUrl),
    #[error("the server's answer is not understood: it may be of another version")]
    Nonsense,
    #[error("cannot write the archive ({0}): make room on the disk")]
    Unsaved(std::io::Error),
}

#[cfg(test)]
mod tests;
