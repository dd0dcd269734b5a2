//! Words: quotes, escapes, and the expansions whose commands become segments.

use super::{
    Unread,
    braces::{self, BraceUnit},
    grammar,
    scan::{ScanResult, ScriptReader},
    word::{Hole, HoleSource, Word, WordPiece},
};

/// The characters that end a word.
const ENDS: &str = " \t\n;&|()<>";

impl ScriptReader<'_, '_> {
    /// The words at this place: one, or those that its braces make.
    pub(super) fn words(&mut self) -> ScanResult<Vec<Word>> {
        Ok(braces::words(&self.units(ENDS)?))
    }

    /// The one word at this place; braces are plain characters.
    pub(super) fn word(&mut self) -> ScanResult<Word> {
        Ok(braces::word(&self.units(ENDS)?))
    }

    /// The word of a here-document's text, up to its end.
    pub(super) fn here_word(&mut self) -> ScanResult<Word> {
        let mut word = Word::default();
        while self.at < self.text.len() {
            self.in_quotes(&mut word)?;
        }
        Ok(word)
    }

    fn units(&mut self, ends: &str) -> ScanResult<Vec<BraceUnit>> {
        let mut units = Vec::new();
        while let Some(c) = self.peek() {
            if matches!(c, '<' | '>') && self.rest()[1..].starts_with('(') && !units.is_empty() {
                return Err(Unread("a process substitution stands inside a word"));
            }
            if ends.contains(c) {
                if c == '('
                    && matches!(
                        units.last(),
                        Some(BraceUnit::Bare('?' | '*' | '+' | '@' | '!'))
                    )
                {
                    return Err(Unread("it has an extended pattern"));
                }
                break;
            }
            match c {
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(c) => units.push(BraceUnit::Quoted(c.to_string())),
                        None => return Err(Unread("it ends in a backslash")),
                    }
                }
                '\'' => units.push(BraceUnit::Quoted(self.single()?)),
                '"' => self.double(&mut units)?,
                '$' if self.sees("$'") => {
                    self.at += 1;
                    units.push(BraceUnit::Quoted(self.ansi()?));
                }
                '$' if self.sees("$\"") => {
                    self.at += 1;
                    self.double(&mut units)?;
                }
                '$' | '`' => match self.expansion()? {
                    Some(of) => units.push(BraceUnit::Hole(Hole { of, quoted: false })),
                    None => units.push(BraceUnit::Bare('$')),
                },
                _ => {
                    self.at += c.len_utf8();
                    units.push(BraceUnit::Bare(c));
                }
            }
        }
        Ok(units)
    }

    /// A text in single quotes.
    fn single(&mut self) -> ScanResult<String> {
        self.expect("'")?;
        let end = self.rest().find('\'').ok_or(UNCLOSED)?;
        let text = self.rest()[..end].to_owned();
        self.at += end + 1;
        Ok(text)
    }

    /// A text in double quotes, as one or more units.
    fn double(&mut self, units: &mut Vec<BraceUnit>) -> ScanResult<()> {
        self.expect("\"")?;
        let mut word = Word::default();
        while !self.eat("\"") {
            self.in_quotes(&mut word)?;
        }
        units.push(BraceUnit::Quoted(String::new()));
        units.extend(word.0.into_iter().map(|piece| match piece {
            WordPiece::Text(text) => BraceUnit::Quoted(text),
            WordPiece::Glob(c) => BraceUnit::Quoted(c.to_string()),
            WordPiece::Hole(hole) => BraceUnit::Hole(hole),
        }));
        Ok(())
    }

    /// The next piece of a text in double quotes or of a here-document.
    fn in_quotes(&mut self, word: &mut Word) -> ScanResult<()> {
        match self.peek().ok_or(UNCLOSED)? {
            '$' | '`' => {
                let piece = self.expansion()?.map_or_else(
                    || WordPiece::Text("$".to_owned()),
                    |of| WordPiece::Hole(Hole { of, quoted: true }),
                );
                word.push(piece);
            }
            '\\' => {
                self.at += 1;
                match self.next() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => word.push(WordPiece::Text(c.to_string())),
                    Some(c) => word.push(WordPiece::Text(format!("\\{c}"))),
                    None => word.push(WordPiece::Text("\\".to_owned())),
                }
            }
            _ => {
                let rest = self.rest();
                let end = rest
                    .find(['$', '`', '\\', '"'])
                    .unwrap_or(rest.len())
                    .max(1);
                word.push(WordPiece::Text(rest[..end].to_owned()));
                self.at += end;
            }
        }
        Ok(())
    }

    /// A text in `$'…'`, with its escapes resolved.
    fn ansi(&mut self) -> ScanResult<String> {
        self.expect("'")?;
        let mut bytes = Vec::new();
        loop {
            match self.next().ok_or(UNCLOSED)? {
                '\'' => break,
                '\\' => self.escape(&mut bytes)?,
                c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        String::from_utf8(bytes).map_err(|_| Unread("it has bytes that are no text"))
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> ScanResult<()> {
        let c = self.next().ok_or(UNCLOSED)?;
        let code = match c {
            'n' => 10,
            't' => 9,
            'r' => 13,
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'v' => 11,
            '\\' | '\'' | '"' | '?' => c as u32,
            'x' => self.digits(16, 2),
            'u' => self.digits(16, 4),
            'U' => self.digits(16, 8),
            '0'..='7' => {
                self.at -= 1;
                self.digits(8, 3) & 0xff
            }
            _ => return Err(Unread("it has an escape that the reader does not know")),
        };
        match (c, char::from_u32(code)) {
            (_, None | Some('\0')) => return Err(Unread("it has an escape that is no character")),
            ('x' | '0'..='7', _) => bytes.push(u8::try_from(code).unwrap_or(b'?')),
            (_, Some(c)) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut value = 0u32;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            self.at += 1;
            value = value.wrapping_mul(radix).wrapping_add(digit);
        }
        value
    }

    /// The expansion at a `$` or a backquote; `None` if the `$` is a plain character.
    fn expansion(&mut self) -> ScanResult<Option<HoleSource>> {
        if self.sees("`") {
            return self.deeper(Self::backquotes).map(Some);
        }
        self.expect("$")?;
        match self.peek() {
            Some('\\') if self.sees("\\\n") => Err(Unread("an expansion goes on in the next line")),
            Some('(') if self.rest().starts_with("((") && arithmetic(self.rest()) => {
                self.at += 2;
                self.deeper(|r| r.inside('(', ')'))?;
                self.expect(")")?;
                Ok(Some(HoleSource::Other))
            }
            Some('(') => self.substitution().map(|()| Some(HoleSource::Output)),
            Some('{') => {
                self.at += 1;
                self.deeper(Self::braced).map(Some)
            }
            Some('[') => {
                self.at += 1;
                self.deeper(|r| r.inside('[', ']'))?;
                Ok(Some(HoleSource::Other))
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.rest();
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let name = &rest[..end.unwrap_or(rest.len())];
                self.at += name.len();
                Ok(Some(HoleSource::Variable(name.to_owned())))
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.at += 1;
                Ok(Some(HoleSource::Variable(c.to_string())))
            }
            _ => Ok(None),
        }
    }

    /// The list in `(…)`, after the characters before it.
    pub(super) fn substitution(&mut self) -> ScanResult<()> {
        self.expect("(")?;
        let outer = std::mem::take(&mut self.awaited);
        let held = self.held;
        self.held |= !outer.is_empty();
        self.deeper(|r| {
            r.list()?;
            r.expect(")")
        })?;
        if !self.awaited.is_empty() {
            return Err(Unread("a here-document has no end"));
        }
        self.awaited = outer;
        self.held = held;
        Ok(())
    }

    fn backquotes(&mut self) -> ScanResult<HoleSource> {
        self.expect("`")?;
        let mut inner = String::new();
        loop {
            match self.next().ok_or(UNCLOSED)? {
                '`' => break,
                '\\' => match self.next().ok_or(UNCLOSED)? {
                    // Between double quotes the backslash goes away, elsewhere it stays.
                    '"' => return Err(Unread("it has escaped quotes inside of backquotes")),
                    c @ ('`' | '\\' | '$') => inner.push(c),
                    c => inner.extend(['\\', c]),
                },
                c => inner.push(c),
            }
        }
        grammar::parse(&inner, self.depth, self.script)?;
        Ok(HoleSource::Output)
    }

    /// A variable in braces, after `${`.
    fn braced(&mut self) -> ScanResult<HoleSource> {
        if self.rest().starts_with([' ', '\t', '\n', '|']) {
            return Err(Unread("it has a command in braces"));
        }
        let from = self.at;
        self.inside('{', '}')?;
        let text = &self.text[from..self.at - 1];
        if text.ends_with("@P") {
            return Err(Unread("it runs the text of a variable"));
        }
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        Ok(if plain {
            HoleSource::Variable(text.to_owned())
        } else {
            HoleSource::Other
        })
    }

    /// Skips to the closing character, and reads the commands of the expansions before it.
    pub(super) fn inside(&mut self, open: char, close: char) -> ScanResult<()> {
        let mut depth = 0;
        loop {
            let c = self.peek().ok_or(UNCLOSED)?;
            match c {
                '$' if self.sees("$'") && open == '{' => {
                    self.at += 1;
                    self.ansi()?;
                }
                '$' | '`' => {
                    self.expansion()?;
                }
                '"' => self.double(&mut Vec::new())?,
                '\'' => {
                    // Its meaning depends on the quotes around the brackets and on the shell's version.
                    return Err(Unread("it has single quotes inside of brackets"));
                }
                '\\' => {
                    self.at += 1;
                    self.next();
                }
                _ => {
                    self.at += c.len_utf8();
                    if c == close && depth == 0 {
                        return Ok(());
                    } else if c == close {
                        depth -= 1;
                    } else if c == open && open != '{' {
                        depth += 1;
                    }
                }
            }
        }
    }
}

const UNCLOSED: Unread = Unread("it has a quote or a bracket without its end");

/// True if a text that begins with `((` is arithmetic: its brackets close as `))`.
pub(super) fn arithmetic(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut depth = 0;
    let mut at = 2;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            quote @ (b'\'' | b'"') => match bytes[at + 1..].iter().position(|b| *b == quote) {
                Some(end) => at += end + 1,
                None => return false,
            },
            b'(' => depth += 1,
            b')' if depth == 0 => return bytes.get(at + 1) == Some(&b')'),
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    false
}
