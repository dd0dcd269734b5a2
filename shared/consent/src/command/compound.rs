//! Compound commands: groups, loops, conditionals, functions.

use super::{
    Segment, Unread,
    expand::arithmetic,
    grammar::hole,
    scan::{ScanResult, ScriptReader},
    word::{HoleSource, Word},
};

impl ScriptReader<'_, '_> {
    /// One command, compound or simple.
    pub(super) fn command(&mut self) -> ScanResult<()> {
        self.prefixes();
        let from = self.script.segments.len();
        if self.sees("((") && arithmetic(self.rest()) {
            self.at += 2;
            self.inside('(', ')')?;
            self.expect(")")?;
        } else if self.sees("(") {
            self.substitution()?;
        } else {
            let token = self.token();
            if !self.sees_word(token) {
                return self.simple();
            }
            match token {
                "{" => self.group()?,
                "if" => self.conditional()?,
                "while" | "until" => {
                    self.at += token.len();
                    self.list()?;
                    self.body()?;
                }
                "for" | "select" => {
                    self.at += token.len();
                    self.each()?;
                }
                "case" => self.case()?,
                "[[" => self.test()?,
                "function" => return self.function(),
                "coproc" => return Err(Unread("it has a coprocess")),
                _ => return self.simple(),
            }
        }
        self.redirects_of(from)
    }

    /// Skips `!` and `time`.
    fn prefixes(&mut self) {
        loop {
            self.blanks();
            let token = self.token();
            if !matches!(token, "!" | "time") || !self.sees_word(token) {
                return;
            }
            self.at += token.len();
            self.blanks();
            while token == "time" && (self.sees_word("-p") || self.sees_word("--")) {
                self.at += 2;
                self.blanks();
            }
        }
    }

    /// The redirections after a compound command; they feed the segments since `from`.
    fn redirects_of(&mut self, from: usize) -> ScanResult<()> {
        let mut segment = Segment::default();
        self.blanks();
        while self.redirect(&mut segment)? {
            self.blanks();
        }
        if !segment.words.is_empty() {
            return Err(Unread("its grammar is not plain shell"));
        }
        let input = segment.input.clone();
        self.feed(from, &input);
        if segment.redirects.is_empty() {
            return Ok(());
        }
        self.add(segment)
    }

    fn group(&mut self) -> ScanResult<()> {
        self.expect("{")?;
        self.list()?;
        self.expect("}")
    }

    /// `do LIST done`
    fn body(&mut self) -> ScanResult<()> {
        self.expect_word("do")?;
        self.list()?;
        self.expect_word("done")
    }

    fn conditional(&mut self) -> ScanResult<()> {
        self.expect_word("if")?;
        loop {
            self.list()?;
            self.expect_word("then")?;
            self.list()?;
            if self.sees_word("elif") {
                self.at += 4;
                continue;
            }
            if self.sees_word("else") {
                self.at += 4;
                self.list()?;
            }
            return self.expect_word("fi");
        }
    }

    /// The rest of `for` and `select`.
    fn each(&mut self) -> ScanResult<()> {
        self.blanks();
        if self.eat("((") {
            self.inside('(', ')')?;
            self.expect(")")?;
        } else {
            let name = self.word()?.shown();
            self.add(Segment {
                assigned: vec![(name, hole(HoleSource::Other))],
                ..Segment::default()
            })?;
            self.lines()?;
            if self.sees_word("in") {
                self.at += 2;
                loop {
                    self.blanks();
                    if matches!(self.peek(), None | Some('\n' | ';')) {
                        break;
                    }
                    let before = self.at;
                    self.words()?;
                    if self.at == before {
                        return Err(Unread("its grammar is not plain shell"));
                    }
                }
            }
        }
        self.blanks();
        self.eat(";");
        self.lines()?;
        self.body()
    }

    fn case(&mut self) -> ScanResult<()> {
        self.expect_word("case")?;
        self.blanks();
        self.word()?;
        self.lines()?;
        self.expect_word("in")?;
        loop {
            self.lines()?;
            if self.sees_word("esac") {
                return self.expect_word("esac");
            }
            self.eat("(");
            loop {
                self.blanks();
                self.word()?;
                self.blanks();
                if !self.eat("|") {
                    break;
                }
            }
            self.expect(")")?;
            self.list()?;
            let _ = self.eat(";;&") || self.eat(";;") || self.eat(";&");
        }
    }

    /// `[[ … ]]`: its words may have expansions with commands.
    fn test(&mut self) -> ScanResult<()> {
        self.expect_word("[[")?;
        let mut words = vec![Word::text("[[")];
        loop {
            self.lines()?;
            if self.sees_word("]]") {
                self.at += 2;
                return self.add(Segment {
                    words,
                    ..Segment::default()
                });
            }
            match self.peek() {
                Some('(' | ')' | '&' | '|' | '<' | '>') => self.at += 1,
                None | Some(';') => return Err(Unread("its grammar is not plain shell")),
                Some(_) => words.push(self.word()?),
            }
        }
    }

    /// `function NAME BODY`
    fn function(&mut self) -> ScanResult<()> {
        self.expect_word("function")?;
        self.blanks();
        let name = self.word()?.shown();
        self.blanks();
        if self.eat("(") {
            self.blanks();
            self.expect(")")?;
        }
        self.function_body(&name)
    }

    /// The body of a function; its commands count as if they ran.
    pub(super) fn function_body(&mut self, name: &str) -> ScanResult<()> {
        self.lines()?;
        let compound = ["{", "if", "while", "until", "for", "select", "case", "[["];
        if !self.sees("(") && !compound.iter().any(|word| self.sees_word(word)) {
            return Err(Unread("its grammar is not plain shell"));
        }
        let from = self.script.segments.len();
        self.deeper(Self::command)?;
        let body = &self.script.segments[from..];
        let calls = |segment: &Segment| segment.program().as_deref() == Some(name);
        self.script.bomb |= body.iter().filter(|segment| calls(segment)).count() > 1;
        Ok(())
    }
}
