use super::*;

const PARAMETERS: &[Parameter] = &[
    Parameter::required(
        "text",
        Kind::Text {
            empty: false,
            at_most: 8,
            instead: "write less",
        },
        "Words.",
    ),
    Parameter::optional("count", Kind::Number { from: 1, to: 9 }, "How many."),
    Parameter::optional("every", Kind::Flag, "Whether."),
];

fn complaint(written: &str) -> String {
    Arguments::check(written, PARAMETERS)
        .expect_err("it is wrong")
        .to_string()
}

#[test]
fn each_mistake_names_its_argument_and_the_known_ones() {
    for (written, told) in [
        ("[]", "the arguments are not a JSON object"),
        ("", "the argument \"text\" is missing"),
        (
            r#"{"text":null}"#,
            "the argument \"text\" must be a string, not null",
        ),
        (
            r#"{"text":["a"]}"#,
            "the argument \"text\" must be a string, not an array",
        ),
        (r#"{"text":""}"#, "the argument \"text\" is empty"),
        (
            r#"{"text":"123456789"}"#,
            "the argument \"text\" has 9 bytes; at most 8 fit: write less",
        ),
        (
            r#"{"text":"a","count":"two"}"#,
            "the argument \"count\" must be a whole number, not a string",
        ),
        (
            r#"{"text":"a","count":2.5}"#,
            "\"count\" must be a whole number",
        ),
        (
            r#"{"text":"a","count":-1}"#,
            "\"count\" must be a whole number",
        ),
        (
            r#"{"text":"a","count":10}"#,
            "the argument \"count\" is 10; it must be from 1 to 9",
        ),
        (
            r#"{"text":"a","every":"yes"}"#,
            "the argument \"every\" must be true or false, not a string",
        ),
        (r#"{"text":"a","all":1}"#, "there is no argument \"all\""),
        (r#"{"text":"a"#, "the arguments are not valid JSON"),
    ] {
        let complaint = complaint(written);
        assert!(complaint.contains(told), "{complaint}");
        assert!(
            complaint.ends_with("the arguments are text, count (optional), every (optional)"),
            "{complaint}"
        );
    }
}

#[test]
fn a_complaint_about_a_huge_name_is_short() {
    let name = "x".repeat(100_000);
    assert!(complaint(&format!(r#"{{"text":"a","{name}":1}}"#)).len() < 300);
}

#[test]
fn good_arguments_are_there_and_null_is_as_good_as_absent() {
    let written = r#"{"text":"a","count":3.0,"every":null}"#;
    let arguments = Arguments::check(written, PARAMETERS).expect("they are good");
    assert_eq!(arguments.text("text"), "a");
    assert_eq!(arguments.number("count"), Some(3));
    assert!(!arguments.flag("every"));
}

#[test]
fn the_schema_says_what_is_checked() {
    assert_eq!(
        schema(PARAMETERS),
        json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "Words." },
                "count": { "type": "integer", "minimum": 1, "maximum": 9, "description": "How many." },
                "every": { "type": "boolean", "description": "Whether." },
            },
            "required": ["text"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn what_can_only_mean_one_thing_is_taken_for_it() {
    let given = |written| Arguments::check(written, PARAMETERS).expect("it is taken");
    let all = given(r#"{"text":"a","count":" 5 ","every":"True","description":"Counts."}"#);
    assert_eq!((all.number("count"), all.flag("every")), (Some(5), true));
    assert!(complaint(r#"{"text":"a","cwd":"b"}"#).contains("there is no argument \"cwd\""));
    assert!(complaint(r#"{"text":"a","every":"maybe"}"#).contains("must be true or false"));
}

#[test]
fn a_command_may_be_a_list_of_words() {
    const COMMAND: &[Parameter] = &[Parameter::required(
        "command",
        Kind::Command {
            at_most: 100,
            instead: "write less",
        },
        "What to run.",
    )];
    for (written, command) in [
        (r#"["bash","-lc","ls | wc -l"]"#, "ls | wc -l"),
        (r#"["ls -la"]"#, "ls -la"),
        (r#"["echo","it's","a b",""]"#, r"echo 'it'\''s' 'a b' ''"),
        (r#""ls""#, "ls"),
    ] {
        let arguments = Arguments::check(&format!(r#"{{"command":{written}}}"#), COMMAND);
        assert_eq!(arguments.expect("it is one").text("command"), command);
    }
    for wrong in ["[]", "[1]", "{}"] {
        let arguments = Arguments::check(&format!(r#"{{"command":{wrong}}}"#), COMMAND);
        assert!(arguments.is_err(), "{wrong}");
    }
}
