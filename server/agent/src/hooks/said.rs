//! The words of a hook: its exit code and its output, or the body of an answer.

use serde::Deserialize;
use serde_json::{Map, Value};
use shared_types::{
    clean::clean_line,
    event::{HookDecision, HookEvent},
};

/// Longest text for the model, in bytes.
const MAX_CONTEXT: usize = 10 * 1024;

/// Longest reason, or words to people, in bytes.
const MAX_REASON: usize = 2 * 1024;

/// Most bytes of arguments or of a result that a hook puts in place of others.
const MAX_REPLACED: usize = 256 * 1024;

/// The exit code with which a command refuses what it guards.
const BLOCKS: i32 = 2;

/// The end of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exit<'a> {
    /// The exit code; absent where it did not exit by itself.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: &'a str,
    pub(crate) stderr: &'a str,
}

/// The words of a hook.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) decision: Option<HookDecision>,
    pub(crate) reason: String,
    pub(crate) context: String,
    pub(crate) input: Option<Map<String, Value>>,
    pub(crate) output: Option<String>,
    pub(crate) message: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Words {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: String,
    system_message: String,
    decision: Option<String>,
    reason: String,
    hook_specific_output: Specific,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Specific {
    permission_decision: Option<String>,
    permission_decision_reason: String,
    updated_input: Option<Map<String, Value>>,
    additional_context: String,
    updated_tool_output: Option<Value>,
    decision: Option<Behaviour>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Behaviour {
    behavior: String,
    message: String,
    updated_input: Option<Map<String, Value>>,
}

/// The words of a command.
///
/// # Errors
/// It failed; the words say how.
pub(crate) fn of_exit(on: HookEvent, exit: Exit<'_>) -> Result<Said, String> {
    match exit.code {
        Some(0) => of_text(on, exit.stdout),
        Some(BLOCKS) => Ok(Said {
            decision: Some(HookDecision::Deny),
            reason: cut(exit.stderr.trim(), MAX_REASON),
            ..Said::default()
        }),
        Some(code) => {
            let last = exit.stderr.trim().lines().last().unwrap_or_default();
            Err(format!("exit code {code} {}", clean_line(last, 200))
                .trim_end()
                .to_owned())
        }
        None => Err("it did not exit by itself".to_owned()),
    }
}

/// The words of an output, or of the body of an answer. A text that is no JSON object is context where a turn begins,
/// and else says nothing. People see what a command of theirs said.
///
/// # Errors
/// It begins as a JSON object and is none that a hook may answer.
pub(crate) fn of_text(on: HookEvent, text: &str) -> Result<Said, String> {
    let text = text.trim();
    if !text.starts_with('{') {
        let is_context = matches!(
            on,
            HookEvent::SessionStart | HookEvent::UserPromptSubmit | HookEvent::SlashCommand
        );
        return Ok(Said {
            message: match on {
                HookEvent::SlashCommand => cut(text, MAX_REASON),
                _ => String::new(),
            },
            context: if is_context {
                cut(text, MAX_CONTEXT)
            } else {
                String::new()
            },
            ..Said::default()
        });
    }
    let words: Words = serde_json::from_str(text)
        .map_err(|error| format!("its answer cannot be read: {error}"))?;
    let Words {
        goes_on,
        stop_reason,
        system_message,
        decision,
        reason,
        hook_specific_output: specific,
    } = words;
    let behaviour = specific.decision.unwrap_or_default();
    let named = [
        decision.as_deref(),
        specific.permission_decision.as_deref(),
        Some(behaviour.behavior.as_str()).filter(|word| !word.is_empty()),
    ];
    let mut counts = None;
    for word in named.into_iter().flatten() {
        counts = counts.max(Some(decision_of(word)?));
    }
    if goes_on == Some(false) {
        counts = Some(HookDecision::Deny);
    }
    let reasons = [
        specific.permission_decision_reason,
        behaviour.message,
        reason,
        stop_reason,
    ];
    let reason = reasons.into_iter().find(|reason| !reason.is_empty());
    let input = specific.updated_input.or(behaviour.updated_input);
    let is_short = |value: &Map<String, Value>| {
        serde_json::to_vec(value).is_ok_and(|json| json.len() <= MAX_REPLACED)
    };
    Ok(Said {
        decision: counts,
        reason: cut(&reason.unwrap_or_default(), MAX_REASON),
        context: cut(&specific.additional_context, MAX_CONTEXT),
        input: input.filter(is_short),
        output: specific.updated_tool_output.map(|output| match output {
            Value::String(text) => cut(&text, MAX_REPLACED),
            other => cut(&other.to_string(), MAX_REPLACED),
        }),
        message: cut(&system_message, MAX_REASON),
    })
}

fn decision_of(word: &str) -> Result<HookDecision, String> {
    Ok(match word {
        "deny" | "block" => HookDecision::Deny,
        "defer" => HookDecision::Defer,
        "ask" => HookDecision::Ask,
        "allow" | "approve" => HookDecision::Allow,
        other => {
            return Err(format!(
                "its decision {:?} is none of allow, ask, defer and deny",
                clean_line(other, 40)
            ));
        }
    })
}

fn cut(text: &str, at_most: usize) -> String {
    text[..text.floor_char_boundary(at_most)].to_owned()
}
