//! Commands that tell of extensions, and the slash commands that skills are.

use std::collections::BTreeMap;

use server_records::ExtensionKind;
use shared_extensions::read_skill;
use shared_types::{clean::clean_line, event::Provenance};

use super::{Asked, CommandDone, Commands, Shown};
use crate::{AppError, NewMessage};

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
            return Ok(CommandDone::text(
                "there are no skills yet; add one with: gantry skills add FOLDER",
            ));
        }
        let rows = known.into_iter().map(|(name, skill)| {
            vec![
                format!("/{name}"),
                clean_line(&skill.description, DESCRIPTION),
                skill.whence,
            ]
        });
        Ok(CommandDone::shown([Shown::Table {
            columns: vec!["skill", "for", "from"],
            rows: rows.collect(),
        }]))
    }

    /// Lists the hooks that the last turn found, and says which of them run.
    pub(super) async fn hooks(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let found = self.extensions.found(asked.ctx, asked.id()).await?;
        if found.hooks.is_empty() {
            return Ok(CommandDone::text(
                "the last turn of this session found no hooks",
            ));
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
            columns: vec!["event", "for", "action", "from", "state"],
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
            return Ok(CommandDone::text(
                "the last turn of this session found no plugins",
            ));
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
                "plugin",
                "tools",
                "commands",
                "tells the model",
                "from",
                "state",
            ],
            rows: rows.collect(),
        }]))
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

    /// The message that has a skill used; nothing where there is none of this name.
    pub(super) async fn use_skill(
        &self,
        asked: &Asked<'_>,
        name: &str,
    ) -> Result<Option<NewMessage>, AppError> {
        if !self.known_skills(asked).await?.contains_key(name) {
            return Ok(None);
        }
        let text = match asked.words {
            "" => format!("Use the skill {name}."),
            words => format!("Use the skill {name} with these arguments: {words}"),
        };
        Ok(Some(NewMessage::of(&text)))
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

/// The layer and the file or row of an extension, in a few words.
fn whence(from: &Provenance) -> String {
    match from.layer.is_on_runner() {
        true => from.at.clone(),
        false => format!("{}: {}", from.layer.word(), from.at),
    }
}
