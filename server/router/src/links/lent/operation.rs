//! One operation of a lent link: its events go out within the credit of the other replica, and input, controls and
//! commits come in.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, future::join, stream::FuturesUnordered};
use shared_link::lent;
use shared_sandbox::{
    Control, Controls, EndToken, Events, Input, OperationEvent, Outcome, OutputStream, Running,
};
use shared_types::{
    OperationId, Refusal,
    limits::{CREDIT_WINDOW_BYTES, INPUT_CHUNK_BYTES, INPUT_WINDOW_BYTES, OUTPUT_CHUNK_BYTES},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::AbortHandle,
    time::timeout,
};

use super::{Answers, LentAnswer};
use crate::bounds::END_STORED_WITHIN;

/// The loan's hold on an operation. Dropped, it detaches the other replica's reader.
pub(super) struct LentOperation {
    input: mpsc::UnboundedSender<Input>,
    passed: mpsc::UnboundedSender<Passed>,
    /// The offsets up to which the other replica has room for stdout and stderr.
    credit: watch::Sender<[u64; 2]>,
    stored: oneshot::Sender<()>,
    state: Arc<State>,
    number: u64,
    task: Option<AbortHandle>,
}

#[derive(Default)]
struct State {
    /// The other replica has the answer to its order.
    is_answered: AtomicBool,
    /// Bytes of input that wait.
    waiting_input: AtomicU64,
}

/// Something for the operation, beside its input.
pub(super) enum Passed {
    Control(u64, Control),
    Commit(OutputStream, u64),
}

/// An operation with the other replica's reader.
pub(super) enum Attached {
    /// One of its readers.
    Reader(Running),
    /// The only reader of output that is kept nowhere. If its events end without an end, another one has its place.
    OneReader(Running),
}

/// The way in which the events of an operation ended.
pub(super) enum End {
    /// The other replica was told the end, or a refusal.
    Told,
    /// Another reader has taken its place.
    Superseded,
    /// The collector has given it up, and the link as well.
    GivenUp,
}

/// The task's side.
struct Lending {
    id: OperationId,
    answers: Answers,
    credit: watch::Receiver<[u64; 2]>,
    state: Arc<State>,
}

/// Lends an operation that `attached` attaches to. Returns the hold on it, and its work.
pub(super) fn lend(
    id: OperationId,
    from: [u64; 2],
    attached: impl Future<Output = Result<Attached, Refusal>>,
    answers: Answers,
) -> (LentOperation, impl Future<Output = End>) {
    let (input, inputs) = mpsc::unbounded_channel();
    let (passed, all_passed) = mpsc::unbounded_channel();
    let window = from.map(|from| from.saturating_add(CREDIT_WINDOW_BYTES));
    let (credit, credited) = watch::channel(window);
    let (stored, is_stored) = oneshot::channel();
    let state = Arc::new(State::default());
    let lending = Lending {
        id,
        answers,
        credit: credited,
        state: Arc::clone(&state),
    };
    let lent = LentOperation {
        input,
        passed,
        credit,
        stored,
        state,
        number: 0,
        task: None,
    };
    let run = async move {
        let (running, without_end) = match attached.await {
            Ok(Attached::Reader(running)) => (running, End::GivenUp),
            Ok(Attached::OneReader(running)) => (running, End::Superseded),
            Err(refusal) => {
                let refused = lending.refuse(refusal).await;
                return refused.map_or(End::GivenUp, |()| End::Told);
            }
        };
        let Running {
            events, controls, ..
        } = running;
        let inputs = lending.take_input(&*controls, inputs);
        let passed = lending.take_passed(&*controls, all_passed);
        tokio::select! {
            // First, because the loan lets go of the operation once its end is stored.
            biased;
            end = lending.tell(events, without_end, is_stored) => end,
            ((), ()) = join(inputs, passed) => End::Told,
        }
    };
    (lent, run)
}

impl LentOperation {
    /// The work is this task, with this number.
    pub(super) fn by(mut self, number: u64, task: AbortHandle) -> Self {
        (self.number, self.task) = (number, Some(task));
        self
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn is_answered(&self) -> bool {
        self.state.is_answered.load(Ordering::Acquire)
    }

    pub(super) fn grant(&self, stream: OutputStream, up_to: u64) {
        self.credit.send_if_modified(|credit| {
            let credit = &mut credit[stream as usize];
            let is_more = up_to > *credit;
            *credit = up_to.max(*credit);
            is_more
        });
    }

    /// Takes a piece of input; none if the other replica sends more than the window.
    pub(super) fn input(&self, piece: Input) -> Option<()> {
        let bytes = piece.data.len() as u64;
        let waiting = self.state.waiting_input.fetch_add(bytes, Ordering::AcqRel);
        let at_most = INPUT_WINDOW_BYTES + INPUT_CHUNK_BYTES as u64;
        if waiting + bytes > at_most {
            return None;
        }
        // One that has ended takes no more.
        let _ = self.input.send(piece);
        Some(())
    }

    pub(super) fn pass(&self, passed: Passed) {
        // Likewise.
        let _ = self.passed.send(passed);
    }

    /// The other replica has stored the end that it was told.
    pub(super) fn stored(mut self) {
        let (nobody, _) = oneshot::channel();
        let _ = std::mem::replace(&mut self.stored, nobody).send(());
        // Its work is done in a moment.
        self.task = None;
    }
}

impl Drop for LentOperation {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Lending {
    async fn send(&self, frame: proto::v1::RunnerFrame) -> Option<()> {
        self.answers.send(LentAnswer::Frame(frame)).await.ok()
    }

    /// Says once that the operation is known. All but a refusal comes behind that.
    async fn accepted(&self) -> Option<()> {
        if self.state.is_answered.load(Ordering::Acquire) {
            return Some(());
        }
        self.send(lent::accepted(self.id)).await?;
        self.state.is_answered.store(true, Ordering::Release);
        Some(())
    }

    /// Says that it is refused.
    async fn refuse(&self, refusal: Refusal) -> Option<()> {
        self.send(lent::ended(self.id, Outcome::Refused(refusal)))
            .await?;
        self.state.is_answered.store(true, Ordering::Release);
        Some(())
    }

    /// Tells all events. The end may be the other replica's to store; then this waits until it has.
    async fn tell(
        &self,
        mut events: Box<dyn Events>,
        without_end: End,
        stored: oneshot::Receiver<()>,
    ) -> End {
        match self.tell_events(&mut *events).await {
            Some(Told::End(Some(token))) => {
                // Where the other replica has stored an end, the collector finds that: it may be another one.
                // One that cannot reach the database must not keep the end from others.
                let _ = timeout(END_STORED_WITHIN, stored).await;
                drop(token);
                End::Told
            }
            Some(Told::End(None)) => End::Told,
            Some(Told::NoEnd) => without_end,
            None => End::GivenUp,
        }
    }

    async fn tell_events(&self, events: &mut dyn Events) -> Option<Told> {
        let mut credit = self.credit.clone();
        while let Some(event) = events.recv().await {
            match event {
                OperationEvent::Accepted => self.accepted().await?,
                OperationEvent::Output {
                    stream,
                    offset,
                    data,
                } => {
                    self.accepted().await?;
                    self.output(&mut credit, stream, offset, data).await?;
                }
                OperationEvent::Gap { stream, from, to } => {
                    self.accepted().await?;
                    self.send(lent::gap(self.id, stream, from, to)).await?;
                }
                OperationEvent::InputTaken(up_to) => {
                    self.accepted().await?;
                    self.send(lent::input_taken(self.id, Ok(up_to))).await?;
                }
                // The loan ends with the link.
                OperationEvent::Unreachable { .. } | OperationEvent::Reachable => {}
                OperationEvent::Ended(Outcome::Refused(refusal)) => {
                    self.refuse(refusal).await?;
                    return Some(Told::End(events.end_token()));
                }
                OperationEvent::Ended(outcome) => {
                    self.accepted().await?;
                    self.send(lent::ended(self.id, outcome)).await?;
                    return Some(Told::End(events.end_token()));
                }
            }
        }
        Some(Told::NoEnd)
    }

    async fn output(
        &self,
        credit: &mut watch::Receiver<[u64; 2]>,
        stream: OutputStream,
        mut offset: u64,
        mut data: Bytes,
    ) -> Option<()> {
        while !data.is_empty() {
            let has_room = |credit: &[u64; 2]| credit[stream as usize] > offset;
            let granted = credit.wait_for(has_room).await.ok()?[stream as usize];
            let room = granted - offset;
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            let piece = data.split_to(data.len().min(OUTPUT_CHUNK_BYTES).min(room));
            let at = offset;
            offset += piece.len() as u64;
            self.send(lent::output(self.id, stream, at, piece)).await?;
        }
        Some(())
    }

    async fn take_input(
        &self,
        controls: &dyn Controls,
        mut pieces: mpsc::UnboundedReceiver<Input>,
    ) {
        while let Some(mut piece) = pieces.recv().await {
            let bytes = piece.data.len() as u64;
            let end = piece.offset + bytes;
            loop {
                match controls.input(piece.clone()).await {
                    // There was no room for all of it.
                    Ok(up_to) if piece.offset < up_to && up_to < end => {
                        let taken = usize::try_from(up_to - piece.offset).unwrap_or(usize::MAX);
                        piece.data = piece.data.split_off(taken.min(piece.data.len()));
                        piece.offset = up_to;
                    }
                    Ok(_) => break,
                    Err(refusal) => {
                        if self
                            .send(lent::input_taken(self.id, Err(refusal)))
                            .await
                            .is_none()
                        {
                            return;
                        }
                        break;
                    }
                }
            }
            self.state.waiting_input.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    async fn take_passed(
        &self,
        controls: &dyn Controls,
        mut passed: mpsc::UnboundedReceiver<Passed>,
    ) {
        let mut under_way = FuturesUnordered::new();
        loop {
            tokio::select! {
                next = passed.recv() => match next {
                    Some(Passed::Control(id, control)) => {
                        under_way.push(async move { (id, controls.control(control).await) });
                    }
                    Some(Passed::Commit(stream, up_to)) => controls.commit(stream, up_to).await,
                    None => return,
                },
                Some((id, result)) = under_way.next() => {
                    if self.send(lent::done(self.id, id, result)).await.is_none() {
                        return;
                    }
                }
            }
        }
    }
}

/// What the events of an operation ended with.
enum Told {
    /// Its end, which the other replica may store by this token.
    End(Option<EndToken>),
    NoEnd,
}
