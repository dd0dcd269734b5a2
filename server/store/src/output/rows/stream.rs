//! One stream in rows: `outputs` has the end of it, `output_frames` has its bytes.
//!
//! A writer appends only at the end that it knows. If two servers both take themselves for the runner's, the second is
//! refused, reads the end again, and continues there.

use std::io;

use super::{
    super::{KeptOutput, OUTPUT_KEPT_BYTES, OutputKey, OutputStream, page::OutputPage},
    StreamStorage,
};
use crate::{
    Store, StoreError,
    columns::{Columns as _, integer},
    database::{Connection, Query, Sql, query, retried},
};

/// Bytes of a frame; more make another one.
const FRAME_BYTES: usize = 256 * 1024;
/// Frames that are read at once.
const FRAMES_READ: i64 = 8;

/// A stream as this server knows it.
#[derive(Debug, Default)]
pub(super) struct RowStream {
    /// It has its row in `outputs`.
    pub(super) exists: bool,
    /// All of it is kept.
    whole: bool,
    /// Not written yet, each with its offset.
    pending: Vec<(u64, Vec<u8>)>,
    /// The end of the stream, `pending` included.
    end: u64,
    /// Its end in the database.
    written: u64,
    /// The offset up to which its middle was removed.
    trimmed: u64,
    /// The reason why it takes no more bytes until it is resumed.
    pub(super) broken: Option<String>,
}

/// The streams among the places.
pub(super) fn rows_of<'a>(
    places: impl Iterator<Item = &'a StreamStorage>,
) -> impl Iterator<Item = &'a RowStream> {
    places.filter_map(|place| match place {
        StreamStorage::Rows(stream) => Some(stream),
        StreamStorage::Files => None,
    })
}

impl RowStream {
    /// The stream as the database has it.
    pub(super) async fn load(store: &Store, key: OutputKey) -> Result<Self, StoreError> {
        let found = of(
            "SELECT whole, ends FROM outputs
             WHERE tenant_id = $1 AND operation_id = $2 AND stream = $3",
            key,
        )
        .fetch_optional(&mut store.read(key.tenant).await?)
        .await?;
        let Some(row) = found else {
            return Ok(Self::default());
        };
        let end = row.count("ends")?;
        Ok(Self {
            exists: true,
            whole: row.count("whole")? != 0,
            end,
            written: end,
            ..Self::default()
        })
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// True if nothing of it was ever there.
    pub(super) fn is_untouched(&self) -> bool {
        !self.exists && self.end == 0
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.broken.is_none() && self.written < self.end
    }

    pub(super) fn synced(&self) -> io::Result<u64> {
        match &self.broken {
            Some(why) => Err(io::Error::other(why.clone())),
            None => Ok(self.written),
        }
    }

    pub(super) fn pending_bytes(&self) -> usize {
        self.pending.iter().map(|(_, data)| data.len()).sum()
    }

    /// Takes bytes at their offset; if it cannot, [`RowStream::synced`] reports the reason.
    pub(super) fn append(&mut self, offset: u64, mut data: Vec<u8>) {
        let end = offset.saturating_add(data.len() as u64);
        if self.broken.is_some() || end <= self.end {
            return;
        }
        match self.end.checked_sub(offset) {
            // A repeat is shorter than the data.
            Some(repeated) => drop(data.drain(..repeated as usize)),
            // A gap.
            None if data.is_empty() => self.end = offset,
            None => return self.give_up("the bytes before it were not kept"),
        }
        let at = self.end;
        self.end += data.len() as u64;
        match self.pending.last_mut() {
            Some((begin, last))
                if *begin + last.len() as u64 == at && last.len() + data.len() <= FRAME_BYTES =>
            {
                last.append(&mut data);
            }
            _ if data.is_empty() => {}
            _ => self.pending.push((at, data)),
        }
    }

    /// Drops the pending bytes: only written bytes are part of the stream.
    pub(super) fn give_up(&mut self, why: &str) {
        self.pending.clear();
        self.end = self.written;
        self.broken = Some(why.to_owned());
    }

    /// Takes over the stream as another server has written it, and keeps the pending bytes behind that.
    pub(super) fn go_on_behind(&mut self, written: Self) {
        if written.end < self.written {
            return self.give_up("it was removed since");
        }
        let before = std::mem::replace(self, written);
        for (offset, data) in before.pending {
            // No bytes wait for a gap.
            self.append(offset, Vec::new());
            self.append(offset, data);
        }
        self.append(before.end, Vec::new());
    }

    /// Writes the pending bytes. Returns false if another server has appended since.
    pub(super) async fn write(
        &self,
        tx: &mut Connection,
        key: OutputKey,
    ) -> Result<bool, StoreError> {
        let moved = match self.exists {
            true => of(
                "UPDATE outputs SET ends = $4
                 WHERE tenant_id = $1 AND operation_id = $2 AND stream = $3 AND ends = $5",
                key,
            )
            .bind(integer(self.end))
            .bind(integer(self.written)),
            false => of(
                "INSERT INTO outputs (tenant_id, operation_id, stream, ends, whole)
                 VALUES ($1, $2, $3, $4, 0) ON CONFLICT DO NOTHING",
                key,
            )
            .bind(integer(self.end)),
        };
        if moved.execute(tx).await? == 0 {
            return Ok(false);
        }
        for (begin, data) in &self.pending {
            let end = begin + data.len() as u64;
            of(
                "INSERT INTO output_frames (tenant_id, operation_id, stream, begins, ends, bytes)
                 VALUES ($1, $2, $3, $4, $5, $6)",
                key,
            )
            .bind(integer(*begin))
            .bind(integer(end))
            .bind(data.clone())
            .execute(tx)
            .await?;
        }
        if let Some(until) = self.trims_until() {
            of(
                "DELETE FROM output_frames
                 WHERE tenant_id = $1 AND operation_id = $2 AND stream = $3
                     AND begins >= $4 AND ends <= $5",
                key,
            )
            .bind(integer(OUTPUT_KEPT_BYTES))
            .bind(integer(until))
            .execute(tx)
            .await?;
        }
        Ok(true)
    }

    /// Records that the effect of [`RowStream::write`] is in the database.
    pub(super) fn was_written(&mut self) {
        self.trimmed = self.trims_until().unwrap_or(self.trimmed);
        self.exists = true;
        self.written = self.end;
        self.pending.clear();
    }

    /// The offset up to which the frames behind the head are removed now; none at most writes.
    fn trims_until(&self) -> Option<u64> {
        let until = self.end.saturating_sub(OUTPUT_KEPT_BYTES);
        let grown = until.saturating_sub(self.trimmed.max(OUTPUT_KEPT_BYTES));
        (!self.whole && grown >= OUTPUT_KEPT_BYTES).then_some(until)
    }
}

/// Keeps all output of these streams of one operation from now on, if none of a stream is there yet.
pub(super) async fn begin_whole(store: &Store, keys: &[OutputKey]) -> Result<(), StoreError> {
    let Some(first) = keys.first() else {
        return Ok(());
    };
    retried!({
        let mut tx = store.write(first.tenant).await?;
        for &key in keys {
            of(
                "INSERT INTO outputs (tenant_id, operation_id, stream, ends, whole)
                 VALUES ($1, $2, $3, 0, 1) ON CONFLICT DO NOTHING",
                key,
            )
            .execute(&mut tx)
            .await?;
        }
        tx.commit().await
    })
}

/// The first bytes from an offset on; see [`super::super::Outputs::read`].
pub(super) async fn read(
    store: &Store,
    key: OutputKey,
    from: u64,
    max_bytes: usize,
) -> Result<Option<KeptOutput>, StoreError> {
    let mut connection = store.read(key.tenant).await?;
    let mut page = OutputPage::new(from, max_bytes);
    loop {
        let frames = of(
            "SELECT begins, bytes FROM output_frames
             WHERE tenant_id = $1 AND operation_id = $2 AND stream = $3 AND ends > $4
             ORDER BY begins LIMIT $5",
            key,
        )
        .bind(integer(page.at()))
        .bind(FRAMES_READ)
        .fetch_all(&mut connection)
        .await?;
        let is_last = frames.len() < FRAMES_READ as usize;
        for frame in frames {
            if !page.take(frame.count("begins")?, &frame.bytes("bytes")?) {
                return Ok(page.kept());
            }
        }
        if is_last {
            return Ok(page.kept());
        }
    }
}

/// Takes away everything of a stream.
pub(super) async fn remove(store: &Store, key: OutputKey) -> Result<(), StoreError> {
    retried!({
        let mut tx = store.write(key.tenant).await?;
        for table in [
            "DELETE FROM output_frames WHERE tenant_id = $1 AND operation_id = $2 AND stream = $3",
            "DELETE FROM outputs WHERE tenant_id = $1 AND operation_id = $2 AND stream = $3",
        ] {
            of(table, key).execute(&mut tx).await?;
        }
        tx.commit().await
    })
}

/// A statement about a stream, whose key is `$1` to `$3`.
fn of<'q>(sql: impl Into<Sql>, key: OutputKey) -> Query<'q> {
    let stream = match key.stream {
        OutputStream::Stdout => "stdout",
        OutputStream::Stderr => "stderr",
    };
    query(sql)
        .bind(key.tenant.to_string())
        .bind(key.operation.to_string())
        .bind(stream)
}
