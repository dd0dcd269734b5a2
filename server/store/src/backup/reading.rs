//! Reads a backup: first all of it, to hold every row and file to its digest, and then into an empty server.
//! So a damaged backup is refused before anything is written.
//!
//! Nothing in an archive is trusted. Its entries are files and folders whose names begin as a backup's do and
//! lead nowhere else, and the content of each is bounded.

use std::{
    collections::BTreeMap,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, BufReader, Read, Seek as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Component, Path, PathBuf},
};

use flate2::read::GzDecoder;
use shared_types::FileHasher;

use super::{
    ABOUT, About, BackupContent, BackupError, BackupMade, ENTRY_BYTES, FOLDERS, FORMAT, FileEntry,
    MANIFEST, MANIFEST_BYTES, Manifest, ROWS, TableEntry, of_file,
};
use crate::{
    CopyError, Store,
    database::{Cells, CopiedTable, Filling},
};

/// The first two bytes of a file that gzip made.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The most bytes after the last entry: tar fills its last record with zeros.
const PADDING_BYTES: u64 = 64 * 1024;

/// A backup that is whole.
#[derive(Debug)]
pub struct Backup {
    path: PathBuf,
    file: File,
    about: About,
    manifest: Manifest,
}

/// One entry of the archive.
enum ArchiveEntry {
    About(Vec<u8>),
    Rows { table: String, lines: Vec<u8> },
    Folder(String),
    File { path: String, content: Vec<u8> },
    Manifest(Vec<u8>),
}

impl Backup {
    /// Reads all of it, and compares every row and file with the digests in its manifest.
    ///
    /// # Errors
    /// If the file cannot be read, is no backup, is damaged, or is a newer program's. `known` is the schema
    /// of this program.
    pub fn open(path: &Path, known: i64) -> Result<Self, BackupError> {
        let unreadable = |why| BackupError::Unreadable {
            path: path.to_owned(),
            why,
        };
        let mut file = File::open(path).map_err(unreadable)?;
        let mut begin = [0; 2];
        let is_gzip = file.read_exact(&mut begin).is_ok() && begin == GZIP;
        if !is_gzip {
            return Err(BackupError::NotABackup(path.to_owned()));
        }
        let mut check = Check::new(path, known);
        each_entry(path, &file, |entry| check.take(entry))?;
        let (about, manifest) = check.finish()?;
        Ok(Self {
            path: path.to_owned(),
            file,
            about,
            manifest,
        })
    }

    /// The schema of its rows.
    pub fn schema(&self) -> i64 {
        self.about.schema
    }

    /// The server that made it, and the time.
    pub fn made(&self) -> &BackupMade {
        &self.about.made
    }

    /// Writes its files below a folder, which must not have any of them, and its rows into a database of the
    /// same schema without rows. The rows are committed last, after `before_commit`, once each table has the
    /// digest that the manifest says.
    ///
    /// # Errors
    /// [`BackupError`]; then no row is written, but files may be.
    pub async fn restore(
        &self,
        store: &Store,
        into: &Path,
        before_commit: impl FnOnce() -> io::Result<()>,
    ) -> Result<BackupContent, BackupError> {
        let mut filling = Filling::of(store).await?;
        let columns = |entry: &'_ TableEntry| entry.columns.clone();
        let tables = self.manifest.tables.iter();
        filling.expect(tables.map(|(name, entry)| (name.as_str(), columns(entry))))?;
        let mut archive = BackupReader::over(&self.path, &self.file)?;
        let mut entries = archive.entries()?;
        while let Some(entry) = entries.next()? {
            match entry {
                ArchiveEntry::About(_) | ArchiveEntry::Manifest(_) => {}
                ArchiveEntry::Rows { table, lines } => {
                    let rows = self.parsed(&lines)?;
                    let unlike = || CopyError::OtherTable {
                        table: table.clone(),
                    };
                    let table = filling.table(&table).ok_or_else(unlike)?;
                    filling.insert(&table, rows).await?;
                }
                ArchiveEntry::Folder(path) => make_folder(&into.join(path))?,
                ArchiveEntry::File { path, content } => {
                    if self.manifest.files.get(&path) != Some(&FileEntry::of(&content)) {
                        return Err(damaged(&self.path, "it changed while it was read"));
                    }
                    write(&into.join(path), &content)?;
                }
            }
        }
        before_commit().map_err(of_file(into))?;
        let content = self.content();
        filling.finish(&content.tables).await?;
        Ok(content)
    }

    fn parsed(&self, lines: &[u8]) -> Result<Vec<Cells>, BackupError> {
        let lines = lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let rows: Result<Vec<Cells>, _> = lines.map(serde_json::from_slice).collect();
        rows.map_err(|_| damaged(&self.path, "a row of it cannot be read"))
    }

    fn content(&self) -> BackupContent {
        let table = |(name, entry): (&String, &TableEntry)| CopiedTable {
            name: name.clone(),
            rows: entry.rows,
            digest: entry.sha256,
        };
        BackupContent {
            schema: self.about.schema,
            tables: self.manifest.tables.iter().map(table).collect(),
            files: self.manifest.files.len(),
            bytes: self.manifest.files.values().map(|file| file.bytes).sum(),
        }
    }
}

/// The content of the archive as far as it was read, to be compared with its manifest.
struct Check<'a> {
    path: &'a Path,
    known: i64,
    about: Option<About>,
    tables: BTreeMap<String, (u64, FileHasher)>,
    files: BTreeMap<String, FileEntry>,
    manifest: Option<Manifest>,
}

impl<'a> Check<'a> {
    fn new(path: &'a Path, known: i64) -> Self {
        Self {
            path,
            known,
            about: None,
            tables: BTreeMap::new(),
            files: BTreeMap::new(),
            manifest: None,
        }
    }

    fn take(&mut self, entry: ArchiveEntry) -> Result<(), BackupError> {
        if self.manifest.is_some() {
            return Err(damaged(self.path, "something follows its manifest"));
        }
        if self.about.is_none() != matches!(entry, ArchiveEntry::About(_)) {
            return Err(BackupError::NotABackup(self.path.to_owned()));
        }
        match entry {
            ArchiveEntry::About(json) => self.about = Some(self.about(&json)?),
            ArchiveEntry::Rows { table, lines } => {
                let (rows, hasher) = self.tables.entry(table).or_default();
                *rows += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
                hasher.update(&lines);
            }
            ArchiveEntry::Folder(_) => {}
            ArchiveEntry::File { path, content } => {
                let twice = format!("{path} is in it twice");
                if self.files.insert(path, FileEntry::of(&content)).is_some() {
                    return Err(damaged(self.path, &twice));
                }
            }
            ArchiveEntry::Manifest(json) => {
                let manifest = serde_json::from_slice(&json);
                let manifest =
                    manifest.map_err(|_| damaged(self.path, "its manifest cannot be read"));
                self.manifest = Some(manifest?);
            }
        }
        Ok(())
    }

    fn about(&self, json: &[u8]) -> Result<About, BackupError> {
        // A newer format may have more fields, or others.
        let value: serde_json::Value = serde_json::from_slice(json)
            .map_err(|_| BackupError::NotABackup(self.path.to_owned()))?;
        let number = |name: &str| value[name].as_i64().unwrap_or(0);
        if number("format") > i64::from(FORMAT) || number("schema") > self.known {
            return Err(BackupError::Newer {
                path: self.path.to_owned(),
                version: value["version"]
                    .as_str()
                    .unwrap_or("?")
                    .chars()
                    .take(64)
                    .collect(),
            });
        }
        serde_json::from_value(value).map_err(|_| BackupError::NotABackup(self.path.to_owned()))
    }

    /// Compares the content that was read with the manifest.
    fn finish(mut self) -> Result<(About, Manifest), BackupError> {
        let about = self
            .about
            .ok_or_else(|| BackupError::NotABackup(self.path.to_owned()))?;
        let manifest = self
            .manifest
            .ok_or_else(|| damaged(self.path, "it has no manifest"))?;
        for (name, wanted) in &manifest.tables {
            let (rows, hasher) = self.tables.remove(name).unwrap_or_default();
            if (rows, hasher.finish().value) != (wanted.rows, wanted.sha256) {
                let why = format!("the rows of {name} are not those of its manifest");
                return Err(damaged(self.path, &why));
            }
        }
        let wrong = manifest
            .files
            .iter()
            .find(|(path, wanted)| self.files.get(*path) != Some(wanted));
        if let Some((path, _)) = wrong {
            return Err(damaged(
                self.path,
                &format!("{path} is not that of its manifest"),
            ));
        }
        if !self.tables.is_empty() || self.files.len() != manifest.files.len() {
            return Err(damaged(self.path, "it has more than its manifest says"));
        }
        Ok((about, manifest))
    }
}

/// The archive, from its beginning.
struct BackupReader<'a> {
    path: &'a Path,
    tar: tar::Archive<GzDecoder<BufReader<&'a File>>>,
}

struct Entries<'a, 'f> {
    path: &'a Path,
    entries: tar::Entries<'a, GzDecoder<BufReader<&'f File>>>,
}

impl<'f> BackupReader<'f> {
    fn over(path: &'f Path, mut file: &'f File) -> Result<Self, BackupError> {
        file.rewind().map_err(|why| BackupError::Unreadable {
            path: path.to_owned(),
            why,
        })?;
        let tar = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
        Ok(Self { path, tar })
    }

    fn entries(&mut self) -> Result<Entries<'_, 'f>, BackupError> {
        let entries = self
            .tar
            .entries()
            .map_err(|error| unreadable(self.path, &error))?;
        Ok(Entries {
            path: self.path,
            entries,
        })
    }
}

impl Entries<'_, '_> {
    fn next(&mut self) -> Result<Option<ArchiveEntry>, BackupError> {
        let Some(entry) = self.entries.next() else {
            return Ok(None);
        };
        let entry = entry.and_then(parsed);
        entry
            .map(Some)
            .map_err(|error| unreadable(self.path, &error))
    }
}

/// Reads the whole archive, to the last byte: gzip's own checksum stands there.
fn each_entry(
    path: &Path,
    file: &File,
    mut take: impl FnMut(ArchiveEntry) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let mut archive = BackupReader::over(path, file)?;
    let mut entries = archive.entries()?;
    while let Some(entry) = entries.next()? {
        take(entry)?;
    }
    let rest = archive.tar.into_inner().take(PADDING_BYTES);
    match io::copy(&mut { rest }, &mut io::sink()) {
        Ok(PADDING_BYTES..) => Err(damaged(path, "something follows its last entry")),
        Ok(_) => Ok(()),
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn parsed(mut entry: tar::Entry<'_, impl Read>) -> io::Result<ArchiveEntry> {
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let refused = || io::Error::other(format!("{name:?} is no entry of a backup"));
    let kind = entry.header().entry_type();
    let parts: Option<Vec<&str>> = Path::new(&name)
        .components()
        .map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    let parts = parts.filter(|parts| parts.join("/") == name.trim_end_matches('/'));
    let parts = parts.ok_or_else(refused)?;
    if kind == tar::EntryType::Directory && parts.first().is_some_and(|top| FOLDERS.contains(top)) {
        return Ok(ArchiveEntry::Folder(parts.join("/")));
    }
    if kind != tar::EntryType::Regular {
        return Err(refused());
    }
    let bound = match parts[..] {
        [MANIFEST] => MANIFEST_BYTES,
        _ => ENTRY_BYTES,
    };
    if entry.size() > bound {
        return Err(io::Error::other(format!("{name:?} is too large")));
    }
    let mut content = Vec::new();
    entry.read_to_end(&mut content)?;
    match parts[..] {
        [ABOUT] => Ok(ArchiveEntry::About(content)),
        [MANIFEST] => Ok(ArchiveEntry::Manifest(content)),
        [ROWS, table, _] => Ok(ArchiveEntry::Rows {
            table: table.to_owned(),
            lines: content,
        }),
        [folder, _, ..] if FOLDERS.contains(&folder) => Ok(ArchiveEntry::File {
            path: parts.join("/"),
            content,
        }),
        _ => Err(refused()),
    }
}

fn make_folder(path: &Path) -> Result<(), BackupError> {
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(of_file(path))
}

fn write(path: &Path, content: &[u8]) -> Result<(), BackupError> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(content));
    written.map_err(of_file(path))
}

fn damaged(path: &Path, why: &str) -> BackupError {
    BackupError::Damaged {
        path: path.to_owned(),
        why: why.to_owned(),
    }
}

/// An error of the archive's own format.
fn unreadable(path: &Path, error: &io::Error) -> BackupError {
    let why = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
        _ => error.to_string(),
    };
    damaged(path, &why)
}
