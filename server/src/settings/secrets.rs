//! `[secrets]`: the source of the master key.

use std::path::{Path, PathBuf};

use anyhow::bail;
use schemars::JsonSchema;
use serde::Deserialize;

/// Has the master key itself; goes before the file.
pub(super) const MASTER_KEY: &str = "GANTRY_MASTER_KEY";

/// The section of the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SecretsSection {
    /// A file with the master key: 32 bytes in base64 or hexadecimal, which only the server's user can read. Further
    /// keys, one a line, only open. GANTRY_MASTER_KEY goes before it [default: `server/keys/master` in the home, which
    /// the server makes].
    #[schemars(example = &"/etc/gantry/master.key")]
    master_key_file: Option<PathBuf>,
    /// A program that prints the master key, with its arguments. It runs at the start and at each reload, for 10 s at
    /// most [default: none].
    #[schemars(example = ["pass", "show", "gantry/master-key"])]
    master_key_command: Vec<String>,
}

/// The source of the master key.
#[derive(Clone)]
pub(crate) enum MasterKeyChoice {
    /// The file that the server makes beside its database.
    Own(PathBuf),
    /// A file of the operator's.
    File(PathBuf),
    /// The content of [`MASTER_KEY`].
    Environment(String),
    /// A program with its arguments.
    Command(String, Vec<String>),
}

impl SecretsSection {
    /// The source of the environment, else of the file, else the server's own file.
    ///
    /// # Errors
    /// Fails if the file names two sources, or a key that backups would copy.
    pub(super) fn choose(
        self,
        environment: Option<String>,
        home: &Path,
    ) -> anyhow::Result<MasterKeyChoice> {
        let mut command = self.master_key_command.into_iter();
        let (file, program) = (self.master_key_file, command.next());
        // A variable that is set to nothing names nothing.
        if let Some(key) = environment.filter(|key| !key.trim().is_empty()) {
            return Ok(MasterKeyChoice::Environment(key));
        }
        let own = home.join("server/keys/master");
        Ok(match (file, program) {
            (Some(_), Some(_)) => bail!(
                "master_key_file and master_key_command under [secrets] in gantry.toml name two sources: remove one of them"
            ),
            (Some(file), None) if file == own => MasterKeyChoice::Own(own),
            (Some(file), None) if file.starts_with(home.join("server")) => bail!(
                "master_key_file under [secrets] in gantry.toml names a file in the server's folder, which backups copy: put the key elsewhere, such as in {}",
                home.join("master.key").display()
            ),
            (Some(file), None) => MasterKeyChoice::File(file),
            (None, Some(program)) => MasterKeyChoice::Command(program, command.collect()),
            (None, None) => MasterKeyChoice::Own(own),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(toml: &str, environment: Option<&str>) -> anyhow::Result<MasterKeyChoice> {
        let section: SecretsSection = toml::from_str(toml).expect("it is TOML");
        section.choose(environment.map(str::to_owned), Path::new("/home/me"))
    }

    #[test]
    fn the_environment_goes_before_the_file_and_nothing_set_is_a_file_in_the_home() {
        let file = "master_key_file = \"/etc/gantry/master.key\"\n";
        let command = "master_key_command = [\"pass\", \"show\", \"key\"]\n";
        let own = chosen("", Some(" ")).expect("it is fine");
        assert!(
            matches!(own, MasterKeyChoice::Own(path) if path == Path::new("/home/me/server/keys/master"))
        );
        let set = chosen(file, Some("a key")).expect("it is fine");
        assert!(matches!(set, MasterKeyChoice::Environment(key) if key == "a key"));
        let set = chosen(file, None).expect("it is fine");
        assert!(matches!(set, MasterKeyChoice::File(_)));
        let set = chosen(command, None).expect("it is fine");
        assert!(
            matches!(set, MasterKeyChoice::Command(program, rest) if program == "pass" && rest == ["show", "key"])
        );
        let own = "master_key_file = \"/home/me/server/keys/master\"\n";
        let set = chosen(own, None).expect("no backup has it");
        assert!(matches!(set, MasterKeyChoice::Own(_)));
        let copied = chosen("master_key_file = \"/home/me/server/keys/mine\"\n", None).err();
        let copied = copied.expect("it is refused").to_string();
        assert!(copied.contains("which backups copy"), "{copied}");
        let both = chosen(&format!("{file}{command}"), None).err();
        let both = both.expect("it is refused").to_string();
        assert!(both.contains("remove one"), "{both}");
    }
}
