//! What the reader of an operation is told, from where it stands.
//!
//! A reader that keeps up is told what comes as it comes. One that does not is told from what is kept:
//! of output only offsets wait for it, and of everything else the latest word. Whether what comes waits
//! for the reader is not said here: it has to where not all of it is kept.

use std::{collections::VecDeque, future::pending, mem::take, pin::Pin, sync::Arc};

use bytes::Bytes;
use shared_sandbox::{OperationEvent, Outcome, OutputStream};
use shared_types::OperationId;
use tokio::sync::mpsc;

use crate::ports::{Outputs, PortError};

type Reading = Pin<Box<dyn Future<Output = Result<Option<(u64, Bytes)>, PortError>> + Send>>;

/// Both streams, in this order everywhere.
const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

/// Where one reader stands.
pub(super) struct Cursor {
    outputs: Arc<dyn Outputs>,
    id: OperationId,
    /// Everything is kept: what is missing below what came, cannot be written.
    whole: bool,
    /// Below this it was told of stdout and stderr, or is about to be.
    told: [u64; 2],
    /// Below this they came.
    came: [u64; 2],
    /// Below this it is known of what is not kept that it never came.
    known: [u64; 2],
    /// The stream whose turn it is, so that neither waits for the other.
    turn: usize,
    /// That the place is gone, or back, or back and gone once more.
    reach: VecDeque<OperationEvent>,
    accepted: bool,
    input_taken: Option<u64>,
    ended: Option<Outcome>,
    /// What it is told as soon as it has room.
    next: Option<OperationEvent>,
    reading: Option<(OutputStream, Reading)>,
    /// It has gone, and needs nothing.
    left: bool,
}

impl Cursor {
    /// Of a reader that was told of stdout and stderr below `told`, of what is kept.
    pub(super) fn new(
        outputs: Arc<dyn Outputs>,
        id: OperationId,
        whole: bool,
        kept: [u64; 2],
        told: [u64; 2],
    ) -> Self {
        Self {
            outputs,
            id,
            whole,
            told,
            came: kept,
            known: kept,
            turn: 0,
            reach: VecDeque::new(),
            accepted: false,
            input_taken: None,
            ended: None,
            next: None,
            reading: None,
            left: false,
        }
    }

    /// Whether there is something that it was not told.
    pub(super) fn is_behind(&self) -> bool {
        let all_told = self.next.is_none()
            && self.reading.is_none()
            && self.told == self.came
            && self.reach.is_empty()
            && !self.accepted
            && self.input_taken.is_none()
            && self.ended.is_none();
        !self.left && !all_told
    }

    /// Whether it is to be told the end.
    pub(super) fn is_ending(&self) -> bool {
        let next = matches!(self.next, Some(OperationEvent::Ended(_)));
        self.is_behind() && (next || self.ended.is_some())
    }

    /// Something happened. Bytes are kept before, or the reader is not behind.
    pub(super) fn note(&mut self, event: OperationEvent, events: &mpsc::Sender<OperationEvent>) {
        match event {
            OperationEvent::Output {
                stream,
                offset,
                ref data,
            } => {
                let keeps_up = !self.is_behind() && self.told[stream as usize] == offset;
                let end = offset.saturating_add(data.len() as u64);
                self.came[stream as usize] = end.max(self.came[stream as usize]);
                if keeps_up {
                    self.told[stream as usize] = end;
                    self.tell_next(event, events);
                }
            }
            // What its runner does not keep any more, because another reader had it, is kept here.
            OperationEvent::Gap { stream, to, .. } => {
                self.came[stream as usize] = to.max(self.came[stream as usize]);
                self.known[stream as usize] = to.max(self.known[stream as usize]);
            }
            OperationEvent::Reachable
                if matches!(self.reach.back(), Some(OperationEvent::Unreachable { .. })) =>
            {
                self.reach.pop_back();
            }
            OperationEvent::Unreachable { .. } | OperationEvent::Reachable => {
                self.reach.push_back(event);
            }
            // Not behind for that alone: what comes next would have to be read from what is kept.
            OperationEvent::Accepted if !self.is_behind() => {
                self.tell_next(event, events);
            }
            OperationEvent::Accepted => self.accepted = true,
            OperationEvent::InputTaken(up_to) => self.input_taken = Some(up_to),
            OperationEvent::Ended(outcome) => self.ended = Some(outcome),
        }
    }

    /// This is the end that is stored: whoever is yet to be told an end is told this one.
    pub(super) fn ended_as(&mut self, stored: &Outcome) {
        if let Some(ended) = &mut self.ended {
            ended.clone_from(stored);
        }
    }

    /// Tells what is next, once the reader has room; waits where it was told all. Cancel-safe.
    ///
    /// # Errors
    /// What it is to be told cannot be read, or was never written.
    pub(super) async fn feed(
        &mut self,
        events: &mpsc::Sender<OperationEvent>,
    ) -> Result<(), PortError> {
        while self.is_behind() {
            if self.next.is_some() {
                match events.reserve().await {
                    Ok(room) => self.tell(room),
                    Err(_) => self.left = true,
                }
                return Ok(());
            }
            match &mut self.reading {
                Some((stream, reading)) => {
                    let (stream, read) = (*stream, reading.await);
                    self.reading = None;
                    self.next = Some(self.piece(stream, read?));
                }
                None => self.begin(),
            }
        }
        pending().await
    }

    /// At once, where there is room.
    fn tell_next(&mut self, event: OperationEvent, events: &mpsc::Sender<OperationEvent>) {
        self.next = Some(event);
        if let Ok(room) = events.try_reserve() {
            self.tell(room);
        }
    }

    fn tell(&mut self, room: mpsc::Permit<'_, OperationEvent>) {
        if let Some(event) = self.next.take() {
            room.send(event);
        }
    }

    /// Finds what is next: what is small first, the end last.
    fn begin(&mut self) {
        let accepted = || take(&mut self.accepted).then_some(OperationEvent::Accepted);
        let taken = || self.input_taken.take().map(OperationEvent::InputTaken);
        self.next = self.reach.pop_front().or_else(accepted).or_else(taken);
        if self.next.is_some() {
            return;
        }
        for index in [self.turn, 1 - self.turn] {
            if self.told[index] < self.came[index] {
                self.turn = 1 - index;
                self.reading = Some((STREAMS[index], self.read(STREAMS[index])));
                return;
            }
        }
        self.next = self.ended.take().map(OperationEvent::Ended);
    }

    fn read(&self, stream: OutputStream) -> Reading {
        let (outputs, id, whole) = (Arc::clone(&self.outputs), self.id, self.whole);
        let (from, known) = (self.told[stream as usize], self.known[stream as usize]);
        Box::pin(async move {
            let kept = outputs.read(id, stream, from).await?;
            let is_there = kept.as_ref().is_some_and(|(offset, _)| *offset == from);
            if whole && !is_there && from >= known {
                return Err(PortError::new("some of the output could not be kept"));
            }
            Ok(kept)
        })
    }

    /// What the reader is told of what was read where it stands.
    fn piece(&mut self, stream: OutputStream, read: Option<(u64, Bytes)>) -> OperationEvent {
        let (told, came) = (&mut self.told[stream as usize], self.came[stream as usize]);
        let from = *told;
        match read {
            Some((offset, mut data)) if offset == from => {
                data.truncate(usize::try_from(came - from).unwrap_or(usize::MAX));
                *told = from + data.len() as u64;
                OperationEvent::Output {
                    stream,
                    offset,
                    data,
                }
            }
            later => {
                let to = later.map_or(came, |(offset, _)| offset.min(came));
                *told = to;
                OperationEvent::Gap { stream, from, to }
            }
        }
    }
}
