//! Lists, pipelines and simple commands.

use super::{
    MAX_SCRIPT, MAX_SEGMENTS, Redirect, Script, Segment, SegmentInput, Unread,
    scan::{Awaited, ScanResult, ScriptReader},
    word::{Hole, HoleSource, Word, WordPiece},
};

/// The reserved words that end a list. The command that opened it expects the right one.
pub(super) const CLOSERS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// Reads a whole text, at a depth of the script around it, and adds its segments.
pub(super) fn parse(text: &str, depth: usize, script: &mut Script) -> ScanResult<()> {
    if text.len() > MAX_SCRIPT {
        return Err(Unread("it is longer than 64 KiB"));
    }
    if text.contains('\0') {
        return Err(Unread("it has a NUL character"));
    }
    let mut reader = ScriptReader {
        text,
        at: 0,
        depth,
        script,
        awaited: Vec::new(),
        held: false,
    };
    reader.list()?;
    if reader.at < text.len() {
        return Err(Unread("its grammar is not plain shell"));
    }
    if !reader.awaited.is_empty() {
        return Err(Unread("a here-document has no end"));
    }
    Ok(())
}

impl ScriptReader<'_, '_> {
    /// Commands up to the end, a closing bracket or a closing reserved word.
    pub(super) fn list(&mut self) -> ScanResult<()> {
        loop {
            self.lines()?;
            let over = matches!(self.peek(), None | Some(')' | ';'));
            if over || CLOSERS.iter().any(|word| self.sees_word(word)) {
                return Ok(());
            }
            self.pipeline()?;
            self.blanks();
            let more = self.eat("&&") || self.eat("||") || self.eat("&");
            if !more && self.sees(";") && !self.sees(";;") && !self.sees(";&") {
                self.at += 1;
            } else if !more && !matches!(self.peek(), None | Some('\n' | ')' | ';')) {
                return Err(Unread("its grammar is not plain shell"));
            }
        }
    }

    /// Commands with pipes between them.
    fn pipeline(&mut self) -> ScanResult<()> {
        let mut fed = None;
        loop {
            self.blanks();
            let from = self.script.segments.len();
            self.deeper(Self::command)?;
            let to = self.script.segments.len();
            if let Some(fed) = fed {
                self.feed(from, &SegmentInput::Pipe(fed));
            }
            self.blanks();
            if self.sees("||") || !(self.eat("|&") || self.eat("|")) {
                return Ok(());
            }
            fed = Some(from..to);
            self.lines()?;
        }
    }

    /// Gives the segments from `from` on their standard input, where they have none of their own.
    pub(super) fn feed(&mut self, from: usize, input: &SegmentInput) {
        for segment in &mut self.script.segments[from..] {
            if matches!(segment.input, SegmentInput::Inherited) {
                segment.input = input.clone();
            }
        }
    }

    /// A command without reserved words.
    pub(super) fn simple(&mut self) -> ScanResult<()> {
        let mut segment = Segment::default();
        let from = self.at;
        loop {
            self.blanks();
            if self.redirect(&mut segment)? {
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') if segment.words.len() == 1 && segment.assigned.is_empty() => {
                    self.expect("(")?;
                    self.blanks();
                    self.expect(")")?;
                    return self.function_body(&segment.words[0].shown());
                }
                Some('(')
                    if segment
                        .words
                        .last()
                        .is_some_and(|word| word.shown().ends_with('=')) =>
                {
                    let values = self.array()?;
                    segment.words.push(values);
                }
                Some('(') => return Err(Unread("its grammar is not plain shell")),
                Some(_) if segment.words.is_empty() && self.assignment(&mut segment)? => {}
                Some(_) => {
                    let before = self.at;
                    segment.words.extend(self.words()?);
                    if self.text[before..self.at].contains("\\\n") && is_reserved(&segment.words) {
                        return Err(Unread("a reserved word goes on in the next line"));
                    }
                }
            }
        }
        if self.at == from {
            return Err(Unread("its grammar is not plain shell"));
        }
        self.add(segment)
    }

    /// Adds a segment to the script.
    pub(super) fn add(&mut self, segment: Segment) -> ScanResult<()> {
        if self.script.segments.len() >= MAX_SEGMENTS {
            return Err(Unread("it has too many commands"));
        }
        self.script.segments.push(segment);
        Ok(())
    }

    /// Reads an assignment, if one comes next.
    fn assignment(&mut self, segment: &mut Segment) -> ScanResult<bool> {
        let rest = self.rest();
        let name = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if name == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(false);
        }
        let before = self.at;
        self.at += name;
        if self.eat("[") {
            self.deeper(|r| r.inside('[', ']'))?;
        }
        if !(self.eat("=") || self.eat("+=")) {
            self.at = before;
            return Ok(false);
        }
        let value = if self.sees("(") {
            self.array()?
        } else {
            self.word()?
        };
        segment.assigned.push((rest[..name].to_owned(), value));
        Ok(true)
    }

    /// The words of an array, as one word that is left to the run.
    pub(super) fn array(&mut self) -> ScanResult<Word> {
        self.expect("(")?;
        loop {
            self.lines()?;
            match self.peek() {
                Some(')') => break,
                Some(c) if !";&|<>(".contains(c) => drop(self.words()?),
                _ => return Err(Unread("its grammar is not plain shell")),
            }
        }
        self.expect(")")?;
        Ok(hole(HoleSource::Other))
    }

    /// Reads a redirection or a process substitution, if one comes next.
    pub(super) fn redirect(&mut self, segment: &mut Segment) -> ScanResult<bool> {
        if self.sees("<(") || self.sees(">(") {
            self.process()?;
            segment.words.push(hole(HoleSource::Pipe));
            return Ok(true);
        }
        let digits = self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        let named = descriptor(self.rest());
        let operator = &self.rest()[digits.max(named)..];
        let both = operator.starts_with("&>") && digits == 0 && named == 0;
        if !both && !operator.starts_with(['<', '>']) {
            return Ok(false);
        }
        self.at += digits.max(named);
        if self.eat("<<<") {
            self.blanks();
            let word = self.word()?;
            self.script.texts.push(word);
            segment.input = SegmentInput::Text(self.script.texts.len() - 1);
        } else if self.sees("<<") {
            self.here(segment)?;
        } else {
            self.file(segment)?;
        }
        Ok(true)
    }

    /// A process substitution. The commands in `>(…)` read what the run gives them.
    fn process(&mut self) -> ScanResult<()> {
        let reads = self.sees(">");
        self.at += 1;
        let from = self.script.segments.len();
        self.substitution()?;
        if reads {
            self.feed(from, &SegmentInput::Pipe(0..0));
        }
        Ok(())
    }

    /// The beginning of a here-document.
    fn here(&mut self, segment: &mut Segment) -> ScanResult<()> {
        self.expect("<<")?;
        let stripped = self.eat("-");
        self.blanks();
        let from = self.at;
        let end = self.word()?;
        let written = &self.text[from..self.at];
        let Some(end) = end.literal().filter(|_| !written.contains("\\\n")) else {
            return Err(Unread("the end of a here-document is left to the run"));
        };
        let number = self.script.texts.len();
        self.script.texts.push(hole(HoleSource::Other));
        segment.input = SegmentInput::Text(number);
        self.awaited.push(Awaited {
            end: end.to_owned(),
            stripped,
            expands: !written.contains(['\'', '"', '\\']),
            number,
        });
        Ok(())
    }

    /// A redirection to a file or to another descriptor.
    fn file(&mut self, segment: &mut Segment) -> ScanResult<()> {
        const OPERATORS: [&str; 8] = ["&>>", "&>", "<>", ">>", ">|", ">&", "<&", ">"];
        let operator = OPERATORS.into_iter().find(|operator| self.eat(operator));
        let operator = match operator {
            Some(operator) => operator,
            None => {
                self.expect("<")?;
                "<"
            }
        };
        self.blanks();
        if self.sees("<(") || self.sees(">(") {
            self.process()?;
            segment.input = SegmentInput::Inherited;
            if operator == "<" {
                let last = self.script.segments.len();
                segment.input = SegmentInput::Pipe(last.saturating_sub(1)..last);
            }
            return Ok(());
        }
        let from = self.at;
        let target = self.word()?;
        if self.at == from {
            return Err(Unread("a redirection has no file"));
        }
        if operator.ends_with('&') && descriptor_target(&target) {
            if operator == "<&" {
                segment.input = SegmentInput::Pipe(0..0);
            }
            return Ok(());
        }
        let writes = operator.contains('>');
        if !writes || operator == "<>" {
            segment.input = SegmentInput::File;
        }
        segment.redirects.push(Redirect { writes, target });
        Ok(())
    }
}

/// True if the words are one, and it is a reserved word.
fn is_reserved(words: &[Word]) -> bool {
    const OPENERS: [&str; 12] = [
        "if", "while", "until", "for", "select", "case", "function", "coproc", "time", "{", "[[",
        "!",
    ];
    let reserved = |word: &str| CLOSERS.contains(&word) || OPENERS.contains(&word) || word == "in";
    matches!(words, [word] if word.literal().is_some_and(reserved))
}

/// The length of `{name}` before a redirection, 0 if there is none.
fn descriptor(text: &str) -> usize {
    let Some(end) = text.strip_prefix('{').and_then(|rest| rest.find('}')) else {
        return 0;
    };
    let name = &text[1..=end];
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain && text[end + 2..].starts_with(['<', '>']) {
        end + 2
    } else {
        0
    }
}

/// True if the target of `>&` names a descriptor, not a file.
fn descriptor_target(target: &Word) -> bool {
    target.literal().is_some_and(|text| {
        !text.is_empty()
            && text
                .trim_end_matches('-')
                .chars()
                .all(|c| c.is_ascii_digit())
    })
}

/// A word whose text only the run decides.
pub(super) fn hole(of: HoleSource) -> Word {
    Word(vec![WordPiece::Hole(Hole { of, quoted: false })])
}
