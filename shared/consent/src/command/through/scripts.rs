//! The scripts and commands that stand in the words or the input of a command.

use crate::command::{
    Script, Segment, SegmentInput, Unread,
    word::{Hole, HoleSource, Word, WordPiece, base},
};

const SHELLS: [&str; 9] = [
    "sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "fish", "rbash",
];

const FROM_ELSEWHERE: Unread = Unread("a shell runs a text that only the run knows");

/// True if the program is a shell.
pub(crate) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program)
}

/// The scripts that a segment runs. An error says that it runs one that cannot be known.
pub(crate) fn script_of(segment: &Segment, script: &Script) -> Result<Vec<String>, Unread> {
    let Some(program) = segment.program() else {
        return Ok(Vec::new());
    };
    let words = segment.arguments();
    let joined = |words: &[Word]| {
        Word::joined(words)
            .ok_or(FROM_ELSEWHERE)
            .map(|text| vec![text])
    };
    match program.as_str() {
        shell if is_shell(shell) => of_shell(segment, script),
        "eval" => joined(words),
        "watch" | "hyperfine" => joined(&after_options(words, &["-n", "--interval", "-w", "-r"])),
        "ssh" => joined(
            after_options(words, SSH_VALUES)
                .get(1..)
                .unwrap_or_default(),
        ),
        "trap" => match words {
            [action, _, ..] if !matches!(action.literal(), Some("-" | "" | "--" | "-p" | "-l")) => {
                joined(&words[..1])
            }
            _ => Ok(Vec::new()),
        },
        "alias" => words
            .iter()
            .filter(|word| word.shown().contains('='))
            .map(|word| {
                let text = word.literal().ok_or(FROM_ELSEWHERE)?;
                Ok(text.split_once('=').map_or("", |(_, text)| text).to_owned())
            })
            .collect(),
        "su" | "runuser" | "script" | "flock" => Ok(of_option(words, 'c', "--command")?),
        "env" => Ok(of_option(words, 'S', "--split-string")?),
        "parallel" => {
            let rest = after_options(words, &["-j", "-S", "-a", "--jobs"]);
            let end = rest.iter().position(|word| word.shown().starts_with(":::"));
            let command = &rest[..end.unwrap_or(rest.len())];
            if command.is_empty() {
                return Err(FROM_ELSEWHERE);
            }
            joined(&placeholders(command, "{}"))
        }
        "git" => of_git(words),
        "source" | "." => match words.first() {
            Some(file) if file.is_pipe() || is_input(file) => of_input(segment, script),
            _ => Ok(Vec::new()),
        },
        _ => Ok(Vec::new()),
    }
}

const SSH_VALUES: &[&str] = &[
    "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-p", "-Q",
    "-R", "-S", "-W", "-w", "-B", "-P",
];

/// The script of a shell: after `-c`, or its input, or none if it runs a file.
fn of_shell(segment: &Segment, script: &Script) -> Result<Vec<String>, Unread> {
    let words = segment.arguments();
    let mut at = 0;
    let (mut inline, mut input) = (false, false);
    while let Some(word) = words.get(at) {
        let shown = word.shown();
        if !shown.starts_with(['-', '+']) || shown == "-" {
            break;
        }
        at += 1;
        let short = !shown.starts_with("--");
        input |= short && shown.contains('s');
        inline |= short && shown.contains('c') || shown == "--command";
        let valued = matches!(shown.as_str(), "--rcfile" | "--init-file")
            || short && shown.ends_with(['o', 'O']);
        if valued {
            at += 1;
        }
        if shown == "--" {
            break;
        }
    }
    match words.get(at) {
        Some(text) if inline => {
            let text = text.literal().ok_or(FROM_ELSEWHERE)?;
            Ok(vec![text.to_owned()])
        }
        None if inline => Err(FROM_ELSEWHERE),
        Some(file) if file.is_pipe() => Err(FROM_ELSEWHERE),
        Some(file) if !input && !is_input(file) => Ok(Vec::new()),
        _ => of_input(segment, script),
    }
}

/// True if a word names the standard input.
fn is_input(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        matches!(text, "-" | "/dev/stdin")
            || text.starts_with("/dev/fd/")
            || text.starts_with("/proc/self/fd/")
    })
}

/// The script in a segment's input, if it has one.
fn of_input(segment: &Segment, script: &Script) -> Result<Vec<String>, Unread> {
    match &segment.input {
        SegmentInput::Inherited if segment.arguments().iter().any(Word::is_pipe) => {
            Err(FROM_ELSEWHERE)
        }
        SegmentInput::Inherited | SegmentInput::File => Ok(Vec::new()),
        SegmentInput::Text(number) => {
            let text = script.texts.get(*number).and_then(Word::literal);
            Ok(vec![text.ok_or(FROM_ELSEWHERE)?.to_owned()])
        }
        SegmentInput::Pipe(from) => match script.segments.get(from.clone()) {
            Some([one]) => Ok(vec![output(one).ok_or(FROM_ELSEWHERE)?]),
            _ => Err(FROM_ELSEWHERE),
        },
    }
}

/// The output of a command, if its words tell: `echo` without escapes.
fn output(segment: &Segment) -> Option<String> {
    let text = Word::joined(segment.arguments())?;
    let plain = !text.contains(['\\', '%']) && !text.starts_with('-');
    matches!(segment.program()?.as_str(), "echo" | "printf")
        .then_some(text)
        .filter(|_| plain && segment.redirects.is_empty())
}

/// The text after one of the options (a letter and a long name), also when it follows in the same word.
fn of_option(words: &[Word], letter: char, long: &str) -> Result<Vec<String>, Unread> {
    for (at, word) in words.iter().enumerate() {
        let shown = word.shown();
        let Some(end) = option_end(&shown, letter, long) else {
            continue;
        };
        let rest = text(Some(word))?[end..].to_owned();
        let mut whole = rest.trim_start_matches('=').to_owned();
        if rest.is_empty() {
            whole = text(words.get(at + 1))?;
        }
        if letter == 'S' {
            // The words after it are arguments of the same command.
            let from = if rest.is_empty() { at + 2 } else { at + 1 };
            let more = Word::joined(words.get(from..).unwrap_or_default()).ok_or(FROM_ELSEWHERE)?;
            whole = format!("{} {more}", whole.replace("\\_", " "));
        }
        return Ok(vec![whole]);
    }
    Ok(Vec::new())
}

/// The place in a word where an option's value begins: `-x`, `-abx`, `--long`, cut or with `=`.
fn option_end(word: &str, letter: char, long: &str) -> Option<usize> {
    if word.starts_with("--") {
        let name = word.split('=').next().unwrap_or(word);
        return (name.len() > 3 && long.starts_with(name)).then_some(name.len());
    }
    let at = word.find(letter).filter(|_| word.starts_with('-'))?;
    let flags = word[1..at].chars().all(|c| c.is_ascii_alphanumeric());
    flags.then_some(at + 1)
}

fn text(word: Option<&Word>) -> Result<String, Unread> {
    word.map_or(Some(""), Word::literal)
        .map(str::to_owned)
        .ok_or(FROM_ELSEWHERE)
}

/// The scripts in git's words: an alias with `!`, `--exec`, `submodule foreach`, a filter.
fn of_git(words: &[Word]) -> Result<Vec<String>, Unread> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let shown = word.shown();
        if let Some((name, value)) = shown.split_once("=!")
            && name.trim_start_matches("-c").starts_with("alias.")
        {
            found.push(text(Some(word)).map(|_| value.to_owned())?);
        }
        match shown.as_str() {
            "foreach" if at > 0 && words[..at].iter().any(|w| w.literal() == Some("submodule")) => {
                let rest = after_options(&words[at + 1..], &[]);
                found.push(Word::joined(&rest).ok_or(FROM_ELSEWHERE)?);
                break;
            }
            "--exec" | "-x" if words.iter().any(|w| w.literal() == Some("rebase")) => {
                found.push(text(words.get(at + 1))?);
            }
            filter if filter.starts_with("--") && filter.ends_with("-filter") => {
                found.push(text(words.get(at + 1))?);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The words after the options at the beginning.
fn after_options(words: &[Word], valued: &[&str]) -> Vec<Word> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let shown = word.shown();
        if !shown.starts_with('-') {
            break;
        }
        at += if valued.contains(&shown.as_str()) {
            2
        } else {
            1
        };
        if shown == "--" {
            break;
        }
    }
    words.get(at..).unwrap_or_default().to_vec()
}

/// The words with a hole in place of those in which a program puts what it found.
pub(super) fn placeholders(words: &[Word], sign: &str) -> Vec<Word> {
    let found = |word: &Word| word.literal().is_some_and(|text| text.contains(sign));
    let hole = Word(vec![WordPiece::Hole(Hole {
        of: HoleSource::Other,
        quoted: true,
    })]);
    let replaced = words.iter().map(|word| {
        if found(word) {
            hole.clone()
        } else {
            word.clone()
        }
    });
    replaced.collect()
}

/// The commands that stand whole in a segment's words: after `-exec` of find and its like.
pub(super) fn commands_of(segment: &Segment) -> Vec<Vec<Word>> {
    const STARTS: [&str; 8] = [
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-x",
        "-X",
        "--exec",
        "--exec-batch",
    ];
    let find = |word: &Word| matches!(word.literal(), Some(text) if STARTS.contains(&text));
    let program = segment.words.first().map(Word::shown).unwrap_or_default();
    if !matches!(base(&program), "find" | "gfind" | "fd" | "fdfind") {
        return Vec::new();
    }
    let mut words = segment.arguments();
    let mut found = Vec::new();
    while let Some(start) = words.iter().position(find) {
        let rest = &words[start + 1..];
        let ends = |word: &Word| matches!(word.literal(), Some(";" | "+"));
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        found.push(placeholders(&rest[..end], "{}"));
        words = &rest[end..];
    }
    found.retain(|argv| !argv.is_empty());
    found
}
