//! A file from here to a runner.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
};

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use shared_api::{StartOperation, Upload};
use shared_client::{Attach, Attached, Client, Controls, Piece};
use shared_types::{Digest, OperationId};

use super::{PIECE_BYTES, Progress, check, file_name, follow, until_interrupted};
use crate::{exit::Exit, screen::Screen};

/// Bytes that are hashed at once.
const HASHED_BYTES: usize = 1024 * 1024;

pub(super) async fn run(
    client: Client,
    screen: Screen,
    source: &Path,
    runner: String,
    path: String,
) -> anyhow::Result<Exit> {
    let mut file = Source::open(source)?;
    let name = file_name(source)?;
    let path = match path.is_empty() || path.ends_with('/') {
        true => format!("{path}{name}"),
        false => path,
    };
    let digest = file.digest().await?;
    let request = StartOperation {
        runner: Some(runner),
        upload: Some(Upload {
            path,
            bytes: file.bytes,
            digest,
        }),
        ..StartOperation::default()
    };
    let mut progress = Progress::new(screen, name, Some(file.bytes));
    let mut id = None;
    until_interrupted(&client, &mut id, async |id| {
        send(client.start(request), &mut file, digest, id, &mut progress).await
    })
    .await
    .with_context(|| format!("failed to copy {}", source.display()))
}

async fn send(
    (mut attach, controls): (Attach, Controls),
    file: &mut Source,
    digest: Digest,
    id: &mut Option<OperationId>,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    loop {
        let item = tokio::select! {
            item = attach.next() => item,
            sent = file.send(&controls) => match sent? {},
        };
        match item {
            Some(Ok(Attached::InputTaken { offset })) => progress.reached(offset),
            Some(Ok(Attached::InputWanted { from })) => file.go_to(from)?,
            item => {
                if let Some(end) = follow(item, id, progress)? {
                    check(&end, digest, file.bytes)?;
                    progress.done(file.bytes);
                    return Ok(());
                }
            }
        }
    }
}

/// The file, and how far it was handed over.
struct Source {
    file: File,
    bytes: u64,
    at: u64,
    is_ended: bool,
}

impl Source {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("failed to read {}", path.display());
        let file = File::open(path).with_context(failed)?;
        let metadata = file.metadata().with_context(failed)?;
        if metadata.is_dir() {
            bail!(
                "{} is a folder, and only files are copied; send its content with: \
                 tar -C {0} -c . | gantry exec -i -r NAME -- tar -x",
                path.display()
            );
        }
        if !metadata.is_file() {
            bail!("{} is no regular file", path.display());
        }
        Ok(Self {
            file,
            bytes: metadata.len(),
            at: 0,
            is_ended: false,
        })
    }

    /// The digest of the whole file, which is read from its beginning afterwards.
    async fn digest(&mut self) -> anyhow::Result<Digest> {
        let mut file = self.file.try_clone().context("failed to read the file")?;
        let hashing = tokio::task::spawn_blocking(move || {
            let (mut hasher, mut piece) = (Sha256::new(), vec![0; HASHED_BYTES]);
            loop {
                match file.read(&mut piece)? {
                    0 => return Ok(hasher.finalize()),
                    read => hasher.update(&piece[..read]),
                }
            }
        });
        let hash: std::io::Result<_> = hashing.await.context("failed to hash the file")?;
        self.go_to(0)?;
        let hash = hash.context("failed to read the file")?;
        Digest::from_slice(&hash).context("a SHA-256 has 32 bytes")
    }

    fn go_to(&mut self, offset: u64) -> anyhow::Result<()> {
        self.file
            .seek(SeekFrom::Start(offset))
            .context("failed to read the file")?;
        (self.at, self.is_ended) = (offset, false);
        Ok(())
    }

    /// Hands the file over, as far as there is room; ends only where the file cannot be read.
    async fn send(&mut self, controls: &Controls) -> anyhow::Result<std::convert::Infallible> {
        while !self.is_ended {
            let Some(room) = controls.room().await else {
                break;
            };
            let left = usize::try_from(self.bytes - self.at).unwrap_or(usize::MAX);
            let mut data = vec![0; left.min(PIECE_BYTES)];
            self.file
                .read_exact(&mut data)
                .context("failed to read the file to its end; did it change?")?;
            let at = self.at;
            self.at += data.len() as u64;
            self.is_ended = self.at == self.bytes;
            room.fill(Piece {
                at: Some(at),
                data: data.into(),
                end: self.is_ended,
            });
        }
        std::future::pending().await
    }
}
