//! One turn, as far as a script hears of it.

use anyhow::Context as _;
use shared_api::SendMessage;
use shared_client::{Client, Followed};
use shared_types::{
    Event, SessionId, TurnId,
    event::{Answer, TurnOutcome},
};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    render::clean::{clean, clean_line},
    screen::Screen,
    view::View,
    watch::{Watch, WatchEvent},
};

/// Longest line about a call, in characters.
const MAX_LINE: usize = 200;

/// What became of a turn.
pub(super) struct Told {
    pub(super) turn: TurnId,
    /// The number of its last event.
    pub(super) seq: u64,
    pub(super) outcome: TurnOutcome,
    pub(super) reason: Option<String>,
    /// The words of the last answer.
    pub(super) text: String,
    pub(super) steps: u32,
    /// Calls that needed consent and did not run.
    pub(super) refused: Vec<String>,
}

/// Sends a message and follows its turn to the end; Ctrl-C stops it.
pub(super) async fn run(
    client: &Client,
    screen: Screen,
    (session, after): (SessionId, u64),
    message: &SendMessage,
    streams: bool,
) -> anyhow::Result<Told> {
    let mut watch = Watch::begin(client.clone(), session, after);
    let sent = client.send_message(session, message).await;
    let sent = sent.context("failed to send the message")?;
    let mut view = streams.then(|| View::new(screen, session, true));
    let mut interrupts = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
    let mut told = Told {
        turn: sent.turn,
        seq: after,
        outcome: TurnOutcome::Failed,
        reason: None,
        text: String::new(),
        steps: 0,
        refused: Vec::new(),
    };
    let mut asked = Vec::new();
    loop {
        let happened = tokio::select! {
            biased;
            _ = interrupts.recv() => {
                client.cancel(session).await.context("failed to stop the turn")?;
                continue;
            }
            happened = watch.next(false) => happened?,
        };
        if let Some(view) = &mut view {
            watch.show(&happened, view)?;
        }
        let WatchEvent::Session(Followed::Event(event)) = &happened else {
            continue;
        };
        told.seq = event.seq;
        match event.known() {
            Some(Event::AnswerRecorded {
                turn, step, parts, ..
            }) if *turn == told.turn => {
                told.steps = *step;
                told.text = clean(parts.words().trim());
            }
            Some(Event::ApprovalAsked {
                turn,
                approval,
                question,
                ..
            }) if *turn == told.turn => {
                asked.push((*approval, clean_line(&question.title(), MAX_LINE)));
            }
            Some(Event::ApprovalAnswered {
                turn,
                approval,
                answer: Answer::Unanswered { .. },
                ..
            }) if *turn == told.turn => {
                let it = asked.iter().find(|(id, _)| id == approval);
                told.refused.extend(it.map(|(_, title)| title.clone()));
            }
            Some(Event::TurnEnded {
                turn,
                outcome,
                reason,
            }) if *turn == told.turn => {
                told.outcome = *outcome;
                told.reason = reason.as_deref().map(clean);
                return Ok(told);
            }
            _ => {}
        }
    }
}
