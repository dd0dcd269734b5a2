//! The to-do list: what the model means to do, in sight of people.

use shared_types::{
    Effect,
    event::{TodoItem, TodoState},
};

use super::{Arguments, Ask, BadArguments, Kind, Parameter, Rendered, Tool};

/// Most items of a list.
const MAX_ITEMS: usize = 100;

/// Longest item, in bytes.
const MAX_ITEM_BYTES: usize = 300;

/// Longest list, in bytes.
const MAX_LIST_BYTES: usize = 16 * 1024;

/// The requests about the to-do list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TodoAsk {
    /// That this is the list from now on.
    Write(Vec<TodoItem>),
    /// The list.
    List,
}

/// Replaces the to-do list.
#[derive(Debug, Clone, Copy)]
pub struct TodoWriteTool;

impl Tool for TodoWriteTool {
    fn name(&self) -> &str {
        "todo_write"
    }

    fn description(&self) -> &str {
        "Replaces the to-do list of this conversation, which the user sees. One item a line: `[ ] text` is open, \
         `[~] text` is being done, `[x] text` is done. Write the whole list each time."
    }

    fn guidance(&self) -> Option<&str> {
        Some("For work of several steps keep a to-do list with todo_write.")
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[Parameter::required(
            "list",
            Kind::Text {
                empty: true,
                at_most: MAX_LIST_BYTES,
                instead: "write fewer and shorter items",
            },
            "The whole list, one item a line; empty for none.",
        )];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let items: Vec<_> = arguments.text("list").lines().filter_map(item).collect();
        if items.len() > MAX_ITEMS {
            return Err(BadArguments::new(format!(
                "the list has {} items; at most {MAX_ITEMS} are kept: write larger steps, and drop what is done",
                items.len()
            )));
        }
        if let Some(long) = items.iter().find(|item| item.text.len() > MAX_ITEM_BYTES) {
            return Err(BadArguments::new(format!(
                "an item has {} bytes; at most {MAX_ITEM_BYTES} are kept: say it shorter",
                long.text.len()
            )));
        }
        Ok(Ask::Todo(TodoAsk::Write(items)))
    }
}

/// Returns the to-do list.
#[derive(Debug, Clone, Copy)]
pub struct TodoListTool;

impl Tool for TodoListTool {
    fn name(&self) -> &str {
        "todo_list"
    }

    fn description(&self) -> &str {
        "Returns the to-do list of this conversation."
    }

    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn prepare(&self, _arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Ask::Todo(TodoAsk::List))
    }
}

/// The item of a line; nothing for an empty one. A mark that is not known is an open item's.
fn item(line: &str) -> Option<TodoItem> {
    let line = line.trim().trim_start_matches(['-', '*']).trim_start();
    let (state, text) = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((mark, text)) if mark.chars().count() <= 1 => (
            match mark {
                "x" | "X" | "✓" => TodoState::Done,
                "~" | ">" | "-" | "/" => TodoState::Doing,
                _ => TodoState::Open,
            },
            text.trim(),
        ),
        _ => (TodoState::Open, line),
    };
    (!text.is_empty()).then(|| TodoItem {
        text: text.to_owned(),
        state,
    })
}

/// The list as the model reads and writes it.
pub(crate) fn written(items: &[TodoItem]) -> String {
    let lines = items.iter().map(|item| {
        let mark = match item.state {
            TodoState::Open => ' ',
            TodoState::Doing => '~',
            TodoState::Done => 'x',
        };
        format!("[{mark}] {}\n", item.text)
    });
    lines.collect()
}

/// The result of a call.
pub(crate) fn rendered(items: &[TodoItem]) -> Rendered {
    Rendered::completed(match items.is_empty() {
        true => "[the list is empty]".to_owned(),
        false => written(items),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<Ask, BadArguments> {
        let arguments = serde_json::json!({ "list": text }).to_string();
        let tool = TodoWriteTool;
        tool.prepare(&tool.check(&arguments)?)
    }

    #[test]
    fn the_marks_of_lines_are_read_and_written_again() {
        let text = "- [ ] one\n* [x] two\n[~] three\n\n[?] four\nplain [five]\n[]\n";
        let Ok(Ask::Todo(TodoAsk::Write(items))) = list(text) else {
            panic!("it is a list");
        };
        assert_eq!(
            written(&items),
            "[ ] one\n[x] two\n[~] three\n[ ] four\n[ ] plain [five]\n"
        );
    }

    #[test]
    fn a_list_of_ten_thousand_lines_and_a_long_item_are_refused_with_advice() {
        let many = list(&"[ ] a\n".repeat(2_000)).expect_err("too many");
        assert!(
            many.to_string().contains("2000 items; at most 100"),
            "{many}"
        );
        let long = list(&"[ ] a\n".repeat(10_000)).expect_err("too long");
        assert!(long.to_string().contains("write fewer"), "{long}");
        let item = list(&"a".repeat(301)).expect_err("too long");
        assert!(item.to_string().contains("say it shorter"), "{item}");
    }
}
