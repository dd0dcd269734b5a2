//! The reader of commands: from a script to the simple commands that it may run.
//!
//! The reader answers one question: which programs may start, with which words. It does not answer
//! when, so every branch, loop body and function body counts. It fails closed: where the text is not
//! plain shell, the script is *unread*, and the segments before that point still count.
//!
//! The grammar is bash's, read by our own reader. Of the published ones `yash-syntax` has a licence
//! that ours cannot take, and reads POSIX only. `brush-parser` overflows the stack on nested input,
//! keeps the last words that it read in a static cache (words of other tenants), and needs a
//! library for snapshot tests at run time. `tree-sitter-bash` repairs what it cannot parse by a guess, and a
//! guess must not grant anything. This reader has exact bounds and needs only the list of commands.
//!
//! - `word`: a word and what is certain about it.
//! - `scan`, `expand`, `braces`: from characters to words.
//! - `grammar`, `compound`: from words to segments.
//! - `through`: the commands inside commands (`sudo`, `xargs`, `sh -c`).

mod braces;
mod compound;
mod expand;
mod grammar;
mod scan;
mod through;
pub(crate) mod word;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub(crate) use through::{is_shell, wrapper};
use word::Word;

/// The longest script that is read, in bytes.
pub(crate) const MAX_SCRIPT: usize = 64 * 1024;
/// The deepest nesting of substitutions and compound commands that is read.
pub(crate) const MAX_DEPTH: usize = 24;
/// The most segments of a script, those inside of wrappers included.
pub(crate) const MAX_SEGMENTS: usize = 4096;
/// The most scripts and wrappers inside one another.
pub(crate) const MAX_LAYERS: usize = 8;

/// The commands of a script.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Every simple command that it may run.
    pub(crate) segments: Vec<Segment>,
    /// The here-documents and here-strings of the segments.
    pub(crate) texts: Vec<Word>,
    /// True if a function calls itself more than once: it multiplies without end.
    pub(crate) bomb: bool,
    /// The reason why a part of it could not be read.
    pub(crate) unread: Option<Unread>,
}

/// One simple command.
#[derive(Debug, Default, Clone)]
pub(crate) struct Segment {
    /// The program and its arguments. Empty if there are only assignments or redirections.
    pub(crate) words: Vec<Word>,
    /// The assignments before the program.
    pub(crate) assigned: Vec<(String, Word)>,
    /// Its files.
    pub(crate) redirects: Vec<Redirect>,
    /// Its standard input.
    pub(crate) input: SegmentInput,
    /// The segment that starts this one: a wrapper, a shell.
    pub(crate) parent: Option<usize>,
}

impl Segment {
    /// The base name of its program; `None` if that is left to the run, `""` if it has no words.
    pub(crate) fn program(&self) -> Option<String> {
        match self.words.first() {
            Some(word) => word.program(),
            None => Some(String::new()),
        }
    }

    /// The words after its program.
    pub(crate) fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// A file of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Redirect {
    /// True if the command writes there.
    pub(crate) writes: bool,
    /// Its path.
    pub(crate) target: Word,
}

/// The standard input of a segment.
#[derive(Debug, Default, Clone)]
pub(crate) enum SegmentInput {
    /// The one of the script.
    #[default]
    Inherited,
    /// The output of these segments; of unknown ones if the range is empty.
    Pipe(Range<usize>),
    /// The text with this number.
    Text(usize),
    /// A file.
    File,
}

/// The reason why a script could not be read, in a few words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unread(pub(crate) &'static str);

/// Reads a script for the shell, and the commands inside its commands.
pub(crate) fn read(text: &str) -> Script {
    let mut script = Script::default();
    if let Err(unread) = grammar::parse(text, 0, &mut script) {
        script.unread = Some(unread);
    }
    through::expand(&mut script);
    script
}

/// Reads a program with arguments, and the commands inside it.
pub(crate) fn read_argv(argv: &[String]) -> Script {
    let mut script = Script::default();
    if argv.iter().map(String::len).sum::<usize>() > MAX_SCRIPT {
        script.unread = Some(Unread("it is longer than 64 KiB"));
        return script;
    }
    let words = argv.iter().map(|word| Word::text(word)).collect();
    script.segments.push(Segment {
        words,
        ..Segment::default()
    });
    through::expand(&mut script);
    script
}
