//! The characters of a script: the place, the depth, blanks, comments, here-documents.

use super::{
    MAX_DEPTH, Script, Unread,
    word::{Word, WordPiece},
};

/// A result of reading; the error says why the text cannot be read.
pub(super) type ScanResult<T> = Result<T, Unread>;

/// A reader at a place of a text. All that it finds goes into one script.
pub(super) struct ScriptReader<'t, 's> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// Substitutions and compound commands around this place.
    pub(super) depth: usize,
    pub(super) script: &'s mut Script,
    /// Here-documents whose text begins after the next line end.
    pub(super) awaited: Vec<Awaited>,
    /// True inside a substitution of a line that awaits a here-document.
    pub(super) held: bool,
}

/// A here-document whose text is not read yet.
pub(super) struct Awaited {
    /// The line that ends it.
    pub(super) end: String,
    /// True after `<<-`: tabs before a line do not count.
    pub(super) stripped: bool,
    /// True if expansions happen in it.
    pub(super) expands: bool,
    /// The number of its text.
    pub(super) number: usize,
}

impl<'t> ScriptReader<'t, '_> {
    /// The text from here on.
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// True if `prefix` comes next.
    pub(super) fn sees(&self, prefix: &str) -> bool {
        self.rest().starts_with(prefix)
    }

    /// Takes the next character.
    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Takes `prefix` if it comes next.
    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        let seen = self.sees(prefix);
        if seen {
            self.at += prefix.len();
        }
        seen
    }

    /// Takes `prefix`, which must come next.
    pub(super) fn expect(&mut self, prefix: &str) -> ScanResult<()> {
        if self.eat(prefix) {
            return Ok(());
        }
        Err(Unread("its grammar is not plain shell"))
    }

    /// Runs `read` one level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> ScanResult<T>,
    ) -> ScanResult<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Unread("it is nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks, continued lines and a comment.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.sees("\\\n") => self.at += 2,
                Some('#') => {
                    let line = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += line;
                }
                _ => return,
            }
        }
    }

    /// Skips blanks, comments and line ends; reads the here-documents that begin there.
    pub(super) fn lines(&mut self) -> ScanResult<()> {
        loop {
            self.blanks();
            if !self.eat("\n") {
                return Ok(());
            }
            self.here_documents()?;
        }
    }

    /// The unquoted token at this place: the characters up to the next one with a meaning.
    pub(super) fn token(&self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| " \t\n;&|()<>\"'\\$`".contains(c));
        &rest[..end.unwrap_or(rest.len())]
    }

    /// True if the reserved word comes next, as a whole word.
    pub(super) fn sees_word(&self, reserved: &str) -> bool {
        self.token() == reserved
            && !self.rest()[reserved.len()..].starts_with(['"', '\'', '\\', '$', '`'])
    }

    /// Takes a reserved word, which must come next.
    pub(super) fn expect_word(&mut self, reserved: &str) -> ScanResult<()> {
        if !self.sees_word(reserved) {
            return Err(Unread("its grammar is not plain shell"));
        }
        self.at += reserved.len();
        Ok(())
    }

    /// Reads the awaited here-documents, at the beginning of a line.
    fn here_documents(&mut self) -> ScanResult<()> {
        if self.held {
            return Err(Unread("a here-document begins inside a substitution"));
        }
        for awaited in std::mem::take(&mut self.awaited) {
            let text = self.here_text(&awaited)?;
            let word = if awaited.expands {
                self.expanded(&text)?
            } else {
                Word(vec![WordPiece::Text(text)])
            };
            self.script.texts[awaited.number] = word;
        }
        Ok(())
    }

    /// The lines up to the end of a here-document.
    fn here_text(&mut self, awaited: &Awaited) -> ScanResult<String> {
        let mut text = String::new();
        loop {
            if self.at == self.text.len() {
                // The shell takes the rest of the script; inside of a substitution it differs by version.
                return match self.depth {
                    0 => Ok(text),
                    _ => Err(Unread("a here-document has no end")),
                };
            }
            let line = self.here_line(awaited.expands);
            let line = if awaited.stripped {
                line.trim_start_matches('\t')
            } else {
                &line
            };
            if line == awaited.end {
                return Ok(text);
            }
            text.push_str(line);
            text.push('\n');
        }
    }

    /// The next line of a here-document. Where expansions happen, a backslash at its end joins lines.
    fn here_line(&mut self, joins: bool) -> String {
        let mut line = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find('\n').unwrap_or(rest.len());
            line.push_str(&rest[..end]);
            self.at += (end + 1).min(rest.len());
            let slashes = line.chars().rev().take_while(|c| *c == '\\').count();
            if !joins || slashes % 2 == 0 || self.at == self.text.len() {
                return line;
            }
            line.pop();
        }
    }

    /// The text of a here-document with its expansions.
    fn expanded(&mut self, text: &str) -> ScanResult<Word> {
        self.deeper(|outer| {
            let mut reader = ScriptReader {
                text,
                at: 0,
                depth: outer.depth,
                script: outer.script,
                awaited: Vec::new(),
                held: false,
            };
            reader.here_word()
        })
    }
}
