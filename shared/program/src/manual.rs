//! Shell completions, man pages and a reference page, made from a program's own description of its command line.

use std::{fs, io, path::Path};

use clap::Command;
use clap_complete::{Shell, generate_to};

use crate::markdown;

/// The shells for which there are completions.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes the completions into `FOLDER/completions`, a man page for each verb into `FOLDER/man`, and a page with all
/// verbs, in Markdown, into `FOLDER/reference`.
///
/// # Errors
/// Fails if a folder or file cannot be written.
pub fn write_manual(mut command: Command, folder: &Path) -> io::Result<()> {
    let [completions, pages, reference] =
        ["completions", "man", "reference"].map(|name| folder.join(name));
    for folder in [&completions, &pages, &reference] {
        fs::create_dir_all(folder)?;
    }
    let name = command.get_name().to_owned();
    fs::write(
        reference.join(format!("{name}.md")),
        markdown::page(command.clone()),
    )?;
    // Making completions adds them.
    let pages_of = without_help(command.clone());
    for shell in SHELLS {
        generate_to(shell, &mut command, &name, &completions)?;
    }
    clap_mangen::generate_to(pages_of, pages)
}

/// The command without its verbs `help`, which would each have a page about another verb.
fn without_help(command: Command) -> Command {
    (command.disable_help_subcommand(true)).mut_subcommands(without_help)
}
