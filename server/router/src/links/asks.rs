//! The asks of a runner's model server that are under way on one link. They end with the link.

use std::collections::HashMap;

use bytes::Bytes;
use shared_link::server::{
    AnswerPart, AskFailure, AskFailureKind, AskKind, LinkCommand, LinkOver, model_ask,
    model_credit, model_drop,
};
use shared_types::{TraceContext, limits::MODEL_WINDOW_BYTES};
use tokio::{runtime, sync::mpsc};

use super::handle::{LinkGone, LinkHandle};

/// Most asks of one link at the same time: more than a runner takes, which says so itself.
const ASKS_AT_ONCE: usize = 64;

/// The asks of one link, under its lock.
#[derive(Debug, Default)]
pub(super) struct Asks {
    last: u64,
    waiting: HashMap<u64, PendingAsk>,
}

/// An ask whose answer has not ended.
#[derive(Debug)]
struct PendingAsk {
    /// Bounded by the credit that was granted.
    parts: mpsc::UnboundedSender<AnswerPart>,
    has_head: bool,
    /// The bytes of the answer that have come.
    heard: u64,
    /// The bytes that may come.
    granted: u64,
}

impl Asks {
    /// Begins an ask, and gives its number; none if there are too many.
    fn begin(&mut self, parts: mpsc::UnboundedSender<AnswerPart>) -> Option<u64> {
        if self.waiting.len() >= ASKS_AT_ONCE {
            return None;
        }
        self.last += 1;
        let waiting = PendingAsk {
            parts,
            has_head: false,
            heard: 0,
            granted: MODEL_WINDOW_BYTES,
        };
        self.waiting.insert(self.last, waiting);
        Some(self.last)
    }

    fn grant(&mut self, ask: u64, up_to: u64) {
        if let Some(waiting) = self.waiting.get_mut(&ask) {
            waiting.granted = waiting.granted.max(up_to);
        }
    }

    /// Forgets an ask; true if its answer had not ended.
    fn forget(&mut self, ask: u64) -> bool {
        self.waiting.remove(&ask).is_some()
    }

    /// A piece of an answer came.
    ///
    /// # Errors
    /// The runner sends more than it may.
    pub(super) fn answered(&mut self, ask: u64, part: AnswerPart) -> Result<(), LinkOver> {
        // The caller may have left before.
        let Some(waiting) = self.waiting.get_mut(&ask) else {
            return Ok(());
        };
        match &part {
            AnswerPart::Head(_) if waiting.has_head => {
                return Err(violation("a model's answer has a second head"));
            }
            AnswerPart::Head(_) => waiting.has_head = true,
            AnswerPart::Data(data) if data.is_empty() => return Ok(()),
            AnswerPart::Data(data) => {
                waiting.heard += data.len() as u64;
                if !waiting.has_head || waiting.heard > waiting.granted {
                    return Err(violation("a model's answer goes beyond its credit"));
                }
            }
            AnswerPart::End | AnswerPart::Failed(_) => {}
        }
        let is_over = matches!(part, AnswerPart::End | AnswerPart::Failed(_));
        let _ = waiting.parts.send(part);
        if is_over {
            self.waiting.remove(&ask);
        }
        Ok(())
    }
}

fn violation(reason: &str) -> LinkOver {
    LinkOver::Violation(reason.to_owned())
}

/// The answer of a runner's model server, as it comes. Dropping it ends the request there.
#[derive(Debug)]
pub struct ModelAnswer {
    link: LinkHandle,
    ask: u64,
    parts: mpsc::UnboundedReceiver<AnswerPart>,
    /// The bytes that were taken, and those that may come.
    taken: u64,
    granted: u64,
}

impl ModelAnswer {
    /// Sends an ask over this link.
    pub(super) async fn begin(
        link: &LinkHandle,
        kind: AskKind,
        body: &Bytes,
        trace: Option<TraceContext>,
    ) -> Result<Self, LinkGone> {
        let (sender, parts) = mpsc::unbounded_channel();
        let begun = link.with(|open| match open.asks.begin(sender.clone()) {
            Some(ask) => ask,
            None => {
                let _ = sender.send(AnswerPart::Failed(AskFailure {
                    kind: AskFailureKind::Busy,
                    reason: format!("it has {ASKS_AT_ONCE} asks at once"),
                }));
                0
            }
        })?;
        drop(sender);
        let answer = Self {
            link: link.clone(),
            ask: begun,
            parts,
            taken: 0,
            granted: MODEL_WINDOW_BYTES,
        };
        for frame in model_ask(answer.ask, kind, body, trace) {
            // The runner may fail it before it has the whole body.
            if !answer.parts.is_empty() {
                break;
            }
            link.model(frame).await?;
        }
        Ok(answer)
    }

    /// The next piece; none if the link has ended before the answer.
    pub async fn next(&mut self) -> Option<AnswerPart> {
        if self.granted - self.taken <= MODEL_WINDOW_BYTES / 2 {
            let (ask, up_to) = (self.ask, self.taken + MODEL_WINDOW_BYTES);
            let granted = self.link.with(|open| open.asks.grant(ask, up_to));
            if granted.is_ok() && self.link.model(model_credit(ask, up_to)).await.is_ok() {
                self.granted = up_to;
            }
        }
        let part = self.parts.recv().await?;
        if let AnswerPart::Data(data) = &part {
            self.taken += data.len() as u64;
        }
        Some(part)
    }
}

impl Drop for ModelAnswer {
    fn drop(&mut self) {
        let ask = self.ask;
        if self.link.with(|open| open.asks.forget(ask)) != Ok(true) {
            return;
        }
        // Room for the frame may have to be waited for.
        if let Ok(runtime) = runtime::Handle::try_current() {
            let link = self.link.clone();
            runtime.spawn(async move { link.model(model_drop(ask)).await });
        }
    }
}

impl LinkHandle {
    async fn model(&self, frame: proto::v1::server_frame::Kind) -> Result<(), LinkGone> {
        self.wish(LinkCommand::Model(Box::new(frame)), None).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_link::server::AnswerHead;

    fn head() -> AnswerPart {
        AnswerPart::Head(AnswerHead {
            status: 200,
            headers: Vec::new(),
        })
    }

    fn data(bytes: usize) -> AnswerPart {
        AnswerPart::Data(vec![0; bytes].into())
    }

    #[test]
    fn an_answer_comes_within_its_credit_or_breaks_the_protocol() {
        let (mut asks, (parts, mut heard)) = (Asks::default(), mpsc::unbounded_channel());
        let ask = asks.begin(parts).expect("there is room");
        let window = MODEL_WINDOW_BYTES as usize;
        asks.answered(ask, head()).expect("it begins");
        asks.answered(ask, data(window)).expect("it is granted");
        asks.grant(ask, MODEL_WINDOW_BYTES + 1);
        asks.answered(ask, data(1)).expect("it is granted");
        asks.answered(ask, data(1)).expect_err("it is too much");
        asks.answered(ask, head()).expect_err("there is one");
        asks.answered(ask, AnswerPart::End).expect("it ends");
        let came = std::iter::from_fn(|| heard.try_recv().ok()).count();
        assert_eq!((came, heard.is_closed()), (4, true));
        asks.answered(ask, data(1)).expect("no one waits for it");
    }

    #[test]
    fn a_link_has_a_bounded_number_of_asks_and_a_forgotten_one_makes_room() {
        let mut asks = Asks::default();
        let mut begin = || asks.begin(mpsc::unbounded_channel().0);
        let begun: Vec<_> = (0..ASKS_AT_ONCE).filter_map(|_| begin()).collect();
        assert_eq!((begun.len(), begin()), (ASKS_AT_ONCE, None));
        assert!(asks.forget(begun[0]));
        assert!(!asks.forget(begun[0]), "it is told once");
        assert!(asks.begin(mpsc::unbounded_channel().0).is_some());
    }
}
