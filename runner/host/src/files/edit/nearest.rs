//! Finds the place of a file that is nearest to a text which does not stand in it, and says what differs there.
//!
//! Three searches follow one another, and each takes time in proportion to the file:
//!
//! 1. The whole text in its plain form: white space, case and characters that look alike do not count.
//! 2. Its lines in their plain form. The place where most of them stand in their order counts.
//! 3. The line that shares most pairs of letters with the longest line of the text.

mod differ;
mod plain;

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use memchr::memmem;
use shared_sandbox::Nearest;

use differ::{Pair, differences};
use plain::{Plain, plain};

/// Most places of one line of the text that count in the second search.
const SAME_LINES: usize = 4;
/// Most bytes of a line that count in the second search, so that one long line does not outweigh all others.
const MAX_WEIGHT: usize = 64;
/// The lines of the second search are near if at least one of so many bytes of the text is among them.
const NEAR_OF: usize = 3;
/// Lines before the first difference that are shown.
const LINES_BEFORE: usize = 2;

/// The nearest place in the file to this text, which does not stand in it.
pub(super) fn nearest(file: &str, old: &str) -> Nearest {
    let unnumbered = without_numbers(old);
    let text = unnumbered.as_deref().unwrap_or(old);
    let lines: Vec<&str> = file.split('\n').collect();
    let place = same_in_plain(file, text).or_else(|| {
        let (first, skipped) = most_lines(&lines, text).or_else(|| most_alike(&lines, text))?;
        Some(NearMatch::of_lines(&lines, text, first, skipped))
    });
    let Some(place) = place else {
        return Nearest::Nowhere;
    };
    let (at, mut told) = differences(&place.pairs, place.is_same_in_plain);
    if unnumbered.is_some() {
        let numbers = "your text has line numbers, which are not part of the file";
        told.insert(0, numbers.to_owned());
    }
    if told.is_empty() {
        told.push("the white space before or after these lines differs".to_owned());
    }
    told.truncate(Nearest::MAX_DIFFERENCES);
    let skipped = match place.lines.len() > Nearest::MAX_LINES {
        true => at.saturating_sub(place.lines.start + LINES_BEFORE),
        false => 0,
    };
    let shown = place.lines.start + skipped..place.lines.end;
    Nearest::Lines {
        line: shown.start as u64 + 1,
        lines: excerpt(&lines[shown]),
        differences: told,
    }
}

/// A place that is like the text.
struct NearMatch<'a> {
    /// Its lines, from 0.
    lines: Range<usize>,
    /// Its lines with those of the text.
    pairs: Vec<Pair<'a>>,
    /// True if it is the text in the plain form.
    is_same_in_plain: bool,
}

impl<'a> NearMatch<'a> {
    /// The lines from this one on, with those of the text in their order.
    fn of_lines(lines: &[&'a str], text: &'a str, first: usize, skipped: usize) -> Self {
        let last = text.split('\n').count() - 1;
        // A text that ends with a line's end has nothing of the next line.
        let yours = text.strip_suffix('\n').unwrap_or(text).split('\n');
        let pairs: Vec<_> = (first..)
            .zip(lines[first..].iter().zip(yours.enumerate().skip(skipped)))
            .map(|(line, (theirs, (n, yours)))| {
                Pair::of_line(line, theirs, yours, n == 0, n == last)
            })
            .collect();
        Self {
            lines: first..first + pairs.len(),
            pairs,
            is_same_in_plain: false,
        }
    }
}

/// The text without the numbers before its lines, where each line has one, as a Read shows them.
fn without_numbers(text: &str) -> Option<String> {
    let lines = text.split('\n').map(|line| match line.split_once('\t') {
        Some((number, line)) => {
            let number = number.trim_start();
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then_some(line)
        }
        None => line.is_empty().then_some(line),
    });
    let lines: Option<Vec<_>> = lines.collect();
    let lines = lines.filter(|lines| lines.iter().any(|line| !line.is_empty()))?;
    Some(lines.join("\n"))
}

/// The first search.
fn same_in_plain<'a>(file: &'a str, text: &'a str) -> Option<NearMatch<'a>> {
    let wanted = plain(text);
    if wanted.is_empty() {
        return None;
    }
    let form = Plain::of(file);
    let found = memmem::find(form.text.as_bytes(), wanted.as_bytes())?;
    let region = form.place_of(file, found..found + wanted.len());
    // The text's lines from the first that is not blank to the last one.
    let begins = text.len() - text.trim_start().len();
    let begins = text[..begins].rfind('\n').map_or(0, |at| at + 1);
    let ends = text.trim_end().len();
    let ends = text[ends..].find('\n').map_or(text.len(), |at| ends + at);
    let yours = &text[begins..ends];
    let is_space = |letter: char| letter.is_whitespace() && letter != '\n';
    let start = match yours.starts_with(is_space) {
        true => file[..region.start].trim_end_matches(is_space).len(),
        false => region.start,
    };
    // White space at the end counts where the text has some, or has the end of the line too.
    let tail = &file[region.end..];
    let end = match yours.ends_with(is_space) || ends < text.len() {
        true => file.len() - tail.trim_start_matches(is_space).len(),
        false => region.end,
    };
    let theirs = &file[start..end];
    let first = file[..start].matches('\n').count();
    let count = theirs.split('\n').count();
    let is_at_start = file[..start].is_empty() || file[..start].ends_with('\n');
    let pairs = theirs.split('\n').zip(yours.split('\n')).enumerate();
    Some(NearMatch {
        lines: first..first + count,
        pairs: pairs
            .map(|(n, (theirs, yours))| Pair {
                line: first + n,
                theirs,
                yours,
                is_at_start: n > 0 || is_at_start,
            })
            .collect(),
        is_same_in_plain: true,
    })
}

/// The second search: the first line of the place, and the number of lines of the text that would stand before the
/// file's beginning.
fn most_lines(lines: &[&str], text: &str) -> Option<(usize, usize)> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    let (mut all, mut count) = (0, 0);
    for (n, line) in text.split('\n').map(plain).enumerate() {
        count = n + 1;
        all += weight(&line);
        let places = places.entry(line).or_default();
        if places.len() < SAME_LINES {
            places.push(n);
        }
    }
    places.remove("");
    let mut votes = vec![0; lines.len() + count];
    for (n, line) in lines.iter().enumerate() {
        let line = plain(line);
        for place in places.get(&line).into_iter().flatten() {
            votes[n + count - place] += weight(&line);
        }
    }
    // Of equal ones the first.
    let best = (0..votes.len()).rev().max_by_key(|at| votes[*at])?;
    let is_near = votes[best] > 0 && votes[best] * NEAR_OF >= all;
    is_near.then(|| (best.saturating_sub(count), count.saturating_sub(best)))
}

fn weight(line: &str) -> usize {
    line.len().min(MAX_WEIGHT)
}

/// The third search.
fn most_alike(lines: &[&str], text: &str) -> Option<(usize, usize)> {
    let yours = text.split('\n').map(plain).enumerate();
    let (n, longest) = yours.max_by_key(|(_, line)| line.len())?;
    let wanted: HashSet<_> = letter_pairs(&longest).collect();
    let mut best = (0, 0, 1);
    let mut theirs = HashSet::new();
    for (line, text) in lines.iter().enumerate() {
        theirs.clear();
        theirs.extend(letter_pairs(&plain(text)));
        let common = theirs.iter().filter(|pair| wanted.contains(pair)).count();
        let all = theirs.len() + wanted.len();
        if common * best.2 > best.1 * all {
            best = (line, common, all);
        }
    }
    // Of the letter pairs of both at least half are common.
    let (line, common, all) = best;
    let is_near = common > 0 && common * 4 >= all;
    is_near.then(|| (line.saturating_sub(n), n.saturating_sub(line)))
}

fn letter_pairs(line: &str) -> impl Iterator<Item = (char, char)> {
    line.chars().zip(line.chars().skip(1))
}

/// The first of these lines, within the bounds.
fn excerpt(lines: &[&str]) -> Vec<String> {
    let mut room = Nearest::MAX_BYTES;
    let mut shown = Vec::new();
    for line in lines.iter().take(Nearest::MAX_LINES) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let cut = &line[..line.floor_char_boundary(room)];
        room -= cut.len();
        shown.push(cut.to_owned());
        if cut.len() < line.len() {
            break;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_a_file_and_a_text_hold_what_is_told_is_of_the_file_and_bounded(
            file in "([ab'’ \u{a0}\t\r\n\u{feff}“\"Aİßﬀ1…-]){0,60}",
            old in "([ab'’ \u{a0}\t\r\n\u{feff}“\"Aİßﬀ1…-]){1,30}",
        ) {
            if let Nearest::Lines { line, lines, differences } = nearest(&file, &old) {
                let all: Vec<_> = file.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
                let first = usize::try_from(line).expect("a line") - 1;
                prop_assert_eq!(&all[first..first + lines.len()], &lines[..]);
                prop_assert!((1..=Nearest::MAX_DIFFERENCES).contains(&differences.len()));
                prop_assert!(!lines.is_empty() && lines.len() <= Nearest::MAX_LINES);
            }
        }

        #[test]
        fn a_text_whose_white_space_differs_is_found_where_it_stands(
            before in "(x\n){0,5}", lines in "([abc]{1,3}[ \t]{1,3}\n){1,5}", after in "(y\n){0,5}",
        ) {
            let file = format!("{before}{lines}{after}");
            let old = lines.replace(['\t', ' '], "  ");
            if !file.contains(&old) {
                let Nearest::Lines { line, .. } = nearest(&file, &old) else {
                    return Err(TestCaseError::fail("it is near"));
                };
                prop_assert!(line > before.lines().count() as u64);
                prop_assert!(line <= (before.lines().count() + lines.lines().count()) as u64);
            }
        }
    }
}
