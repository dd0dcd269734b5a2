//! The language of the answers.

use super::Scene;

pub(super) fn part(scene: &Scene<'_>) -> Option<String> {
    let language = scene.turn?.settings.as_ref()?.language.as_ref()?;
    Some(format!(
        "\nWrite your answers in {language}, whatever language the messages and files are in. Code, commands and \
         quotations stay as they are.\n"
    ))
}
