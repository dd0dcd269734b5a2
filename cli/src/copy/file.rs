//! One whole file that is sent to a runner, or received from it.

use std::{path::Path, time::UNIX_EPOCH};

use anyhow::{Context as _, bail};
use shared_api::{Download, Entry, OperationEnd, StartOperation, Upload};
use shared_types::{FileDigest, Timestamp};

use super::{
    copying::{Copying, Data, check},
    local::{ALGORITHM, Part, Preserved, Source},
};

/// Sends a whole file that has this digest.
pub(super) async fn send(
    copying: &Copying,
    file: &mut Source,
    digest: FileDigest,
    target: &str,
) -> anyhow::Result<()> {
    let request = StartOperation {
        upload: Some(Upload {
            path: target.to_owned(),
            bytes: file.bytes,
            digest,
            mode: Some(file.mode()),
            modified_at: copying.preserves().then(|| file.modified_at()),
        }),
        ..StartOperation::default()
    };
    let end = copying.perform(request, file).await?;
    if let OperationEnd::Done { bytes: None, .. } = end {
        bail!("the runner does not say what it wrote");
    }
    check(&end, digest, file.bytes)?;
    copying.progress(|progress| progress.files(1));
    Ok(())
}

/// Time and permissions of the file on the runner, where the file here is to have them.
pub(super) fn preserved(copying: &Copying, entry: &Entry) -> Option<Preserved> {
    copying.preserves().then(|| Preserved {
        mode: entry.mode,
        modified_at: UNIX_EPOCH + entry.modified_at.since(Timestamp::from_micros(0)),
    })
}

/// Makes the folders above a path that are missing.
pub(super) fn make_parents(path: &Path) -> anyhow::Result<()> {
    let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    else {
        return Ok(());
    };
    std::fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))
}

/// Receives a whole file.
pub(super) async fn receive(copying: &Copying, path: &str, part: Part) -> anyhow::Result<()> {
    let mut receiving = Receiving {
        copying: copying.clone(),
        part,
    };
    let request = StartOperation {
        download: Some(Download {
            path: path.to_owned(),
            digest: Some(ALGORITHM),
        }),
        ..StartOperation::default()
    };
    let end = copying.perform(request, &mut receiving).await?;
    let part = receiving.part;
    check(&end, part.digest(), part.bytes)?;
    if let Some(lost) = part.finish()? {
        copying.note(&lost);
    }
    copying.progress(|progress| progress.files(1));
    Ok(())
}

struct Receiving {
    copying: Copying,
    part: Part,
}

impl Data for Receiving {
    fn begin(&mut self) -> anyhow::Result<()> {
        let bytes = self.part.bytes;
        self.copying.progress(|progress| progress.take_back(bytes));
        self.part.begin_again()
    }

    fn receive(&mut self, data: &[u8]) -> anyhow::Result<u64> {
        self.part.write(data)?;
        self.copying
            .progress(|progress| progress.bytes(data.len() as u64));
        Ok(self.part.bytes)
    }
}
