//! A connection over a program's standard input and output: one message on each line.

use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use crate::{
    McpError,
    bounds::{MAX_MESSAGE_BYTES, MAX_QUESTIONS, MAX_STRAY_LINES},
    elicit::{self, Person},
    message::{self, Incoming, RpcError},
};

/// The time in which the reader of a program that takes no input any more hears of its end.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Messages that wait to be written; a writer waits behind them.
const QUEUE: usize = 64;

/// The standard output of a program.
#[async_trait]
pub trait PipeReader: Send {
    /// The next bytes, at least one.
    ///
    /// # Errors
    /// There are no more; the words say why.
    async fn read(&mut self) -> Result<Bytes, String>;
}

/// The standard input of a program.
#[async_trait]
pub trait PipeWriter: Send {
    /// Writes all of the bytes behind those before.
    ///
    /// # Errors
    /// The program takes none any more; the words say why.
    async fn write(&mut self, bytes: Bytes) -> Result<(), String>;
}

/// Both ends of a program.
pub struct Pipe {
    /// Its standard output.
    pub reader: Box<dyn PipeReader>,
    /// Its standard input.
    pub writer: Box<dyn PipeWriter>,
}

/// An open connection. Dropping it ends its tasks, and leaves the program to its owner.
pub(crate) struct PipeLink {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

struct Shared {
    pending: Mutex<Pending>,
    out: mpsc::Sender<Bytes>,
    changed: Arc<AtomicBool>,
    /// True once the server is known to be of the era in which it may ask in its own name.
    takes_requests: AtomicBool,
}

/// The requests that wait for their answers, or the reason why none does any more.
enum Pending {
    Open(HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>),
    Ended(McpError),
}

impl PipeLink {
    pub(crate) fn open(pipe: Pipe, person: Arc<dyn Person>, changed: Arc<AtomicBool>) -> Self {
        let Pipe { reader, mut writer } = pipe;
        let (out, mut queue) = mpsc::channel::<Bytes>(QUEUE);
        let shared = Arc::new(Shared {
            pending: Mutex::new(Pending::Open(HashMap::new())),
            out,
            changed,
            takes_requests: AtomicBool::new(true),
        });
        let of_writer = Arc::clone(&shared);
        let writing = async move {
            while let Some(line) = queue.recv().await {
                if let Err(why) = writer.write(line).await {
                    // The reader hears how the program ended, which says more.
                    sleep(END_WITHIN).await;
                    of_writer.end(McpError::Closed(why));
                    return;
                }
            }
        };
        let of_reader = Arc::clone(&shared);
        let reading = async move {
            let ended = pump(reader, &of_reader, person).await;
            of_reader.end(ended);
        };
        Self {
            shared,
            tasks: [tokio::spawn(writing), tokio::spawn(reading)],
        }
    }

    /// The server is of the era in which only clients ask.
    pub(crate) fn take_no_requests(&self) {
        self.shared.takes_requests.store(false, Ordering::Relaxed);
    }

    /// The reason why the connection is over, if it is.
    pub(crate) fn ended(&self) -> Option<McpError> {
        match &*self.shared.pending() {
            Pending::Open(_) => None,
            Pending::Ended(error) => Some(error.clone()),
        }
    }

    /// The answer to a request. Dropping the future withdraws the request.
    pub(crate) async fn exchange(
        &self,
        id: u64,
        message: &Value,
    ) -> Result<Result<Value, RpcError>, McpError> {
        let (answer, answered) = oneshot::channel();
        match &mut *self.shared.pending() {
            Pending::Open(pending) => pending.insert(id, answer),
            Pending::Ended(error) => return Err(error.clone()),
        };
        let waits = Waits {
            shared: &self.shared,
            id,
        };
        self.notify(message).await?;
        let answered = answered.await;
        mem::forget(waits);
        answered.map_err(|_| self.ended().unwrap_or_else(gone))
    }

    /// Sends a message that wants no answer.
    pub(crate) async fn notify(&self, message: &Value) -> Result<(), McpError> {
        let sent = self.shared.out.send(line(message)).await;
        sent.map_err(|_| self.ended().unwrap_or_else(gone))
    }
}

impl Drop for PipeLink {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Shared {
    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, error: McpError) {
        let mut pending = self.pending();
        if let Pending::Open(_) = *pending {
            // Their senders are dropped with this.
            *pending = Pending::Ended(error);
        }
    }
}

/// A request that waits for its answer. Dropping this withdraws it at the server.
struct Waits<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if let Pending::Open(pending) = &mut *self.shared.pending() {
            pending.remove(&self.id);
        }
        let params = json!({ "requestId": self.id, "reason": "not waited for any more" });
        let cancelled = message::notification("notifications/cancelled", &params);
        // Where the queue is full the server does not read, and would not read this either.
        let _ = self.shared.out.try_send(line(&cancelled));
    }
}

fn gone() -> McpError {
    McpError::Closed("the connection is closed".to_owned())
}

fn line(message: &Value) -> Bytes {
    let mut line = message.to_string();
    line.push('\n');
    line.into()
}

/// Reads messages until the connection ends; returns why.
async fn pump(
    mut reader: Box<dyn PipeReader>,
    shared: &Arc<Shared>,
    person: Arc<dyn Person>,
) -> McpError {
    let (mut lines, mut stray) = (Lines::default(), 0);
    let mut questions = JoinSet::new();
    loop {
        let bytes = match reader.read().await {
            Ok(bytes) => bytes,
            Err(why) => return McpError::Closed(why),
        };
        lines.push(&bytes);
        while let Some(line) = lines.next() {
            match Incoming::read(&line) {
                Some(message) => take(message, shared, &person, &mut questions),
                None if line.trim_ascii().is_empty() => {}
                None => stray += 1,
            }
            if stray > MAX_STRAY_LINES {
                return McpError::Stray;
            }
        }
        if lines.rest() > MAX_MESSAGE_BYTES {
            return McpError::TooLarge(MAX_MESSAGE_BYTES);
        }
        while questions.try_join_next().is_some() {}
    }
}

fn take(
    message: Incoming,
    shared: &Arc<Shared>,
    person: &Arc<dyn Person>,
    questions: &mut JoinSet<()>,
) {
    match message {
        Incoming::Response(id, outcome) => {
            let waits = match &mut *shared.pending() {
                Pending::Open(pending) => pending.remove(&id),
                Pending::Ended(_) => None,
            };
            if let Some(waits) = waits {
                // The caller may have dropped its request.
                let _ = waits.send(outcome);
            }
        }
        Incoming::Notification { method, .. } if method == "notifications/tools/list_changed" => {
            shared.changed.store(true, Ordering::Relaxed);
        }
        Incoming::Request { id, method, params }
            if shared.takes_requests.load(Ordering::Relaxed) =>
        {
            let refused = |words| message::response(&id, Err((-32601, words)));
            let reply = match method.as_str() {
                "ping" => message::response(&id, Ok(json!({}))),
                "elicitation/create" if person.is_there() && questions.len() < MAX_QUESTIONS => {
                    let (person, out) = (Arc::clone(person), shared.out.clone());
                    questions.spawn(async move {
                        let answer = elicit::answer(&*person, &params).await;
                        // The connection may be over by now.
                        let _ = out.send(line(&message::response(&id, Ok(answer)))).await;
                    });
                    return;
                }
                _ => refused("this client does not do that"),
            };
            // A server that asks and does not read gets no answer.
            let _ = shared.out.try_send(line(&reply));
        }
        Incoming::Request { .. } | Incoming::Notification { .. } | Incoming::Error(_) => {}
    }
}

/// Splits bytes into lines.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// The bytes before it are lines that were taken.
    start: usize,
    /// The bytes between `start` and it have no end of a line.
    seen: usize,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.seen -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let end = self.bytes[self.seen..]
            .iter()
            .position(|byte| *byte == b'\n');
        let Some(end) = end else {
            self.seen = self.bytes.len();
            return None;
        };
        let line = self.bytes[self.start..self.seen + end].to_vec();
        self.seen += end + 1;
        self.start = self.seen;
        Some(line)
    }

    fn rest(&self) -> usize {
        self.bytes.len() - self.start
    }
}
