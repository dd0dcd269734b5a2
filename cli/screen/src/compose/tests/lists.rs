use super::*;

fn with_commands() -> Composer {
    let mut composer = composer();
    let help = |name: &str, argument: &str, description: &str| CommandHelp {
        name: name.to_owned(),
        argument: argument.to_owned(),
        description: description.to_owned(),
    };
    composer.set_commands(vec![
        help("/resume", "", "Goes on with an earlier session."),
        help("model", "[NAME]", "Chooses the model."),
        help("runner", "NAME", "Chooses the runner."),
        help("run", "", "Runs it."),
    ]);
    composer
}

fn names(composer: &Composer) -> Vec<&str> {
    let items = composer.completer.list().map(|list| &list.items[..]);
    items
        .unwrap_or_default()
        .iter()
        .map(|item| item.name.as_str())
        .collect()
}

#[test]
fn commands_that_begin_with_the_text_come_before_those_that_are_like_it() {
    let mut composer = with_commands();
    type_in(&mut composer, "/");
    assert_eq!(names(&composer), ["/resume", "/model", "/runner", "/run"]);
    type_in(&mut composer, "ru");
    assert_eq!(names(&composer), ["/runner", "/run", "/resume"]);
    type_in(&mut composer, "n");
    assert_eq!(names(&composer), ["/run", "/runner"]);
    assert_eq!(
        rows(&composer, 60, 9),
        [
            "› /run",
            "› /run          Runs it.",
            "  /runner NAME  Chooses the runner.",
        ]
    );
    type_in(&mut composer, "zz");
    assert!(names(&composer).is_empty());
    composer.set_text("see /");
    type_in(&mut composer, "r");
    assert!(names(&composer).is_empty(), "only at the very beginning");
}

#[test]
fn enter_submits_a_complete_command_and_completes_another() {
    let mut composer = with_commands();
    type_in(&mut composer, "/res");
    assert_eq!(
        press(&mut composer, &["Enter"]),
        Action::Submit("/resume".to_owned())
    );
    type_in(&mut composer, "/runner");
    assert_eq!(
        press(&mut composer, &["Enter"]),
        Action::Submit("/runner".to_owned())
    );
    type_in(&mut composer, "/model");
    assert_eq!(
        press(&mut composer, &["Enter"]),
        Action::Submit("/model".to_owned())
    );
    type_in(&mut composer, "/ru");
    press(&mut composer, &["Down", "Down", "Down", "Up", "Tab"]);
    assert_eq!(state(&composer), "/resume|");
}

#[test]
fn escape_closes_the_list_until_another_word() {
    let mut composer = with_commands();
    type_in(&mut composer, "/ru");
    assert_eq!(press(&mut composer, &["Esc"]), Action::Changed);
    type_in(&mut composer, "n");
    assert!(names(&composer).is_empty());
    assert_eq!(press(&mut composer, &["Esc"]), Action::Ignored);
    press(&mut composer, &["C-u", "/"]);
    assert!(!names(&composer).is_empty());
}

#[test]
fn files_behind_an_at_sign_are_asked_for_and_late_answers_ignored() {
    let mut composer = composer();
    let wants = |prefix: &str| Action::WantFiles(prefix.to_owned());
    let paths = |paths: &[&str]| {
        paths
            .iter()
            .map(|&path| path.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(type_in(&mut composer, "mail@s"), Action::Changed);
    assert_eq!(type_in(&mut composer, " @"), wants(""));
    assert_eq!(type_in(&mut composer, "s"), wants("s"));
    composer.offer_files("", paths(&["late"]));
    assert!(names(&composer).is_empty());
    composer.offer_files("s", paths(&["src/", "a s", "bad\x1bname"]));
    assert_eq!(names(&composer), ["src/", "a s"]);
    assert_eq!(press(&mut composer, &["Enter"]), wants("src/"));
    composer.offer_files("src/", paths(&["src/my files/", "src/main.rs"]));
    assert_eq!(press(&mut composer, &["Tab"]), wants("src/my files/"));
    assert_eq!(state(&composer), "mail@s @\"src/my files/|");
    composer.offer_files("src/my files/", paths(&["src/my files/a.rs"]));
    assert_eq!(press(&mut composer, &["Tab"]), Action::Changed);
    assert_eq!(state(&composer), "mail@s @\"src/my files/a.rs\" |");
    composer.offer_files("src/my files/", paths(&["late"]));
    assert!(names(&composer).is_empty());
}

#[test]
fn enter_on_a_file_name_that_is_typed_out_submits() {
    let mut composer = composer();
    type_in(&mut composer, "@a.rs");
    composer.offer_files("a.rs", vec!["a.rs".to_owned()]);
    assert_eq!(
        press(&mut composer, &["Enter"]),
        Action::Submit("@a.rs".to_owned())
    );
}

#[test]
fn a_list_shows_eight_entries_around_the_choice() {
    let mut composer = composer();
    type_in(&mut composer, "@");
    composer.offer_files("", (0..20).map(|index| format!("file{index}")).collect());
    press(&mut composer, &["Down"; 9]);
    let rows = rows(&composer, 30, 20);
    assert_eq!(rows.len(), 9);
    assert_eq!((rows[1].as_str(), rows[8].as_str()), ("  file2", "› file9"));
}
