//! The extensions of a session: from what people registered and what a look at the place found, to what counts.

mod catalogue;

use std::collections::BTreeMap;

use server_records::{ExtensionKind, RegisteredExtension, StandingExtensions};
use shared_extensions::{Invalid, read_hooks, read_plugin, read_role, read_servers, read_skill};
use shared_sandbox::Instructions;
use shared_types::{
    Digest, SandboxId,
    clean::clean_line,
    event::{Extensions, Hook, Layer, Plugin, Provenance, Role, Skill, ToolServer},
};

pub(crate) use catalogue::{asked_note, missing_note, note};

use crate::roles;

/// Most bytes of the files with extensions that a look brings.
pub(crate) const FOUND_BYTES: u64 = 192 * 1024;

/// Most extensions of each kind.
const MAX_SKILLS: usize = 200;
const MAX_ROLES: usize = 64;
const MAX_HOOKS: usize = 200;
const MAX_SERVERS: usize = 64;
const MAX_PLUGINS: usize = 32;

/// Most bytes of the instructions of all roles.
const MAX_ROLES_BYTES: usize = 128 * 1024;

/// Most words on extensions that do not count, and the longest of them, in bytes.
const MAX_UNREAD: usize = 32;
const MAX_WHY: usize = 300;

/// The extensions of a turn: those that are registered, and those that were found at a place.
pub(crate) fn gathered(
    standing: &StandingExtensions,
    found: &[Instructions],
    sandbox: Option<SandboxId>,
) -> Extensions {
    let mut gathered = Gathered::default();
    for registered in &standing.registered {
        gathered.registered(registered);
    }
    // The nearest comes first, and of two with the same name the last one counts.
    for file in found.iter().rev() {
        let digest = Digest::of(file.text.as_bytes());
        let trusted = standing.trusted.iter().any(|trusted| {
            Some(trusted.sandbox) == sandbox
                && trusted.path == file.path
                && trusted.digest == digest
        });
        gathered.found(file, digest, trusted && !file.cut);
    }
    gathered.within_bounds()
}

/// The extensions so far, by name, so that a later one takes the place of an earlier one.
#[derive(Default)]
struct Gathered {
    skills: BTreeMap<String, Skill>,
    roles: BTreeMap<String, Role>,
    hooks: Vec<Hook>,
    servers: BTreeMap<String, ToolServer>,
    plugins: BTreeMap<String, Plugin>,
    unread: Vec<String>,
}

impl Gathered {
    fn registered(&mut self, of: &RegisteredExtension) {
        let from = Provenance {
            layer: of.layer(),
            at: of.name.clone(),
            digest: of.digest,
            trusted: true,
        };
        let read = match of.kind {
            ExtensionKind::Skill => self.skill(&of.text, &of.name, from),
            ExtensionKind::Agent => self.role(&of.text, &of.name, from),
            ExtensionKind::Hooks => self.hooks(&of.text, &from),
            ExtensionKind::Mcp => self.servers(&of.text, &from),
        };
        if let Err(why) = read {
            self.unread
                .push(format!("{} {}: {why}", of.kind.word(), of.name));
        }
    }

    /// A file that a look found. Its path tells what it is.
    fn found(&mut self, file: &Instructions, digest: Digest, trusted: bool) {
        let path = &file.path;
        if clean_line(path, MAX_WHY) != *path {
            self.unread.push(format!(
                "{}: its path is too long, or has control characters",
                clean_line(path, MAX_WHY)
            ));
            return;
        }
        let is_local = path.ends_with(".local.json");
        let from = Provenance {
            layer: if is_local {
                Layer::Local
            } else {
                Layer::Project
            },
            at: path.clone(),
            digest,
            trusted,
        };
        let parts: Vec<_> = path.rsplit('/').collect();
        let name = parts[0].strip_suffix(".md").unwrap_or(parts[0]);
        let (parent, group) = (parts.get(1).copied(), parts.get(2).copied());
        let read = match (parts[0], parent) {
            ("SKILL.md", Some(folder)) => self.skill(&file.text, folder, from),
            ("plugin.json", _) if group == Some("plugins") => {
                let folder = path.strip_suffix("/plugin.json").unwrap_or_default();
                self.plugin(&file.text, folder, &from)
            }
            (".mcp.json" | "mcp.json", _) => self.servers(&file.text, &from),
            (_, Some("commands")) => self.skill(&file.text, name, from),
            (_, Some("agents")) => self.role(&file.text, name, from),
            _ => self.hooks(&file.text, &from),
        };
        if let Err(why) = read {
            self.unread.push(format!("{path}: {why}"));
        }
    }

    fn skill(&mut self, text: &str, name: &str, mut from: Provenance) -> Result<(), Invalid> {
        let skill = read_skill(text, name)?;
        // It gives no rights, so people need not trust it first.
        from.trusted = true;
        self.skills.insert(
            skill.name.clone(),
            Skill {
                name: skill.name,
                description: skill.description,
                only_people: skill.only_people,
                from,
            },
        );
        Ok(())
    }

    fn role(&mut self, text: &str, name: &str, mut from: Provenance) -> Result<(), Invalid> {
        from.trusted = true;
        let role = read_role(text, name, from)?;
        if roles::is_built_in(&role.name) {
            self.unread.push(format!(
                "agent {0}: Gantry has a role {0} of its own, which counts; give this one another name",
                role.name
            ));
            return Ok(());
        }
        self.roles.insert(role.name.clone(), role);
        Ok(())
    }

    fn hooks(&mut self, text: &str, from: &Provenance) -> Result<(), Invalid> {
        let (hooks, unread) = read_hooks(text, from)?;
        self.hooks.extend(hooks);
        self.unread
            .extend(unread.iter().map(|why| format!("{}: {why}", from.at)));
        Ok(())
    }

    fn servers(&mut self, text: &str, from: &Provenance) -> Result<(), Invalid> {
        let (servers, unread) = read_servers(text, from)?;
        for server in servers {
            // A file that people do not trust takes the place of nothing that they do.
            if !from.trusted
                && self
                    .servers
                    .get(&server.name)
                    .is_some_and(|known| known.from.trusted)
            {
                continue;
            }
            self.servers.insert(server.name.clone(), server);
        }
        self.unread
            .extend(unread.iter().map(|why| format!("{}: {why}", from.at)));
        Ok(())
    }

    fn plugin(&mut self, text: &str, folder: &str, from: &Provenance) -> Result<(), Invalid> {
        let (plugin, hooks) = read_plugin(text, folder, from)?;
        self.hooks.extend(hooks);
        self.plugins.insert(plugin.name.clone(), plugin);
        Ok(())
    }

    fn within_bounds(self) -> Extensions {
        let mut unread = self.unread;
        let mut bytes = 0;
        let mut roles: Vec<_> = self.roles.into_values().collect();
        roles.retain(|role| {
            bytes += role.instructions.len() + role.description.len();
            let fits = bytes <= MAX_ROLES_BYTES;
            if !fits {
                unread.push(format!(
                    "agent {}: all agents together have more than 128 KiB",
                    role.name
                ));
            }
            fits
        });
        let mut hooks = self.hooks;
        // Wider layers first; a file keeps its order.
        hooks.sort_by_key(|hook| hook.from.layer);
        let mut extensions = Extensions {
            skills: self.skills.into_values().collect(),
            roles,
            hooks,
            servers: self.servers.into_values().collect(),
            plugins: self.plugins.into_values().collect(),
            unread: Vec::new(),
        };
        let mut cut = |what: &str, had: usize, most: usize| {
            if had > most {
                unread.push(format!(
                    "{} of {had} {what}: at most {most} count",
                    had - most
                ));
            }
        };
        cut("skills", extensions.skills.len(), MAX_SKILLS);
        cut("agents", extensions.roles.len(), MAX_ROLES);
        cut("hooks", extensions.hooks.len(), MAX_HOOKS);
        cut("tool servers", extensions.servers.len(), MAX_SERVERS);
        cut("plugins", extensions.plugins.len(), MAX_PLUGINS);
        extensions.skills.truncate(MAX_SKILLS);
        extensions.roles.truncate(MAX_ROLES);
        extensions.hooks.truncate(MAX_HOOKS);
        extensions.servers.truncate(MAX_SERVERS);
        extensions.plugins.truncate(MAX_PLUGINS);
        unread.truncate(MAX_UNREAD);
        extensions.unread = unread.iter().map(|why| clean_line(why, MAX_WHY)).collect();
        extensions
    }
}

#[cfg(test)]
mod tests;
