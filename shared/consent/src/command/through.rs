//! Commands inside of commands: wrappers, shells, `eval`, `find -exec`.
//!
//! The command inside becomes a segment of its own, with the wrapper as its parent. So a rule about
//! `rm` also holds for `sudo rm`, `xargs rm` and `sh -c 'rm x'`.

mod scripts;

use std::sync::LazyLock;

use super::{MAX_LAYERS, MAX_SEGMENTS, Script, Segment, SegmentInput, Unread, grammar, word::Word};
pub(crate) use scripts::is_shell;

/// A program that starts the program named by the rest of its words.
#[derive(Debug)]
pub(crate) struct Wrapper {
    /// Its name, and its sub-command if only that one starts a program.
    name: Vec<&'static str>,
    /// Its options that take the next word.
    valued: Vec<&'static str>,
    /// The words between its options and the program.
    skipped: usize,
}

/// The most words that are no options up to the last word of a wrapper's name.
const MAX_BEFORE: usize = 5;

static WRAPPERS: LazyLock<Vec<Wrapper>> = LazyLock::new(|| {
    let lines = include_str!("wrappers.txt").lines();
    lines
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let mut columns = line.split('|');
            let mut words = || columns.next().unwrap_or_default().split_whitespace();
            Wrapper {
                name: words().collect(),
                valued: words().collect(),
                skipped: words().next().and_then(|n| n.parse().ok()).unwrap_or(0),
            }
        })
        .collect()
});

/// The entry of the table for a command.
pub(crate) fn wrapper(segment: &Segment) -> Option<&'static Wrapper> {
    let program = segment.program()?;
    let asks = matches!(
        segment.arguments().first().and_then(Word::literal),
        Some("-v" | "-V")
    );
    if program == "command" && asks {
        return None;
    }
    WRAPPERS.iter().find(|wrapper| {
        // Values of options may stand before and between the sub-commands.
        let mut words = plain(segment.arguments()).take(MAX_BEFORE);
        let mut subs = wrapper.name[1..].iter();
        wrapper.name[0] == program && subs.all(|sub| words.any(|word| word == *sub))
    })
}

/// Adds the commands inside of the script's commands, layer by layer.
pub(super) fn expand(script: &mut Script) {
    let mut layer = 0..script.segments.len();
    for _ in 0..MAX_LAYERS {
        let next = layer.end;
        for at in layer {
            if let Err(unread) = look_through(script, at) {
                script.unread.get_or_insert(unread);
            }
        }
        layer = next..script.segments.len();
        if layer.is_empty() {
            return;
        }
    }
    script
        .unread
        .get_or_insert(Unread("its commands are wrapped too often"));
}

/// Adds the commands inside of one segment.
fn look_through(script: &mut Script, at: usize) -> Result<(), Unread> {
    let segment = script.segments[at].clone();
    for argv in scripts::commands_of(&segment) {
        add(script, &segment, at, argv)?;
    }
    match wrapper(&segment).map(|wrapper| inside(wrapper, &segment)) {
        Some(argv) if argv.is_empty() && under_xargs(script, at) => {
            return Err(Unread("it runs a command from its input"));
        }
        Some(argv) if !argv.is_empty() => add(script, &segment, at, argv)?,
        _ => {}
    }
    for text in scripts::script_of(&segment, script)? {
        let from = script.segments.len();
        grammar::parse(&text, 0, script)?;
        for inner in &mut script.segments[from..] {
            inner.parent = Some(at);
            if matches!(inner.input, SegmentInput::Inherited)
                && !matches!(segment.input, SegmentInput::Text(_))
            {
                inner.input = segment.input.clone();
            }
        }
    }
    Ok(())
}

/// True if a segment is started by xargs, which adds words to it.
fn under_xargs(script: &Script, at: usize) -> bool {
    let mut parent = script.segments[at].parent;
    while let Some(segment) = parent.and_then(|at| script.segments.get(at)) {
        if segment.program().as_deref() == Some("xargs") {
            return true;
        }
        parent = segment.parent;
    }
    false
}

/// The text that xargs replaces by what it read, if it replaces any.
fn replaced(segment: &Segment) -> Option<String> {
    let words = segment.arguments();
    let shown = |at: usize| words.get(at).map(Word::shown);
    (0..words.len()).find_map(|at| match shown(at)?.as_str() {
        "-I" | "--replace" => shown(at + 1),
        "-i" => Some("{}".to_owned()),
        word => ["-I", "-i", "--replace="]
            .iter()
            .find_map(|option| word.strip_prefix(option).map(str::to_owned)),
    })
}

/// Adds a command that a segment starts.
fn add(script: &mut Script, outer: &Segment, at: usize, argv: Vec<Word>) -> Result<(), Unread> {
    if script.segments.len() >= MAX_SEGMENTS {
        return Err(Unread("it has too many commands"));
    }
    script.segments.push(Segment {
        words: argv,
        input: outer.input.clone(),
        parent: Some(at),
        ..Segment::default()
    });
    Ok(())
}

/// The command that a wrapper starts; empty if there is none.
fn inside(wrapper: &Wrapper, segment: &Segment) -> Vec<Word> {
    let mut words = segment.arguments();
    for sub in &wrapper.name[1..] {
        let at = words.iter().position(|word| word.literal() == Some(*sub));
        words = at.map_or(&[][..], |at| &words[at + 1..]);
    }
    let mut skipped = wrapper.skipped;
    let mut options = true;
    while let Some((first, rest)) = words.split_first() {
        let shown = first.shown();
        if options && shown == "--" {
            options = false;
        } else if options && shown.starts_with('-') && shown.len() > 1 {
            if wrapper.valued.contains(&shown.as_str()) {
                words = rest.get(1..).unwrap_or_default();
                continue;
            }
        } else if shown.contains('=') && !shown.starts_with(['/', '.', '=']) && skipped == 0 {
            // A variable for the program. Its dangers are looked for in the wrapper's own words.
        } else if skipped > 0 {
            skipped -= 1;
        } else {
            break;
        }
        words = rest;
    }
    match replaced(segment).filter(|_| wrapper.name == ["xargs"]) {
        Some(sign) if !sign.is_empty() => scripts::placeholders(words, &sign),
        _ => words.to_vec(),
    }
}

/// The literal words that are no options.
fn plain(words: &[Word]) -> impl Iterator<Item = &str> {
    words
        .iter()
        .filter_map(Word::literal)
        .filter(|word| !word.starts_with('-'))
}
