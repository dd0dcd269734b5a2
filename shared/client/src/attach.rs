//! The client's side of an operation's WebSocket.
//!
//! A task owns the connection and reconnects when it is lost. It hands over each byte of output once, and sends each
//! byte of input until the server has taken it. All channels are bounded.
//!
//! A consumer that takes nothing for a while holds no connection. The task closes it and reconnects once the consumer
//! continues. So a pager that stands still neither fills memory nor counts as a lost connection.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use shared_api::{
    Operation, OperationServerMessage, Problem, StartOperation, StreamName, TerminalSize,
};
use shared_types::{Entropy, OperationId, Timestamp};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until},
};
use tokio_tungstenite::tungstenite::Bytes;

use crate::{
    ClientError, backoff,
    follow::{ASKED, UNTOLD_WAIT},
    http::Http,
    offsets::{Offsets, Piece, SocketMessage},
    operations::start,
    socket::{OperationSocket, Turned},
};

#[cfg(test)]
mod tests;

/// Items that may wait for a slow consumer before the connection is read no further.
const QUEUE: usize = 16;

/// The longest time that a consumer may take nothing before the connection is closed.
const SLOW_AFTER: Duration = Duration::from_secs(10);

/// A connection that broke after this time was none that fails.
const LASTING: Duration = Duration::from_secs(60);

/// Failures in a row after which a server counts as gone: about a quarter of an hour.
pub(crate) const GIVE_UP_AFTER: u32 = 180;

/// Something that an attached client hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Attached {
    /// The operation as it is now; once for each connection, before all else.
    Operation(Box<Operation>),
    /// Output: each byte once and in order.
    Output {
        /// Its stream.
        stream: StreamName,
        /// The offset of the first byte.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// Output that is not kept any more.
    Gap {
        /// Its stream.
        stream: StreamName,
        /// The first byte that is missing.
        from: u64,
        /// The first byte behind it.
        to: u64,
    },
    /// The runner cannot be reached. The operation goes on.
    Unreachable {
        /// When the runner was last heard of.
        since: Timestamp,
    },
    /// The runner is back.
    Reachable,
    /// All input below this offset was taken.
    InputTaken {
        /// The offset.
        offset: u64,
    },
    /// Input that was taken is lost at the runner: it has to be handed over again from here on.
    InputWanted {
        /// The offset.
        from: u64,
    },
    /// The server refused something that was sent.
    Problem(Problem),
    /// The connection is lost and the client reconnects; reported once until it is back. A server that asked the client
    /// to reconnect, and is back within about a second, is not reported.
    Lost {
        /// Why, for people.
        reason: String,
        /// True where the server has answered, and said no for now: the reason is its own words.
        is_refused: bool,
    },
    /// The connection is back; what was missed comes next.
    Recovered,
    /// The operation ended; nothing follows.
    Ended(Box<Operation>),
}

/// An operation as it happens. Dropping it ends the connection and nothing else.
#[derive(Debug)]
pub struct Attach {
    items: mpsc::Receiver<Result<Attached, ClientError>>,
}

/// Passes things on to an attached operation.
#[derive(Debug, Clone)]
pub struct Controls {
    input: mpsc::Sender<Piece>,
    untaken: Arc<watch::Sender<Untaken>>,
    size: Arc<watch::Sender<Option<Resized>>>,
    stored: Arc<watch::Sender<u64>>,
}

/// Room for one piece of input.
#[derive(Debug)]
pub struct InputRoom<'a> {
    place: mpsc::Permit<'a, Piece>,
    untaken: &'a watch::Sender<Untaken>,
}

/// The input that the server has not taken yet.
#[derive(Debug, Clone, Copy, Default)]
struct Untaken {
    /// Pieces that wait for the task which owns the connection.
    queued: usize,
    /// True if that task holds input that the server has not taken.
    held: bool,
}

/// The last size of the terminal.
#[derive(Debug, Clone, Copy)]
struct Resized {
    size: TerminalSize,
    redraw: bool,
}

/// The operation to attach to.
#[derive(Debug)]
pub(crate) enum AttachTarget {
    /// An operation that is started first, under this idempotency key.
    New(Box<StartOperation>, String),
    /// One that there is.
    Known(OperationId),
}

impl Attach {
    pub(crate) fn start(
        http: Http,
        entropy: Arc<dyn Entropy>,
        target: AttachTarget,
        offsets: Offsets,
    ) -> (Self, Controls) {
        let (items, receiver) = mpsc::channel(QUEUE);
        let (input, pieces) = mpsc::channel(1);
        let (size, sizes) = watch::channel(None);
        let (stored, stored_by) = watch::channel(0);
        let untaken = Arc::new(watch::Sender::default());
        let driver = AttachDriver {
            items: items.clone(),
            http,
            entropy,
            target,
            wishes: ConsumerRequests {
                offsets,
                pieces,
                untaken: Arc::clone(&untaken),
                sizes,
                stored: stored_by,
            },
            outbox: VecDeque::new(),
            reached: false,
            lost: false,
            failures: 0,
        };
        tokio::spawn(async move {
            tokio::select! {
                () = driver.run() => {}
                () = items.closed() => {}
            }
        });
        let controls = Controls {
            input,
            untaken,
            size: Arc::new(size),
            stored: Arc::new(stored),
        };
        (Self { items: receiver }, controls)
    }

    /// Waits for the next item; `None` after the last one, which is [`Attached::Ended`] or an error. A caller may drop
    /// the future while it waits.
    ///
    /// # Errors
    /// Fails when reconnecting cannot help: the operation could not be started, the credential is not valid, the server
    /// speaks another protocol, or it was away for about 15 minutes.
    pub async fn next(&mut self) -> Option<Result<Attached, ClientError>> {
        self.items.recv().await
    }
}

impl Controls {
    /// Waits until there is room for a piece of input; `None` where the operation has ended. Safe to
    /// abandon while it waits.
    pub async fn room(&self) -> Option<InputRoom<'_>> {
        let place = self.input.reserve().await.ok()?;
        Some(InputRoom {
            place,
            untaken: &self.untaken,
        })
    }

    /// Waits until the server has taken all input that was handed over; for ever where there is no way
    /// to it.
    pub async fn all_taken(&self) {
        let mut untaken = self.untaken.subscribe();
        // The sender is ours.
        let _ = untaken.wait_for(|now| now.queued == 0 && !now.held).await;
    }

    /// Sets the size of the terminal. With `redraw`, the program is made to draw everything again.
    pub fn resize(&self, size: TerminalSize, redraw: bool) {
        self.size.send_replace(Some(Resized { size, redraw }));
    }

    /// Output of a download below this offset is stored here: the server need not keep it.
    pub fn stored(&self, offset: u64) {
        self.stored.send_replace(offset);
    }
}

impl InputRoom<'_> {
    /// Hands over a piece of input.
    pub fn fill(self, piece: Piece) {
        self.untaken.send_modify(|now| now.queued += 1);
        self.place.send(piece);
    }
}

struct AttachDriver {
    items: mpsc::Sender<Result<Attached, ClientError>>,
    http: Http,
    entropy: Arc<dyn Entropy>,
    target: AttachTarget,
    wishes: ConsumerRequests,
    /// The items that the consumer has not taken yet. While there is one, the task reads nothing.
    outbox: VecDeque<Attached>,
    /// True once the server has answered.
    reached: bool,
    lost: bool,
    failures: u32,
}

/// The consumer's input, sizes and receipts, and the offsets of both directions.
struct ConsumerRequests {
    offsets: Offsets,
    pieces: mpsc::Receiver<Piece>,
    untaken: Arc<watch::Sender<Untaken>>,
    sizes: watch::Receiver<Option<Resized>>,
    stored: watch::Receiver<u64>,
}

/// The reason why a connection has ended.
enum AttachEnd {
    /// The operation ended, and everything was handed over.
    Ended,
    /// The consumer takes nothing for now.
    Slow,
    /// It failed; another one may help or not.
    Failed(ClientError),
    /// The server asks for another one within this time.
    Asked(Duration),
}

enum Happened {
    Turned(Result<Turned, ClientError>),
    HandedOver,
    Wished,
    Slow,
}

impl AttachDriver {
    async fn run(mut self) {
        loop {
            let Err(over) = self.connection().await;
            let error = match over {
                AttachEnd::Ended => return,
                AttachEnd::Slow => {
                    self.empty_outbox().await;
                    continue;
                }
                AttachEnd::Asked(within) => {
                    self.again_within(within).await;
                    continue;
                }
                AttachEnd::Failed(error) => error,
            };
            if !self.again_after(error).await {
                return;
            }
        }
    }

    async fn connection(&mut self) -> Result<std::convert::Infallible, AttachEnd> {
        let id = self.started().await?;
        let offsets = &self.wishes.offsets;
        let [stdout, stderr] = [StreamName::Stdout, StreamName::Stderr].map(|s| offsets.have(s));
        let http = self.http.clone();
        let connect = OperationSocket::connect(&http, id, stdout, stderr);
        let mut socket = self.wishes.meanwhile(connect).await?;
        self.wishes.offsets.connected();
        let began = Instant::now();
        let Err(over) = self.converse(&mut socket).await;
        if began.elapsed() > LASTING {
            self.failures = 0;
        }
        Err(over)
    }

    async fn converse(
        &mut self,
        socket: &mut OperationSocket,
    ) -> Result<std::convert::Infallible, AttachEnd> {
        let mut outgoing = None;
        let mut slow_at = Instant::now() + SLOW_AFTER;
        loop {
            if outgoing.is_none() {
                outgoing = self.wishes.offsets.next_message();
            }
            let is_reading = self.outbox.is_empty();
            let happened = tokio::select! {
                turned = socket.turn(&mut outgoing, is_reading) => Happened::Turned(turned),
                room = self.items.reserve(), if !is_reading => {
                    let item = self.outbox.pop_front();
                    if let (Ok(room), Some(item)) = (room, item) {
                        room.send(Ok(item));
                    }
                    Happened::HandedOver
                }
                () = self.wishes.heed() => Happened::Wished,
                () = sleep_until(slow_at), if !is_reading => Happened::Slow,
            };
            match happened {
                Happened::Turned(turned) => self.turned(turned).await?,
                Happened::Slow => return Err(AttachEnd::Slow),
                Happened::HandedOver => slow_at = Instant::now() + SLOW_AFTER,
                Happened::Wished => {}
            }
            if is_reading {
                slow_at = Instant::now() + SLOW_AFTER;
            }
        }
    }

    /// The operation's id; it is started where it was not yet.
    async fn started(&mut self) -> Result<OperationId, AttachEnd> {
        let (request, key) = match &self.target {
            AttachTarget::Known(id) => return Ok(*id),
            AttachTarget::New(request, key) => (request.clone(), key.clone()),
        };
        let http = self.http.clone();
        let operation = self.wishes.meanwhile(start(&http, &request, &key)).await?;
        self.reached = true;
        let id = operation.id;
        self.target = AttachTarget::Known(id);
        if std::mem::take(&mut self.lost) {
            self.hand_over(Ok(Attached::Recovered)).await;
        }
        // It is known from now on, also where no connection comes about.
        self.hand_over(Ok(Attached::Operation(operation.into())))
            .await;
        Ok(id)
    }
}

impl AttachDriver {
    async fn turned(&mut self, turned: Result<Turned, ClientError>) -> Result<(), AttachEnd> {
        let heard = match turned? {
            Turned::Sent => return Ok(()),
            Turned::Heard(heard) => heard,
            Turned::Closed { is_final, error } => {
                let problem = self.wishes.offsets.problem().filter(|_| is_final);
                return Err(AttachEnd::Failed(
                    problem.map_or(error, ClientError::Refused),
                ));
            }
        };
        self.reached = true;
        // The first word comes over each connection, also one that always breaks at the next.
        if !matches!(
            heard,
            SocketMessage::Message(OperationServerMessage::Operation { .. })
        ) {
            self.failures = 0;
        }
        if std::mem::take(&mut self.lost) {
            self.outbox.push_back(Attached::Recovered);
        }
        if let SocketMessage::Message(OperationServerMessage::Reconnect { within_ms }) = heard {
            return Err(AttachEnd::Asked(Duration::from_millis(within_ms.into())));
        }
        let accepted = self.wishes.offsets.accept(heard);
        self.wishes.note_taken(0);
        let item = accepted.map_err(|broken| self.http.unreachable(broken.to_string()))?;
        let is_end = matches!(item, Some(Attached::Ended(_)));
        self.outbox.extend(item);
        if is_end {
            self.empty_outbox().await;
            return Err(AttachEnd::Ended);
        }
        Ok(())
    }

    /// Waits until the consumer has taken everything.
    async fn empty_outbox(&mut self) {
        while let Some(item) = self.outbox.pop_front() {
            self.hand_over(Ok(item)).await;
        }
    }

    async fn hand_over(&mut self, item: Result<Attached, ClientError>) {
        let items = self.items.clone();
        // If the consumer is gone, this task ends too.
        let _ = self.wishes.meanwhile(items.send(item)).await;
    }

    /// Waits before the next connection; `false` where there is no use in one.
    async fn again_after(&mut self, error: ClientError) -> bool {
        self.failures += 1;
        if self.is_final(&error) {
            self.empty_outbox().await;
            self.hand_over(Err(error)).await;
            return false;
        }
        // A start that may have arrived is repeated like anything else that is under way.
        self.reached = true;
        let is_refused = matches!(error, ClientError::Refused(_));
        let reason = match error {
            ClientError::Unreachable { reason, .. } => reason,
            error => error.to_string(),
        };
        self.note_lost(reason, is_refused);
        self.empty_outbox().await;
        let wait = backoff::before(self.failures, &*self.entropy);
        self.wishes.meanwhile(sleep(wait)).await;
        true
    }

    /// Waits before the connection that the server asks for.
    async fn again_within(&mut self, within: Duration) {
        let wait = backoff::asked(within, &*self.entropy);
        if wait > UNTOLD_WAIT {
            self.note_lost(ASKED.to_owned(), false);
        }
        self.empty_outbox().await;
        self.wishes.meanwhile(sleep(wait)).await;
    }

    /// The consumer is to hear that there is no connection, once until it is back.
    fn note_lost(&mut self, reason: String, is_refused: bool) {
        if !std::mem::replace(&mut self.lost, true) {
            self.outbox.push_back(Attached::Lost { reason, is_refused });
        }
    }

    fn is_final(&self, error: &ClientError) -> bool {
        let never_reached = match error {
            ClientError::Unreachable { is_sent, .. } if !self.reached => {
                matches!(self.target, AttachTarget::Known(_)) || !is_sent
            }
            _ => false,
        };
        never_reached || !error.is_passing() || self.failures > GIVE_UP_AFTER
    }
}

impl ConsumerRequests {
    /// Takes the next wish.
    async fn heed(&mut self) {
        tokio::select! {
            Some(piece) = self.pieces.recv(), if self.offsets.has_room() => {
                self.offsets.input(piece);
                self.note_taken(1);
            }
            Ok(()) = self.sizes.changed() => {
                if let Some(Resized { size, redraw }) = *self.sizes.borrow_and_update() {
                    self.offsets.resize(size, redraw);
                }
            }
            Ok(()) = self.stored.changed() => {
                self.offsets.stored(*self.stored.borrow_and_update());
            }
            else => std::future::pending().await,
        }
    }

    /// Publishes how much input the server has not taken, after `pieces` of it left the queue.
    fn note_taken(&self, pieces: usize) {
        let held = !self.offsets.is_all_taken();
        self.untaken.send_modify(|now| {
            now.queued -= pieces;
            now.held = held;
        });
    }

    /// Takes wishes until something else is done.
    async fn meanwhile<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = std::pin::pin!(other);
        loop {
            tokio::select! {
                biased;
                done = &mut other => return done,
                () = self.heed() => {}
            }
        }
    }
}

impl From<ClientError> for AttachEnd {
    fn from(error: ClientError) -> Self {
        Self::Failed(error)
    }
}
