//! The first lines of a conversation: what answers, where it works, and what can be typed.

use ratatui_core::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::facts::SessionFacts;

/// The greeting of a new conversation, five lines at most.
pub(super) fn lines(facts: &SessionFacts, is_practice: bool) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let dim = Style::new().add_modifier(Modifier::DIM);
    let model = match is_practice {
        true => {
            "practice model (no AI): it follows fixed rules, so that you can try Gantry for free"
                .to_owned()
        }
        false => facts.model.clone(),
    };
    let mut lines = vec![Line::from(vec![
        Span::styled("gantry", bold),
        Span::styled(format!(" · {model}"), dim),
    ])];
    lines.push(Line::styled(place(facts), dim));
    if let Some(mode) = facts.mode {
        lines.push(Line::styled(
            format!("mode {mode}: {} (Shift-Tab changes it)", mode.means()),
            dim,
        ));
    }
    lines.push(Line::from(
        "Say what you want done. For example: what is in this folder?",
    ));
    lines.push(Line::styled(
        "/help lists commands · !ls runs a command there · @ names a file · Ctrl-D leaves",
        dim,
    ));
    lines
}

/// The place where the session works, and its isolation.
fn place(facts: &SessionFacts) -> String {
    match (facts.is_online, facts.isolation.is_empty()) {
        (true, false) => format!("works on {} · isolation: {}", facts.place, facts.isolation),
        (_, true) => format!("works on {}: /runner chooses one", facts.place),
        (false, false) => format!(
            "works on {}: start it, or choose another with /runner",
            facts.place
        ),
    }
}
