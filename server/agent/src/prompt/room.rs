//! The parts that are left out if a conversation is too long for the model, in this order:
//!
//! 1. the middle of texts that alone take a large part of the room: a long message, or the results of one
//!    answer's calls together;
//! 2. the results of the oldest tool calls, and with each of them the long arguments of its call;
//! 3. the oldest messages, answers and calls.
//!
//! An event records the parts that are left out before the model is asked. The request is made from the
//! log alone, so after a restart the model is sent the same bytes. The turn's own message and its last
//! step stay, cut as far as they must be, so that there is always a request that fits. More is left out
//! at once than is needed. So the beginning of the request stays the same for many steps, and a vendor's
//! cache of prefixes holds.

use server_llm::{ModelInfo, ModelRequest};
use shared_types::{Event, TurnId, event::LeftOutBecause};

use super::{
    bytes::bytes_of,
    messages::{View, messages},
    short::{LEAST_TEXT, Short},
    system::system,
};
use crate::{tools::ToolSet, transcript::Transcript};

/// Bytes of a request that are taken for one token. Vendors count 3 to 4 bytes of English or of code,
/// and fewer of some other scripts: the estimate is a little too high for most conversations.
pub(crate) const BYTES_PER_TOKEN: usize = 3;

/// Part of the model's window up to which a request may grow, in percent; the answer needs the rest.
const FULL_PERCENT: usize = 90;

/// Part of the conversation's room to which the conversation is cut, in percent. Its room is what the
/// instructions and the tools leave of a full request, or of one that the model refused.
const CUT_TO_PERCENT: usize = 50;

/// Part of a refused conversation that is too much as well, in percent.
const REFUSED_PERCENT: usize = 75;

/// Part of the conversation's room that one text may take once there is not enough of it.
const LONGEST_PART: usize = 3;

/// The least room that a conversation has, in bytes, even if the window is smaller.
const LEAST_ROOM: usize = 1024;

/// Steps of the turn whose results stay; where that does not leave out enough, the last one's stay.
const LAST_STEPS: usize = 3;

/// The reason for making room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The request may not fit into a window of so many tokens.
    Window(usize),
    /// The model refused the request as too long; its window is known or not.
    Refused(Option<usize>),
}

/// The event that leaves out what must be left out before this step; nothing where the request fits,
/// or where nothing more may be left out.
pub(crate) fn make(
    transcript: &Transcript,
    (turn, step): (TurnId, u32),
    model: &ModelInfo,
    tools: &ToolSet,
    need: Need,
) -> Option<Event> {
    let conversation = Conversation::new(transcript, turn, model, tools);
    let known = View::of(transcript);
    let before = conversation.bytes(known);
    let goal = need.goal(conversation.fixed, before);
    if matches!(need, Need::Window(_)) && before <= goal.most {
        return None;
    }
    let view = conversation.narrowed(known, &goal);
    if conversation.bytes(view) >= before {
        return None;
    }
    let in_short = transcript.calls_up_to(turn).take(view.in_short);
    let saved = in_short.map(|call| Short::of(call).saved());
    let saved: Vec<_> = saved.filter(|saved| *saved > 0).collect();
    let shortened = conversation.shortened(view);
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Some(Event::ResultsLeftOut {
        turn,
        step,
        through: count(view.in_short),
        results: count(saved.len()),
        bytes: saved.iter().sum::<usize>() as u64,
        gone: count(view.gone),
        longest: (shortened > 0).then_some(view.longest as u64),
        shortened: count(shortened),
        because: match need {
            Need::Window(_) => LeftOutBecause::NearWindow,
            Need::Refused(_) => LeftOutBecause::Refused,
        },
    })
}

/// Sizes of a request, in bytes.
struct Goal {
    /// It may have so many.
    most: usize,
    /// Nothing more is left out if the request has at most so many once its texts are cut.
    enough: usize,
    /// It is cut to so many where more is left out.
    cut_to: usize,
    /// The most bytes of one text.
    longest: usize,
}

impl Need {
    /// `fixed`: what is not conversation; `before`: what the request has.
    fn goal(self, fixed: usize, before: usize) -> Goal {
        let full = |window: usize| percent(window.saturating_mul(BYTES_PER_TOKEN), FULL_PERCENT);
        let (room, most) = match self {
            Self::Window(window) => (full(window).saturating_sub(fixed).max(LEAST_ROOM), 100),
            Self::Refused(window) => {
                let refused = window.map_or(before, |window| full(window).min(before));
                (refused.saturating_sub(fixed), REFUSED_PERCENT)
            }
        };
        let [most, cut_to] = [most, CUT_TO_PERCENT].map(|part| fixed + percent(room, part));
        Goal {
            most,
            enough: match self {
                Self::Window(_) => most,
                Self::Refused(_) => cut_to,
            },
            cut_to,
            longest: (room / LONGEST_PART).max(LEAST_TEXT),
        }
    }
}

/// A conversation that is too long.
struct Conversation<'a> {
    transcript: &'a Transcript,
    turn: TurnId,
    model: &'a ModelInfo,
    /// The bytes of the request beside the conversation.
    fixed: usize,
}

impl<'a> Conversation<'a> {
    fn new(
        transcript: &'a Transcript,
        turn: TurnId,
        model: &'a ModelInfo,
        tools: &ToolSet,
    ) -> Self {
        let fixed = ModelRequest {
            system: system(transcript, turn, tools),
            messages: Vec::new(),
            tools: tools.specs(),
            images: server_llm::Images::new(),
            trace: None,
        };
        Self {
            transcript,
            turn,
            model,
            fixed: bytes_of(&fixed),
        }
    }

    /// The bytes of the request with so much of the conversation.
    fn bytes(&self, view: View) -> usize {
        let request = ModelRequest {
            system: String::new(),
            messages: messages(self.transcript, self.turn, self.model, view),
            tools: Vec::new(),
            images: server_llm::Images::new(),
            trace: None,
        };
        self.fixed + bytes_of(&request)
    }

    /// The number of messages whose text becomes shorter.
    fn shortened(&self, view: View) -> usize {
        let sent = |view| messages(self.transcript, self.turn, self.model, view);
        let whole = sent(View {
            longest: usize::MAX,
            ..view
        });
        let pairs = sent(view).into_iter().zip(whole);
        pairs.filter(|(sent, whole)| sent != whole).count()
    }

    /// The largest view that the goal allows, within the view of now.
    fn narrowed(&self, known: View, goal: &Goal) -> View {
        let mut view = View {
            longest: goal.longest,
            ..known
        };
        if self.bytes(view) <= goal.enough {
            return view;
        }
        loop {
            let longest = view.longest;
            for last_steps in [LAST_STEPS, 1] {
                view = self.without_oldest(View { longest, ..known }, last_steps, goal.cut_to);
                if self.bytes(view) <= goal.most {
                    return view;
                }
            }
            if longest == LEAST_TEXT {
                return self.without_calls(view, goal.most);
            }
            view.longest = (longest / 2).max(LEAST_TEXT);
        }
    }

    /// Leaves out the results of the oldest calls, and then the oldest parts, until the request has this
    /// size; so many last steps of the turn stay.
    fn without_oldest(&self, view: View, last_steps: usize, cut_to: usize) -> View {
        let stay = self.transcript.calls_of_last_steps(self.turn, last_steps);
        let calls = self.transcript.calls_up_to(self.turn).count() - stay;
        let in_short = |count| View {
            in_short: count,
            ..view
        };
        let most = calls.max(view.in_short);
        let view = in_short(least(view.in_short, most, |count| {
            self.bytes(in_short(count)) <= cut_to
        }));
        if self.bytes(view) <= cut_to {
            return view;
        }
        let begins = begins(self.transcript, self.turn, last_steps);
        let gone = |place: usize| View {
            gone: begins[place].max(view.gone),
            ..view
        };
        let place = least(0, begins.len() - 1, |place| {
            self.bytes(gone(place)) <= cut_to
        });
        gone(place)
    }

    /// Leaves out the first calls of the last step as well, where one answer asked for very many.
    fn without_calls(&self, view: View, most: usize) -> View {
        let turn = self.transcript.turn(self.turn);
        let Some(step) = turn.and_then(|turn| turn.steps.last()) else {
            return view;
        };
        let Some(last) = step.calls.len().checked_sub(1) else {
            return view;
        };
        let parts = self.parts();
        // Its text goes with the first one.
        let gone = |calls: usize| View {
            gone: view.gone.max(parts - step.calls.len() + calls),
            ..view
        };
        gone(least(0, last, |calls| self.bytes(gone(calls)) <= most))
    }

    /// The number of parts up to and with this turn.
    fn parts(&self) -> usize {
        let turns = self.transcript.up_to(self.turn).iter();
        let calls = self.transcript.calls_up_to(self.turn).count();
        turns.map(|turn| 1 + turn.steps.len()).sum::<usize>() + calls
    }
}

/// The number of parts before each message and each step that may become the first one; so many last steps of the
/// turn stay.
pub(super) fn begins(transcript: &Transcript, turn: TurnId, last_steps: usize) -> Vec<usize> {
    let mut begins = Vec::new();
    let mut place = 0;
    let turns = transcript.up_to(turn);
    for turn in turns {
        begins.push(place);
        place += 1;
        for step in &turn.steps {
            begins.push(place);
            place += 1 + step.calls.len();
        }
    }
    let own = turns.last().map_or(0, |turn| turn.steps.len());
    let stay = match own > last_steps {
        true => last_steps,
        // All of its steps, and its message.
        false => own + 1,
    };
    begins.truncate((begins.len() + 1).saturating_sub(stay).max(1));
    begins
}

/// The least number of these that fits, or the last one; of those above one that fits, all do.
fn least(from: usize, through: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut through) = (from, through);
    while from < through {
        let middle = from + (through - from) / 2;
        match fits(middle) {
            true => through = middle,
            false => from = middle + 1,
        }
    }
    from
}

fn percent(whole: usize, percent: usize) -> usize {
    whole / 100 * percent + whole % 100 * percent / 100
}

#[cfg(test)]
mod tests;
