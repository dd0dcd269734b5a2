//! The person's editor for a draft, and the person's keys.

use std::{
    fs::{self, Permissions},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
};

use anyhow::{Context as _, bail};
use cli_screen::compose::{History, Keymap, Settings, keymap_of_inputrc};
use shared_types::limits::MAX_MESSAGE_BYTES;

use super::{TerminalFacts, Tui};

/// Largest file of settings of readline that is read, in bytes.
const MAX_INPUTRC_BYTES: u64 = 64 * 1024;

/// The file with the lines of earlier conversations, in the home folder.
const HISTORY: &str = "history.jsonl";

/// The editor of a person who names none.
const USUAL_EDITOR: &str = "vi";

/// The settings of the input box.
pub(super) fn settings(home: &Path, terminal: &TerminalFacts) -> Settings {
    Settings {
        keymap: keymap(terminal),
        history: History::at(home.join(HISTORY)),
    }
}

fn keymap(terminal: &TerminalFacts) -> Keymap {
    let text = terminal.inputrc.as_ref().and_then(|path| {
        let is_small = fs::metadata(path).is_ok_and(|file| file.len() <= MAX_INPUTRC_BYTES);
        is_small.then(|| fs::read_to_string(path).ok()).flatten()
    });
    text.map_or(Keymap::Emacs, |text| keymap_of_inputrc(&text))
}

impl Tui {
    /// Opens the draft in the person's editor.
    pub(super) fn edit(&mut self) {
        let draft = self.composer.text();
        let editor = self.stage.editor().unwrap_or(USUAL_EDITOR).to_owned();
        let edited = self.stage.beside(|| edited(&editor, &draft));
        match edited {
            Ok(text) => {
                self.composer.set_text(&text);
            }
            Err(error) => self.warn(format!("{error:#}")),
        }
    }
}

/// The text after the person has changed it in an editor.
fn edited(editor: &str, draft: &str) -> anyhow::Result<String> {
    // Other users of this machine read no draft.
    let folder = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .context("failed to make a file for the editor")?;
    let path = folder.path().join("message.md");
    let mut file = fs::File::create(&path).context("failed to make a file for the editor")?;
    file.write_all(draft.as_bytes())
        .context("failed to write the file for the editor")?;
    drop(file);
    // EDITOR may hold arguments, such as `code --wait`.
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or(USUAL_EDITOR);
    let ended = Command::new(program)
        .args(words)
        .arg(&path)
        .status()
        .with_context(|| format!("failed to start the editor {program}; set EDITOR to another"))?;
    if !ended.success() {
        bail!("the editor {program} failed, so the message is as before");
    }
    let text = fs::read_to_string(&path).context("failed to read the file of the editor")?;
    if text.len() > MAX_MESSAGE_BYTES {
        let kept = folder.keep().join("message.md");
        bail!(
            "the text is longer than {} KiB, so the message is as before; the text is in {}",
            MAX_MESSAGE_BYTES / 1024,
            kept.display()
        );
    }
    Ok(text.trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_draft_is_its_persons_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let editor = folder.path().join("editor");
        let script = "#!/bin/sh\nstat -c %a \"$(dirname \"$1\")\" > \"$1\"\n";
        fs::write(&editor, script).expect("it is written");
        fs::set_permissions(&editor, Permissions::from_mode(0o755)).expect("it is ours");
        let text = edited(editor.to_str().expect("text"), "draft").expect("it is edited");
        assert_eq!(text.trim(), "700");
    }
}
