//! A program's reference page, made from its own description of its command line.

use std::fmt::Write as _;

use clap::{Arg, Command};

/// The note at the top of each page.
const MADE: &str =
    "<!-- Made by deploy/reference from the program's own help: change that, not this page. -->";

/// The page in Markdown: the program, and below it each verb that its help shows, in the same order.
pub(crate) fn page(mut command: Command) -> String {
    // Adds to each verb what all of them take, and how it is called.
    command.build();
    let mut page = format!("# {}\n\n{MADE}\n", command.get_name());
    verb(&mut page, &command, true);
    page
}

fn verb(page: &mut String, command: &Command, is_program: bool) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    if !is_program {
        let _ = write!(page, "\n## {name}\n");
    }
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(|text| plain(&text.to_string()));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim_end();
    let usage: Vec<_> = usage.lines().map(str::trim).collect();
    let _ = write!(
        page,
        "\n{}\n\n```text\n{}\n```\n",
        sentence(&about.unwrap_or_default()),
        usage.join("\n")
    );
    let shown = |argument: &&Arg| !argument.is_hide_set() && is_own(argument, is_program);
    let arguments: Vec<_> = command
        .get_arguments()
        .filter(shown)
        .map(argument)
        .collect();
    if !arguments.is_empty() {
        let _ = write!(page, "\n{}\n", arguments.join("\n"));
    }
    if let Some(after) = command.get_after_help() {
        let _ = write!(page, "\n```text\n{}\n```\n", after.to_string().trim());
    }
    for inner in command.get_subcommands() {
        if !inner.is_hide_set() && inner.get_name() != "help" {
            verb(page, inner, false);
        }
    }
}

/// True if the page of a verb shows this argument. Global arguments stand at the program alone;
/// `--help` and `--version` are left out.
fn is_own(argument: &Arg, is_program: bool) -> bool {
    let id = argument.get_id().as_str();
    id != "help" && id != "version" && (is_program || !argument.is_global_set())
}

/// A line of the list: how it is written, its text, and where else it comes from.
fn argument(argument: &Arg) -> String {
    let value = value(argument);
    let value = value.as_deref();
    let short = argument.get_short().map(|letter| format!("-{letter}"));
    let long = argument.get_long().map(|name| format!("--{name}"));
    let mut written: Vec<_> = [short, long].into_iter().flatten().collect();
    match (written.last_mut(), value) {
        (Some(last), Some(value)) => *last = format!("{last} {value}"),
        (None, value) => written.push(value.unwrap_or_default().to_owned()),
        (Some(_), None) => {}
    }
    let help = argument.get_long_help().or(argument.get_help());
    let mut line = format!(
        "- `{}`: {}",
        written.join("`, `"),
        plain(&help.map(ToString::to_string).unwrap_or_default())
    );
    let choices = argument.get_possible_values();
    let choices: Vec<_> = (choices.iter())
        .filter(|choice| !choice.is_hide_set())
        .map(|choice| match choice.get_help() {
            None => format!("`{}`", choice.get_name()),
            Some(help) => format!("`{}` ({})", choice.get_name(), plain(&help.to_string())),
        })
        .collect();
    if value.is_some() && !choices.is_empty() {
        let _ = write!(line, "; one of {}", choices.join(", "));
    }
    let defaults = argument.get_default_values();
    let defaults: Vec<_> = defaults
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if value.is_some() && defaults.iter().any(|value| !value.is_empty()) {
        let _ = write!(line, " [default: {}]", defaults.join(" "));
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(line, " [environment: `{}`]", variable.to_string_lossy());
    }
    line
}

/// The name of its value, if it takes one.
fn value(argument: &Arg) -> Option<String> {
    if !argument.get_action().takes_values() {
        return None;
    }
    let names = argument.get_value_names().unwrap_or_default();
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    match names.is_empty() {
        true => Some(argument.get_id().as_str().to_uppercase().replace('-', "_")),
        false => Some(names.join(" ")),
    }
}

/// The text on one line, its brackets not those of HTML.
fn plain(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let parts = words.join(" ");
    let parts = parts.split('`').enumerate();
    let parts: Vec<_> = parts
        .map(|(number, part)| match number % 2 {
            0 => part.replace('<', "&lt;"),
            _ => part.to_owned(),
        })
        .collect();
    parts.join("`")
}

fn sentence(text: &str) -> String {
    match text.ends_with('.') || text.is_empty() {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_verbs_of_the_help_with_their_options_and_where_those_come_from() {
        let hidden = Command::new("secret").hide(true);
        let add = Command::new("add")
            .about("Add a <thing> with `a < b`")
            .arg(Arg::new("name").help("Its name"))
            .arg(
                Arg::new("time")
                    .long("valid-for")
                    .short('v')
                    .default_value("10m"),
            )
            .arg(Arg::new("kind").long("kind").value_parser(["big", "small"]));
        let program = Command::new("things")
            .about("Keeps things")
            .arg(Arg::new("home").long("home").env("HOME").global(true))
            .subcommands([add, hidden]);
        let page = page(program);
        for line in [
            "# things",
            "- `--home HOME`:  [environment: `HOME`]",
            "## things add",
            "Add a &lt;thing> with `a < b`.",
            "things add [OPTIONS] [name]",
            "- `NAME`: Its name",
            "- `-v`, `--valid-for TIME`:  [default: 10m]",
            "- `--kind KIND`: ; one of `big`, `small`",
        ] {
            assert!(page.lines().any(|other| other == line), "{line}:\n{page}");
        }
        assert_eq!(page.matches("--home").count(), 1, "{page}");
        assert!(
            !page.contains("secret") && !page.contains("--help"),
            "{page}"
        );
    }
}
