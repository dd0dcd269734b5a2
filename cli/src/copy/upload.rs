//! From here to a runner.

use std::path::Path;

use anyhow::{Context as _, bail};
use shared_types::FileDigest;

use super::{beneath, copying::Copying, file::send, folder, local::Source, own_name, there};

pub(super) async fn run(copying: &Copying, source: &Path, target: &str) -> anyhow::Result<()> {
    let found = std::fs::metadata(source);
    let found = found.with_context(|| format!("failed to read {}", source.display()))?;
    let name = own_name(source)?;
    if found.is_dir() {
        let target = folder_target(copying, name, target).await?;
        return folder::upload(copying, source, &target).await;
    }
    let name = name.with_context(|| format!("{} names no file", source.display()))?;
    let target = file_target(copying, name, target).await?;
    let mut file = Source::open(copying, source)?;
    let sent = async {
        let digest = read(copying, name, &mut file).await?;
        copying.progress(|progress| progress.file(name, Some(file.bytes)));
        send(copying, &mut file, digest, &target).await
    };
    let sent = sent.await;
    sent.with_context(|| format!("failed to copy {}", source.display()))
}

/// The path of the copied file: `target` itself, or a file in it if it is a folder.
async fn file_target(copying: &Copying, name: &str, target: &str) -> anyhow::Result<String> {
    if target.is_empty() || target.ends_with('/') {
        return Ok(beneath(target, name));
    }
    Ok(match there::look(copying, target).await? {
        Some(entry) if entry.kind == "directory" => beneath(target, name),
        _ => target.to_owned(),
    })
}

/// The path of the copied folder: a folder in `target` if that exists, else `target` itself. A source without a name
/// copies its content into `target`.
async fn folder_target(
    copying: &Copying,
    name: Option<&str>,
    target: &str,
) -> anyhow::Result<String> {
    let is_folder = match there::look(copying, target).await? {
        Some(entry) if entry.kind == "directory" => true,
        Some(_) => bail!(
            "{} is a file, and a folder does not take its place; name another path",
            copying.place(target)
        ),
        None => false,
    };
    Ok(match name {
        Some(name) if is_folder => beneath(target, name),
        _ => beneath(target, ""),
    })
}

/// Reads a whole file for its digest, which stands before the first byte that is sent.
async fn read(copying: &Copying, name: &str, file: &mut Source) -> anyhow::Result<FileDigest> {
    let what = format!("reading {name}");
    copying.progress(|progress| progress.file(&what, Some(file.bytes)));
    let copying = copying.clone();
    file.digest(move |bytes| copying.progress(|progress| progress.bytes(bytes)))
        .await
}
