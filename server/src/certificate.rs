//! The operator's certificate, whose files the server checks while it runs: a program that renews it need not tell the
//! server.
//!
//! The files are compared by their content. So it makes no difference if they are overwritten, renamed, or reached by
//! another link of a folder, as in Kubernetes.

use std::{fs, path::Path, time::Duration};

use shared_tls::ServerTls;
use shared_types::{Digest, DigestAlgorithm, FileHasher};

use crate::settings::Tls;

/// The interval between looks at the files.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The source of the certificate, and the state of its files.
pub(crate) struct Certificate {
    tls: Tls,
    /// Accepted host names, beside those in the certificate.
    names: Vec<String>,
    /// The content that was last used or refused.
    judged: Option<Digest>,
    /// The content at the last look.
    seen: Option<Digest>,
}

impl Certificate {
    /// The one that is served now.
    pub(crate) fn of(tls: Tls, names: Vec<String>) -> Self {
        let now = content(&tls);
        Self {
            tls,
            names,
            judged: now,
            seen: now,
        }
    }

    /// Accepted host names, beside those in the certificate.
    pub(crate) fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Looks whether the files hold something new, which stands still: certificate and key are two files, and are
    /// not replaced in one moment.
    pub(crate) fn is_new(&mut self) -> bool {
        let now = content(&self.tls);
        let stands_still = now == self.seen;
        self.seen = now;
        let is_new = stands_still && now != self.judged;
        if is_new {
            self.judged = now;
        }
        is_new
    }

    /// The present certificate, with the accepted host names.
    ///
    /// # Errors
    /// Fails if the files cannot be read, hold something else, or do not belong together.
    pub(crate) fn load(&self, folder: &Path) -> anyhow::Result<(Option<ServerTls>, Vec<String>)> {
        let tls = crate::tls(&self.tls, folder)?;
        let names = crate::names(self.names.clone(), tls.as_ref());
        Ok((tls, names))
    }
}

/// The digest of an operator's certificate and key; `None` if one cannot be read.
fn content(tls: &Tls) -> Option<Digest> {
    let Tls::Files { certificate, key } = tls else {
        return None;
    };
    let mut hasher = FileHasher::new(DigestAlgorithm::Sha256);
    for file in [certificate, key] {
        let content = fs::read(file).ok()?;
        hasher.update(&(content.len() as u64).to_be_bytes());
        hasher.update(&content);
    }
    Some(hasher.finish().value)
}
