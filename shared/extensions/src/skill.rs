//! Skills: `SKILL.md` of Agent Skills (<https://agentskills.io/specification>), and Claude Code's commands, which are
//! skills of one file.

use crate::{Front, Invalid, cleaned};

/// Longest text of a `SKILL.md`, in bytes.
pub const MAX_SKILL_BYTES: usize = 256 * 1024;

/// Longest name, in letters and in bytes.
const MAX_NAME: usize = 64;
const MAX_NAME_BYTES: usize = 256;

/// Longest description, in bytes.
const MAX_DESCRIPTION: usize = 1024;

/// A skill as its file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its name.
    pub name: String,
    /// The task that it is for.
    pub description: String,
    /// True if only a person's slash command uses it.
    pub only_people: bool,
    /// The instructions.
    pub body: String,
}

/// Reads the file of a skill, whose folder (or file, without `.md`) has this name. Only the beginning of the file may be
/// given: then the body is cut.
///
/// # Errors
/// The name or the description is missing or has not the form that the specification asks for.
pub fn read_skill(text: &str, folder: &str) -> Result<SkillFile, Invalid> {
    if text.len() > MAX_SKILL_BYTES {
        return Err(Invalid::new(format!(
            "it has more than {MAX_SKILL_BYTES} bytes"
        )));
    }
    let front = Front::read(text)?;
    let name = front.text("name").unwrap_or_else(|| folder.to_owned());
    if !is_name(&name) {
        return Err(Invalid::new(
            "its name may have small letters, digits and single hyphens, at most 64",
        ));
    }
    if name != folder {
        return Err(Invalid::new("its name is not that of its folder"));
    }
    let described = front.text("description").unwrap_or_default();
    // A command of Claude Code may say what it does in its first line alone.
    let described = match described.is_empty() {
        true => front
            .body
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default()
            .to_owned(),
        false => described,
    };
    let description = cleaned(&described.replace('\n', " "), MAX_DESCRIPTION);
    let description = description.trim().to_owned();
    if description.is_empty() {
        return Err(Invalid::new("it has no description of what it is for"));
    }
    Ok(SkillFile {
        name,
        description,
        only_people: front.flag("disable-model-invocation"),
        body: front.body.to_owned(),
    })
}

/// True for letters that are not large ones, digits and single hyphens between them. The reference of Agent Skills takes
/// the letters of every script.
fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() && letter.to_lowercase().eq([letter]);
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_letter);
    name.len() <= MAX_NAME_BYTES && name.chars().count() <= MAX_NAME && name.split('-').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_has_a_name_a_description_and_a_body() {
        let text = "---\nname: pdf-forms\ndescription: |\n  Fill PDF forms.\n  Use it for forms.\nlicense: MIT\nmetadata:\n  author: x\n---\n# Steps\n";
        let skill = read_skill(text, "pdf-forms").unwrap();
        assert_eq!(skill.description, "Fill PDF forms. Use it for forms.");
        assert_eq!(skill.body, "# Steps\n");
        assert!(!skill.only_people);
    }

    #[test]
    fn a_name_that_is_no_slug_or_not_its_folders_is_refused() {
        for name in [
            "Pdf",
            "a--b",
            "-a",
            "a-",
            "a b",
            "a\u{1b}[2J",
            "../x",
            &"a".repeat(65),
        ] {
            let text = format!("---\nname: {name:?}\ndescription: d\n---\n");
            assert!(read_skill(&text, name).is_err(), "{name:?}");
        }
        let text = "---\nname: other\ndescription: d\n---\n";
        assert!(read_skill(text, "folder").is_err());
    }

    #[test]
    fn a_description_is_bounded_and_holds_no_control_character() {
        let text = format!("---\ndescription: \"\\e[2J{}\"\n---\n", "d".repeat(2000));
        let skill = read_skill(&text, "x").unwrap();
        assert!(skill.description.starts_with("[2Jd"));
        assert_eq!(skill.description.len(), MAX_DESCRIPTION);
        assert!(read_skill("---\nname: x\n---\n", "x").is_err());
    }

    #[test]
    fn a_command_of_one_file_is_a_skill() {
        let skill = read_skill("Review the changes of $ARGUMENTS.\nSecond.", "review").unwrap();
        assert_eq!(skill.description, "Review the changes of $ARGUMENTS.");
    }
}
