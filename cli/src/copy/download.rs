//! A file from a runner to here. It grows beside its target, and takes its place once it is whole.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use shared_api::{Download, StartOperation, StreamName};
use shared_client::{Attach, Attached, Client, Controls};
use shared_types::{Digest, OperationId};

use super::{Progress, check, file_name, follow, until_interrupted};
use crate::{exit::Exit, screen::Screen};

/// How many bytes are written before the server hears of it.
const TOLD_EVERY: u64 = 1024 * 1024;

pub(super) async fn run(
    client: Client,
    screen: Screen,
    runner: String,
    path: String,
    target: &Path,
) -> anyhow::Result<Exit> {
    let name = file_name(Path::new(&path))?.to_owned();
    let target = match target.is_dir() {
        true => target.join(&name),
        false => target.to_owned(),
    };
    let mut part = Part::create(&target)?;
    let mut progress = Progress::new(screen, &name, None);
    let failed = format!("failed to copy {runner}:{path}");
    let request = StartOperation {
        runner: Some(runner),
        download: Some(Download { path }),
        ..StartOperation::default()
    };
    let mut id = None;
    let done = until_interrupted(&client, &mut id, async |id| {
        receive(client.start(request), &mut part, id, &mut progress).await
    });
    let exit = done.await.context(failed)?;
    if exit == Exit::Done {
        part.finish(&target)?;
    }
    Ok(exit)
}

async fn receive(
    (mut attach, controls): (Attach, Controls),
    part: &mut Part,
    id: &mut Option<OperationId>,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let mut told = 0;
    loop {
        match attach.next().await {
            Some(Ok(Attached::Output {
                stream: StreamName::Stdout,
                data,
                ..
            })) => {
                part.write(&data)?;
                progress.reached(part.bytes);
                if part.bytes - told >= TOLD_EVERY {
                    told = part.bytes;
                    controls.stored(told);
                }
            }
            item => {
                if let Some(end) = follow(item, id, progress)? {
                    check(&end, part.digest()?, part.bytes)?;
                    progress.done(part.bytes);
                    return Ok(());
                }
            }
        }
    }
}

/// The file as far as it came; removed when it is dropped before it is whole.
struct Part {
    file: File,
    path: PathBuf,
    hasher: Sha256,
    bytes: u64,
}

impl Part {
    fn create(target: &Path) -> anyhow::Result<Self> {
        let name = file_name(target)?;
        let path = target.with_file_name(format!(".{name}.gantry-part"));
        let file = File::create(&path);
        Ok(Self {
            file: file.with_context(|| format!("failed to write {}", path.display()))?,
            path,
            hasher: Sha256::new(),
            bytes: 0,
        })
    }

    fn write(&mut self, data: &[u8]) -> anyhow::Result<()> {
        self.file
            .write_all(data)
            .with_context(|| format!("failed to write {}", self.path.display()))?;
        self.hasher.update(data);
        self.bytes += data.len() as u64;
        Ok(())
    }

    fn digest(&self) -> anyhow::Result<Digest> {
        let digest = self.hasher.clone().finalize();
        Digest::from_slice(&digest).context("a SHA-256 has 32 bytes")
    }

    fn finish(self, target: &Path) -> anyhow::Result<()> {
        fs::rename(&self.path, target)
            .with_context(|| format!("failed to write {}", target.display()))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After a rename there is none.
        let _ = fs::remove_file(&self.path);
    }
}
