//! The day and the machine with which the session began. What changes later is told before a message.

use super::Scene;

pub(super) fn part(scene: &Scene<'_>) -> Option<String> {
    let first = scene.transcript.turns().first()?;
    let day = first.asked_at.date();
    let machine = first
        .settings
        .as_ref()
        .and_then(|settings| settings.machine.as_ref());
    let machine = machine.map(|machine| {
        format!("\nThe machine on which your tools worked when it began: {machine}.\n")
    });
    let machine = machine.unwrap_or_default();
    Some(format!(
        "\nThis conversation began on {day} (UTC).\n{machine}"
    ))
}
