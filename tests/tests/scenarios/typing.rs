//! A person at the terminal: typing while much happens, on a terminal that changes its size, on a server that is killed.

use std::sync::Arc;

use tests::{
    gantry::{Gantry, Screen, eventually},
    model_server::{ModelServer, Reply, Step},
};
use tokio::sync::Notify;

/// A conversation with its box on the screen.
async fn conversation(gantry: &Gantry) -> Screen {
    let screen = gantry.screen(&["chat"]);
    screen.until_shown("/help").await;
    screen
}

/// The rows of the screen that begin the box.
fn boxes(screen: &Screen) -> usize {
    let rows = screen.rows();
    rows.iter().filter(|row| row.starts_with("› half")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_stand_in_the_box_while_an_answer_streams_and_the_window_changes_its_size() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    let typed = Arc::new(Notify::new());
    let word = |number: usize| Step::text(&format!("word{number}e "));
    let mut steps: Vec<_> = (0..100).map(word).collect();
    steps.push(Step::Hold(typed.clone()));
    steps.extend((100..200).map(word));
    steps.push(Step::end());
    model.script(vec![Reply::Raw(steps), Reply::text("I have read it")]);
    let screen = conversation(&gantry).await;
    screen.type_in("go\r");
    screen.until_shown("word99e").await;
    for (number, letter) in "half 漢字 a line".chars().enumerate() {
        screen.type_in(&letter.to_string());
        screen.resize(24, 60 + u16::try_from(number).expect("few letters"));
    }
    screen.until_shown("› half 漢字 a line").await;
    typed.notify_one();
    screen.until_shown("word199e").await;
    let is_over = async || (!screen.shown().contains("Esc stops")).then_some(());
    eventually("the turn is over", is_over).await;
    let shown = screen.unfolded();
    for number in 0..200 {
        let word = format!("word{number}e");
        assert!(shown.contains(&word), "{word} is lost: {shown}");
    }
    let rows = screen.rows();
    let last = rows.iter().rposition(|row| row.starts_with("› half"));
    assert!(last.is_some(), "the box keeps its text: {rows:#?}");
    screen.type_in("\r");
    screen.until_shown("I have read it").await;
    assert!(
        model.requests()[1].to_string().contains("half 漢字 a line"),
        "it was sent as it was typed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_one_line_and_what_was_typed_meanwhile_is_sent_once() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    model.script(vec![Reply::text("first"), Reply::text("and second")]);
    let screen = conversation(&gantry).await;
    screen.type_in("one\r");
    screen.until_shown("first").await;
    screen.type_in("half");
    screen.until_shown("› half").await;
    gantry.kill_server().await;
    screen.until_shown("connection lost").await;
    screen.type_in(" a line\r");
    screen.until_shown("↳ half a line").await;
    gantry.start_server().await;
    screen.until_shown("and second").await;
    assert_eq!(screen.shown().matches("connection lost").count(), 1);
    assert_eq!(model.requests().len(), 2, "it was sent once");
    assert_eq!(boxes(&screen), 1, "{:#?}", screen.rows());
}

#[tokio::test(flavor = "multi_thread")]
async fn esc_twice_goes_back_to_before_a_message_with_its_files() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let file = runner.workspace().join("a.txt");
    std::fs::write(&file, "one\n").expect("it is written");
    model.script(vec![
        Reply::call("Read", r#"{"path":"a.txt"}"#),
        Reply::call("Edit", r#"{"path":"a.txt","old":"one","new":"two"}"#),
        Reply::call("Edit", r#"{"path":"a.txt","old":"two","new":"drei"}"#),
        Reply::call("Write", r#"{"path":"b.txt","content":"new\n"}"#),
        Reply::text("edited"),
        Reply::text("so it stays"),
    ]);
    let screen = conversation(&gantry).await;
    screen.type_in("please edit\r");
    screen.until_shown("edited").await;
    let is_over = async || (!screen.shown().contains("Esc stops")).then_some(());
    eventually("the turn is over", is_over).await;
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "drei\n");
    screen.type_in("\x1b");
    screen.until_shown("Esc once more goes back").await;
    screen.type_in("\x1b");
    screen.until_shown("files changed since").await;
    screen.type_in("\r");
    screen.until_shown("the conversation and the files").await;
    screen.type_in("\r");
    screen.until_shown("2 files are as before").await;
    screen.until_shown("› please edit").await;
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "one\n");
    assert!(!runner.workspace().join("b.txt").exists());
    screen.type_in(" again\r");
    screen.until_shown("so it stays").await;
    let requests = model.requests();
    let last = requests.last().expect("a request").to_string();
    assert!(
        last.contains("please edit again") && !last.contains("drei"),
        "{last}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_that_is_killed_in_a_question_leaves_the_terminal_as_it_was() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    model.script(vec![Reply::call(
        "Write",
        r#"{"path":"b.txt","content":"new\n"}"#,
    )]);
    let screen = gantry.screen(&["chat", "--mode", "ask"]);
    screen.until_shown("/help").await;
    assert!(!screen.echoes());
    screen.type_in("please write\r");
    screen.until_shown("May Write change b.txt?").await;
    screen.signal("KILL");
    let is_restored = async || {
        let is_off = screen.written().contains("\x1b[?2004l");
        (screen.echoes() && is_off).then_some(())
    };
    eventually("the guardian restores the terminal", is_restored).await;
}
