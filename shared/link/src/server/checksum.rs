//! The checksums of one stream, over the output that came and the output that is kept from before.

use crc32fast::Hasher;

/// The checksums of one stream.
#[derive(Debug, Default)]
pub(super) struct Sum {
    /// Of the kept output, as far as it was read.
    kept: Hasher,
    /// Of the output that came.
    came: Hasher,
}

impl Sum {
    /// The next bytes came.
    pub(super) fn came(&mut self, data: &[u8]) {
        self.came.update(data);
    }

    /// The next bytes of the kept output were read.
    pub(super) fn kept(&mut self, data: &[u8]) {
        self.kept.update(data);
    }

    /// The checksum of all bytes.
    pub(super) fn of_all(&self) -> u32 {
        let mut all = self.kept.clone();
        all.combine(&self.came);
        all.finalize()
    }
}
