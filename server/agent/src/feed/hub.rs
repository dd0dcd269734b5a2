//! The live pieces of sessions: model text and command output that is not in the log yet, and the
//! hint that a log has grown (docs/internals/contracts.md#c6).
//!
//! One task owns a room for each session that has a writer or a watcher. The store has an event before
//! the hub hears of it. The hub says *look again*, and passes short new events on, so that watchers need
//! not read them. A lost hint costs only time. Live pieces may be dropped under load: their offsets show
//! the gap, and the log will hold the final text.

use std::{collections::HashMap, sync::Arc};

use shared_types::{Event, SessionEvent, SessionId, TurnId};
use tokio::sync::{
    Notify, OwnedSemaphorePermit, Semaphore, TryAcquireError, broadcast, mpsc, oneshot,
};

use self::elsewhere::Elsewhere;
use crate::Live;

mod elsewhere;

/// Commands that may wait for the hub.
const QUEUE: usize = 256;
/// Bytes of output among them, of all sessions.
const OUTPUT_QUEUED_BYTES: usize = 1024 * 1024;
/// Signals that a slow watcher may lag behind before it starts again from what is under way. Each
/// may hold a piece of output of up to 64 KiB, so a session holds at most 4 MiB of them.
const SIGNALS: usize = 64;
/// Events that a signal carries have this size together at most, in bytes of their JSON. So a session holds
/// at most 1 MiB of them.
const EVENTS_CARRIED_BYTES: usize = 16 * 1024;
/// Output of each stream that a late watcher is given, in bytes.
const OUTPUT_PREFIX_BYTES: usize = 64 * 1024;
/// Parts of one answer that a late watcher is given.
const PARTS: usize = 64;
/// Output streams under way in one session that a late watcher is given.
const OUTPUTS: usize = 32;

/// A cheap handle to the hub.
#[derive(Clone)]
pub struct LiveHub {
    commands: mpsc::Sender<Command>,
    /// For output, in bytes.
    room: Arc<Semaphore>,
    waits: Arc<Notify>,
}

/// The signals to a watcher.
#[derive(Debug, Clone)]
pub enum Signal {
    /// The log has grown: by these events, or, where there are none, by some that the store has.
    Appended(Arc<[SessionEvent]>),
    /// Something is under way here.
    Live(Live),
    /// Something is under way at another replica.
    Relayed(Live),
}

/// A watcher's end: first what is under way already, then the signals.
pub struct Watch {
    /// The pieces that are under way already.
    pub under_way: Vec<Live>,
    /// The signals from now on.
    pub signals: broadcast::Receiver<Signal>,
}

enum Command {
    Publish(SessionId, Live, Share),
    Appended(SessionId, Vec<SessionEvent>),
    AllAppended,
    Idle(SessionId),
    Watch(SessionId, Of, oneshot::Sender<Watch>),
    Relay(SessionId, Live, Share),
    Settle(SessionId, Vec<SessionEvent>),
    EndRelay(SessionId),
}

/// The place of the work that a watcher is given.
enum Of {
    Here,
    Everywhere,
}

/// The share of a piece of output in the room for all, until the hub has handled it.
type Share = Option<OwnedSemaphorePermit>;

impl LiveHub {
    /// Starts the hub's task; it ends when the last handle is dropped.
    pub fn start() -> Self {
        let (commands, mut inbox) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            let mut rooms = Rooms::default();
            while let Some(command) = inbox.recv().await {
                rooms.handle(command);
            }
        });
        Self {
            commands,
            room: Arc::new(Semaphore::new(OUTPUT_QUEUED_BYTES)),
            waits: Arc::default(),
        }
    }

    /// Says that an operation's end, a runner's link or the wait of a turn was stored: look which waits
    /// are over, and when the next one is.
    pub fn look_at_waits(&self) {
        self.waits.notify_one();
    }

    /// Waits until that was said, since the last time that this was asked.
    pub async fn waits_to_look_at(&self) {
        self.waits.notified().await;
    }

    /// Shows something that is under way. Never waits: under load it is dropped.
    pub fn publish(&self, session: SessionId, live: Live) {
        if let Ok(share) = self.share(&live) {
            let _ = self
                .commands
                .try_send(Command::Publish(session, live, share));
        }
    }

    fn share(&self, live: &Live) -> Result<Share, TryAcquireError> {
        let bytes = output_bytes(live);
        let share = Arc::clone(&self.room).try_acquire_many_owned(bytes)?;
        Ok((bytes > 0).then_some(share))
    }

    /// Says that these events are in the session's log, or, with none, that some are.
    pub async fn appended(&self, session: SessionId, events: Vec<SessionEvent>) {
        let _ = self.commands.send(Command::Appended(session, events)).await;
    }

    /// Says that events may be in the log of any session: hints were lost.
    pub async fn all_appended(&self) {
        let _ = self.commands.send(Command::AllAppended).await;
    }

    /// Says that nothing of the session is under way here. A turn that another replica has taken up left pieces that
    /// no event here replaces.
    pub async fn idle(&self, session: SessionId) {
        let _ = self.commands.send(Command::Idle(session)).await;
    }

    /// Begins to watch a session. `None` only while the server stops.
    pub async fn watch(&self, session: SessionId) -> Option<Watch> {
        self.begin_watch(session, Of::Everywhere).await
    }

    /// The same, with that alone under way that is so here. The signals are all.
    pub(super) async fn watch_here(&self, session: SessionId) -> Option<Watch> {
        self.begin_watch(session, Of::Here).await
    }

    async fn begin_watch(&self, session: SessionId, of: Of) -> Option<Watch> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Watch(session, of, reply);
        self.commands.send(command).await.ok()?;
        answer.await.ok()
    }

    /// Shows something that is under way at another replica to those who watch here. Waits for room: the other
    /// replica sends no more meanwhile.
    pub async fn relay(&self, session: SessionId, live: Live) {
        let share = match output_bytes(&live) {
            0 => None,
            // The room is never closed.
            bytes => Arc::clone(&self.room).acquire_many_owned(bytes).await.ok(),
        };
        let command = Command::Relay(session, live, share);
        let _ = self.commands.send(command).await;
    }

    /// Says that these events are in the log of a session that another replica works on. They are not passed on.
    pub async fn settle_relayed(&self, session: SessionId, events: Vec<SessionEvent>) {
        let _ = self.commands.send(Command::Settle(session, events)).await;
    }

    /// Says that nothing of the session is relayed any more, because the other replica has its turn no longer, or
    /// because no one watches here.
    pub async fn end_relay(&self, session: SessionId) {
        let _ = self.commands.send(Command::EndRelay(session)).await;
    }
}

/// The bytes that a piece takes of the room for all: only output does.
fn output_bytes(live: &Live) -> u32 {
    let Live::Output { data, .. } = live else {
        return 0;
    };
    // A larger one would wait for ever.
    data.len().min(OUTPUT_QUEUED_BYTES) as u32
}

#[derive(Default)]
struct Rooms {
    rooms: HashMap<SessionId, Room>,
}

struct Room {
    signals: broadcast::Sender<Signal>,
    under_way: UnderWay,
    elsewhere: Elsewhere,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            signals: broadcast::channel(SIGNALS).0,
            under_way: UnderWay::default(),
            elsewhere: Elsewhere::default(),
        }
    }
}

impl Room {
    /// True if it has neither a watcher nor a worker, here or elsewhere.
    fn is_left(&self) -> bool {
        let has_work = !self.under_way.is_empty() || self.elsewhere.is_relayed();
        self.signals.receiver_count() == 0 && !has_work
    }
}

impl Rooms {
    fn handle(&mut self, command: Command) {
        match command {
            Command::Publish(session, mut live, _share) => {
                let room = self.rooms.entry(session).or_default();
                room.elsewhere.begin_again(&mut live);
                room.under_way.add(&live);
                let _ = room.signals.send(Signal::Live(live));
            }
            Command::Appended(session, events) => {
                if let Some(room) = self.rooms.get_mut(&session) {
                    let known = events.iter().filter_map(SessionEvent::known);
                    known.for_each(|event| room.under_way.settle(event));
                    if room.signals.receiver_count() > 0 {
                        let _ = room.signals.send(Signal::Appended(carried(events)));
                    } else if room.is_left() {
                        self.rooms.remove(&session);
                    }
                }
            }
            Command::AllAppended => {
                for room in self.rooms.values() {
                    let _ = room.signals.send(Signal::Appended(Arc::default()));
                }
            }
            Command::Idle(session) => {
                if let Some(room) = self.rooms.get_mut(&session) {
                    room.under_way = UnderWay::default();
                }
            }
            Command::Watch(session, of, reply) => {
                // Rooms without a watcher are found here, where one is added.
                self.rooms.retain(|_, room| !room.is_left());
                let room = self.rooms.entry(session).or_default();
                let mut under_way = room.under_way.pieces();
                if let Of::Everywhere = of {
                    under_way.extend(room.elsewhere.pieces());
                }
                let _ = reply.send(Watch {
                    under_way,
                    signals: room.signals.subscribe(),
                });
            }
            Command::Relay(session, live, _share) => {
                let room = self.rooms.entry(session).or_default();
                if let Some(live) = room.elsewhere.add(live) {
                    let _ = room.signals.send(Signal::Relayed(live));
                }
            }
            Command::Settle(session, events) => {
                let room = self.rooms.entry(session).or_default();
                let known = events.iter().filter_map(SessionEvent::known);
                known.for_each(|event| room.elsewhere.settle(event));
            }
            Command::EndRelay(session) => {
                if let Some(room) = self.rooms.get_mut(&session) {
                    room.elsewhere.end();
                    if room.is_left() {
                        self.rooms.remove(&session);
                    }
                }
            }
        }
    }
}

/// Events as a signal carries them: none where they are too long.
fn carried(events: Vec<SessionEvent>) -> Arc<[SessionEvent]> {
    let mut room = [0; EVENTS_CARRIED_BYTES];
    match serde_json::to_writer(&mut room[..], &events) {
        Ok(()) => events.into(),
        Err(_) => Arc::default(),
    }
}

/// The pieces for a late watcher. They are the notice of the turn's wait, the thoughts and the text
/// of the answer in flight, and the tail of each output.
#[derive(Default)]
struct UnderWay {
    notice: Option<Live>,
    /// For a watcher that has the earlier text, but not the news that it is void.
    taken_back: Option<Live>,
    /// The parts of the answer in flight, in the order in which they began.
    said: Vec<Live>,
    outputs: Vec<Live>,
}

impl UnderWay {
    fn is_empty(&self) -> bool {
        let no_word = self.notice.is_none() && self.taken_back.is_none();
        self.said.is_empty() && no_word && self.outputs.is_empty()
    }

    fn pieces(&self) -> Vec<Live> {
        let one = self.notice.iter().chain(&self.taken_back);
        one.chain(&self.said)
            .chain(&self.outputs)
            .cloned()
            .collect()
    }

    fn add(&mut self, live: &Live) {
        match live {
            Live::Said { .. } => self.add_said(live),
            Live::Output { .. } => self.add_output(live),
            Live::Notice { .. } => self.notice = Some(live.clone()),
            Live::TakenBack { .. } => {
                self.said.clear();
                self.taken_back = Some(live.clone());
            }
            Live::Gap { .. } => {}
        }
    }

    /// Adds a piece of the answer to its part. The first piece of another attempt replaces all that was said.
    fn add_said(&mut self, live: &Live) {
        let Some(place) = Spoken::of(live) else {
            return;
        };
        let of_another = |known: &Live| !Spoken::of(known).is_some_and(|known| known.is_of(&place));
        if self.said.first().is_some_and(of_another) {
            if place.offset != 0 {
                return;
            }
            self.said.clear();
        }
        let same = |known: &Live| Spoken::of(known).map(|known| known.part) == Some(place.part);
        match self.said.iter().position(same) {
            Some(known) => {
                let known = &mut self.said[known];
                if !extend(known, live, usize::MAX) && place.offset == 0 {
                    *known = live.clone();
                }
            }
            None if place.offset == 0 && self.said.len() < PARTS => self.said.push(live.clone()),
            None => {}
        }
    }

    fn add_output(&mut self, live: &Live) {
        let Live::Output {
            operation,
            stream,
            offset,
            data,
            ..
        } = live
        else {
            return;
        };
        let same = |known: &&mut Live| matches!(known, Live::Output { operation: o, stream: s, .. } if (o, s) == (operation, stream));
        if let Some(Live::Output {
            offset: from,
            data: so_far,
            ..
        }) = self.outputs.iter_mut().find(same)
        {
            let end = offset.saturating_add(data.len() as u64);
            if data.len() >= OUTPUT_PREFIX_BYTES {
                *so_far = data.slice(data.len() - OUTPUT_PREFIX_BYTES..);
                *from = end.saturating_sub(OUTPUT_PREFIX_BYTES as u64);
                return;
            }
            let contiguous = from.saturating_add(so_far.len() as u64) == *offset;
            let mut joined = if contiguous {
                so_far.to_vec()
            } else {
                Vec::new()
            };
            joined.extend_from_slice(data);
            let cut = joined.len().saturating_sub(OUTPUT_PREFIX_BYTES);
            *from = end.saturating_sub((joined.len() - cut) as u64);
            *so_far = joined.split_off(cut).into();
        } else if self.outputs.len() < OUTPUTS {
            self.outputs.push(live.clone());
        }
    }

    /// Drops the pieces that an event in the log has replaced.
    fn settle(&mut self, event: &Event) {
        // Something happened in the turn, so what it waited for came, or is waited for no longer.
        self.notice.take_if(
            |notice| matches!(notice, Live::Notice { turn, .. } if event.turn() == Some(*turn)),
        );
        match event {
            Event::AnswerRecorded { .. } => {
                self.said.clear();
                self.taken_back = None;
            }
            Event::CallEnded {
                turn,
                step,
                ordinal,
                ..
            } => {
                let ended = (*turn, *step, *ordinal);
                self.outputs.retain(|live| !matches!(live, Live::Output { turn, step, ordinal, .. } if (*turn, *step, *ordinal) == ended));
            }
            Event::TurnEnded { .. } => *self = Self::default(),
            _ => {}
        }
    }
}

/// Adds a piece of the answer to the piece right before it, if both have so many bytes at most; `false` where it is
/// another piece.
pub(super) fn extend(before: &mut Live, live: &Live, at_most: usize) -> bool {
    let (Some(place), Some(known)) = (Spoken::of(live), Spoken::of(before)) else {
        return false;
    };
    let is_next = known.is_of(&place) && known.part == place.part && known.end == place.offset;
    if !is_next || known.bytes + place.bytes > at_most {
        return false;
    }
    if let (Live::Said { piece: so_far, .. }, Live::Said { piece, .. }) = (before, live) {
        so_far.text.push_str(&piece.text);
    }
    true
}

/// The place of a piece of an answer.
struct Spoken {
    /// The turn, step and attempt.
    attempt: (TurnId, u32, u32),
    /// The part of the answer.
    part: u32,
    /// The offset of the piece in the part, in bytes.
    offset: u64,
    /// The end of the piece in the part, in bytes.
    end: u64,
    /// Its length.
    bytes: usize,
}

impl Spoken {
    fn of(live: &Live) -> Option<Self> {
        match live {
            Live::Said {
                turn,
                step,
                attempt,
                offset,
                piece,
            } => Some(Self {
                attempt: (*turn, *step, *attempt),
                part: piece.part,
                offset: *offset,
                end: offset.saturating_add(piece.text.len() as u64),
                bytes: piece.text.len(),
            }),
            _ => None,
        }
    }

    /// True if both are of one attempt.
    fn is_of(&self, other: &Self) -> bool {
        self.attempt == other.attempt
    }
}

#[cfg(test)]
mod tests;
