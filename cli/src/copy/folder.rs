//! Copies of folders: first the folders in it, then the files, several operations at once, and last the links.
//!
//! Small files go in archives of many, so that thousands of them need few operations; a large file goes by itself. An
//! entry that cannot be copied is reported, and the copy continues.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, DirBuilder},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use shared_api::{ListedEntry, OperationEnd, Pack, StartOperation, Unpack};
use shared_types::{leads_into_its_folder, limits::MAX_PATH_BYTES};
use tokio::task::{JoinSet, spawn_blocking};

use super::{
    archive::{Packing, Unpacking},
    beneath,
    copying::{AT_ONCE, Copying, is_fatal},
    file,
    local::{ALGORITHM, MODE, Part, Source},
    there,
};

/// A file up to this size goes with others, in bytes.
const SMALL_BYTES: u64 = 1024 * 1024;

/// Bytes, entries, and bytes of paths that go at once.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;
const BATCH_ENTRIES: usize = 256;
const BATCH_PATH_BYTES: usize = 128 * 1024;

/// The least permissions of a copied folder, so that entries in it can be written.
const FOLDER_MODE: u32 = 0o700;

/// The reason for leaving out an entry whose folder is missing.
const NO_FOLDER: &str = "the folder that it lies in could not be made here";

/// The entries of a folder, by paths beneath it; each folder comes before its content.
#[derive(Debug, Default)]
struct Tree {
    folders: Vec<(String, u32)>,
    files: Vec<FileEntry>,
    links: Vec<(String, String)>,
}

/// A file in a folder.
#[derive(Debug, Clone)]
struct FileEntry {
    path: String,
    bytes: u64,
    mode: u32,
}

/// Copies a folder to this path on the runner.
pub(super) async fn upload(copying: &Copying, source: &Path, target: &str) -> anyhow::Result<()> {
    let (walker, folder) = (copying.clone(), source.to_owned());
    let walked = spawn_blocking(move || Tree::here(&walker, &folder)).await;
    let tree = walked.context("failed to read the folder")??;
    tree.announce(copying, source);
    let sending = Arc::new(Sending {
        copying: copying.clone(),
        source: source.to_owned(),
        target: target.to_owned(),
    });
    let mut packing = Packing::new(copying);
    let (mut paths, mut room) = (Vec::new(), 0);
    for (path, mode) in &tree.folders {
        // The workspace itself is there.
        if sending.name(path).is_empty() {
            continue;
        }
        packing.directory(&sending.name(path), *mode)?;
        paths.push(path.clone());
        room += sending.name(path).len();
        if paths.len() == BATCH_ENTRIES || room > BATCH_PATH_BYTES {
            let full = std::mem::replace(&mut packing, Packing::new(copying));
            sending.unpack(full, std::mem::take(&mut paths)).await?;
            room = 0;
        }
    }
    if !paths.is_empty() {
        sending.unpack(packing, paths).await?;
    }
    let mut jobs = Jobs::default();
    for batch in batches(tree.files) {
        let sending = Arc::clone(&sending);
        jobs.add(async move { sending.send(batch).await }).await?;
    }
    jobs.all().await?;
    for links in tree.links.chunks(BATCH_ENTRIES) {
        let (mut packing, mut paths) = (Packing::new(copying), Vec::new());
        for (path, to) in links {
            packing.link(&sending.name(path), to)?;
            paths.push(path.clone());
        }
        sending.unpack(packing, paths).await?;
    }
    Ok(())
}

/// Copies a folder of the runner to this path.
pub(super) async fn download(copying: &Copying, source: &str, target: &Path) -> anyhow::Result<()> {
    let entries = there::tree(copying, source).await?;
    let mut tree = Tree::there(copying, entries);
    tree.announce(copying, Path::new(source));
    file::make_parents(target)?;
    if !target.is_dir() {
        make_folder(target, MODE)?;
    }
    tree.make_folders(copying, target);
    let receiving = Arc::new(Receiving {
        copying: copying.clone(),
        source: source.to_owned(),
        target: target.to_owned(),
    });
    let mut jobs = Jobs::default();
    for batch in batches(tree.files) {
        let receiving = Arc::clone(&receiving);
        jobs.add(async move { receiving.receive(batch).await })
            .await?;
    }
    jobs.all().await?;
    // Last, so that nothing is written through one.
    for (path, to) in &tree.links {
        if let Err(error) = make_link(&target.join(path), to) {
            copying.failed(path, &format!("{error:#}"));
        }
    }
    Ok(())
}

impl Tree {
    /// Reads the tree of a folder here. Links are not followed.
    fn here(copying: &Copying, folder: &Path) -> anyhow::Result<Self> {
        let mode = |path: &Path| path.metadata().map_or(MODE, |found| found.mode() & MODE);
        let mut tree = Self::default();
        tree.folders.push((String::new(), mode(folder)));
        let mut open = vec![String::new()];
        while let Some(below) = open.pop() {
            let listed = fs::read_dir(folder.join(&below));
            let listed = match listed {
                Ok(listed) => listed,
                Err(error) if below.is_empty() => {
                    return Err(error)
                        .with_context(|| format!("failed to read {}", folder.display()));
                }
                Err(error) => {
                    copying.failed(&below, &error.to_string());
                    continue;
                }
            };
            for entry in listed {
                let entry = entry.with_context(|| format!("failed to read {below}"))?;
                let name = entry.file_name();
                let Some(name) = name.to_str() else {
                    let shown = beneath(&below, &name.to_string_lossy());
                    copying.failed(&shown, "its name is not UTF-8; rename it");
                    continue;
                };
                let path = beneath(&below, name);
                if let Err(why) = tree.add(&entry, &path, &mut open) {
                    copying.failed(&path, &format!("{why:#}"));
                }
            }
        }
        tree.folders.sort();
        Ok(tree)
    }

    fn add(
        &mut self,
        entry: &fs::DirEntry,
        path: &str,
        open: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        if path.len() > MAX_PATH_BYTES {
            bail!("its path is longer than {MAX_PATH_BYTES} bytes");
        }
        let found = entry.metadata()?;
        let mode = found.mode() & MODE;
        match found.file_type() {
            kind if kind.is_dir() => {
                self.folders.push((path.to_owned(), mode));
                open.push(path.to_owned());
            }
            kind if kind.is_symlink() => {
                let to = fs::read_link(entry.path())?;
                let to = to
                    .to_str()
                    .context("it leads to a path that is not UTF-8")?;
                self.link(path, to)?;
            }
            kind if kind.is_file() => self.files.push(FileEntry {
                path: path.to_owned(),
                bytes: found.len(),
                mode,
            }),
            _ => bail!("it is neither a file, nor a folder, nor a link"),
        }
        Ok(())
    }

    /// Builds the tree of a runner's folder. Paths that the runner sends are checked, because they could lead out of
    /// the target.
    fn there(copying: &Copying, entries: Vec<ListedEntry>) -> Self {
        let mut tree = Self::default();
        for entry in entries {
            let added = tree.add_listed(&entry);
            if let Err(why) = added {
                copying.failed(&entry.name, &why.to_string());
            }
        }
        tree
    }

    fn add_listed(&mut self, entry: &ListedEntry) -> anyhow::Result<()> {
        let parts = || Path::new(&entry.name).components();
        if entry.name.is_empty() || !parts().all(|part| matches!(part, Component::Normal(_))) {
            bail!("it lies elsewhere than in the folder");
        }
        let path = entry.name.clone();
        match (entry.kind.as_str(), &entry.leads_to) {
            ("link", Some(_)) if entry.is_replaced => {
                bail!("its name, or where it leads to, is not UTF-8; rename it")
            }
            _ if entry.is_replaced => bail!("its name is not UTF-8; rename it"),
            ("link", Some(to)) => self.link(&path, to)?,
            ("directory", _) => {
                self.folders.push((path, entry.mode & MODE));
                if entry.is_unreadable {
                    bail!("the runner may not read it");
                }
            }
            ("file", _) => self.files.push(FileEntry {
                path,
                bytes: entry.bytes,
                mode: entry.mode & MODE,
            }),
            _ => bail!("it is neither a file, nor a folder, nor a link"),
        }
        Ok(())
    }

    /// Makes the folders here. Entries stay only where each folder above them is a folder and no link: an
    /// earlier copy may have left links, through which a runner could reach other places.
    fn make_folders(&mut self, copying: &Copying, target: &Path) {
        let mut made = HashSet::from([String::new()]);
        for (path, mode) in std::mem::take(&mut self.folders) {
            let done = match made.contains(above(&path)) {
                true => make_folder(&target.join(&path), mode),
                false => Err(anyhow::anyhow!("{NO_FOLDER}")),
            };
            match done {
                Ok(()) => drop(made.insert(path)),
                Err(error) => copying.failed(&path, &format!("{error:#}")),
            }
        }
        let lies = |path: &str| {
            let lies = made.contains(above(path));
            if !lies {
                copying.failed(path, NO_FOLDER);
            }
            lies
        };
        self.files.retain(|file| lies(&file.path));
        self.links.retain(|(path, _)| lies(path));
    }

    /// A link is copied as such where it leads to something in the folder.
    fn link(&mut self, path: &str, to: &str) -> anyhow::Result<()> {
        if !leads_into_its_folder(Path::new(path), to) {
            bail!("it is a link that leads out of the folder, to {to}");
        }
        self.links.push((path.to_owned(), to.to_owned()));
        Ok(())
    }

    fn announce(&self, copying: &Copying, folder: &Path) {
        let bytes = self.files.iter().map(|file| file.bytes).sum();
        let name = folder.file_name().unwrap_or(folder.as_os_str());
        let (name, files) = (name.to_string_lossy(), self.files.len() as u64);
        copying.progress(|progress| progress.folder(&name, files, bytes));
    }
}

/// The folder in which a path lies, empty for the one that is copied.
fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

/// The files of one operation.
#[derive(Debug)]
enum Batch {
    Small(Vec<FileEntry>),
    Large(FileEntry),
}

/// Files in the order in which they are copied.
fn batches(files: Vec<FileEntry>) -> impl Iterator<Item = Batch> {
    let mut files = files.into_iter().peekable();
    std::iter::from_fn(move || {
        let first = files.next()?;
        if first.bytes > SMALL_BYTES {
            return Some(Batch::Large(first));
        }
        let (mut bytes, mut room) = (first.bytes, first.path.len());
        let mut batch = vec![first];
        while let Some(next) = files.next_if(|next| {
            bytes += next.bytes;
            room += next.path.len();
            let fits = bytes <= BATCH_BYTES && room <= BATCH_PATH_BYTES;
            next.bytes <= SMALL_BYTES && fits && batch.len() < BATCH_ENTRIES
        }) {
            batch.push(next);
        }
        Some(Batch::Small(batch))
    })
}

/// The jobs that run at the same time, up to their bound.
#[derive(Default)]
struct Jobs(JoinSet<anyhow::Result<()>>);

impl Jobs {
    async fn add(
        &mut self,
        job: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) -> anyhow::Result<()> {
        if self.0.len() >= AT_ONCE {
            self.next().await?;
        }
        self.0.spawn(job);
        Ok(())
    }

    async fn all(mut self) -> anyhow::Result<()> {
        while !self.0.is_empty() {
            self.next().await?;
        }
        Ok(())
    }

    async fn next(&mut self) -> anyhow::Result<()> {
        match self.0.join_next().await {
            Some(done) => done.context("failed inside")?,
            None => Ok(()),
        }
    }
}

struct Sending {
    copying: Copying,
    source: PathBuf,
    target: String,
}

impl Sending {
    /// The name of an entry in an archive that is unpacked in the folder above the target, so that the
    /// target itself is one of its entries.
    fn name(&self, below: &str) -> String {
        beneath(self.split().1, below)
    }

    fn split(&self) -> (&str, &str) {
        match self.target.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some(split) => split,
            None => ("", &self.target),
        }
    }

    async fn send(&self, batch: Batch) -> anyhow::Result<()> {
        match batch {
            Batch::Small(files) => self.send_small(files).await,
            Batch::Large(file) => {
                let from = self.source.join(&file.path);
                let sent = async {
                    let mut source = Source::open_itself(&self.copying, &from)?;
                    let target = beneath(&self.target, &file.path);
                    let digest = source.digest(|_| ()).await?;
                    file::send(&self.copying, &mut source, digest, &target).await
                };
                one(&self.copying, &file.path, sent.await)
            }
        }
    }

    async fn send_small(&self, files: Vec<FileEntry>) -> anyhow::Result<()> {
        let (copying, source) = (self.copying.clone(), self.source.clone());
        let named: Vec<_> = files.iter().map(|file| self.name(&file.path)).collect();
        let packed = spawn_blocking(move || {
            let (mut packing, mut paths, mut bytes) = (Packing::new(&copying), Vec::new(), 0);
            for (file, name) in files.into_iter().zip(named) {
                match packing.file(&name, &source.join(&file.path)) {
                    Ok(size) => {
                        bytes += size;
                        paths.push(file.path);
                    }
                    Err(error) => copying.failed(&file.path, &format!("{error:#}")),
                }
            }
            (packing, paths, bytes)
        });
        let (packing, paths, bytes) = packed.await.context("failed inside")?;
        if paths.is_empty() {
            return Ok(());
        }
        let files = self.unpack(packing, paths).await?;
        self.copying.progress(|progress| {
            progress.bytes(bytes);
            progress.files(files);
        });
        Ok(())
    }

    /// Sends an archive with these entries; how many of them are there.
    async fn unpack(&self, packing: Packing, paths: Vec<String>) -> anyhow::Result<u64> {
        let mut packed = packing.finish()?;
        let request = StartOperation {
            unpack: Some(Unpack {
                path: self.split().0.to_owned(),
                bytes: packed.bytes.len() as u64,
                digest: packed.digest,
            }),
            ..StartOperation::default()
        };
        let end = match self.copying.perform(request, &mut packed).await {
            Ok(OperationEnd::Done { skipped, .. }) => {
                for skipped in &skipped {
                    let below = skipped.path.strip_prefix(self.split().1);
                    let below =
                        below.map_or(skipped.path.as_str(), |at| at.trim_start_matches('/'));
                    self.copying.failed(below, &skipped.words);
                }
                return Ok((paths.len() - skipped.len().min(paths.len())) as u64);
            }
            Ok(end) => Err(anyhow::anyhow!("{}", end.words())),
            Err(error) => Err(error),
        };
        all(&self.copying, paths.iter(), end).map(|()| 0)
    }
}

struct Receiving {
    copying: Copying,
    source: String,
    target: PathBuf,
}

impl Receiving {
    async fn receive(&self, batch: Batch) -> anyhow::Result<()> {
        match batch {
            Batch::Small(files) => self.receive_small(files).await,
            Batch::Large(file) => {
                let from = beneath(&self.source, &file.path);
                let received = async {
                    let entry = match self.copying.preserves() {
                        true => there::look(&self.copying, &from).await?,
                        false => None,
                    };
                    let preserved = entry.and_then(|entry| file::preserved(&self.copying, &entry));
                    let part = Part::create_in(&self.target, &file.path, file.mode)?;
                    let part = part.preserving(preserved);
                    file::receive(&self.copying, &from, part).await
                };
                one(&self.copying, &file.path, received.await)
            }
        }
    }

    async fn receive_small(&self, files: Vec<FileEntry>) -> anyhow::Result<()> {
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        let request = StartOperation {
            pack: Some(Pack {
                path: self.source.clone(),
                entries: paths.clone(),
                digest: Some(ALGORITHM),
            }),
            ..StartOperation::default()
        };
        let mut unpacking = Unpacking::default();
        let received = match self.copying.perform(request, &mut unpacking).await {
            Ok(end) => {
                let (copying, target) = (self.copying.clone(), self.target.clone());
                let asked: HashMap<_, _> = files
                    .into_iter()
                    .map(|file| (file.path, file.mode))
                    .collect();
                let written =
                    spawn_blocking(move || unpacking.finish(&copying, &end, &target, asked));
                written.await.context("failed inside")?
            }
            Err(error) => Err(error),
        };
        all(&self.copying, paths.iter(), received)
    }
}

/// Reports the failure of one file, unless it ends the whole copy.
fn one(copying: &Copying, path: &str, done: anyhow::Result<()>) -> anyhow::Result<()> {
    all(copying, std::iter::once(path), done)
}

fn all(
    copying: &Copying,
    paths: impl Iterator<Item = impl AsRef<str>>,
    done: anyhow::Result<()>,
) -> anyhow::Result<()> {
    match done {
        Err(error) if is_fatal(&error) => Err(error),
        Err(error) => {
            let why = format!("{error:#}");
            paths.for_each(|path| copying.failed(path.as_ref(), &why));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Makes a folder here, unless it is there. A link to one is none.
fn make_folder(path: &Path, mode: u32) -> anyhow::Result<()> {
    match DirBuilder::new()
        .mode(mode & MODE | FOLDER_MODE)
        .create(path)
    {
        Err(_) if path.symlink_metadata().is_ok_and(|there| there.is_dir()) => Ok(()),
        made => made.with_context(|| format!("failed to make {}", path.display())),
    }
}

/// Makes a link here; another link gives way.
fn make_link(path: &Path, to: &str) -> anyhow::Result<()> {
    match fs::read_link(path) {
        Ok(there) if there == Path::new(to) => return Ok(()),
        Ok(_) => fs::remove_file(path)?,
        Err(_) => {}
    }
    symlink(to, path).with_context(|| format!("failed to make {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, bytes: u64) -> FileEntry {
        FileEntry {
            path: path.to_owned(),
            bytes,
            mode: 0o644,
        }
    }

    #[test]
    fn small_files_go_together_within_bounds_and_large_ones_alone() {
        let mut files: Vec<_> = (0..300).map(|n| entry(&format!("{n}"), 10)).collect();
        files.push(entry("large", SMALL_BYTES + 1));
        files.extend((0..9).map(|n| entry(&format!("m{n}"), SMALL_BYTES)));
        let sizes: Vec<_> = batches(files)
            .map(|batch| match batch {
                Batch::Small(files) => files.len(),
                Batch::Large(_) => 0,
            })
            .collect();
        assert_eq!(sizes, [256, 44, 0, 4, 4, 1]);
    }

    #[test]
    fn no_folder_is_made_through_a_link() {
        let here = tempfile::tempdir().expect("a directory");
        let elsewhere = tempfile::tempdir().expect("a directory");
        let link = here.path().join("folder");
        symlink(elsewhere.path(), &link).expect("a link");
        assert!(make_folder(&link, MODE).is_err());
        assert!(make_folder(here.path(), MODE).is_ok(), "it is there");
    }

    #[test]
    fn what_a_runner_lists_elsewhere_is_never_written() {
        let listed = |name: &str, kind: &str| ListedEntry {
            name: name.to_owned(),
            kind: kind.to_owned(),
            bytes: 1,
            mode: 0o755,
            leads_to: None,
            is_replaced: false,
            is_unreadable: false,
        };
        for name in ["", "/etc/passwd", "../a", "a/../../b", ".", "a/.."] {
            for kind in ["file", "directory", "link"] {
                let mut tree = Tree::default();
                assert!(
                    tree.add_listed(&listed(name, kind)).is_err(),
                    "{name} {kind}"
                );
                assert!(tree.folders.is_empty() && tree.files.is_empty(), "{name}");
            }
        }
    }
}
