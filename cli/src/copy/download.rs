//! From a runner to here.

use std::{
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use anyhow::{Context as _, bail};
use shared_api::{Download, Entry, StartOperation};
use shared_types::Timestamp;

use super::{
    copying::{Copying, Data, check},
    folder,
    local::{ALGORITHM, Part, Preserved},
    own_name, there,
};

pub(super) async fn run(copying: &Copying, source: &str, target: &Path) -> anyhow::Result<()> {
    let failed = || format!("failed to copy {}", copying.place(source));
    let entry = there::look(copying, source).await.with_context(failed)?;
    let entry = entry.with_context(|| format!("{} does not exist", copying.place(source)))?;
    let name = own_name(Path::new(source))?;
    match (entry.kind.as_str(), name) {
        ("directory", name) => {
            let target = folder_target(name, target)?;
            folder::download(copying, source, &target)
                .await
                .with_context(failed)
        }
        ("file", Some(name)) => {
            let target = file_target(name, target)?;
            copying.progress(|progress| progress.file(name, Some(entry.bytes)));
            let received = async {
                let part =
                    Part::create(&target, entry.mode)?.preserving(preserved(copying, &entry));
                receive(copying, source, part).await
            };
            received.await.with_context(failed)
        }
        _ => Err(anyhow::anyhow!("it is neither a file nor a folder")).with_context(failed),
    }
}

/// Time and permissions of the file on the runner, where the file here is to have them.
pub(super) fn preserved(copying: &Copying, entry: &Entry) -> Option<Preserved> {
    copying.preserves().then(|| Preserved {
        mode: entry.mode,
        modified_at: UNIX_EPOCH + entry.modified_at.since(Timestamp::from_micros(0)),
    })
}

/// The path of the copied file: `target` itself, or a file in it if it is a folder. A slash at its
/// end also makes it a folder.
fn file_target(name: &str, target: &Path) -> anyhow::Result<PathBuf> {
    let is_folder = target.as_os_str().as_encoded_bytes().ends_with(b"/");
    let target = match is_folder || target.is_dir() {
        true => target.join(name),
        false => target.to_owned(),
    };
    make_parents(&target)?;
    Ok(target)
}

/// The path of the copied folder, by the rules of [`super::upload`].
fn folder_target(name: Option<&str>, target: &Path) -> anyhow::Result<PathBuf> {
    match (target.metadata(), name) {
        (Ok(found), Some(name)) if found.is_dir() => Ok(target.join(name)),
        (Ok(found), _) if !found.is_dir() => bail!(
            "{} is a file, and a folder does not take its place; name another path",
            target.display()
        ),
        _ => Ok(target.to_owned()),
    }
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
