//! Code in other languages: in the words of an interpreter, or in its input.
//!
//! The code is not parsed. A short table of words makes it high; it is medium at least.

use shared_types::Risk;

use super::Reason;
use crate::command::{
    Script, Segment, SegmentInput, is_shell,
    word::{Word, WordPiece},
};

/// Words of code that starts other programs.
const STARTS: [&str; 20] = [
    "system",
    "subprocess",
    "popen",
    "exec",
    "spawn",
    "child_process",
    "pty.",
    "eval",
    "`",
    "qx",
    "ProcessBuilder",
    "Deno.run",
    "Deno.Command",
    "Bun.$",
    "os.fork",
    "ctypes",
    "dlopen",
    "__import__",
    "open3",
    "getattr(os",
];

/// Words of code that reaches the network or destroys.
const HARMS: [&str; 23] = [
    "socket",
    "urllib",
    "requests",
    "http",
    "fetch(",
    "net.",
    "ftplib",
    "smtplib",
    "rmtree",
    "unlink",
    "remove",
    "rmdir",
    "rmSync",
    "rm(",
    "truncate",
    "chmod",
    "kill",
    "FileUtils",
    "shutil.move",
    "os.rename",
    "fromhex",
    "/dev/tcp",
    "/etc/",
];

/// Interpreters, and the options after which code stands in their words.
const INTERPRETERS: [(&str, &[&str]); 14] = [
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("perl", &["-e", "-E"]),
    ("ruby", &["-e"]),
    ("node", &["-e", "-p", "--eval", "--print"]),
    ("nodejs", &["-e", "-p", "--eval", "--print"]),
    ("deno", &["eval"]),
    ("bun", &["-e", "--eval", "-p", "--print"]),
    ("php", &["-r", "-B", "-R"]),
    ("lua", &["-e"]),
    ("luajit", &["-e"]),
    ("Rscript", &["-e"]),
    ("osascript", &["-e"]),
    ("pwsh", &["-c", "-Command", "-EncodedCommand"]),
];

/// True if the program runs a file of code.
pub(crate) fn interprets(program: &str) -> bool {
    is_shell(program) || options(program).is_some()
}

/// True if a program may take code in its words.
pub(crate) fn takes_code(program: &str) -> bool {
    interprets(program) || matches!(program, "awk" | "gawk" | "mawk" | "nawk" | "sed" | "gsed")
}

fn options(program: &str) -> Option<&'static [&'static str]> {
    let version = |c: char| c.is_ascii_digit() || c == '.';
    let name = program.trim_end_matches(version);
    INTERPRETERS
        .iter()
        .find(|(interpreter, _)| *interpreter == name)
        .map(|(_, options)| *options)
}

/// Builtins that evaluate a subscript in their words, and the two that print such a text for others.
const EVALUATE: [&str; 17] = [
    "let",
    "test",
    "[",
    "[[",
    "printf",
    "read",
    "unset",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "mapfile",
    "readarray",
    "getopts",
    "wait",
    "echo",
];

/// The reason of a word whose subscript the shell runs though it stands in quotes: `a[$(…)]`.
fn subscript(segment: &Segment, script: &Script) -> Option<Reason> {
    let name = segment.program()?;
    let runs = |word: &Word| {
        word.0.iter().any(|piece| matches!(piece, WordPiece::Text(text) if text.contains("[$(") || text.contains("[`")))
    };
    let input = match &segment.input {
        SegmentInput::Text(number) => script.texts.get(*number),
        _ => None,
    };
    let found = segment.arguments().iter().chain(input).any(runs);
    (found && EVALUATE.contains(&name.as_str()))
        .then(|| Reason::doubt("hides a command in a subscript"))
}

/// The reasons that code gives.
pub(super) fn of(segment: &Segment, script: &Script) -> Vec<Reason> {
    let program = segment.program().unwrap_or_default();
    let words = segment.arguments();
    let mut reasons = match program.as_str() {
        "awk" | "gawk" | "mawk" | "nawk" => awk(words),
        "sed" | "gsed" => sed(words),
        _ => Vec::new(),
    };
    reasons.extend(subscript(segment, script));
    if let Some(options) = options(&program) {
        reasons.extend(inline(words, options));
        reasons.extend(input(segment, script));
    }
    reasons
}

/// The reasons of code after an option.
fn inline(words: &[Word], options: &[&str]) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let shown = word.shown();
        let after = options.iter().find_map(|option| {
            let short = option.len() == 2 && shown.starts_with('-') && !shown.starts_with("--");
            let end = if short {
                shown.find(&option[1..]).map(|at| at + 1)
            } else {
                None
            };
            end.or((shown == *option).then_some(shown.len()))
        });
        let Some(after) = after else {
            if !shown.starts_with('-') {
                break;
            }
            continue;
        };
        match words.get(at + 1) {
            _ if after < shown.len() => reasons.extend(text(word)),
            Some(code) => reasons.extend(text(code)),
            None => {}
        }
        break;
    }
    reasons
}

/// The reasons of code that comes as input.
fn input(segment: &Segment, script: &Script) -> Vec<Reason> {
    let named = segment
        .arguments()
        .iter()
        .any(|word| word.literal() != Some("-"));
    match &segment.input {
        _ if segment.arguments().iter().any(Word::is_pipe) => {
            vec![Reason::doubt("runs a text that only the run knows")]
        }
        _ if named => Vec::new(),
        SegmentInput::Text(number) => script.texts.get(*number).map(text).unwrap_or_default(),
        SegmentInput::Pipe(from) => {
            let reads = |segment: &Segment| {
                segment
                    .program()
                    .is_some_and(|name| matches!(name.as_str(), "cat" | "echo" | "printf"))
                    && segment
                        .arguments()
                        .iter()
                        .all(|word| text(word).iter().all(|r| r.risk < Risk::High))
            };
            let known = script
                .segments
                .get(from.clone())
                .is_some_and(|all| all.iter().all(reads));
            if known {
                Vec::new()
            } else {
                vec![Reason::doubt("runs a text that only the run knows")]
            }
        }
        SegmentInput::Inherited | SegmentInput::File => Vec::new(),
    }
}

/// The reasons of one text of code.
fn text(code: &Word) -> Vec<Reason> {
    let shown = code.shown();
    let has = |words: &[&str]| words.iter().any(|word| shown.contains(word));
    let mut reasons = vec![Reason::own(Risk::Medium, "runs inline code")];
    if has(&STARTS) {
        reasons.push(Reason::doubt("runs inline code that starts programs"));
    } else if has(&HARMS) {
        reasons.push(Reason::foreign(
            Risk::High,
            "runs inline code that may destroy or send",
        ));
    } else if code.holes().any(|hole| !hole.quoted)
        || matches!(code.0.as_slice(), [WordPiece::Hole(_)])
    {
        reasons.push(Reason::doubt("runs a text that only the run knows"));
    }
    reasons
}

/// The reasons of awk programs that start others or write files.
fn awk(words: &[Word]) -> Vec<Reason> {
    let program = |word: &&Word| !word.shown().starts_with('-');
    let file = words
        .iter()
        .any(|word| word.shown().starts_with("-f") || word.shown().starts_with("--file"));
    if file {
        return vec![Reason::own(Risk::Medium, "runs a script of awk")];
    }
    let mut reasons = Vec::new();
    for word in words.iter().filter(program) {
        let shown = word.shown();
        let spaceless: String = shown.chars().filter(|c| !c.is_whitespace()).collect();
        let piped = ["|\"", "\"|", "|getline", "|&"]
            .iter()
            .any(|sign| spaceless.contains(sign))
            && !spaceless.contains("\"|\"");
        if shown.contains("system") || piped || shown.contains("/inet/") || shown.contains("@load")
        {
            reasons.push(Reason::doubt("runs inline code that starts programs"));
        } else if spaceless.contains(">\"") || spaceless.contains(">FILENAME") {
            reasons.push(Reason::foreign(Risk::Medium, "writes files"));
        }
    }
    reasons
}

/// The reasons of sed scripts that start programs or write files.
fn sed(words: &[Word]) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut scripts = Vec::new();
    let mut given = false;
    for (at, word) in words.iter().enumerate() {
        let shown = word.shown();
        if shown == "-e"
            || shown == "--expression"
            || (shown.starts_with('-') && !shown.starts_with("--") && shown.ends_with('e'))
        {
            given = true;
            scripts.extend(words.get(at + 1));
        } else if shown.starts_with("-f") || shown.starts_with("--file") {
            reasons.push(Reason::own(Risk::Medium, "runs a script of sed"));
            given = true;
        } else if shown.starts_with("--expression=") || (shown.starts_with("-e") && shown.len() > 2)
        {
            given = true;
            scripts.push(word);
        }
    }
    if !given {
        scripts.extend(words.iter().find(|word| !word.shown().starts_with('-')));
    }
    for script in scripts {
        let shown = script.shown();
        let body = shown
            .trim_start_matches("--expression=")
            .trim_start_matches("-e");
        for command in body.split([';', '\n', '{', '}']) {
            reasons.extend(sed_command(command.trim()));
        }
    }
    reasons
}

/// The reason of one command of sed. Pieces of a text that held a separator look like commands too;
/// they may only make things worse.
fn sed_command(command: &str) -> Option<Reason> {
    let runs = || Some(Reason::doubt("runs a program from a script of sed"));
    let writes = || Some(Reason::foreign(Risk::Medium, "writes files"));
    let body = command.trim_start_matches(|c: char| c.is_ascii_digit() || "$,!~+ ".contains(c));
    let body = match body
        .strip_prefix('/')
        .and_then(|rest| rest.rsplit_once('/'))
    {
        Some((_, after)) if !body.starts_with("s/") => {
            after.trim_start_matches(|c: char| "!I, ".contains(c))
        }
        _ => body,
    };
    let mut chars = body.chars();
    match chars.next()? {
        's' => {
            let delimiter = chars.next()?;
            let flags = body.rsplit(delimiter).next().unwrap_or_default();
            let plain =
                flags.chars().all(|c| "gpiImMew0123456789 ".contains(c)) || flags.contains('w');
            match flags {
                _ if !plain => None,
                flags if flags.split('w').next().unwrap_or_default().contains('e') => runs(),
                flags if flags.contains('w') => writes(),
                _ => None,
            }
        }
        'e' if body == "e" || body.starts_with("e ") => runs(),
        'w' | 'W' if body[1..].starts_with([' ', '/']) => writes(),
        _ => None,
    }
}
