use std::sync::Arc;

use super::*;
use crate::tools::{BuiltIn, ToolSource};

#[derive(Debug)]
struct Named(&'static str, &'static str, Vec<&'static str>);

impl Tool for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        self.1
    }

    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    fn schema(&self) -> Value {
        let properties = self.2.iter().map(|name| ((*name).to_owned(), json!({})));
        json!({ "properties": properties.collect::<serde_json::Map<_, _>>() })
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn can_be_found(&self) -> bool {
        true
    }

    fn prepare(&self, _arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Ask::FindTools(String::new()))
    }
}

fn tools() -> Vec<Arc<dyn Tool>> {
    let tool = |name, description, arguments: &[&'static str]| {
        Arc::new(Named(name, description, arguments.to_vec())) as Arc<dyn Tool>
    };
    vec![
        tool(
            "mcp__github__create_issue",
            "Opens an issue.",
            &["title", "labels"],
        ),
        tool(
            "mcp__github__list_issues",
            "Lists the issues of a repository.",
            &["state"],
        ),
        tool(
            "mcp__mail__send",
            "Sends a message to people.",
            &["recipients"],
        ),
        tool("mcp__wetter__heute", "Zeigt das Wetter. 显示天气", &[]),
    ]
}

#[test]
fn the_best_tool_comes_first_and_one_that_is_named_before_all() {
    let tools = tools();
    for (query, first) in [
        ("create an issue", Some("mcp__github__create_issue")),
        ("list open issues", Some("mcp__github__list_issues")),
        ("recipient", Some("mcp__mail__send")),
        ("天气", Some("mcp__wetter__heute")),
        ("MCP__MAIL__SEND", Some("mcp__mail__send")),
        ("quixotic", None),
        ("", None),
    ] {
        let (rendered, names) = found(tools.iter(), query, 10_000);
        assert_eq!(
            names.first().map(String::as_str),
            first,
            "{query}: {}",
            rendered.text
        );
    }
}

#[test]
fn a_result_has_at_most_eight_whole_tools_and_names_what_has_no_room() {
    let many: Vec<_> = (0..20)
        .map(|_| Arc::new(Named("same", "A thing.", vec!["x"])) as Arc<dyn Tool>)
        .collect();
    let (_, names) = found(many.iter(), "thing", 100_000);
    assert_eq!(names.len(), SHOWN_AT_MOST);
    let long = "word ".repeat(2000);
    let long: &'static str = Box::leak(long.into_boxed_str());
    let long = [Arc::new(Named("long", long, Vec::new())) as Arc<dyn Tool>];
    let (rendered, names) = found(long.iter(), "word", 1200);
    assert!(
        names.is_empty() && rendered.text.contains("no room here: long"),
        "{}",
        rendered.text
    );
    let (rendered, names) = found(long.iter(), "word", 10_000);
    assert_eq!(names, ["long"]);
    assert!(
        rendered.text.len() < 2 * MAX_DESCRIPTION_BYTES,
        "{}",
        rendered.text
    );
}

#[test]
fn the_description_names_the_servers_and_few_tools_need_no_search() {
    let tools = tools();
    let search = SearchTools::of(tools.iter());
    assert!(
        search
            .description()
            .ends_with("There are tools of: github, mail, wetter.")
    );
    let few = crate::ToolSet::of(&[Arc::new(BuiltIn)], None);
    assert!(few.get(SEARCH_TOOLS).is_err());
    assert!(BuiltIn.tools(None).iter().all(|tool| !tool.can_be_found()));
}
