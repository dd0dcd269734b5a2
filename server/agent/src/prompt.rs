//! The request to the model: a pure function of the log. The same log gives the same bytes. A
//! request stays the beginning of every later one in the turn, so that a vendor's cache of prefixes
//! holds.

mod bytes;
mod messages;
mod room;
mod short;
mod surroundings;

use server_llm::{Message, ModelInfo, ModelRequest};
use shared_types::TurnId;

pub(crate) use room::{BYTES_PER_TOKEN, Need, make as make_room};

pub(crate) use surroundings::instructions_in;

use self::messages::View;
use crate::{
    context::tokens::tokens,
    tools::ToolSet,
    transcript::{Call, Transcript},
};

/// The request for the next answer in this turn, to this model.
pub(crate) fn request(
    transcript: &Transcript,
    turn: TurnId,
    model: &ModelInfo,
    tools: &ToolSet,
) -> ModelRequest {
    ModelRequest {
        system: system(transcript, turn, tools),
        messages: messages::messages(transcript, turn, model, View::of(transcript)),
        tools: tools.specs(),
        images: server_llm::Images::new(),
        trace: None,
    }
}

/// The numbers of parts that may stand before what is sent, where the last step of the turn stays.
pub(crate) fn begins(transcript: &Transcript, turn: TurnId) -> Vec<usize> {
    room::begins(transcript, turn, 1)
}

/// The messages of what stands behind so many of the oldest parts.
pub(crate) fn tail(
    transcript: &Transcript,
    turn: TurnId,
    model: &ModelInfo,
    gone: usize,
) -> Vec<Message> {
    let known = View::of(transcript);
    let gone = gone.max(known.gone);
    messages::tail(transcript, turn, model, View { gone, ..known })
}

/// The tokens of a call that is sent in short.
pub(crate) fn masked_tokens(call: &Call) -> usize {
    let short = short::Short::of(call);
    let result = call.result.as_ref().map(|result| result.parts.words());
    let arguments = short.arguments.as_deref().unwrap_or(&call.asked.arguments);
    let result = short.result.as_deref().or(result.as_deref());
    tokens(arguments) + result.map_or(0, tokens)
}

/// The approximate length of a request, in bytes.
pub(crate) fn bytes(request: &ModelRequest) -> usize {
    bytes::bytes_of(request)
}

/// The system prompt of a turn: the same as long as the session lasts and its language stays.
fn system(transcript: &Transcript, turn: TurnId, tools: &ToolSet) -> String {
    let began = transcript.turns().first().map(|turn| turn.asked_at.date());
    let today = began.map(|day| format!("\nThis conversation began on {day} (UTC).\n"));
    let first = transcript.turns().first();
    let machine = first.and_then(|turn| turn.settings.as_ref()?.machine.as_ref());
    let machine = machine.map(|machine| {
        format!("\nThe machine on which your tools worked when it began: {machine}.\n")
    });
    let directory = transcript.directory();
    let here = match directory.is_empty() {
        true => String::new(),
        false => format!(
            "\nThis conversation works in the directory {directory:?} of the workspace: commands start there, \
             and every path that you give or are told is relative to it.\n"
        ),
    };
    let settings = transcript
        .turn(turn)
        .and_then(|turn| turn.settings.as_ref());
    let language = settings.and_then(|settings| settings.language.as_ref());
    let language = language.map(|language| {
        format!(
            "\nWrite your answers in {language}, whatever language the messages and files are in. Code, \
             commands and quotations stay as they are.\n"
        )
    });
    let [today, machine, language] = [today, machine, language].map(Option::unwrap_or_default);
    let guidance = tools.guidance();
    format!("{PLACE}{guidance} {WORK}{here}{today}{machine}{language}")
}

/// The beginning of the system prompt, up to what the tools say of themselves. It claims nothing about the machine that
/// the engine does not know.
const PLACE: &str = "\
You are an agent of Gantry. Your tools work on a real machine, the user's own or a container for the user alone: commands \
really run there, files really change, and nothing is undone for you.

Every path is relative to the root of the workspace, unless you are told of another directory below, and a \
command starts there unless you name another one. File tools cannot leave the workspace. Do not count on isolation: a command \
can do whatever its user on that machine can do, so run nothing destructive that you were not \
asked for, and nothing outside the workspace without need.

Look before you change. ";

/// The rest of what is the same in every session.
const WORK: &str = "\
Several calls in one answer that only read run at the same time; the others run one after another. \
A result that is too long has its middle left out and says so. Where a result says that the outcome is unknown, \
find out what happened before you repeat the call.

Work until the request is done, then say briefly what you did and what you found. Say plainly \
what failed and what you did not check. Never invent the output of a tool.
";
