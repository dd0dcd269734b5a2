//! The table of programs (`programs.txt`) and how a command is looked up in it.

use std::{collections::HashMap, sync::LazyLock};

use shared_types::Risk;

use crate::command::{Segment, word::Word};

/// A line of the table: words that a command must have, and what follows from them.
#[derive(Debug)]
struct ProgramEntry {
    subs: Vec<&'static str>,
    options: Vec<&'static str>,
    known: KnownRisk,
}

/// The risk of a command, as the table has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownRisk {
    pub(crate) risk: Risk,
    /// A few words that complete "it …".
    pub(crate) reason: &'static str,
    /// True if its options name another program.
    pub(crate) doubt: bool,
}

#[derive(Debug, Default)]
struct ProgramTable {
    entries: HashMap<&'static str, Vec<ProgramEntry>>,
    /// The programs that run nothing of what their arguments name.
    plain: Vec<&'static str>,
}

static TABLE: LazyLock<ProgramTable> = LazyLock::new(|| parse(include_str!("programs.txt")));

fn parse(text: &'static str) -> ProgramTable {
    let mut table = ProgramTable::default();
    let mut group = ("", "");
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        if let Some(heading) = line.strip_prefix("== ") {
            group = heading.split_once(": ").unwrap_or((heading, ""));
            continue;
        }
        for entry in line.split(", ") {
            let risk = match group.0 {
                "low" => Risk::Low,
                "high" | "doubt" => Risk::High,
                "plain" => {
                    table.plain.push(entry);
                    continue;
                }
                _ => Risk::Medium,
            };
            let known = KnownRisk {
                risk,
                reason: group.1,
                doubt: group.0 == "doubt",
            };
            let mut words = entry.split_whitespace();
            let Some(program) = words.next() else {
                continue;
            };
            let (options, subs) = words.partition(|word| word.starts_with('-'));
            table
                .entries
                .entry(program)
                .or_default()
                .push(ProgramEntry {
                    subs,
                    options,
                    known,
                });
        }
    }
    table
}

/// The risk of a command by its program, sub-commands and options; `None` if the program is unknown.
pub(crate) fn look_up(segment: &Segment) -> Option<KnownRisk> {
    let program = segment.program()?;
    let entries = TABLE.entries.get(program.as_str())?;
    let words = segment.arguments();
    let readings = [subs(&program, words, false), subs(&program, words, true)];
    let matching = entries.iter().filter(|entry| {
        let reading = |subs: &Vec<String>| {
            subs.len() >= entry.subs.len() && entry.subs.iter().zip(subs).all(|(a, b)| a == b)
        };
        // A guess about options may only make things worse.
        let subs =
            reading(&readings[0]) || (entry.known.risk == Risk::High && reading(&readings[1]));
        subs && entry.options.iter().all(|option| has_option(words, option))
    });
    let best = matching.max_by_key(|entry| {
        (
            entry.subs.len() + entry.options.len(),
            entry.known.risk,
            entry.known.doubt,
        )
    })?;
    Some(best.known)
}

/// True if the program runs nothing of what its arguments name.
pub(crate) fn is_plain(program: &str) -> bool {
    let low = |entries: &Vec<ProgramEntry>| {
        entries
            .iter()
            .any(|e| e.known.risk == Risk::Low && e.subs.is_empty() && e.options.is_empty())
    };
    TABLE.plain.contains(&program) || TABLE.entries.get(program).is_some_and(low)
}

/// Options before the sub-command that take the next word.
const VALUED: [(&str, &[&str]); 14] = [
    (
        "git",
        &[
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--config-env",
            "--super-prefix",
        ],
    ),
    (
        "cargo",
        &["--config", "--manifest-path", "-Z", "-C", "--color"],
    ),
    (
        "docker",
        &[
            "-H",
            "--host",
            "--context",
            "-c",
            "-l",
            "--log-level",
            "--config",
            "-f",
            "--file",
            "-p",
        ],
    ),
    ("docker-compose", &["-f", "--file", "-p", "--project-name"]),
    (
        "kubectl",
        &[
            "-n",
            "--namespace",
            "--context",
            "--kubeconfig",
            "--cluster",
            "--user",
            "-s",
        ],
    ),
    (
        "helm",
        &["-n", "--namespace", "--kube-context", "--kubeconfig"],
    ),
    ("npm", &["--prefix", "-w", "--workspace", "-C"]),
    ("pnpm", &["-C", "--dir", "-F", "--filter"]),
    ("yarn", &["--cwd"]),
    ("go", &["-C"]),
    ("gh", &["-R", "--repo"]),
    (
        "systemctl",
        &["-H", "-M", "--host", "--machine", "-t", "-p", "-n"],
    ),
    ("aws", &["--profile", "--region", "--output"]),
    ("make", &["-C", "-f", "-j", "-I"]),
];

/// The options of a program before its sub-command that take the next word.
pub(crate) fn valued(program: &str) -> &'static [&'static str] {
    VALUED
        .iter()
        .find(|(name, _)| *name == program)
        .map_or(&[][..], |(_, options)| options)
}

/// The words of a command that are no options and no values of options before the sub-command.
/// With `guess`, each option before the sub-command takes the next word.
pub(crate) fn subs(program: &str, words: &[Word], guess: bool) -> Vec<String> {
    let valued = valued(program);
    let mut found = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let shown = word.shown();
        if shown.starts_with('-') && shown.len() > 1 {
            let takes = valued.contains(&shown.as_str()) || (guess && !shown.contains('='));
            if takes && (found.is_empty() || !guess) {
                words.next();
            }
        } else if !(shown.starts_with('+') && program == "cargo") {
            found.push(shown);
        }
        if found.len() > 4 {
            break;
        }
    }
    found
}

/// True if the option is among the words: `-x` also in `-ax`, `--long` also cut or with a value.
pub(crate) fn has_option(words: &[Word], option: &str) -> bool {
    let letter = option
        .strip_prefix('-')
        .filter(|rest| rest.chars().count() == 1 && *rest != "-");
    words.iter().any(|word| {
        let shown = word.shown();
        if shown == option {
            return true;
        }
        if let Some(letter) = letter {
            let cluster = shown.starts_with('-') && !shown.starts_with("--");
            return cluster
                && shown
                    .split('=')
                    .next()
                    .is_some_and(|names| names.contains(letter));
        }
        let name = shown.split('=').next().unwrap_or_default();
        name == option
            || (option.starts_with("--")
                && name.len() > 3
                && name.starts_with("--")
                && option.starts_with(name))
    })
}

/// Programs with sub-commands, and how many of their words tell what they do.
const SUBS: [(&str, usize); 34] = [
    ("git", 2),
    ("cargo", 1),
    ("npm", 2),
    ("pnpm", 2),
    ("yarn", 2),
    ("bun", 2),
    ("docker", 2),
    ("podman", 2),
    ("docker-compose", 1),
    ("kubectl", 1),
    ("go", 2),
    ("pip", 1),
    ("pip3", 1),
    ("uv", 2),
    ("poetry", 1),
    ("systemctl", 1),
    ("apt", 1),
    ("apt-get", 1),
    ("brew", 1),
    ("make", 1),
    ("gmake", 1),
    ("just", 1),
    ("helm", 1),
    ("terraform", 1),
    ("rustup", 1),
    ("gradle", 1),
    ("mvn", 1),
    ("dotnet", 1),
    ("bundle", 1),
    ("rake", 1),
    ("deno", 1),
    ("tox", 1),
    ("dnf", 1),
    ("hg", 1),
];

/// The number of words after the program that name its sub-command; `None` if it has no sub-commands.
pub(crate) fn has_subs(program: &str) -> Option<usize> {
    SUBS.iter()
        .find(|(name, _)| *name == program)
        .map(|(_, most)| *most)
}

/// True if the program changes the files among its arguments.
pub(crate) fn writes_its_files(program: &str) -> bool {
    const WRITERS: [&str; 17] = [
        "cp", "mv", "rm", "tee", "touch", "mkdir", "rmdir", "ln", "install", "truncate", "unlink",
        "chmod", "chown", "patch", "sed", "dd", "shred",
    ];
    WRITERS.contains(&program)
}
