//! What the server keeps of output over every crash, and what the runner need not keep any more.
//!
//! Whoever follows an operation appends what came, and commits to the runner what is durable; of one
//! whose output is not retained, its reader confirms what it has read, and nothing is kept.

use shared_sandbox::{OperationEvent, OutputStream, Request, Retention};
use shared_types::OperationId;

use super::{dice::Dice, host::bytes_at, server::Following, world::World};

/// Both streams.
const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

/// What the server has of one operation's output, by stream; survives a crash as far as it is durable.
#[derive(Default)]
pub(crate) struct Kept([Lane; 2]);

#[derive(Default)]
struct Lane {
    up_to: u64,
    durable: u64,
    /// What its reader has said that it has.
    confirmed: u64,
    gaps: Vec<(u64, u64)>,
}

impl Kept {
    pub(crate) fn up_to(&self) -> [u64; 2] {
        [0, 1].map(|stream: usize| self.0[stream].up_to)
    }

    /// How much of a stream nobody needs of the runner any more.
    pub(crate) fn durable(&self, stream: OutputStream) -> u64 {
        let lane = &self.0[stream as usize];
        lane.durable.max(lane.confirmed)
    }

    /// Where the last gap of each stream ends.
    pub(crate) fn gap_up_to(&self) -> [u64; 2] {
        [0, 1].map(|stream: usize| self.0[stream].gaps.last().map_or(0, |(_, to)| *to))
    }

    /// How much of what stands at `from` is there: nothing up to the first offset, bytes up to the
    /// second.
    fn next(&self, stream: OutputStream, from: u64) -> (u64, u64) {
        let lane = &self.0[stream as usize];
        let within = lane.gaps.iter().find(|(at, to)| (*at..*to).contains(&from));
        let begin = within.map_or(from, |(_, to)| *to);
        let next = lane.gaps.iter().map(|(at, _)| *at).find(|at| *at >= begin);
        (begin, next.unwrap_or(lane.up_to).max(begin))
    }

    fn append(&mut self, stream: OutputStream, offset: u64, len: u64) {
        let lane = &mut self.0[stream as usize];
        if offset > lane.up_to {
            lane.gaps.push((lane.up_to, offset));
        }
        lane.up_to = lane.up_to.max(offset + len);
    }

    pub(crate) fn synced(&self) -> [u64; 2] {
        [0, 1].map(|stream: usize| self.0[stream].durable)
    }

    pub(crate) fn sync(&mut self) {
        self.0.iter_mut().for_each(|lane| lane.durable = lane.up_to);
    }

    /// Its reader has it.
    fn confirm(&mut self, read: [u64; 2]) {
        for (lane, read) in self.0.iter_mut().zip(read) {
            lane.confirmed = lane.confirmed.max(read);
        }
    }

    /// The server dies: of what is not durable some is lost.
    pub(crate) fn crash(&mut self, dice: &mut Dice) {
        for lane in &mut self.0 {
            lane.up_to -= dice.below(lane.up_to - lane.durable + 1);
            if let Some((from, _)) = lane.gaps.pop_if(|(_, to)| *to >= lane.up_to) {
                lane.up_to = lane.up_to.min(from);
            }
        }
    }
}

/// How the output of an operation is retained.
pub(crate) fn retention(request: &Request) -> Retention {
    match request {
        Request::Exec(exec) => exec.retention,
        _ => Retention::Bounded,
    }
}

impl World {
    /// How much of an operation's output whoever reads it now has already.
    pub(crate) fn has_already(&self, id: OperationId) -> ([u64; 2], [u64; 2]) {
        let nothing = ([0, 0], [0, 0]);
        match self.store.outputs.get(&id) {
            Some(kept) if self.is_kept(id) => (kept.up_to(), kept.gap_up_to()),
            _ => nothing,
        }
    }

    pub(crate) fn is_kept(&self, id: OperationId) -> bool {
        let request = &self.store.rows[&id].operation.request;
        self.keeps && retention(request) != Retention::None
    }

    /// What a reader is about to be told is kept first.
    pub(crate) fn keep(&mut self, id: OperationId, event: &OperationEvent) {
        if let OperationEvent::Output {
            stream,
            offset,
            data,
        } = event
            && self.is_kept(id)
        {
            self.append(id, *stream, *offset, data);
        }
    }

    /// What a reader is told of this: a gap that another reader's commit has made is filled with what
    /// is kept.
    pub(crate) fn filled(&self, id: OperationId, event: OperationEvent) -> Vec<OperationEvent> {
        let (&OperationEvent::Gap { stream, from, to }, true) = (&event, self.is_kept(id)) else {
            return vec![event];
        };
        let mut from = from;
        let mut events = Vec::new();
        while from < to {
            let kept = self.store.outputs.get(&id);
            let (begin, end) = kept.map_or((to, to), |kept| kept.next(stream, from));
            let begin = if begin == end { to } else { begin.min(to) };
            if from < begin {
                events.push(OperationEvent::Gap {
                    stream,
                    from,
                    to: begin,
                });
            }
            let end = end.min(to).min(begin + 65_536);
            if begin < end {
                let data = bytes_at(id, stream, begin, (end - begin) as usize).into();
                events.push(OperationEvent::Output {
                    stream,
                    offset: begin,
                    data,
                });
            }
            from = end.max(begin);
        }
        events
    }

    /// The first bytes that are kept of a stream from this offset on, and where they begin.
    pub(crate) fn read_kept(
        &self,
        id: OperationId,
        stream: OutputStream,
        from: u64,
    ) -> Option<(u64, &'static [u8])> {
        let (begin, end) = self.store.outputs.get(&id)?.next(stream, from);
        let len = (end - begin).min(65_536) as usize;
        (len > 0).then(|| (begin, bytes_at(id, stream, begin, len)))
    }

    fn append(&mut self, id: OperationId, stream: OutputStream, offset: u64, data: &[u8]) {
        let expected = bytes_at(id, stream, offset, data.len());
        assert!(data == expected, "{id}: other bytes of {stream} are kept");
        let kept = self.store.outputs.entry(id).or_default();
        kept.append(stream, offset, data.len() as u64);
    }

    /// Now and then what is kept becomes durable, or a reader confirms what it has.
    pub(crate) fn commit_step(&mut self, following: &mut Following) {
        if !self.keeps || !self.keeping.one_in(6) {
            return;
        }
        let id = following.id;
        let is_kept = self.is_kept(id);
        let kept = self.store.outputs.entry(id).or_default();
        match is_kept {
            true => kept.sync(),
            false if following.has_reader => kept.confirm(following.reading.at()),
            false => return,
        }
        for stream in STREAMS {
            following.machine.commit(stream, kept.durable(stream));
        }
    }

    /// What a runner that links is told of is synced as a rule, unless that fails.
    pub(crate) fn sync_before_verdicts(&mut self) {
        if self.store.tells && !self.keeping.one_in(4) {
            self.store.outputs.values_mut().for_each(Kept::sync);
        }
    }

    /// The runner need not keep a stream below this offset.
    pub(crate) fn commit_to_host(&mut self, id: OperationId, stream: OutputStream, up_to: u64) {
        let kept = self.store.outputs.get(&id);
        let enough = kept.map_or(0, |kept| match self.is_left_to_its_reader(id) {
            true => kept.0[stream as usize].confirmed,
            false => kept.durable(stream),
        });
        assert!(
            up_to <= enough,
            "{id}: {stream} is given up to {up_to}, and {enough} bytes are needed no more"
        );
        let evicted = u64::from(self.runner.host.commit(id, stream, up_to));
        self.checks.tally.evicted += evicted;
        let server = self.server.as_ref();
        if server.is_some_and(|server| !server.reads(id)) {
            self.checks.tally.evicted_unread += evicted;
        }
    }

    /// Whether nobody else may say what is needed no more of an operation's output.
    fn is_left_to_its_reader(&self, id: OperationId) -> bool {
        let row = &self.store.rows[&id];
        let is_open = !row.closed && !row.intent.cancel_requested && row.intent.outcome.is_none();
        is_open && retention(&row.operation.request) == Retention::None
    }
}
