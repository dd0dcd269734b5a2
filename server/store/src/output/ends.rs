//! Retention `bounded`: a stream's head, and two files for its tail. The older of the two is emptied and written again
//! when the newer is full.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use super::{
    page::OutputPage,
    part::{self, PartFile, make_folder},
};

/// At least so many bytes of a stream's head and as many of its tail are kept.
pub const OUTPUT_KEPT_BYTES: u64 = 1024 * 1024;

pub(super) struct Ends {
    folder: PathBuf,
    head: PartFile,
    tails: [PartFile; 2],
    /// The index of the tail that is written.
    newer: usize,
}

impl Ends {
    pub(super) fn open(folder: PathBuf, name: &str) -> io::Result<Self> {
        let [head, tail0, tail1] = files(&folder, name).map(PartFile::open);
        let (head, tails) = (head?, [tail0?, tail1?]);
        let newer = usize::from(tails[1].end > tails[0].end);
        Ok(Self {
            folder,
            head,
            tails,
            newer,
        })
    }

    /// Removes each of its files.
    pub(super) fn remove(folder: &Path, name: &str) -> impl Iterator<Item = io::Result<()>> {
        files(folder, name).into_iter().map(std::fs::remove_file)
    }

    pub(super) fn end(&self) -> u64 {
        self.head.end.max(self.tails[self.newer].end)
    }

    pub(super) fn read(&self, page: &mut OutputPage) -> io::Result<()> {
        let parts = [
            &self.head,
            &self.tails[1 - self.newer],
            &self.tails[self.newer],
        ];
        for part in parts {
            if part.end > page.at() && !part::read(&part.path, page)? {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        make_folder(&self.folder)?;
        if self.tails[self.newer].kept >= OUTPUT_KEPT_BYTES {
            self.newer = 1 - self.newer;
            self.tails[self.newer].begin_anew()?;
        }
        let in_head = self.head.kept < OUTPUT_KEPT_BYTES && self.tails[self.newer].size == 0;
        let part = match in_head {
            true => &mut self.head,
            false => &mut self.tails[self.newer],
        };
        part.write(offset, data)
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        let mut made = false;
        for part in [&mut self.head].into_iter().chain(&mut self.tails) {
            made |= part.sync()?;
        }
        if made {
            File::open(&self.folder)?.sync_all()?;
        }
        Ok(())
    }
}

/// The head, and the two tails.
fn files(folder: &Path, name: &str) -> [PathBuf; 3] {
    ["head", "tail0", "tail1"].map(|part| folder.join(format!("{name}.{part}")))
}
