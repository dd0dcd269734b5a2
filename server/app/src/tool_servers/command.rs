//! The command that starts a tool server on a runner.
//!
//! The variables of its environment may be secrets. So they are in no argument, no list of processes and no stored
//! request: the shell reads one line with them from the standard input, and then becomes the server.

use std::{collections::BTreeMap, num::NonZeroU64, time::Duration};

use shared_sandbox::{Command, Exec, Request, Retention};
use shared_types::limits::COMMAND_RUNS_AT_MOST;

use super::variable::Variable;

/// A server is stopped after running this long; the next call starts it again.
pub(super) const RUNS_AT_MOST: Duration = COMMAND_RUNS_AT_MOST;

/// The runner stops a server that has written nothing for so long, whatever has become of the one who started it.
const SILENT_AT_MOST: NonZeroU64 = NonZeroU64::new(40 * 60 * 1000).unwrap();

/// A server that can be started.
pub(super) struct ServerStart {
    script: String,
    first_line: Option<String>,
}

/// The start of a server with this command.
///
/// # Errors
/// A variable has a line end or another control character.
pub(super) fn of(
    command: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
) -> Result<ServerStart, String> {
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    let words: Vec<_> = words.map(word).collect();
    let run = format!("exec {}", words.join(" "));
    if env.is_empty() {
        return Ok(ServerStart {
            script: run,
            first_line: None,
        });
    }
    let mut line = "export".to_owned();
    for (name, value) in env {
        if value.chars().any(char::is_control) {
            return Err(format!(
                "the variable {name} has a control character, which cannot be passed on"
            ));
        }
        line.push_str(&format!(" {name}={}", word(value)));
    }
    Ok(ServerStart {
        // The command comes first, where people see it in lists.
        script: format!(
            "tool_server() {{ {run}; }}; IFS= read -r gantry_env && eval \"$gantry_env\" && unset gantry_env && tool_server"
        ),
        first_line: Some(line + "\n"),
    })
}

impl ServerStart {
    /// The request to run it in this directory.
    pub(super) fn request(&self, directory: &str) -> Request {
        Request::Exec(Exec {
            directory: directory.to_owned(),
            input: true,
            retention: Retention::None,
            idle_for_ms: Some(SILENT_AT_MOST),
            ..Exec::new(Command::Shell(self.script.clone()))
        })
    }

    /// The line to write before all messages.
    pub(super) fn first_line(self) -> Option<String> {
        self.first_line
    }
}

/// A word for the shell: as it stands, but for `${NAME}` and `${NAME:-DEFAULT}`, which are variables.
fn word(text: &str) -> String {
    let (mut word, mut rest) = (String::new(), text);
    while let Some(variable) = Variable::first(rest) {
        let Variable { name, default, .. } = variable;
        let first = name.bytes().next();
        let is_name = first.is_some_and(|byte| byte == b'_' || byte.is_ascii_alphabetic())
            && name
                .bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        if is_name {
            word.push_str(&quoted(variable.before));
            match default {
                // Within double quotes a single quote is a letter. So the default is a word of its own.
                Some(default) => word.push_str(&format!(
                    "\"${{{name}:-$(printf %s {})}}\"",
                    quoted(default)
                )),
                None => word.push_str(&format!("\"${{{name}}}\"")),
            }
        } else {
            word.push_str(&quoted(&rest[..rest.len() - variable.after.len()]));
        }
        rest = variable.after;
    }
    word.push_str(&quoted(rest));
    match word.is_empty() {
        true => "''".to_owned(),
        false => word,
    }
}

pub(super) fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./=:@,+%".contains(letter);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use super::*;

    /// The words as a shell reads them.
    fn shown(words: &[&str], env: &[(&str, &str)]) -> String {
        let args: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let start = of(
            "printf",
            &[vec!["<%s>".to_owned()], args].concat(),
            &BTreeMap::new(),
        );
        let shell = Process::new("sh")
            .args(["-c", &start.expect("it starts").script])
            .env("SOME", "a b'c")
            .envs(env.iter().copied())
            .output();
        String::from_utf8(shell.expect("there is a shell").stdout).expect("text")
    }

    #[test]
    fn words_reach_the_server_as_they_are_written_and_variables_as_they_are_there() {
        let words = [
            "a b",
            "$(id)",
            "`id`",
            "it's",
            "",
            "-y",
            "x;y",
            "${SOME}",
            "${NONE:-d 'e'}/f",
            "${1}",
            "${a b}",
            "${",
        ];
        let expected = "<a b><$(id)><`id`><it's><><-y><x;y><a b'c><d 'e'/f><${1}><${a b}><${>";
        assert_eq!(shown(&words, &[]), expected);
    }

    #[test]
    fn secrets_are_in_no_argument_and_the_rest_of_the_input_is_the_servers() {
        use std::io::Write as _;
        let env = BTreeMap::from([("TOKEN".to_owned(), "s3cret 'x' $HOME".to_owned())]);
        let start = of(
            "sh",
            &["-c".to_owned(), "echo \"$TOKEN\"; cat".to_owned()],
            &env,
        )
        .expect("it starts");
        assert!(!start.script.contains("s3cret"));
        let mut shell = Process::new("sh")
            .args(["-c", &start.script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let line = start.first_line().expect("it has variables");
        let mut input = shell.stdin.take().expect("it is piped");
        writeln!(input, "{line}{{\"jsonrpc\":1}}").expect("it is written");
        drop(input);
        let output = shell.wait_with_output().expect("it ends").stdout;
        assert_eq!(
            String::from_utf8_lossy(&output),
            "s3cret 'x' $HOME\n{\"jsonrpc\":1}\n"
        );
        let bad = BTreeMap::from([("A".to_owned(), "x\ny".to_owned())]);
        assert!(of("sh", &[], &bad).is_err());
    }
}
