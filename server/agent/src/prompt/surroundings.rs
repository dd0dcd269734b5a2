//! The notes to the model on the place where it works, and on the instructions that people left there. They stand
//! before the message with which they came into effect, so that nothing that was sent before changes.

use shared_types::event::InstructionFile;

use super::short::shorten;
use crate::transcript::SurveyLog;

/// Tokens of the window for each byte of instructions: they take about an eighth of it.
const WINDOW_SHARE: usize = 2;

/// The part of a text with instructions; empty if it has none.
pub(crate) fn instructions_in(text: &str) -> &str {
    const END: &str = "</instructions>";
    match (text.find("<instructions file="), text.rfind(END)) {
        (Some(from), Some(last)) if from < last => &text[from..last + END.len()],
        _ => "",
    }
}

/// The note before an input, where something is new since the survey before; all of it without one before.
pub(super) fn note(before: Option<&SurveyLog>, now: &SurveyLog, window: Option<usize>) -> String {
    let place = place(before, now).unwrap_or_default();
    place
        + &instructions(
            before.map_or(&[], |before| &before.instructions),
            now,
            window,
        )
}

fn place(before: Option<&SurveyLog>, now: &SurveyLog) -> Option<String> {
    let is_known = |before: &SurveyLog| {
        let seen = |survey: &SurveyLog| {
            let place = survey
                .place
                .as_ref()
                .map(|place| (place.runner_name.clone(), place.isolation.clone()));
            (
                survey.system.clone(),
                survey.folder.clone(),
                survey.branch.clone(),
                place,
            )
        };
        seen(before) == seen(now)
    };
    if now.system.is_empty() || before.is_some_and(is_known) {
        return None;
    }
    let branch = match &now.branch {
        Some(branch) => format!(", on the git branch {branch}"),
        None => String::new(),
    };
    let runner = match &now.place {
        Some(place) => format!(
            "on runner {}, isolation: {}, ",
            place.runner_name, place.isolation
        ),
        None => String::new(),
    };
    Some(format!(
        "[you work {runner}in the folder {} of a machine with {}{branch}]\n",
        now.folder, now.system
    ))
}

fn instructions(before: &[InstructionFile], now: &SurveyLog, window: Option<usize>) -> String {
    let gone = before
        .iter()
        .filter(|old| now.instructions.iter().all(|new| new.path != old.path));
    let gone =
        gone.map(|old| format!("[the instructions in {} do not count any more]\n", old.path));
    let new: Vec<_> = now
        .instructions
        .iter()
        .filter(|new| !before.contains(new))
        .collect();
    let mut text: String = gone.collect();
    if new.is_empty() {
        return text;
    }
    text.push_str(
        "[people left these instructions for you: each file counts for its folder and all below, the nearest file \
         counts more, and what a message says counts most]\n",
    );
    let each = window.map_or(usize::MAX, |window| window / WINDOW_SHARE / new.len());
    for file in new {
        // The text of a file cannot end its own frame.
        let framed = file
            .text
            .trim_end()
            .replace("</instructions", "<\\/instructions");
        let content = shorten(&framed, each, "file");
        let cut = match file.cut {
            true => format!(
                "\n[… only the beginning of its {} bytes is shown; Read shows the rest]",
                file.bytes
            ),
            false => String::new(),
        };
        text.push_str(&format!(
            "<instructions file={:?}>\n{content}{cut}\n</instructions>\n",
            file.path
        ));
    }
    text
}
