//! Calls that only look: reads and searches of files, each on one line, and many of them on one.

use ratatui_core::text::{Line, Span};

use super::{Fold, bullet, failure, foot, place, titled};
use crate::{
    paint::{look, palette},
    transcript::{item::Call, request::Request},
};

/// The fewest calls in a row that are told on one line.
const FEWEST_TOLD_AT_ONCE: usize = 3;

/// Paints a call that only looks.
pub(super) fn one(call: &Call, columns: usize, fold: Fold) -> Vec<Line<'static>> {
    let mut text = vec![Span::raw(call.request.about())];
    if let Some(found) = found(call) {
        text.push(Span::styled(format!(" · {found}"), palette::DIM));
    }
    let mut rows = titled(call, text, columns);
    rows.extend(place(call, columns));
    if let Some(words) = &call.approval {
        rows.extend(look::words(words, palette::DIM, columns));
    }
    if fold == Fold::Whole {
        rows.extend(look::words(&call.result, palette::DIM, columns));
    } else {
        rows.extend(look::indented(failure(call, look::inner(columns), fold)));
    }
    rows.extend(foot(call, columns));
    rows
}

/// Paints calls in a row that only look. Those that ended well are told on one line where they are many.
pub(crate) fn run(calls: &[&Call], columns: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    for group in calls.chunk_by(|one, other| is_plain(one) && is_plain(other)) {
        match group {
            [first, ..] if group.len() >= FEWEST_TOLD_AT_ONCE && is_plain(first) => {
                rows.extend(together(first, group, columns));
            }
            few => rows.extend(few.iter().flat_map(|call| one(call, columns, Fold::Folded))),
        }
    }
    rows
}

/// True for a call on which there is nothing more to say than that it ended well.
fn is_plain(call: &Call) -> bool {
    call.ended_well() && call.finding.is_none() && call.approval.is_none()
}

fn together(first: &Call, group: &[&Call], columns: usize) -> Vec<Line<'static>> {
    let count = |is: fn(&Request) -> bool| group.iter().filter(|call| is(&call.request)).count();
    let read = count(|request| matches!(request, Request::Read { .. }));
    let listed = count(|request| matches!(request, Request::List { .. }));
    let searched = group.len() - read - listed;
    let some = |count: usize, words: String| (count > 0).then_some(words);
    let words = [
        some(
            read,
            format!("read {}", look::counted(read, "file", "files")),
        ),
        some(
            searched,
            format!("searched {}", look::counted(searched, "time", "times")),
        ),
        some(
            listed,
            format!("listed {}", look::counted(listed, "folder", "folders")),
        ),
    ];
    let words = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let mut letters = words.chars();
    let begin = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    let words = format!("{}{}", begin.unwrap_or_default(), letters.as_str());
    let text = vec![Span::styled(words, palette::BOLD)];
    let mut rows = look::marked(bullet(first), text, columns);
    let places = group.iter().flat_map(|call| place(call, columns));
    rows.extend(places);
    let names: Vec<_> = group.iter().map(|call| call.request.about()).collect();
    rows.push(look::row(&names.join(", "), palette::DIM, columns));
    rows
}

/// The things that a call found, in a few words.
fn found(call: &Call) -> Option<String> {
    if !call.ended_well() {
        return None;
    }
    let lines = call.result.lines();
    let notes = lines.clone().filter(|line| line.starts_with('[')).count();
    let plain = lines.clone().count() - notes;
    // A note of the tool tells of more.
    let more = |words: String| match plain > 0 && call.result.lines().last().is_some_and(is_note) {
        true => format!("{words}, and more"),
        false => words,
    };
    Some(match &call.request {
        Request::Read { .. } if call.images > 0 => look::counted(call.images, "image", "images"),
        Request::Read { .. } => {
            let numbered = lines.filter(|line| is_numbered(line)).count();
            look::counted(numbered, "line", "lines")
        }
        Request::Grep { .. } => more(look::counted(plain, "match", "matches")),
        Request::Glob { .. } => more(look::counted(plain, "file", "files")),
        Request::List { .. } => more(look::counted(plain, "entry", "entries")),
        _ => return None,
    })
}

fn is_note(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']')
}

/// True for a line of a file behind its number.
fn is_numbered(line: &str) -> bool {
    line.split_once('\t')
        .is_some_and(|(number, _)| number.bytes().all(|digit| digit.is_ascii_digit()))
}
