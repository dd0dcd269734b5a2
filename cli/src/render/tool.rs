//! Tool calls in few words.

use shared_types::event::ToolCall;

use super::clean::{clean, clean_line};

/// Longest main argument that is shown, in characters.
const MAX_ARGUMENT: usize = 120;

/// Longest name that is shown, in characters.
const MAX_NAME: usize = 40;

/// The words for a task that still runs.
const STILL_RUNS: &str = " still runs, for ";

/// The words for a call that has become a task.
const GOES_ON: &str = " goes on in the background as task ";

/// Says how to read on.
const READ_ON: &str = "read on with task_read {";

/// The tool's name, harmless.
pub(crate) fn name(call: &ToolCall) -> String {
    clean_line(&call.name, MAX_NAME)
}

/// True if the call shows the rest of an earlier call's output.
pub(crate) fn reads_on(call: &ToolCall) -> bool {
    call.name == "task_read"
}

/// The task whose output a call shows, where it is such a call.
pub(crate) fn task_of(call: &ToolCall) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Of {
        task: u32,
    }
    let is_of_task = ["task_read", "task_kill"].contains(&&*call.name);
    let of = is_of_task.then(|| serde_json::from_str::<Of>(&call.arguments));
    of?.ok().map(|of| of.task)
}

/// Up to where stdout and stderr of a task were read, where the text for the model says how to read
/// on from there.
pub(crate) fn read_to(text: &str) -> Option<[u64; 2]> {
    #[derive(serde::Deserialize)]
    struct From {
        #[serde(default)]
        stdout_from: u64,
        #[serde(default)]
        stderr_from: u64,
    }
    let (_, arguments) = text.rsplit_once(READ_ON)?;
    let (arguments, _) = arguments.split_once('}')?;
    let from: From = serde_json::from_str(&format!("{{{arguments}}}")).ok()?;
    Some([from.stdout_from, from.stderr_from])
}

/// The argument that tells one call of a tool from another. If the arguments do not have the
/// expected form, all of them unchanged.
pub(crate) fn main_argument(call: &ToolCall) -> String {
    clean_line(&argument(call), MAX_ARGUMENT)
}

/// The same, whole and in its lines.
pub(crate) fn whole_argument(call: &ToolCall) -> String {
    clean(argument(call).trim())
}

fn argument(call: &ToolCall) -> String {
    let parsed = serde_json::from_str(&call.arguments);
    let Ok(serde_json::Value::Object(arguments)) = parsed else {
        return call.arguments.clone();
    };
    let text = |name: &str| arguments.get(name).and_then(serde_json::Value::as_str);
    let main = ["command", "pattern", "path"].into_iter().find_map(text);
    let task = arguments.get("task").and_then(serde_json::Value::as_u64);
    let task = task.map(|number| format!("task {number}"));
    match (text("pattern"), text("path")) {
        (Some(pattern), Some(path)) => format!("{pattern} in {path}"),
        _ => main
            .or(task.as_deref())
            .or_else(|| arguments.values().find_map(serde_json::Value::as_str))
            .unwrap_or_default()
            .to_owned(),
    }
}

/// Splits the end of a command from the text for the model, whose last line tells it, such as
/// `[exit code 0, after 3 s]` or that the command still runs. The duration is left out, because it
/// is shown exactly; so is the advice to the model on reading more.
pub(crate) fn ending(text: &str) -> (Option<String>, &str) {
    let text = text.trim_end();
    let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let Some(words) = last
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    else {
        return (None, text);
    };
    let known = [
        "exit code ",
        "ended by signal ",
        "could not be started",
        "it is not known what it had done",
        STILL_RUNS,
        GOES_ON,
    ];
    if !known.iter().any(|known| words.contains(known)) {
        return (None, text);
    }
    let words = words.split("; read on with ").next().unwrap_or(words);
    let words = words.replace("exit code ", "exit ");
    let timeless = match words.split_once(", after ") {
        Some((start, rest)) => {
            let after = rest.split_once(" s").map_or("", |(_, after)| after);
            format!("{start}{after}")
        }
        None => words,
    };
    (Some(clean_line(&timeless, MAX_ARGUMENT)), before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(arguments: &str) -> String {
        main_argument(&ToolCall {
            vendor_id: String::new(),
            name: "Shell".into(),
            arguments: arguments.into(),
            opaque: Default::default(),
        })
    }

    #[test]
    fn the_main_argument_is_found_or_everything_is_shown() {
        assert_eq!(
            argument(r#"{"timeout_ms":5,"command":"cargo test"}"#),
            "cargo test"
        );
        assert_eq!(argument(r#"{"path":"a/b"}"#), "a/b");
        assert_eq!(
            argument(r#"{"path":"src","pattern":"fn main"}"#),
            "fn main in src"
        );
        assert_eq!(argument(r#"{"n":1,"question":"why"}"#), "why");
        assert_eq!(argument(r#"{"command": "#), r#"{"command":"#);
        assert_eq!(argument(r#"{"task":2,"stdout_from":7}"#), "task 2");
        assert_eq!(argument("{}"), "");
    }

    #[test]
    fn how_far_a_task_was_read_is_found_in_what_the_model_is_told() {
        let text = "x\n[it still ran after 2 min and goes on in the background as task 1; do not run it \
                    again: read on with task_read {\"task\":1,\"stdout_from\":4,\"stderr_from\":9}; \
                    task_kill stops it]";
        assert_eq!(read_to(text), Some([4, 9]));
        assert_eq!(read_to("x\n[exit code 0]"), None);
    }

    #[test]
    fn the_ending_is_told_from_the_output() {
        fn ended(text: &str) -> (String, &str) {
            let (ending, rest) = ending(text);
            (ending.unwrap_or_default(), rest)
        }
        assert_eq!(ended("a\nb\n[exit code 3]\n"), ("exit 3".into(), "a\nb"));
        assert_eq!(
            ended("[exit code 0, after 3 s; processes that it started may still run]"),
            ("exit 0; processes that it started may still run".into(), "")
        );
        assert_eq!(
            ended("x\n[ended by signal 9]"),
            ("ended by signal 9".into(), "x")
        );
        let rebooted =
            "ended because the runner's host restarted; it is not known what it had done";
        assert_eq!(
            ended(&format!("x\n[{rebooted}, after 3 s]")),
            (rebooted.into(), "x")
        );
        assert_eq!(
            ended("x\n[task 1 still runs, for 4 min; read on with task_read {}]"),
            ("task 1 still runs, for 4 min".into(), "x")
        );
        assert_eq!(
            ended("1 line\n[lines 1 to 2 of 9]"),
            (String::new(), "1 line\n[lines 1 to 2 of 9]")
        );
    }
}
