//! The asks of one link. They end with it: the server asks again over another one.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use http::Method;
use proto::v1;
use shared_link::runner::{
    ANSWER_HEADERS, AnswerHead, AnswerPart, AskFailure, AskFailureKind, AskKind,
    MAX_ANSWER_HEADER_BYTES, ModelOrder, model_answer,
};
use shared_types::{
    TraceContext,
    limits::{MODEL_BODY_BYTES, MODEL_PIECE_BYTES, MODEL_WINDOW_BYTES},
};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use super::{ModelServer, request::ModelReply};

/// Most asks at the same time.
const ASKS_AT_ONCE: usize = 8;

/// Most bytes of their bodies together.
const BODIES_BYTES: usize = 2 * MODEL_BODY_BYTES;

/// See the module.
pub(crate) struct Asks {
    server: Option<ModelServer>,
    outgoing: mpsc::Sender<v1::RunnerFrame>,
    asks: HashMap<u64, OpenAsk>,
}

struct OpenAsk {
    body_bytes: usize,
    stage: AskStage,
}

enum AskStage {
    /// The body is still coming.
    Body {
        kind: AskKind,
        body: BytesMut,
        trace: Option<TraceContext>,
    },
    /// The model server was asked.
    Asked {
        credit: watch::Sender<u64>,
        task: AbortOnDropHandle<()>,
    },
}

impl Asks {
    /// No asks yet, for a link on which frames go to `outgoing`.
    pub(crate) fn new(
        server: Option<ModelServer>,
        outgoing: mpsc::Sender<v1::RunnerFrame>,
    ) -> Self {
        Self {
            server,
            outgoing,
            asks: HashMap::new(),
        }
    }

    /// Carries out an order; returns the failure of an ask that is not carried out, to be sent.
    pub(crate) fn order(&mut self, order: ModelOrder) -> Option<v1::RunnerFrame> {
        match order {
            ModelOrder::Begin {
                ask,
                kind,
                body_bytes,
                trace,
            } => {
                let begun = self.begin(ask, kind, body_bytes, trace);
                begun.err().map(|failure| refused(ask, failure))
            }
            ModelOrder::Body { ask, data } => {
                let added = self.body(ask, &data);
                added.err().map(|failure| {
                    self.asks.remove(&ask);
                    refused(ask, failure)
                })
            }
            ModelOrder::Credit { ask, up_to } => {
                if let Some(AskStage::Asked { credit, .. }) =
                    self.asks.get(&ask).map(|ask| &ask.stage)
                {
                    credit.send_if_modified(|before| {
                        let grows = up_to > *before;
                        *before = up_to.max(*before);
                        grows
                    });
                }
                None
            }
            ModelOrder::Drop { ask } => {
                self.asks.remove(&ask);
                None
            }
        }
    }

    fn begin(
        &mut self,
        ask: u64,
        kind: Option<AskKind>,
        body_bytes: u64,
        trace: Option<TraceContext>,
    ) -> Result<(), AskFailure> {
        if self.server.is_none() {
            return Err(failure(
                AskFailureKind::Unsupported,
                "it has no model server",
            ));
        }
        let kind = kind.ok_or_else(|| {
            let update = "it does not know this kind of request: update gantry-runner";
            failure(AskFailureKind::Unsupported, update)
        })?;
        self.asks.retain(|_, ask| !ask.is_over());
        let body_bytes = usize::try_from(body_bytes).unwrap_or(usize::MAX);
        if !(1..=MODEL_BODY_BYTES).contains(&body_bytes) {
            let most = MODEL_BODY_BYTES / (1024 * 1024);
            let what = format!("a request has at most {most} MiB");
            return Err(failure(AskFailureKind::Invalid, &what));
        }
        let held: usize = self.asks.values().map(|ask| ask.body_bytes).sum();
        if self.asks.len() >= ASKS_AT_ONCE || held + body_bytes > BODIES_BYTES {
            let what = format!("it takes {ASKS_AT_ONCE} requests at once");
            return Err(failure(AskFailureKind::Busy, &what));
        }
        let stage = AskStage::Body {
            kind,
            // It grows as it comes: what is only announced takes no memory.
            body: BytesMut::new(),
            trace,
        };
        self.asks.insert(ask, OpenAsk { body_bytes, stage });
        Ok(())
    }

    fn body(&mut self, ask: u64, data: &[u8]) -> Result<(), AskFailure> {
        // One that was refused or dropped.
        let (Some(server), Some(ask_of)) = (&self.server, self.asks.get_mut(&ask)) else {
            return Ok(());
        };
        let AskStage::Body { kind, body, trace } = &mut ask_of.stage else {
            return Err(failure(
                AskFailureKind::Invalid,
                "its body goes on behind its end",
            ));
        };
        if body.len() + data.len() > ask_of.body_bytes {
            return Err(failure(
                AskFailureKind::Invalid,
                "its body is longer than was said",
            ));
        }
        body.extend_from_slice(data);
        if body.len() < ask_of.body_bytes {
            return Ok(());
        }
        let (credit, room) = watch::channel(MODEL_WINDOW_BYTES);
        let asking = Asking {
            server: server.clone(),
            ask,
            outgoing: self.outgoing.clone(),
            room,
        };
        let task = tokio::spawn(asking.run(*kind, std::mem::take(body).freeze(), *trace));
        ask_of.stage = AskStage::Asked {
            credit,
            task: AbortOnDropHandle::new(task),
        };
        Ok(())
    }
}

impl OpenAsk {
    fn is_over(&self) -> bool {
        matches!(&self.stage, AskStage::Asked { task, .. } if task.is_finished())
    }
}

/// One ask while the model server answers. Dropping its task ends the request.
struct Asking {
    server: ModelServer,
    ask: u64,
    outgoing: mpsc::Sender<v1::RunnerFrame>,
    /// The first byte of the answer that the server has no room for.
    room: watch::Receiver<u64>,
}

/// The link or the ask is gone.
struct AskGone;

impl Asking {
    async fn run(mut self, kind: AskKind, body: Bytes, trace: Option<TraceContext>) {
        let (method, path) = match kind {
            AskKind::ChatCompletions => (Method::POST, "chat/completions"),
        };
        let last = match self.server.send(method, path, body, trace).await {
            Err(failure) => AnswerPart::Failed(failure),
            Ok(answer) => match self.pass_on(answer).await {
                Ok(last) => last,
                Err(AskGone) => return,
            },
        };
        let _ = self.send(last).await;
    }

    /// Passes an answer on; returns its last piece.
    async fn pass_on(&mut self, mut answer: ModelReply) -> Result<AnswerPart, AskGone> {
        self.send(AnswerPart::Head(head(&answer))).await?;
        let mut sent = 0;
        loop {
            let mut data = match answer.next().await {
                Ok(Some(data)) => data,
                Ok(None) => return Ok(AnswerPart::End),
                Err(failure) => return Ok(AnswerPart::Failed(failure)),
            };
            while !data.is_empty() {
                let room = self.room.wait_for(|up_to| *up_to > sent).await;
                let room = *room.map_err(|_| AskGone)? - sent;
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                let piece = data.split_to(data.len().min(MODEL_PIECE_BYTES).min(room));
                sent += piece.len() as u64;
                self.send(AnswerPart::Data(piece)).await?;
            }
        }
    }

    async fn send(&self, part: AnswerPart) -> Result<(), AskGone> {
        let sent = self.outgoing.send(model_answer(self.ask, part)).await;
        sent.map_err(|_| AskGone)
    }
}

fn head(answer: &ModelReply) -> AnswerHead {
    let response = &answer.response;
    let header = |name: &&str| {
        let value = answer
            .redactor
            .text(response.headers().get(*name)?.to_str().ok()?);
        (value.len() <= MAX_ANSWER_HEADER_BYTES).then(|| ((*name).to_owned(), value))
    };
    AnswerHead {
        status: response.status().as_u16(),
        headers: ANSWER_HEADERS.iter().filter_map(header).collect(),
    }
}

fn refused(ask: u64, failure: AskFailure) -> v1::RunnerFrame {
    model_answer(ask, AnswerPart::Failed(failure))
}

fn failure(kind: AskFailureKind, reason: &str) -> AskFailure {
    AskFailure {
        kind,
        reason: reason.to_owned(),
    }
}
