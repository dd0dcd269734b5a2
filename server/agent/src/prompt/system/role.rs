//! The role of an agent that works for a call of another conversation.

use super::Scene;

pub(super) fn part(scene: &Scene<'_>) -> Option<String> {
    let brief = scene.transcript.brief()?;
    let (name, role) = (&brief.name, &brief.role);
    let instructions = match role.instructions.trim() {
        "" => String::new(),
        instructions => format!("\n{instructions}\n"),
    };
    Some(format!(
        "\nYou are the agent {name}. Another agent gave you one task, and your last answer is all that it sees of your \
         work: say there what you found and did. No person reads along; where something is not clear, take the likely \
         meaning and say which.\n{instructions}"
    ))
}
