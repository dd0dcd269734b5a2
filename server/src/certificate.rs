//! The operator's certificate, looked at while the server runs: what renews it need not tell the server.
//!
//! Its files are compared by what is in them. So it makes no difference whether they are written over, renamed, or
//! led elsewhere by the link of a folder, as Kubernetes does it.

use std::{fs, path::Path, time::Duration};

use shared_tls::ServerTls;
use shared_types::{Digest, DigestAlgorithm, FileHasher};

use crate::settings::Tls;

/// How often the files are looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Where the certificate comes from, and what was there.
pub(crate) struct Certificate {
    tls: Tls,
    /// Names under which the server may be asked, beside those in the certificate.
    names: Vec<String>,
    /// What was last taken up, or refused.
    judged: Option<Digest>,
    /// What was there at the last look.
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

    /// Names under which the server may be asked, beside those in the certificate.
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

    /// What there is now, with the names under which the server may be asked.
    ///
    /// # Errors
    /// The files cannot be read, hold something else, or do not belong together.
    pub(crate) fn load(&self, folder: &Path) -> anyhow::Result<(Option<ServerTls>, Vec<String>)> {
        let tls = crate::tls(&self.tls, folder)?;
        let names = crate::names(self.names.clone(), tls.as_ref());
        Ok((tls, names))
    }
}

/// What is in the files of an operator's certificate; nothing where one cannot be read.
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
