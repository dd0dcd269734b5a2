//! The state of a continued conversation, for the person who resumes it: its title and the last
//! exchange.

use shared_api::Session;
use shared_client::{Client, ClientError};
use shared_types::{
    Clock as _, Event, SessionEvent, SystemClock, TurnId, event::TurnOutcome, human::ago,
    limits::MAX_EVENTS_PAGE,
};

use crate::{
    render::clean::{clean, clean_line},
    style::Style,
};

/// Longest title, in characters.
const MAX_TITLE: usize = 60;

/// Most lines of a message or an answer.
const MAX_LINES: usize = 20;

/// Pages of the log, from its end, in which the last message is looked for.
const MAX_PAGES: u64 = 4;

/// The last message and its answer.
#[derive(Debug, Default, PartialEq)]
struct Exchange {
    turn: Option<TurnId>,
    input: String,
    answer: String,
    calls: usize,
    ending: Option<String>,
}

/// The line that names a session, and its last exchange where no turn is under way: that one is
/// shown from its own message on.
pub(super) async fn shown(
    client: &Client,
    session: &Session,
    style: Style,
) -> Result<String, ClientError> {
    let now = SystemClock::new().now();
    let title = match clean_line(&session.title, MAX_TITLE) {
        title if title.is_empty() => "a session without messages".to_owned(),
        title => title,
    };
    let used = ago(now.since(session.updated_at));
    let id = session.id;
    let mut out = style.dim(&format!("{title} · {used} · {id}"));
    out.push('\n');
    if session.running_turn.is_none()
        && let Some(exchange) = last_exchange(client, session).await?
    {
        out.push_str(&exchange.shown(style));
    }
    Ok(out)
}

async fn last_exchange(
    client: &Client,
    session: &Session,
) -> Result<Option<Exchange>, ClientError> {
    Ok(Exchange::of(&newest_events(client, session).await?))
}

/// The newest events of a session, in their order, from its last message on; fewer where that is far back.
pub(crate) async fn newest_events(
    client: &Client,
    session: &Session,
) -> Result<Vec<SessionEvent>, ClientError> {
    let page = u64::from(MAX_EVENTS_PAGE);
    let mut events: Vec<SessionEvent> = Vec::new();
    for number in 1..=MAX_PAGES {
        let after = session.last_seq.saturating_sub(page * number);
        let earlier = client
            .events(session.id, after, MAX_EVENTS_PAGE)
            .await?
            .events;
        let known = events.first().map_or(u64::MAX, |first| first.seq);
        let earlier = earlier.into_iter().filter(|event| event.seq < known);
        events = earlier.chain(std::mem::take(&mut events)).collect();
        let is_message =
            |event: &SessionEvent| matches!(event.known(), Some(Event::InputAccepted { .. }));
        if after == 0 || events.iter().any(is_message) {
            break;
        }
    }
    Ok(events)
}

impl Exchange {
    /// The last turn of the conversation whose message is in these events.
    fn of(events: &[SessionEvent]) -> Option<Self> {
        let mut turns: Vec<Self> = Vec::new();
        for event in events {
            match event.known() {
                Some(Event::InputAccepted { turn, parts, .. }) => turns.push(Self {
                    turn: Some(*turn),
                    input: parts.words().into_owned(),
                    ..Self::default()
                }),
                // If its message is older than these events, so is all that is left.
                Some(Event::ConversationRewound { turn, .. }) => {
                    let first = turns.iter().position(|known| known.turn == Some(*turn));
                    turns.truncate(first.unwrap_or(0));
                }
                Some(known) if known.turn().is_some() => {
                    if let Some(last) = turns.last_mut()
                        && last.turn == known.turn()
                    {
                        last.add(known);
                    }
                }
                _ => {}
            }
        }
        turns.pop()
    }

    fn add(&mut self, event: &Event) {
        match event {
            Event::InputSteered { parts, .. } => {
                self.input.push_str("\n↳ ");
                self.input.push_str(&parts.words());
            }
            Event::AnswerRecorded { parts, .. } => {
                self.calls += parts.calls().count();
                let text = parts.words();
                if !text.trim().is_empty() {
                    self.answer = text.into_owned();
                }
            }
            Event::TurnEnded {
                outcome, reason, ..
            } => {
                let word = match outcome {
                    TurnOutcome::Completed => return,
                    TurnOutcome::Failed => "✗ failed",
                    TurnOutcome::Cancelled => "■ cancelled",
                    TurnOutcome::Interrupted => "■ interrupted",
                };
                let reason = reason.as_deref().map(|reason| format!(": {reason}"));
                self.ending = Some(format!("{word}{}", reason.unwrap_or_default()));
            }
            _ => {}
        }
    }

    fn shown(&self, style: Style) -> String {
        let mut out = String::new();
        for (number, line) in lines(&self.input).iter().enumerate() {
            let mark = if number == 0 { "› " } else { "  " };
            out.push_str(&style.bold(&format!("{mark}{line}")));
            out.push('\n');
        }
        if self.calls > 0 {
            let calls = match self.calls {
                1 => "1 call".to_owned(),
                calls => format!("{calls} calls"),
            };
            out.push_str(&style.dim(&format!("● {calls}")));
            out.push('\n');
        }
        for line in lines(&self.answer) {
            out.push_str(&line);
            out.push('\n');
        }
        if let Some(ending) = &self.ending {
            out.push_str(&style.yellow(&clean(ending)));
            out.push('\n');
        }
        out.push('\n');
        out
    }
}

/// The first lines of a text, and how many there are beyond.
fn lines(text: &str) -> Vec<String> {
    let text = clean(text.trim());
    let count = text.lines().count();
    let mut lines: Vec<_> = text.lines().take(MAX_LINES).map(str::to_owned).collect();
    if count > MAX_LINES {
        lines.push(format!("… {} more lines", count - MAX_LINES));
    }
    lines
}

#[cfg(test)]
mod tests {
    use shared_types::{
        Timestamp, UserId,
        event::{EventBody, Finish, Parts, Usage},
    };

    use super::*;

    fn log(events: Vec<Event>) -> Vec<SessionEvent> {
        let at = Timestamp::from_micros(0);
        (1..)
            .zip(events)
            .map(|(seq, event)| SessionEvent {
                seq,
                at,
                body: EventBody::Known(event),
            })
            .collect()
    }

    fn turn(number: u128, input: &str, answer: &str, outcome: TurnOutcome) -> [Event; 3] {
        let turn = TurnId::from_u128(number);
        [
            Event::InputAccepted {
                turn,
                by: UserId::from_u128(1),
                client_id: None,
                parts: Parts::text(input),
                compacts: None,
                terms: shared_types::event::Terms::default(),
            },
            Event::AnswerRecorded {
                turn,
                step: 1,
                model: "m".to_owned(),
                origin: None,
                parts: Parts::text(answer),
                finish: Finish::Complete,
                usage: Usage::default(),
                estimated: 0,
                model_ms: 0,
                limit: None,
            },
            Event::TurnEnded {
                turn,
                outcome,
                reason: None,
            },
        ]
    }

    #[test]
    fn the_last_message_and_its_answer_are_shown() {
        let first = turn(1, "one", "first", TurnOutcome::Completed);
        let second = turn(2, "two\nlines", "second\x1b[2J", TurnOutcome::Cancelled);
        let events = log([first, second].concat());
        let exchange = Exchange::of(&events).expect("an exchange");
        assert_eq!(
            exchange.shown(Style::new(false)),
            "› two\n  lines\nsecond\n■ cancelled\n\n"
        );
        assert_eq!(Exchange::of(&events[1..3]), None);
    }

    #[test]
    fn a_message_before_which_the_person_went_back_is_not_the_last_one() {
        let [first, second, third] = [1, 2, 3]
            .map(|number| turn(number, &number.to_string(), "done", TurnOutcome::Completed));
        let rewound = |turn| Event::ConversationRewound {
            turn: TurnId::from_u128(turn),
            by: UserId::from_u128(1),
            before: "2".to_owned(),
        };
        let mut events = [&first[..], &second, &third, &[rewound(2)]].concat();
        let last =
            |events: &[Event]| Exchange::of(&log(events.to_vec())).map(|exchange| exchange.input);
        assert_eq!(last(&events).as_deref(), Some("1"));
        assert_eq!(last(&events[3..]), None, "the first message is older");
        events.extend(turn(4, "4", "done", TurnOutcome::Completed));
        assert_eq!(last(&events).as_deref(), Some("4"));
    }

    #[test]
    fn a_long_answer_is_cut_and_counted() {
        let long = "x\n".repeat(MAX_LINES + 3);
        let lines = lines(&long);
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(lines.last().map(String::as_str), Some("… 3 more lines"));
    }
}
