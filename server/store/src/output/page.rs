//! The bytes that one read of a stream returns: a run without a gap.

use super::KeptOutput;

/// Filled from frames in their order.
pub(super) struct OutputPage {
    from: u64,
    max_bytes: usize,
    kept: Option<KeptOutput>,
}

impl OutputPage {
    /// An empty one for at most this many bytes from this offset on.
    pub(super) fn new(from: u64, max_bytes: usize) -> Self {
        Self {
            from,
            max_bytes,
            kept: None,
        }
    }

    /// The offset of the next byte that it takes.
    pub(super) fn at(&self) -> u64 {
        self.kept.as_ref().map_or(self.from, KeptOutput::end)
    }

    /// Takes the bytes of a frame that it lacks. Returns true if it takes more: not once it is full, nor after a gap.
    pub(super) fn take(&mut self, offset: u64, data: &[u8]) -> bool {
        let at = self.at();
        let begin = offset.max(at);
        let Some(data) = data
            .get((begin - offset) as usize..)
            .filter(|data| !data.is_empty())
        else {
            return true;
        };
        let kept = self.kept.get_or_insert_with(|| KeptOutput {
            offset: begin,
            data: Vec::new(),
        });
        let room = self.max_bytes - kept.data.len();
        if begin != kept.end() || room == 0 {
            return false;
        }
        kept.data.extend_from_slice(&data[..data.len().min(room)]);
        data.len() < room
    }

    /// The bytes that it took.
    pub(super) fn kept(self) -> Option<KeptOutput> {
        self.kept
    }
}
