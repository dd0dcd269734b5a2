//! Commands that tell of extensions, and the slash commands that skills are.

use std::collections::BTreeMap;

use server_records::ExtensionKind;
use shared_extensions::read_skill;
use shared_types::{
    clean::clean_line,
    event::{OfferedServer, Provenance},
};

use super::{Asked, CommandDone, Commands, Shown};
use crate::{AppError, SessionServer};

/// Longest description in a row, in characters.
const DESCRIPTION: usize = 100;

/// A skill by which a person may call it.
struct Known {
    description: String,
    whence: String,
}

impl Commands {
    /// Lists the skills of the session.
    pub(super) async fn skills(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let known = self.known_skills(asked).await?;
        if known.is_empty() {
            return self
                .none(
                    asked,
                    "there are no skills yet; add one with: gantry skills add FOLDER",
                )
                .await;
        }
        let rows = known.into_iter().map(|(name, skill)| {
            vec![
                format!("/{name}"),
                clean_line(&skill.description, DESCRIPTION),
                skill.whence,
            ]
        });
        Ok(CommandDone::shown([Shown::Table {
            columns: vec!["SKILL", "FOR", "FROM"],
            rows: rows.collect(),
        }]))
    }

    /// Lists the hooks that the last turn found, and says which of them run.
    pub(super) async fn hooks(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let found = self.extensions.found(asked.ctx, asked.id()).await?;
        if found.hooks.is_empty() {
            return self
                .none(asked, "the last turn of this session found no hooks")
                .await;
        }
        let rows = found.hooks.iter().map(|hook| {
            let action = hook.handler.details();
            vec![
                hook.on.word().to_owned(),
                hook.matcher.clone(),
                clean_line(&action, DESCRIPTION),
                whence(&hook.from),
                match hook.from.trusted {
                    true => "runs".to_owned(),
                    false => "does nothing: not trusted".to_owned(),
                },
            ]
        });
        let mut shown = vec![Shown::Table {
            columns: vec!["EVENT", "FOR", "ACTION", "FROM", "STATE"],
            rows: rows.collect(),
        }];
        if !found.untrusted().is_empty() {
            shown.push(Shown::Text(
                "read a file before you trust it: gantry extensions trust".to_owned(),
            ));
        }
        Ok(CommandDone::shown(shown))
    }

    /// Lists the plugins that the last turn found.
    pub(super) async fn plugins(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let found = self.extensions.found(asked.ctx, asked.id()).await?;
        if found.plugins.is_empty() {
            return self
                .none(asked, "the last turn of this session found no plugins")
                .await;
        }
        let rows = found.plugins.iter().map(|plugin| {
            let commands = plugin.commands.iter().map(|command| {
                let slash = format!("/{} {}", plugin.slash(command), command.arguments);
                format!("{}: {}", slash.trim_end(), command.description)
            });
            let tools = plugin.tools.iter().map(|tool| tool.name.as_str());
            vec![
                plugin.name.clone(),
                tools.collect::<Vec<_>>().join(", "),
                clean_line(&commands.collect::<Vec<_>>().join("; "), DESCRIPTION),
                clean_line(&plugin.prompt, DESCRIPTION),
                whence(&plugin.from),
                match plugin.from.trusted {
                    true => "counts".to_owned(),
                    false => "does nothing: not trusted".to_owned(),
                },
            ]
        });
        Ok(CommandDone::shown([Shown::Table {
            columns: vec![
                "PLUGIN",
                "TOOLS",
                "COMMANDS",
                "TELLS THE MODEL",
                "FROM",
                "STATE",
            ],
            rows: rows.collect(),
        }]))
    }

    /// Lists the tool servers of the session, with what the last turn found of each.
    pub(super) async fn mcp(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let servers = self.tool_servers.list(asked.ctx, asked.id()).await?;
        if servers.is_empty() {
            return self
                .none(
                    asked,
                    "there are no tool servers yet; add one with: gantry mcp add",
                )
                .await;
        }
        let offered = self.tool_servers.offered(asked.ctx, asked.id()).await?;
        let rows = servers.into_iter().map(|server| {
            let last = offered.iter().find(|offered| offered.name == server.name);
            let tools = last.filter(|last| last.failed.is_none());
            vec![
                server.name.clone(),
                server_state(&server, last),
                tools.map_or_else(String::new, |last| counted(last.tools.len())),
                counted(server.prompts.len()),
                counted(server.resources.len()),
                whence(&server.from),
            ]
        });
        let table = Shown::Table {
            columns: vec![
                "TOOL SERVER",
                "STATE",
                "TOOLS",
                "PROMPTS",
                "RESOURCES",
                "FROM",
            ],
            rows: rows.collect(),
        };
        let more = "gantry mcp test NAME starts one and shows all that it has".to_owned();
        Ok(CommandDone::shown([table, Shown::Text(more)]))
    }

    /// True if a turn of the session has looked at the project.
    pub(super) async fn has_looked(&self, asked: &Asked<'_>) -> Result<bool, AppError> {
        self.extensions.has_looked(asked.ctx, asked.id()).await
    }

    /// The answer where nothing of a kind is known: the reason may be that no turn has looked at the project.
    async fn none(&self, asked: &Asked<'_>, words: &str) -> Result<CommandDone, AppError> {
        Ok(CommandDone::text(match self.has_looked(asked).await? {
            true => words,
            false => {
                "none is known yet: a turn looks at the project when it begins, where the runner is online"
            }
        }))
    }

    /// True for the name of a command of a plugin that the last turn found and the user trusts.
    pub(super) async fn is_of_plugin(
        &self,
        asked: &Asked<'_>,
        name: &str,
    ) -> Result<bool, AppError> {
        if !name.contains(':') {
            return Ok(false);
        }
        let found = self.extensions.found(asked.ctx, asked.id()).await?;
        let plugins = found.plugins.iter().filter(|plugin| plugin.from.trusted);
        let mut slashes = plugins.flat_map(|plugin| {
            let commands = plugin.commands.iter();
            commands.map(|command| plugin.slash(command))
        });
        Ok(slashes.any(|slash| slash == name))
    }

    /// True for the name of a skill of the session.
    pub(super) async fn is_skill(&self, asked: &Asked<'_>, name: &str) -> Result<bool, AppError> {
        Ok(self.known_skills(asked).await?.contains_key(name))
    }

    /// The skills of the session by their names: those that are registered, and those of the place as the last turn
    /// found it.
    async fn known_skills(&self, asked: &Asked<'_>) -> Result<BTreeMap<String, Known>, AppError> {
        let mut known = BTreeMap::new();
        for row in self.extensions.list(asked.ctx).await? {
            if row.kind == ExtensionKind::Skill
                && let Ok(skill) = read_skill(&row.text, &row.name)
            {
                let whence = row.layer().word().to_owned();
                let description = skill.description;
                known.insert(
                    skill.name,
                    Known {
                        description,
                        whence,
                    },
                );
            }
        }
        let found = self.extensions.found(asked.ctx, asked.id()).await?;
        for skill in found
            .skills
            .into_iter()
            .filter(|skill| skill.from.layer.is_on_runner())
        {
            let known_one = Known {
                description: skill.description,
                whence: whence(&skill.from),
            };
            known.insert(skill.name, known_one);
        }
        Ok(known)
    }
}

/// A number of things; empty for none.
fn counted(number: usize) -> String {
    match number {
        0 => String::new(),
        number => number.to_string(),
    }
}

/// The state of a tool server, in a few words.
fn server_state(server: &SessionServer, last: Option<&OfferedServer>) -> String {
    if !server.from.trusted {
        return "does nothing: not trusted".to_owned();
    }
    match (&server.server, last.and_then(|last| last.failed.as_deref())) {
        (Some(version), _) => format!("works: {}", clean_line(version, DESCRIPTION)),
        (None, Some(why)) => format!("does not work: {}", clean_line(why, DESCRIPTION)),
        (None, None) => "starts when it is needed".to_owned(),
    }
}

/// The layer and the file or row of an extension, in a few words.
fn whence(from: &Provenance) -> String {
    match from.layer.is_on_runner() {
        true => from.at.clone(),
        false => format!("{}: {}", from.layer.word(), from.at),
    }
}
