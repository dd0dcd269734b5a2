//! Writes a backup.

use std::{
    fs::File,
    io::{self, BufWriter},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use shared_types::{FileHasher, OperationId};
use tempfile::NamedTempFile;

use super::{
    ABOUT, About, BackupContent, BackupError, BackupMade, ENTRY_BYTES, FOLDERS, FORMAT, FileEntry,
    LEFT_OUT, MANIFEST, MANIFEST_BYTES, Manifest, ROWS, ROWS_BYTES, TableEntry, of_file,
};
use crate::{
    Store,
    database::{Cell, CopiedTable, Snapshot, TableSchema, line, next},
    output::kept::{self, KeptFiles},
};

/// Writes everything of a server into a new file, which this user alone may read: it holds the server's keys.
/// The server may run. The file has its name once it is whole and on disk.
///
/// # Errors
/// If the file exists or cannot be written, or the server's files or its database cannot be read.
pub async fn write_backup(
    store: &Store,
    folder: &Path,
    to: &Path,
    made: BackupMade,
) -> Result<BackupContent, BackupError> {
    let beside = match to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => parent.to_owned(),
        None => PathBuf::from("."),
    };
    if to.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let unwritable = |why| BackupError::Unwritable {
        path: to.to_owned(),
        why,
    };
    let file = tempfile::Builder::new()
        .prefix(".gantry-backup-")
        .tempfile_in(&beside)
        .map_err(unwritable)?;
    let mut archive = BackupWriter::begin(to, file);
    let content = archive.fill(store, folder, made).await?;
    let file = archive.finish().map_err(unwritable)?;
    file.persist_noclobber(to)
        .map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => BackupError::Exists(to.to_owned()),
            _ => unwritable(error.error),
        })?;
    File::open(&beside)
        .and_then(|folder| folder.sync_all())
        .map_err(unwritable)?;
    Ok(content)
}

struct BackupWriter<'a> {
    path: &'a Path,
    tar: tar::Builder<GzEncoder<BufWriter<NamedTempFile>>>,
    manifest: Manifest,
    modified: u64,
    /// The operations in the rows, sorted. A backup has output of these only.
    operations: Vec<OperationId>,
}

impl<'a> BackupWriter<'a> {
    fn begin(path: &'a Path, file: NamedTempFile) -> Self {
        let compressed = GzEncoder::new(BufWriter::new(file), Compression::fast());
        Self {
            path,
            tar: tar::Builder::new(compressed),
            manifest: Manifest::default(),
            modified: 0,
            operations: Vec::new(),
        }
    }

    async fn fill(
        &mut self,
        store: &Store,
        folder: &Path,
        made: BackupMade,
    ) -> Result<BackupContent, BackupError> {
        self.modified = u64::try_from(made.at.as_seconds()).unwrap_or(0);
        let mut snapshot = Snapshot::of(store).await?;
        let schema = snapshot.schema().await?;
        let about = About {
            format: FORMAT,
            schema,
            made,
        };
        self.json(ABOUT, &about)?;
        let mut tables = Vec::new();
        for table in snapshot.tables().await? {
            tables.push(self.table(&mut snapshot, &table).await?);
        }
        // Nothing waits for the end of this transaction while files are read.
        drop(snapshot);
        self.operations.sort_unstable();
        for name in FOLDERS {
            self.folder(folder, name)?;
        }
        let manifest = std::mem::take(&mut self.manifest);
        self.json(MANIFEST, &manifest)?;
        Ok(BackupContent {
            schema,
            tables,
            files: manifest.files.len(),
            bytes: manifest.files.values().map(|file| file.bytes).sum(),
        })
    }

    async fn table(
        &mut self,
        snapshot: &mut Snapshot,
        table: &TableSchema,
    ) -> Result<CopiedTable, BackupError> {
        let (mut count, mut hasher) = (0, FileHasher::default());
        let (mut lines, mut entries) = (Vec::new(), 0);
        let id = match table.name.as_str() {
            "operations" => table.names().position(|name| name == "id"),
            _ => None,
        };
        let mut rows = snapshot.rows(table)?;
        while let Some(row) = next(&mut rows).await? {
            if let Some(Cell::Text(id)) = id.and_then(|id| row.get(id)) {
                self.operations.extend(id.parse::<OperationId>());
            }
            let line = line(&row);
            hasher.update(&line);
            lines.extend_from_slice(&line);
            count += 1;
            if lines.len() >= ROWS_BYTES {
                self.rows(table, &mut entries, &mut lines)?;
            }
        }
        if !lines.is_empty() {
            self.rows(table, &mut entries, &mut lines)?;
        }
        let digest = hasher.finish().value;
        let entry = TableEntry {
            columns: table.names().map(str::to_owned).collect(),
            rows: count,
            sha256: digest,
        };
        self.manifest.tables.insert(table.name.clone(), entry);
        Ok(CopiedTable {
            name: table.name.clone(),
            rows: count,
            digest,
        })
    }

    fn rows(
        &mut self,
        table: &TableSchema,
        entries: &mut u32,
        lines: &mut Vec<u8>,
    ) -> Result<(), BackupError> {
        *entries += 1;
        let name = format!("{ROWS}/{}/{entries:06}.jsonl", table.name);
        self.append(&name, tar::EntryType::Regular, lines)?;
        lines.clear();
        Ok(())
    }

    /// A folder of the server with all that is in it.
    fn folder(&mut self, server: &Path, name: &str) -> Result<(), BackupError> {
        let folder = server.join(name);
        for found in kept::in_folder(&folder) {
            let found = found.map_err(of_file(&folder))?;
            let path = |below: &Path| match below.to_str() {
                Some("") => Some(name.to_owned()),
                Some(below) => Some(format!("{name}/{below}")),
                None => None,
            };
            match found {
                KeptFiles::Folder(below) => {
                    if let Some(path) = path(&below) {
                        self.append(&path, tar::EntryType::Directory, &[])?;
                    }
                }
                KeptFiles::Files(files) => {
                    for (below, content) in files {
                        let Some(path) = path(&below).filter(|_| self.is_known(&below)) else {
                            continue;
                        };
                        if LEFT_OUT.contains(&path.as_str()) {
                            continue;
                        }
                        self.append(&path, tar::EntryType::Regular, &content)?;
                        self.manifest.files.insert(path, FileEntry::of(&content));
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells if the rows know the operation of an output file; true of every other file. A restored server may give the
    /// id of an unknown operation to another command, and would take the output for that command's.
    fn is_known(&self, file: &Path) -> bool {
        let mut names = file.iter().filter_map(|name| name.to_str());
        let operation = names.find_map(|name| name.split('.').next()?.parse::<OperationId>().ok());
        operation.is_none_or(|operation| self.operations.binary_search(&operation).is_ok())
    }

    fn json(&mut self, name: &str, value: &impl serde::Serialize) -> Result<(), BackupError> {
        let json = serde_json::to_vec(value).map_err(io::Error::from);
        let json = json.map_err(|why| self.unwritable(why))?;
        self.append(name, tar::EntryType::Regular, &json)
    }

    fn append(
        &mut self,
        name: &str,
        kind: tar::EntryType,
        content: &[u8],
    ) -> Result<(), BackupError> {
        let bound = match name {
            MANIFEST => MANIFEST_BYTES,
            _ => ENTRY_BYTES,
        };
        if content.len() as u64 > bound {
            let why = format!("{name} has more than {bound} bytes, and could not be read again");
            return Err(self.unwritable(io::Error::other(why)));
        }
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(match kind {
            tar::EntryType::Directory => 0o700,
            _ => 0o600,
        });
        header.set_mtime(self.modified);
        let appended = self.tar.append_data(&mut header, name, content);
        appended.map_err(|why| self.unwritable(why))
    }

    fn unwritable(&self, why: io::Error) -> BackupError {
        let path = self.path.to_owned();
        BackupError::Unwritable { path, why }
    }

    /// Returns once the disk has all of it.
    fn finish(self) -> io::Result<NamedTempFile> {
        let buffered = self.tar.into_inner()?.finish()?;
        let file = buffered
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        Ok(file)
    }
}
