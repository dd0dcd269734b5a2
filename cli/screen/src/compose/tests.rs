use super::*;
use proptest::prelude::*;

mod keys;
mod lists;
mod look;
mod random;

fn composer() -> Composer {
    Composer::new(Settings::default())
}

fn vi() -> Composer {
    Composer::new(Settings {
        keymap: Keymap::Vi,
        history: History::in_memory(),
    })
}

/// Keys as a person writes them: `C-a`, `A-Enter`, `Up`; anything else is typed letter by letter.
fn key(name: &str) -> KeyEvent {
    let (modifiers, name) = match name.split_at_checked(2) {
        Some(("C-", rest)) => (KeyModifiers::CONTROL, rest),
        Some(("A-", rest)) => (KeyModifiers::ALT, rest),
        Some(("S-", rest)) => (KeyModifiers::SHIFT, rest),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "BackTab" => KeyCode::BackTab,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "Backspace" => KeyCode::Backspace,
        "Delete" => KeyCode::Delete,
        "PageUp" => KeyCode::PageUp,
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}

/// Presses keys and gives the last action.
fn press(composer: &mut Composer, names: &[&str]) -> Action {
    let actions = names.iter().map(|name| composer.key(key(name)));
    actions.last().unwrap()
}

fn type_in(composer: &mut Composer, text: &str) -> Action {
    let mut last = Action::Ignored;
    for letter in text.chars() {
        last = composer.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE));
    }
    last
}

/// The text with `|` at the cursor.
fn state(composer: &Composer) -> String {
    let buffer = &composer.draft.buffer;
    let mut text = buffer.text().to_owned();
    text.insert(buffer.cursor(), '|');
    text
}

fn rows(composer: &Composer, columns: usize, most: usize) -> Vec<String> {
    let drawn = composer.draw(columns, most);
    drawn.lines.iter().map(Line::to_string).collect()
}
