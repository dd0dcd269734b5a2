//! The completion of commands behind `/` and of file names behind `@`.

use super::CommandHelp;
use super::buffer::Buffer;
use super::draft::{Draft, Effect};
use super::pastes::is_mark;
use std::ops::Range;

/// Most entries of a list.
const MAX_ITEMS: usize = 200;

/// Longest beginning of a name that is completed, in bytes.
const MAX_PREFIX_BYTES: usize = 1024;

/// The list below the box, and the word that it completes.
#[derive(Debug, Default)]
pub(super) struct Completer {
    commands: Vec<CommandHelp>,
    list: Option<List>,
    /// The beginning of the word whose list the user closed.
    closed: Option<usize>,
    /// The beginning of a file name for which the loop was asked last.
    wanted: Option<String>,
}

/// A list of completions. It is never empty.
#[derive(Debug)]
pub(super) struct List {
    kind: Kind,
    word: usize,
    pub(super) items: Vec<Item>,
    pub(super) chosen: usize,
}

/// One completion.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// The name as the list shows it.
    pub(super) name: String,
    /// The argument and the description of a command.
    pub(super) argument: String,
    pub(super) description: String,
    /// The text that replaces the word.
    insert: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    File,
}

/// A word that can be completed.
#[derive(Debug)]
struct Word {
    kind: Kind,
    /// From the `/` or `@` to the cursor.
    range: Range<usize>,
    prefix: String,
}

impl Completer {
    /// Knows these commands from now on, also for the word that is being typed.
    pub(super) fn set_commands(&mut self, commands: Vec<CommandHelp>, buffer: &Buffer) {
        let is_new = self.commands != commands;
        self.commands = commands;
        if is_new && word(buffer).is_some_and(|word| word.kind == Kind::Command) {
            self.update(buffer);
        }
    }

    /// The list that is open.
    pub(super) fn list(&self) -> Option<&List> {
        self.list.as_ref()
    }

    /// Closes the list until the text changes.
    pub(super) fn close(&mut self) {
        self.list = None;
        self.wanted = None;
    }

    /// Closes the list until another word is completed.
    pub(super) fn dismiss(&mut self) {
        self.closed = self.list.as_ref().map(|list| list.word);
        self.close();
    }

    /// Forgets the word; for a new draft.
    pub(super) fn reset(&mut self) {
        self.closed = None;
        self.close();
    }

    /// Moves the choice to the next or the previous entry, around the ends.
    pub(super) fn step(&mut self, is_down: bool) {
        if let Some(list) = &mut self.list {
            let count = list.items.len();
            let step = if is_down { 1 } else { count - 1 };
            list.chosen = (list.chosen + step) % count;
        }
    }

    /// Takes up a change of the text. Gives the beginning of a file name if files for it are wanted.
    pub(super) fn update(&mut self, buffer: &Buffer) -> Option<String> {
        let word = word(buffer);
        if self.closed.is_some() && self.closed == word.as_ref().map(|word| word.range.start) {
            return None;
        }
        self.closed = None;
        match word {
            None => {
                self.close();
                None
            }
            Some(word) if word.kind == Kind::Command => {
                self.wanted = None;
                let items = self.matching_commands(&word.prefix);
                self.open(&word, items);
                None
            }
            Some(word) if self.wanted.as_ref() == Some(&word.prefix) => None,
            Some(word) => {
                // Entries that still match stay until the answer comes.
                let list = self.list.take();
                let old =
                    list.filter(|list| list.kind == Kind::File && list.word == word.range.start);
                let mut items = old.map(|list| list.items).unwrap_or_default();
                items.retain(|item| is_like(&item.name, &word.prefix));
                self.open(&word, items);
                self.wanted = Some(word.prefix.clone());
                Some(word.prefix)
            }
        }
    }

    /// Takes the paths for a beginning of a file name, unless the user has typed on.
    pub(super) fn offer(&mut self, buffer: &Buffer, prefix: &str, paths: Vec<String>) {
        let word = word(buffer).filter(|word| word.kind == Kind::File && word.prefix == prefix);
        let (Some(word), Some(_)) = (
            word,
            self.wanted.as_ref().filter(|wanted| *wanted == prefix),
        ) else {
            return;
        };
        let items = paths.into_iter().filter_map(file).take(MAX_ITEMS).collect();
        self.open(&word, items);
    }

    /// Puts the chosen completion in the place of the word.
    pub(super) fn choose(&mut self, draft: &mut Draft) -> Effect {
        let (Some(list), Some(word)) = (self.list.take(), word(&draft.buffer)) else {
            return Effect::Moved;
        };
        match list.items.get(list.chosen) {
            Some(item) => draft.replace(word.range, &item.insert),
            None => Effect::Moved,
        }
    }

    /// True if the word is the chosen completion already. A command that lacks its argument is sent all the same: the
    /// server says what it takes.
    pub(super) fn is_complete(&self, buffer: &Buffer) -> bool {
        let (Some(list), Some(word)) = (&self.list, word(buffer)) else {
            return false;
        };
        let Some(item) = list.items.get(list.chosen) else {
            return false;
        };
        let needs_more = match list.kind {
            Kind::Command => word.range.end < buffer.text().len(),
            Kind::File => item.name.ends_with('/'),
        };
        let typed = match list.kind {
            Kind::Command => format!("/{}", word.prefix),
            Kind::File => word.prefix,
        };
        typed == item.name && !needs_more
    }

    /// True if the chosen completion is a command that needs no argument.
    pub(super) fn is_whole_command(&self) -> bool {
        let list = self.list.as_ref().filter(|list| list.kind == Kind::Command);
        let item = list.and_then(|list| list.items.get(list.chosen));
        item.is_some_and(|item| item.argument.is_empty() || item.argument.starts_with('['))
    }

    fn open(&mut self, word: &Word, items: Vec<Item>) {
        self.list = (!items.is_empty()).then_some(List {
            kind: word.kind,
            word: word.range.start,
            items,
            chosen: 0,
        });
    }

    /// The command itself first, then those that begin with the text, then those that are like it.
    fn matching_commands(&self, typed: &str) -> Vec<Item> {
        let typed = typed.to_lowercase();
        let rank = |command: &CommandHelp| {
            let name = name(command).to_lowercase();
            if name == typed {
                Some(0)
            } else if name.starts_with(&typed) {
                Some(1)
            } else {
                is_like(&name, &typed).then_some(2)
            }
        };
        let mut ranked: Vec<(u8, &CommandHelp)> = self
            .commands
            .iter()
            .filter_map(|command| Some((rank(command)?, command)))
            .collect();
        ranked.sort_by_key(|&(rank, _)| rank);
        let items = ranked.into_iter().map(|(_, help)| command(help));
        items.take(MAX_ITEMS).collect()
    }
}

fn name(command: &CommandHelp) -> &str {
    command.name.trim_start_matches('/')
}

fn command(help: &CommandHelp) -> Item {
    let name = format!("/{}", name(help));
    let space = if help.argument.is_empty() { "" } else { " " };
    Item {
        insert: format!("{name}{space}"),
        name,
        argument: help.argument.clone(),
        description: help.description.clone(),
    }
}

/// A path as a completion. Names that the draft could not hold as they are, are left out.
fn file(path: String) -> Option<Item> {
    let is_folder = path.ends_with('/');
    let has_space = path.contains(char::is_whitespace);
    let is_odd = path.contains(|letter: char| letter.is_control() || is_mark(letter));
    if is_odd || has_space && path.contains('"') || path.is_empty() {
        return None;
    }
    let insert = match (has_space, is_folder) {
        (false, false) => format!("@{path} "),
        (false, true) => format!("@{path}"),
        (true, false) => format!("@\"{path}\" "),
        (true, true) => format!("@\"{path}"),
    };
    Some(Item {
        name: path,
        argument: String::new(),
        description: String::new(),
        insert,
    })
}

/// True if the letters of `typed` are in the name, in their order.
fn is_like(name: &str, typed: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    typed
        .chars()
        .flat_map(char::to_lowercase)
        .all(|wanted| letters.any(|letter| letter == wanted))
}

/// The word before the cursor that can be completed.
fn word(buffer: &Buffer) -> Option<Word> {
    let cursor = buffer.cursor();
    let before = &buffer.text()[..cursor];
    let (kind, start, prefix) = match before.strip_prefix('/') {
        Some(prefix) if !prefix.contains(char::is_whitespace) => (Kind::Command, 0, prefix),
        _ => {
            let line = buffer.line_start(cursor);
            let (start, prefix) = file_prefix(&before[line..])?;
            (Kind::File, line + start, prefix)
        }
    };
    let is_usable = prefix.len() <= MAX_PREFIX_BYTES && !prefix.contains(is_mark);
    is_usable.then(|| Word {
        kind,
        range: start..cursor,
        prefix: prefix.to_owned(),
    })
}

/// The place of the `@` in a line that ends with the beginning of a file name, and that beginning.
fn file_prefix(line: &str) -> Option<(usize, &str)> {
    let begins_word = |at: usize| {
        line[..at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace)
    };
    if let Some(at) = line.rfind("@\"") {
        let name = &line[at + 2..];
        if begins_word(at) && !name.contains('"') {
            return Some((at, name));
        }
    }
    let space = line
        .char_indices()
        .rfind(|&(_, letter)| letter.is_whitespace());
    let start = space.map_or(0, |(at, letter)| at + letter.len_utf8());
    let prefix = line[start..].strip_prefix('@')?;
    Some((start, prefix))
}
