//! Patterns for commands, and how they fit.
//!
//! An allow rule fits *strictly*: it must be certain that the command is the one which it names. A
//! rule that asks or denies fits *broadly*: options between its words, other spellings of options,
//! a program under another path, and commands inside of unknown programs count as well.

use std::fmt;

use crate::{
    command::{
        Segment,
        word::{HoleSource, Word, WordPiece, base},
        wrapper,
    },
    risk::{
        of_the_system,
        programs::{has_option, is_plain, valued},
    },
};

/// The most words of a command among which a rule's words are looked for. A rule that asks or denies
/// may fit every command with more.
const MAX_WORDS: usize = 256;

/// A pattern for commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Every command.
    Every,
    /// Exactly this text.
    Exact(String),
    /// A command that begins with these words.
    Words {
        words: Vec<String>,
        /// True if further words may follow.
        open: bool,
    },
}

/// The fit of a rule to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// It does not.
    No,
    /// It does if the run decides so.
    Maybe,
    /// It does.
    Yes,
}

impl Pattern {
    pub(super) fn new(text: Option<&str>) -> Self {
        let text = match text {
            None | Some("*") => return Self::Every,
            Some(text) => text,
        };
        if let Some(exact) = text.strip_prefix('=') {
            return Self::Exact(exact.trim().to_owned());
        }
        let mut words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        let open = words.last().is_some_and(|last| last == "*");
        if open {
            words.pop();
        }
        Self::Words { words, open }
    }

    /// True if this certainly is the command of an allow rule.
    pub(crate) fn covers(&self, segment: &Segment) -> bool {
        let (words, open) = match self {
            Self::Every => return true,
            Self::Exact(_) => return false,
            Self::Words { words, open } => (words, *open),
        };
        let Some((program, rest)) = words.split_first() else {
            return false;
        };
        let Some(first) = segment.words.first().and_then(Word::literal) else {
            return false;
        };
        let named = if program.contains('/') || !of_the_system(first) {
            first
        } else {
            base(first)
        };
        wild(program, named) && sequence(program, rest, open, segment.arguments())
    }

    /// The fit of a rule that asks or denies to a command.
    pub(crate) fn fits(&self, segment: &Segment) -> Fit {
        let (words, open) = match self {
            Self::Every => return Fit::Yes,
            Self::Exact(text) => {
                let same = Word::joined(&segment.words).is_some_and(|words| words == *text);
                return if same { Fit::Yes } else { Fit::No };
            }
            Self::Words { words, open } => (words, *open),
        };
        let own = at(words, open, &segment.words);
        let program = segment.program();
        let plain = program.is_some_and(|name| is_plain(&name)) && wrapper(segment).is_none();
        if plain || own == Fit::Yes {
            return own;
        }
        // An unknown program may start what its words name, also where one word holds several.
        if segment.words.len() > MAX_WORDS {
            return Fit::Maybe;
        }
        let suffixes = (1..segment.words.len()).map(|from| at(words, open, &segment.words[from..]));
        let texts = segment
            .arguments()
            .iter()
            .filter_map(Word::literal)
            .filter(|text| text.contains(' '));
        let split = texts.map(|text| {
            let inner: Vec<_> = text
                .split_whitespace()
                .take(MAX_WORDS)
                .map(Word::text)
                .collect();
            at(words, open, &inner)
        });
        suffixes.chain(split).max().unwrap_or(Fit::No).max(own)
    }
}

impl fmt::Display for Pattern {
    /// The text between the brackets; empty for every command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => Ok(()),
            Self::Exact(text) => write!(f, "={text}"),
            Self::Words { words, open } => {
                f.write_str(&words.join(" "))?;
                f.write_str(if *open { " *" } else { "" })
            }
        }
    }
}

/// True if literal words follow one another as in a pattern. Options of the program before its
/// sub-command are skipped.
fn sequence(program: &str, pattern: &[String], open: bool, mut words: &[Word]) -> bool {
    for (number, wanted) in pattern.iter().enumerate() {
        loop {
            let Some((word, rest)) = words.split_first() else {
                return false;
            };
            words = rest;
            match word.literal() {
                Some(text) if wild(wanted, text) => break,
                Some(text)
                    if number == 0 && !wanted.starts_with('-') && text.starts_with(['-', '+']) =>
                {
                    if valued(program).contains(&text) {
                        words = words.get(1..).unwrap_or_default();
                    }
                }
                _ => return false,
            }
        }
    }
    open || words.is_empty()
}

/// The fit of a pattern to words that begin with a program.
fn at(pattern: &[String], open: bool, words: &[Word]) -> Fit {
    let (Some((program, rest)), Some((first, words))) =
        (pattern.split_first(), words.split_first())
    else {
        return Fit::No;
    };
    let mut fit = names(program, first);
    for option in rest.iter().filter(|word| word.starts_with('-')) {
        if fit == Fit::No {
            return Fit::No;
        }
        fit = fit.min(option_fit(option, words));
    }
    let places: Vec<_> = rest.iter().filter(|word| !word.starts_with('-')).collect();
    if fit == Fit::No {
        return Fit::No;
    }
    if words.len() > MAX_WORDS {
        return fit.min(Fit::Maybe);
    }
    fit.min(in_order(&program.to_lowercase(), &places, open, words))
}

/// The fit of a program's name to a word: by the last path component, without regard to case.
fn names(program: &str, word: &Word) -> Fit {
    let program = base(program).to_lowercase();
    match word.program() {
        Some(name) if wild(&program, &name.to_lowercase()) => Fit::Yes,
        Some(_) => Fit::No,
        None => could_be(&program, word).max(could_be(&format!("*/{program}"), word)),
    }
}

/// The fit of a pattern's option to the words: each of its letters, in any order and spelling.
fn option_fit(option: &str, words: &[Word]) -> Fit {
    const SPELLED: [(&str, &str); 4] = [
        ("-r", "--recursive"),
        ("-R", "--recursive"),
        ("-f", "--force"),
        ("-r", "-R"),
    ];
    let one = |option: &str| {
        let other = SPELLED.iter().any(|(short, long)| {
            (*short == option && has_option(words, long))
                || (*long == option && has_option(words, short))
        });
        let open = words
            .iter()
            .any(|word| word.open() && could_be(option, word) != Fit::No);
        match has_option(words, option) || other {
            true => Fit::Yes,
            false if open => Fit::Maybe,
            false => Fit::No,
        }
    };
    let letters = option.trim_start_matches('-');
    let cluster = !option.starts_with("--")
        && letters.len() > 1
        && letters.len() < 5
        && letters.chars().all(char::is_alphabetic);
    let apart = letters
        .chars()
        .map(|letter| one(&format!("-{letter}")))
        .min()
        .unwrap_or(Fit::No);
    if cluster {
        one(option).max(apart)
    } else {
        one(option)
    }
}

/// The fit of the words that are no options, in their order, with options between them.
fn in_order(program: &str, wanted: &[&String], open: bool, words: &[Word]) -> Fit {
    let takes = valued(program);
    let mut reached = vec![Fit::No; words.len() + 1];
    reached[0] = Fit::Yes;
    for number in 0..=wanted.len() {
        if reached.iter().all(|fit| *fit == Fit::No) {
            return Fit::No;
        }
        let mut next = vec![Fit::No; words.len() + 1];
        for from in 0..words.len() {
            let fit = reached[from];
            if fit == Fit::No {
                continue;
            }
            let (word, shown) = (&words[from], words[from].shown());
            let option = shown.starts_with(['-', '+']) && shown.len() > 1;
            let vanishes = matches!(word.0.as_slice(), [WordPiece::Hole(hole)] if !hole.quoted);
            let mut raise = |to: usize, fit: Fit| {
                if let Some(place) = reached.get_mut(to) {
                    *place = (*place).max(fit);
                }
            };
            if option {
                raise(from + 1, fit);
                let certain = if takes.contains(&shown.as_str()) {
                    Fit::Yes
                } else {
                    Fit::Maybe
                };
                if !shown.contains('=') {
                    raise(from + 2, fit.min(certain));
                }
            } else if vanishes {
                raise(from + 1, fit.min(Fit::Maybe));
            }
            if let Some(wanted) = wanted.get(number) {
                next[from + 1] = next[from + 1].max(fit.min(could_be(wanted, word)));
            }
        }
        if number == wanted.len() {
            return if open {
                reached.into_iter().max().unwrap_or(Fit::No)
            } else {
                reached[words.len()]
            };
        }
        reached = next;
    }
    Fit::No
}

/// A character of a pattern or a word; `None` is any text.
type Sign = Option<char>;

/// The fit of a word to one pattern with `*`.
fn could_be(pattern: &str, word: &Word) -> Fit {
    if let Some(text) = word.literal() {
        return if wild(pattern, text) {
            Fit::Yes
        } else {
            Fit::No
        };
    }
    let mut signs: Vec<Sign> = Vec::new();
    for piece in &word.0 {
        match piece {
            WordPiece::Text(text) => signs.extend(text.chars().map(Some)),
            WordPiece::Glob(_) => signs.push(None),
            WordPiece::Hole(hole) if hole.of == HoleSource::Pipe => {
                signs.extend("/dev/fd/".chars().map(Some).chain([None]))
            }
            WordPiece::Hole(_) => signs.push(None),
        }
    }
    // A bracket pattern has its letters in the word: they stand for one of them.
    if word.globs() && word.shown().contains('[') {
        signs = vec![None];
    }
    match meet(&signs_of(pattern), &signs) {
        _ if pattern == "*" => Fit::Yes,
        true => Fit::Maybe,
        false => Fit::No,
    }
}

/// True if a text fits a pattern with `*`.
fn wild(pattern: &str, text: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == text;
    }
    meet(
        &signs_of(pattern),
        &text.chars().map(Some).collect::<Vec<_>>(),
    )
}

fn signs_of(pattern: &str) -> Vec<Sign> {
    pattern.chars().map(|c| (c != '*').then_some(c)).collect()
}

/// True if a text exists that both describe. Takes time by the product of their lengths.
fn meet(left: &[Sign], right: &[Sign]) -> bool {
    // row[j]: the part of `left` so far and the first j signs of `right` have a text in common.
    let mut row = vec![false; right.len() + 1];
    row[0] = true;
    for j in 0..right.len() {
        row[j + 1] = row[j] && right[j].is_none();
    }
    for sign in left {
        let mut next = vec![false; right.len() + 1];
        next[0] = row[0] && sign.is_none();
        for j in 0..right.len() {
            next[j + 1] = match (sign, right[j]) {
                (None, _) | (_, None) => row[j + 1] || next[j],
                (Some(a), Some(b)) => row[j] && *a == b,
            };
        }
        row = next;
    }
    row[right.len()]
}
