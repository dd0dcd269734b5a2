use super::*;
use unicode_width::UnicodeWidthStr as _;

#[derive(Debug, Clone)]
enum Step {
    Key(KeyEvent),
    Paste(String),
    Files(Vec<String>),
}

const NAMES: &[&str] = &[
    "Enter",
    "Esc",
    "Tab",
    "BackTab",
    "Up",
    "Down",
    "Left",
    "Right",
    "Home",
    "End",
    "Backspace",
    "Delete",
    "A-Enter",
    "A-b",
    "A-d",
    "A-Backspace",
    "C-a",
    "C-e",
    "C-k",
    "C-u",
    "C-w",
    "C-y",
    "C-t",
    "C-d",
    "C-7",
    "C-r",
    "C-s",
    "C-g",
    "C-Left",
    "C-Right",
    "C-n",
    "C-p",
    "C-x",
    "C-j",
];

fn step() -> impl Strategy<Value = Step> {
    let plain = |code: KeyCode| Step::Key(KeyEvent::new(code, KeyModifiers::NONE));
    prop_oneof![
        3 => prop::sample::select(NAMES).prop_map(|name| Step::Key(key(name))),
        4 => "[a-zA-Z0$^;~@/! \"世\u{301}👩\u{200d}🇩\u{202e}ᄀ\u{1b}]"
            .prop_map(move |letter| plain(KeyCode::Char(letter.chars().next().unwrap()))),
        1 => "[a-c \n\t\r世\u{301}\u{200d}👩\u{0}\u{fdd1}]{0,40}".prop_map(Step::Paste),
        1 => (0usize..60).prop_map(|count| Step::Paste("x\n".repeat(count))),
        1 => prop::collection::vec("[a-c \"/\u{202e}\u{1b}世]{0,9}", 0..4).prop_map(Step::Files),
    ]
}

fn is_drawable(letter: char) -> bool {
    !letter.is_control() && letter != '\u{202e}'
}

fn is_sendable(letter: char) -> bool {
    matches!(letter, '\n' | '\t') || !letter.is_control() && !pastes::is_mark(letter)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_keys_and_pastes_lead_the_cursor_or_a_row_out_of_the_box(
        steps in prop::collection::vec(step(), 1..60),
        widths in prop::collection::vec(4usize..30, 1..4),
        most in 1usize..9,
        is_vi in any::<bool>(),
    ) {
        let mut composer = if is_vi { vi() } else { composer() };
        composer.set_commands(vec![CommandHelp {
            name: "ab".to_owned(),
            argument: "[世]".to_owned(),
            description: "Does \u{202e} it.".to_owned(),
        }]);
        composer.set_placeholder("世界 of words".to_owned());
        let mut prefix = String::new();
        for (index, step) in steps.into_iter().enumerate() {
            let action = match step {
                Step::Key(key) => composer.key(key),
                Step::Paste(text) => composer.paste(&text),
                Step::Files(paths) => {
                    composer.offer_files(&prefix, paths);
                    Action::Changed
                }
            };
            if let Action::WantFiles(wanted) = action {
                prefix = wanted;
            }
            let columns = widths[index % widths.len()];
            let drawn = composer.draw(columns, most);
            prop_assert!(!drawn.lines.is_empty() && drawn.lines.len() <= most);
            prop_assert!(drawn.row < drawn.lines.len() && drawn.column < columns);
            for line in &drawn.lines {
                let text = line.to_string();
                prop_assert!(text.width() <= columns, "{:?} in {}", text, columns);
                prop_assert!(text.chars().all(is_drawable));
            }
            let text = composer.text();
            prop_assert!(text.len() <= MAX_DRAFT);
            prop_assert!(text.chars().all(is_sendable));
        }
    }
}
