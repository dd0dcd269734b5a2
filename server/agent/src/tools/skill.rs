//! Skill: load the instructions of a skill.

use shared_extensions::read_skill;
use shared_sandbox::{Outcome, Read, Request};
use shared_types::{
    Digest, Effect,
    event::{Extensions, Layer, Skill},
    limits::FILE_OPERATION_WITHIN,
};

use super::{Arguments, Ask, BadArguments, Ended, Kind, Parameter, Prepared, Rendered, Tool};

/// The name of the tool.
pub(crate) const SKILL: &str = "Skill";

/// Most bytes of the instructions that the model is shown.
const MAX_BODY_BYTES: usize = 48 * 1024;

/// Most bytes that are read of a file: its head and the instructions.
const MAX_READ_BYTES: u64 = 64 * 1024;

/// The request for a skill that is registered at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillAsk {
    /// Its name.
    pub name: String,
    /// Its layer.
    pub layer: Layer,
    /// The digest of the skill that the conversation was told of.
    pub digest: Digest,
    /// The arguments.
    pub arguments: String,
}

/// Loads the instructions of one of these skills.
#[derive(Debug, Clone)]
pub struct SkillTool {
    skills: Vec<Skill>,
    /// The way from the session's directory to the root of the workspace.
    to_root: String,
}

impl SkillTool {
    /// The tool for the skills of a session that works in this directory; nothing without skills.
    pub(crate) fn of(extensions: &Extensions, directory: &str) -> Option<Self> {
        let levels = directory.split('/').filter(|part| !part.is_empty()).count();
        (!extensions.skills.is_empty()).then(|| Self {
            skills: extensions.skills.clone(),
            to_root: "../".repeat(levels),
        })
    }
}

impl Tool for SkillTool {
    fn name(&self) -> &str {
        SKILL
    }

    fn aliases(&self) -> &[&str] {
        &["skill", "load_skill"]
    }

    fn description(&self) -> &str {
        "Loads the instructions of a skill. The notes before the messages list the skills. Load one before you do \
         work of its kind, once in a conversation."
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "name",
                Kind::Text {
                    empty: false,
                    at_most: 256,
                    instead: "use its name in the list",
                },
                "The name of the skill.",
            ),
            Parameter::optional(
                "arguments",
                Kind::Text {
                    empty: true,
                    at_most: 16 * 1024,
                    instead: "use shorter arguments",
                },
                "What a person said behind its slash command, if anything.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let name = arguments.text("name").trim_start_matches('/');
        let skill = self
            .skills
            .iter()
            .find(|skill| skill.name == name)
            .ok_or_else(|| {
                let known: Vec<_> = self
                    .skills
                    .iter()
                    .map(|skill| skill.name.as_str())
                    .collect();
                BadArguments::new(format!(
                    "there is no skill {:?}; the skills are {}",
                    super::arguments::shortened(name),
                    known.join(", ")
                ))
            })?;
        match skill.from.layer {
            Layer::Project | Layer::Local => {
                let path = format!("{}{}", self.to_root, skill.from.at);
                Ok(Prepared::within(
                    FILE_OPERATION_WITHIN,
                    Request::Read(Read {
                        path,
                        first_line: 1,
                        max_lines: u64::from(u32::MAX),
                        max_bytes: MAX_READ_BYTES,
                    }),
                ))
            }
            layer => Ok(Ask::Skill(SkillAsk {
                name: skill.name.clone(),
                layer,
                digest: skill.from.digest,
                arguments: arguments.text("arguments").to_owned(),
            })),
        }
    }

    fn render(&self, ended: &Ended<'_>, _limit: usize) -> Option<Rendered> {
        let (content, read) = match (ended.outcome, ended.request) {
            (Outcome::Read(content), Request::Read(read)) => (content, read),
            // The files of a registered skill are there; its instructions come from the server.
            (Outcome::Unpacked(_), _) => return Some(Rendered::completed(String::new())),
            _ => return None,
        };
        let text = String::from_utf8_lossy(&content.content);
        let path = read.path.trim_start_matches("../");
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        // A skill of one file has the name of the file.
        let (folder, name) = match path.ends_with("/SKILL.md") {
            true => (folder, folder.rsplit('/').next().unwrap_or_default()),
            false => (
                "",
                path.rsplit('/')
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches(".md"),
            ),
        };
        let place = (!folder.is_empty()).then(|| format!("{}{folder}", self.to_root));
        Some(rendered(&text, name, None, place.as_deref(), content.more))
    }

    fn most_bytes(&self) -> Option<usize> {
        Some(MAX_BODY_BYTES)
    }
}

/// The result of loading a skill: its instructions, and the folder with its other files. Where the arguments are not
/// given, the model has them in its call.
pub(crate) fn rendered(
    text: &str,
    name: &str,
    arguments: Option<&str>,
    folder: Option<&str>,
    more: bool,
) -> Rendered {
    let skill = match read_skill(text, name) {
        Ok(skill) => skill,
        Err(why) => return Rendered::failed(format!("the skill {name} cannot be used: {why}")),
    };
    let body = match (arguments, skill.body.contains("$ARGUMENTS")) {
        (Some(arguments), true) => skill.body.replace("$ARGUMENTS", arguments),
        (None, true) => {
            let body = skill.body.trim_end();
            format!("{body}\n\n[$ARGUMENTS stands for the arguments of your call]")
        }
        (None | Some(""), false) => skill.body,
        (Some(arguments), false) => {
            format!("{}\n\nArguments: {arguments}", skill.body.trim_end())
        }
    };
    let end = body.floor_char_boundary(MAX_BODY_BYTES - 512);
    let mut shown = format!(
        "[the skill {name}: follow these instructions]\n{}",
        &body[..end]
    );
    if end < body.len() || more {
        shown.push_str("\n[… its instructions go on; they are too long to be shown whole]");
    }
    if let Some(folder) = folder {
        shown.push_str(&format!(
            "\n[paths in these instructions begin in the folder {folder}]"
        ));
    }
    Rendered::completed(shown)
}
