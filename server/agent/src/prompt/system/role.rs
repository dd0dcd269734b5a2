//! The role of an agent that works for a call of another conversation.

use super::Scene;

pub(super) fn part(scene: &Scene<'_>) -> Option<String> {
    let brief = scene.transcript.brief()?;
    let (name, role) = (&brief.name, &brief.role);
    let instructions = match role.instructions.trim() {
        "" => String::new(),
        instructions => format!("\n{instructions}\n"),
    };
    let worktree = match &brief.worktree {
        Some(worktree) => format!(
            "\nYou work in a git worktree of your own, on the branch {}. What you change or commit there stays, and your \
             caller is told of it.\n",
            worktree.branch
        ),
        None => String::new(),
    };
    Some(format!(
        "\nYou are the agent {name}. Another agent gave you one task, and your last answer is all that it sees of your \
         work: say there what you found and did. No person reads along; where something is not clear, take the likely \
         meaning and say which.\n{instructions}{worktree}"
    ))
}
