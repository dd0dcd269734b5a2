//! The ranking of tools by a query: BM25 over names, descriptions and the names of arguments.
//!
//! Source: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), formula 3.15; the
//! words of a field count as often as the field weighs.

use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use crate::tools::Tool;

/// The speed at which a word's count stops to matter.
const K1: f64 = 1.2;

/// The weight of the length of a text, from 0 to 1.
const B: f64 = 0.75;

/// A word of a name counts so often as one of a description.
const NAME_WEIGHT: f64 = 4.0;

/// Bytes of a description that are read.
const DESCRIPTION_READ: usize = 4 * 1024;

/// The tools that fit best, the best first. One that is named whole comes before all others.
pub(super) fn best<'a>(
    tools: impl Iterator<Item = &'a Arc<dyn Tool>>,
    query: &str,
    at_most: usize,
) -> Vec<&'a Arc<dyn Tool>> {
    let texts: Vec<_> = tools.map(|tool| (tool, Text::of(&**tool))).collect();
    let count = texts.len() as f64;
    let average = texts.iter().map(|(_, text)| text.length).sum::<f64>() / count.max(1.0);
    let mut wanted = words(query);
    wanted.sort_unstable();
    wanted.dedup();
    let weights: Vec<_> = wanted
        .iter()
        .map(|word| {
            let having = texts
                .iter()
                .filter(|(_, text)| text.counts.contains_key(word));
            let having = having.count() as f64;
            (word, (1.0 + (count - having + 0.5) / (having + 0.5)).ln())
        })
        .collect();
    let score = |text: &Text| -> f64 {
        let length = K1 * (1.0 - B + B * text.length / average.max(1.0));
        let parts = weights.iter().filter_map(|(word, weight)| {
            let count = text.counts.get(*word)?;
            Some(weight * count * (K1 + 1.0) / (count + length))
        });
        parts.sum()
    };
    let mut scored: Vec<_> = texts
        .iter()
        .map(|(tool, text)| {
            let named = tool.name().eq_ignore_ascii_case(query.trim());
            (if named { f64::INFINITY } else { score(text) }, *tool)
        })
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scored.sort_by(|(one, a), (other, b)| {
        let better = other.partial_cmp(one).unwrap_or(Ordering::Equal);
        better.then_with(|| a.name().cmp(b.name()))
    });
    scored.truncate(at_most);
    scored.into_iter().map(|(_, tool)| tool).collect()
}

/// The words of a tool, and how often each counts.
struct Text {
    counts: HashMap<String, f64>,
    length: f64,
}

impl Text {
    fn of(tool: &dyn Tool) -> Self {
        let mut text = Self {
            counts: HashMap::new(),
            length: 0.0,
        };
        text.add(tool.name(), NAME_WEIGHT);
        let description = tool.description();
        let read = description.floor_char_boundary(DESCRIPTION_READ);
        text.add(&description[..read], 1.0);
        let schema = tool.schema();
        let arguments = schema["properties"].as_object();
        for name in arguments.into_iter().flat_map(|arguments| arguments.keys()) {
            text.add(name, 1.0);
        }
        text
    }

    fn add(&mut self, of: &str, weight: f64) {
        for word in words(of) {
            *self.counts.entry(word).or_default() += weight;
            self.length += weight;
        }
    }
}

/// The words of a text in lower case. Parts of a name such as `createIssue` and `list_issues` are words of their own, and
/// so is the whole of `GitHub`, and each letter of a script without spaces. A plural is as its singular.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut run) = (Vec::new(), String::new());
    for letter in text.chars() {
        if letter.is_alphanumeric() && !is_word_alone(letter) {
            run.push(letter);
            continue;
        }
        add(&mut words, &std::mem::take(&mut run));
        if is_word_alone(letter) {
            words.push(letter.to_string());
        }
    }
    add(&mut words, &run);
    words
}

/// Adds a run of letters and digits: its parts, and the whole where it has several.
fn add(words: &mut Vec<String>, run: &str) {
    let (mut parts, mut was_lower) = (Vec::<String>::new(), false);
    for letter in run.chars() {
        let begins = parts.is_empty() || letter.is_uppercase() && was_lower;
        if begins {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend(letter.to_lowercase());
        }
        was_lower = !letter.is_uppercase();
    }
    if parts.len() > 1 {
        parts.push(run.to_lowercase());
    }
    words.extend(parts.into_iter().map(singular));
}

/// Letters of Chinese and Japanese.
fn is_word_alone(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

fn singular(word: String) -> String {
    let stem = word
        .strip_suffix("ies")
        .filter(|stem| stem.len() > 2)
        .map(|stem| format!("{stem}y"))
        .or_else(|| {
            let stem = word.strip_suffix('s')?;
            (stem.len() > 2 && !stem.ends_with('s')).then(|| stem.to_owned())
        });
    stem.unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_descriptions_and_plurals_are_read_as_words() {
        assert_eq!(
            words("mcp__GitHub__createIssue: Lists queries of 问题"),
            [
                "mcp",
                "git",
                "hub",
                "github",
                "create",
                "issue",
                "createissue",
                "list",
                "query",
                "of",
                "问",
                "题"
            ]
        );
        assert_eq!(words("class pass us"), ["class", "pass", "us"]);
    }
}
