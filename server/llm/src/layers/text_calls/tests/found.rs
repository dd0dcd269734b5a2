//! Answers as models write them, and the calls in them.

use proptest::prelude::*;

use super::tools;
use crate::layers::text_calls::search::{FoundCalls, calls};

/// The calls in a text, as `NAME ARGUMENTS`, and the text without them.
fn found(text: &str) -> (Vec<String>, String) {
    let FoundCalls { text, calls, .. } = calls(text, &tools());
    let calls = calls.into_iter();
    let calls = calls.map(|call| format!("{} {}", call.name, call.arguments));
    (calls.collect(), text)
}

const LS: &str = r#"Shell {"command":"ls"}"#;
const CALL: &str = r#"{"name": "Shell", "arguments": {"command": "ls"}}"#;
const INVOKE: &str =
    "<invoke name=\"Shell\">\n<parameter name=\"command\">ls</parameter>\n</invoke>";

#[test]
fn each_form_of_a_call_is_found_and_the_words_around_it_stay() {
    for (text, left) in [
        // JSON that is the answer, or its end.
        (CALL.to_owned(), ""),
        (format!("\n  {CALL}\n"), ""),
        (format!("I look.\n\n{CALL}\n"), "I look."),
        (format!("[{CALL}]"), ""),
        (format!("{{\"tool_calls\": [{CALL}]}}"), ""),
        (
            r#"{"name":"Shell","parameters":{"command":"ls"}}"#.to_owned(),
            "",
        ),
        (r#"{"name":"Shell","input":{"command":"ls"}}"#.to_owned(), ""),
        (r#"{"args":{"command":"ls"},"name":"Shell"}"#.to_owned(), ""),
        (
            r#"{"name":"Shell","arguments":"{\"command\":\"ls\"}"}"#.to_owned(),
            "",
        ),
        (
            r#"{"type":"tool_use","id":"toolu_1","name":"Shell","input":{"command":"ls"}}"#
                .to_owned(),
            "",
        ),
        (
            r#"{"id":"1","type":"function","function":{"name":"Shell","arguments":{"command":"ls"}}}"#
                .to_owned(),
            "",
        ),
        ("{\n  \"name\": \"Shell\",\n  \"arguments\": {\n    \"command\": \"ls\"\n  }\n}".to_owned(), ""),
        // Tags.
        (format!("<tool_call>\n{CALL}\n</tool_call>"), ""),
        (format!("I look.\n<tool_call>{CALL}</tool_call>\n"), "I look."),
        (format!("I look: <tool_call>{CALL}</tool_call> Then I tell."), "I look:\n\nThen I tell."),
        (format!("<tool_call>\n{CALL}"), ""),
        (format!("<tool_calls>[{CALL}]</tool_calls>"), ""),
        (INVOKE.to_owned(), ""),
        (format!("I look.\n\n<function_calls>\n{INVOKE}\n</function_calls>"), "I look."),
        (format!("<minimax:tool_call>\n{INVOKE}\n</minimax:tool_call>\n"), ""),
        (
            "<tool_call>\n<function=Shell>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>"
                .to_owned(),
            "",
        ),
        (format!("[TOOL_CALLS][{CALL}]"), ""),
        (format!("[TOOL_CALLS] [{CALL}]"), ""),
        ("[TOOL_CALLS]Shell[ARGS]{\"command\": \"ls\"}".to_owned(), ""),
        // Behind quotations that have ended.
        (format!("Run `ls`:\n\n{CALL}"), "Run `ls`:"),
        (
            format!("```sh\nls\n```\n<tool_call>{CALL}</tool_call>"),
            "```sh\nls\n```",
        ),
        (format!("> list it\n\n{CALL}"), "> list it"),
        (format!("- first\n- then\n\n{CALL}"), "- first\n- then"),
    ] {
        assert_eq!(found(&text), (vec![LS.to_owned()], left.to_owned()), "{text}");
    }
}

#[test]
fn several_calls_are_found_in_their_order() {
    let read = r#"{"name":"Read","arguments":{"command":"a"}}"#;
    let both = vec![LS.to_owned(), r#"Read {"command":"a"}"#.to_owned()];
    for text in [
        format!("[{CALL}, {read}]"),
        format!("{CALL}\n{read}"),
        format!("<tool_call>{CALL}</tool_call>\n<tool_call>{read}</tool_call>"),
        format!("<tool_call>{CALL}\n{read}</tool_call>"),
        format!(
            "<function_calls>{INVOKE}\n{}</function_calls>",
            "<invoke name='Read'><parameter name='command'>a</parameter></invoke>"
        ),
    ] {
        assert_eq!(found(&text), (both.clone(), String::new()), "{text}");
    }
}

#[test]
fn the_name_of_a_tool_may_be_an_alias_or_stand_in_other_letters() {
    for (written, meant) in [
        ("bash", "Shell"),
        ("Bash", "Shell"),
        ("SHELL", "Shell"),
        ("functions.Shell", "Shell"),
        ("Shell:0", "Shell"),
        ("read_file", "Read"),
        ("Task_Read", "task_read"),
    ] {
        let text = format!(r#"{{"name":"{written}","arguments":{{}}}}"#);
        assert_eq!(found(&text).0, [format!("{meant} {{}}")], "{written}");
    }
}

#[test]
fn the_arguments_of_elements_have_the_types_that_the_tool_declares() {
    let parameter =
        |name: &str, value: &str| format!("<parameter name=\"{name}\">{value}</parameter>");
    for (name, value, written) in [
        ("command", "7", r#"{"command":"7"}"#),
        ("command", "a < b && c", r#"{"command":"a < b && c"}"#),
        (
            "command",
            "\n```sh\nls\n```\n",
            r#"{"command":"```sh\nls\n```"}"#,
        ),
        ("command", "a\n", r#"{"command":"a\n"}"#),
        ("lines", "7", r#"{"lines":7}"#),
        ("lines", "\n7\n", r#"{"lines":7}"#),
        ("lines", "many", r#"{"lines":"many"}"#),
        ("all", "true", r#"{"all":true}"#),
        ("other", "true", r#"{"other":"true"}"#),
    ] {
        let text = format!("<invoke name=\"Shell\">{}</invoke>", parameter(name, value));
        assert_eq!(found(&text).0, [format!("Shell {written}")], "{text}");
    }
}

#[test]
fn bad_arguments_within_tags_are_those_of_a_call_which_its_check_refuses() {
    for (written, arguments) in [
        (r#"{"name":"Shell"}"#, "{}"),
        (r#"{"name":"Shell","arguments":"ls"}"#, "ls"),
        (r#"{"name":"Shell","arguments":["ls"]}"#, r#"["ls"]"#),
        (r#"{"name":"Shell","arguments":null}"#, "{}"),
    ] {
        let tagged = format!("<tool_call>{written}</tool_call>");
        assert_eq!(found(&tagged).0, [format!("Shell {arguments}")], "{tagged}");
        assert!(found(written).0.is_empty(), "{written}");
    }
}

/// Texts in which a call is only shown, or that are no call.
fn no_calls() -> Vec<String> {
    let mut texts = vec![
        // Quoted as a block.
        format!("```json\n{CALL}\n```"),
        format!("```\n<tool_call>{CALL}</tool_call>\n```"),
        format!("~~~\n{INVOKE}\n~~~"),
        format!("````md\n```\n{CALL}\n```\n<tool_call>{CALL}</tool_call>\n````"),
        format!("Like this:\n```json\n{CALL}"),
        format!("1. Like this:\n\n   ```json\n   {CALL}\n   ```"),
        format!("- ```\n<tool_call>{CALL}</tool_call>\n"),
        format!("> {CALL}"),
        format!("> You said:\n<tool_call>{CALL}</tool_call>"),
        format!("> a\n> <tool_call>{CALL}</tool_call>"),
        format!("> a\n```json\n\n{CALL}\n```"),
        format!("Like this:\n\n    {CALL}\n"),
        format!("Like this:\n\n\t<tool_call>{CALL}</tool_call>\n\n\t{CALL}"),
        format!("<pre>\n{CALL}\n</pre>"),
        format!("<pre class=\"x\">\n<tool_call>{CALL}</tool_call>"),
        // Quoted within a line.
        format!("Write `<tool_call>{CALL}</tool_call>` to call it."),
        format!("Write ``<tool_call>{CALL}</tool_call>`` to call it."),
        format!("Write `a\n<tool_call>{CALL}</tool_call>\nb` to call it."),
        format!("A tick ` is never closed <tool_call>{CALL}</tool_call>"),
        format!("Write <code>{INVOKE}</code>."),
        format!("Write \"<tool_call>{CALL}</tool_call>\"."),
        format!("It says “[TOOL_CALLS][{CALL}]”."),
        format!("Example: <pre>\n{CALL}"),
        format!("Example: <pre>\n{CALL}\n</pre>\n\nand <pre>\n<tool_call>{CALL}</tool_call></pre>"),
        format!("<PRE>\n<tool_call>{CALL}</tool_call>\n</PRE>"),
        format!("<blockquote>\n<tool_call>{CALL}</tool_call>\n</blockquote>"),
        format!("<tool_response>\n{INVOKE}\n</tool_response>"),
        format!("<my-data x=\"1\"><tool_call>{CALL}</tool_call></my-data>"),
        format!("<!-- <tool_call>{CALL}</tool_call> -->"),
        format!("<!--\n\n{CALL}"),
        format!("\"<function_calls>{INVOKE}</function_calls>\""),
        format!("```\n    ```\n<tool_call>{CALL}</tool_call>\n```"),
        format!("a\n\n    ```\n\n```\n<tool_call>{CALL}</tool_call>\n```"),
        format!("1. a\n\n   ```\n   b\n```\n<tool_call>{CALL}</tool_call>\n```"),
        format!("A tick \\` or `<tool_call>{CALL}</tool_call>`"),
        format!("`a\\` or `<tool_call>{CALL}</tool_call>`"),
        format!("- a ` b\n- `<tool_call>{CALL}</tool_call>`"),
        // JSON in the middle, or in a line of text.
        format!("{CALL}\n\nThat is how you call it."),
        format!("An example is {CALL}"),
        format!("{CALL} and more"),
        format!("{CALL}\n[1]"),
        // Data.
        "{}".to_owned(),
        "[]".to_owned(),
        "[[]]".to_owned(),
        "null".to_owned(),
        r#"{"name":"Shell"}"#.to_owned(),
        r#"{"name":"Shell","arguments":{},"price":7}"#.to_owned(),
        r#"{"name":"Shell","arguments":{},"args":{}}"#.to_owned(),
        r#"{"type":"person","name":"Shell","arguments":{}}"#.to_owned(),
        r#"{"name":"Shell","function":{"name":"Shell","arguments":{}}}"#.to_owned(),
        r#"{"function":{"name":"Shell","arguments":{},"price":7}}"#.to_owned(),
        r#"{"name":["Shell"],"arguments":{}}"#.to_owned(),
        r#"{"command":"ls"}"#.to_owned(),
        r#"{"tool_calls":[]}"#.to_owned(),
        format!(r#"{{"tool_calls":[{CALL}],"role":"assistant"}}"#),
        format!("[{CALL}, {{\"name\":\"x\"}}]"),
        r#"{"example":"<tool_call>{\"name\":\"Shell\",\"arguments\":{}}</tool_call>"}"#.to_owned(),
        format!("<data>{CALL}</data>"),
        // A tool that was not offered.
        r#"{"name":"Sudo","arguments":{"command":"ls"}}"#.to_owned(),
        r#"<tool_call>{"name":"Sudo","arguments":{}}</tool_call>"#.to_owned(),
        INVOKE.replace("Shell", "Sudo"),
        r#"{"name":"","arguments":{}}"#.to_owned(),
        // Half a call.
        r#"{"name":"Shell","arguments":{"command":"ls"}"#.to_owned(),
        r#"<tool_call>{"name":"Shell","arguments":{"comm"#.to_owned(),
        "<tool_call>".to_owned(),
        format!("<tool_call>{CALL}</tool_cal"),
        format!("<tool_call>{CALL} and so on"),
        "<invoke name=\"Shell\"><parameter name=\"command\">ls".to_owned(),
        "<invoke name=\"Shell\"><parameter name=\"command\">ls</parameter>".to_owned(),
        "<invoke name=\"Shell".to_owned(),
        "<invoke name=Shell></invoke>".to_owned(),
        "[TOOL_CALLS]".to_owned(),
        "[TOOL_CALLS]Shell[ARGS]".to_owned(),
        "[TOOL_CALLS]Shell[ARGS]{\"command\":".to_owned(),
        // One argument twice.
        format!(
            "<invoke name=\"Shell\">{}</invoke>",
            "<parameter name=\"command\">ls</parameter>".repeat(2)
        ),
        // Text about calls.
        "A <tool_call> tag holds JSON such as {\"name\": …}; </tool_call> ends it.".to_owned(),
        "I could call Shell with the command ls.".to_owned(),
        "Shell(command=\"ls\")".to_owned(),
        "[a link](https://example.com) and [TOOL_CALLS] and <invoke>".to_owned(),
    ];
    texts.push(String::new());
    texts
}

#[test]
fn what_is_quoted_or_cut_and_what_is_data_is_no_call_and_stays_text() {
    for text in no_calls() {
        assert_eq!(found(&text), (Vec::new(), text.trim().to_owned()), "{text}");
    }
}

#[test]
fn a_search_ends_after_many_false_starts_and_its_time_grows_with_the_text_alone() {
    let false_starts = "<tool_call>{\"a\": \"".repeat(50_000);
    let unclosed = "<invoke name=\"Shell\"><parameter name=\"command\">".repeat(50_000);
    let ticks: String = (1..2_000).map(|length| "`".repeat(length) + " ").collect();
    let nested = "[".repeat(500_000);
    for text in [false_starts, unclosed, ticks, nested, "{\"".repeat(100_000)] {
        let text = format!("{text}\n\n<tool_call>");
        assert!(found(&text).0.is_empty());
    }
}

/// Pieces of answers, from which the tests below make texts.
fn pieces() -> impl Strategy<Value = Vec<&'static str>> {
    let piece = prop_oneof![
        Just(CALL),
        Just(INVOKE),
        Just("<tool_call>"),
        Just("</tool_call>"),
        Just("<function_calls>"),
        Just("[TOOL_CALLS]"),
        Just("Shell[ARGS]"),
        Just("```"),
        Just("~~~\n"),
        Just("`"),
        Just("> "),
        Just("- "),
        Just("    "),
        Just("<pre>"),
        Just("</PRE>"),
        Just("<!--"),
        Just("\\`"),
        Just("    ```\n"),
        Just("</code>"),
        Just("<code>"),
        Just("\n"),
        Just("\n\n"),
        Just("{\"name\":"),
        Just("\"Shell\","),
        Just("\"arguments\":{}}"),
        Just("ä"),
        Just("words"),
        Just("\""),
        Just("["),
        Just("]"),
    ];
    proptest::collection::vec(piece, 0..24)
}

proptest! {
    #[test]
    fn a_call_that_is_found_stands_in_the_text_and_what_is_left_has_no_other(parts in pieces()) {
        let text = parts.concat();
        let (calls, left) = found(&text);
        let written = text.matches("Shell").count();
        prop_assert!(calls.len() <= written, "{} calls", calls.len());
        let are_of_shell = calls.iter().all(|call| call.starts_with("Shell "));
        prop_assert!(are_of_shell, "{calls:?}");
        // A call's arguments may hold the word, too.
        let called: usize = calls.iter().map(|call| call.matches("Shell").count()).sum();
        prop_assert_eq!(left.matches("Shell").count() + called, written);
        prop_assert!(!calls.is_empty() || left == text.trim());
    }

    #[test]
    fn nothing_within_a_fence_is_a_call(parts in pieces(), words in "[a-z ]{0,8}") {
        let inside = parts.concat();
        let text = format!("{words}\n\n~~~~~~ text\n{inside}\n~~~~~~\n");
        prop_assert_eq!(found(&text).0, Vec::<String>::new());
    }

    #[test]
    fn any_text_is_searched(text in "\\PC{0,80}", at in 0usize..80) {
        found(&text);
        let mut call = format!("<tool_call>{CALL}</tool_call>");
        let at = call.floor_char_boundary(at.min(call.len()));
        call.insert_str(at, &text);
        found(&call);
    }
}
