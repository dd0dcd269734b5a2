//! From a runner to here.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::{
    copying::Copying,
    file::{make_parents, preserved, receive},
    folder,
    local::Part,
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
