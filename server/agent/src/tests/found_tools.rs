//! Turns with more tools than a request holds.

use std::sync::Arc;

use serde_json::{Value, json};
use shared_sandbox::{Command, Exec, ExitCause, ExitStatus, Request, scripted::Script};
use shared_types::{
    Effect, Event, Mode,
    event::{CallOutcome, Question, Terms, TurnOutcome, TurnSettings},
    limits::FILE_OPERATION_WITHIN,
};

use super::consent::set_terms;
use crate::{
    Carried, Tool, ToolSet, ToolSource,
    context::tokens::tokens,
    testing::{Reply, World, ends, exit},
    tools::{Arguments, Ask, BadArguments, Ended, Parameter, Prepared, Rendered},
};

/// Twenty servers with ten tools each, as tool servers have them.
#[derive(Debug)]
struct Servers;

const SERVERS: [&str; 20] = [
    "github",
    "gitlab",
    "jira",
    "linear",
    "slack",
    "notion",
    "sentry",
    "grafana",
    "postgres",
    "stripe",
    "figma",
    "asana",
    "drive",
    "gmail",
    "calendar",
    "zendesk",
    "hubspot",
    "docker",
    "cloudflare",
    "datadog",
];
const VERBS: [&str; 10] = [
    "list_items",
    "get_item",
    "create_item",
    "update_item",
    "delete_item",
    "search",
    "add_comment",
    "list_members",
    "assign",
    "export_report",
];

impl ToolSource for Servers {
    fn tools(&self, _settings: Option<&TurnSettings>) -> Vec<Arc<dyn Tool>> {
        let of = |server: &'static str| VERBS.map(move |verb| (server, verb));
        let tools = SERVERS.into_iter().flat_map(of);
        tools
            .map(|(server, verb)| Arc::new(Served::new(server, verb)) as Arc<dyn Tool>)
            .collect()
    }
}

#[derive(Debug)]
struct Served {
    name: String,
    description: String,
}

impl Served {
    fn new(server: &str, verb: &str) -> Self {
        let words = verb.replace('_', " ");
        Self {
            name: format!("mcp__{server}__{verb}"),
            description: format!(
                "{words} in {server}. Use this when the user asks about {server} and wants to {words}. Results are \
                 returned in pages; pass the cursor of a page to get the next one. Requires that the account is \
                 connected and has the permission for the project."
            ),
        }
    }
}

impl Tool for Served {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    fn schema(&self) -> Value {
        let text = |about: &str| json!({ "type": "string", "description": about });
        json!({
            "type": "object",
            "properties": {
                "project": text("The key of the project, such as ABC, or its id."),
                "query": text("Words to look for in titles and descriptions."),
                "state": { "type": "string", "enum": ["open", "closed", "all"], "description": "The state; default open." },
                "cursor": text("The cursor of the page before; absent for the first page."),
                "limit": { "type": "integer", "minimum": 1, "maximum": 100, "description": "At most this many; default 30." },
            },
            "required": ["project"],
        })
    }

    fn check(&self, written: &str) -> Result<Arguments, BadArguments> {
        match written.contains("\"project\"") {
            true => Arguments::check("{}", &[]),
            false => Err(BadArguments::new("the argument \"project\" is missing")),
        }
    }

    fn effect(&self) -> Effect {
        Effect::Effectful
    }

    fn can_be_found(&self) -> bool {
        true
    }

    fn prepare(&self, _arguments: &Arguments) -> Result<Ask, BadArguments> {
        let command = Command::Argv(vec!["serve".to_owned(), self.name.clone()]);
        let request = Request::Exec(Exec::new(command));
        Ok(Prepared::within(FILE_OPERATION_WITHIN, request))
    }

    fn render(&self, _ended: &Ended<'_>, _limit: usize) -> Option<Rendered> {
        Some(Rendered::completed(format!("{} was called", self.name)))
    }
}

const ISSUES: &str = "mcp__github__create_item";

/// A turn with these answers, where every command succeeds.
fn world(replies: impl IntoIterator<Item = Reply>) -> World {
    let ran = || ends(exit(0, ExitStatus::Code(0), ExitCause::Exited));
    let scripts: Vec<Script> = (0..4).map(|_| ran()).collect();
    World {
        more_tools: Some(Arc::new(Servers)),
        ..World::new(replies, scripts)
    }
}

fn one(name: &str, arguments: &str) -> Reply {
    Reply::calls("", [(name, arguments)])
}

fn search() -> Reply {
    one("search_tools", r#"{"query":"create an item at GitHub"}"#)
}

fn through(name: &str) -> Reply {
    let arguments = json!({ "name": name, "arguments": { "project": "ABC" } });
    one("use_tool", &arguments.to_string())
}

fn ends_of(world: &World) -> Vec<(CallOutcome, String)> {
    let ended = world.ended_calls().into_iter();
    ended
        .filter_map(|event| match event {
            Event::CallEnded { outcome, parts, .. } => Some((outcome, parts.words().into_owned())),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_tool_that_was_found_is_called_as_itself_and_no_request_has_another_list_of_tools() {
    let direct = one(ISSUES, r#"{"project":"ABC"}"#);
    let world = world([search(), through(ISSUES), direct, Reply::says("done")]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let ended = ends_of(&world);
    let shown = &ended[0].1;
    assert!(
        shown.starts_with(&format!("{ISSUES}: create item in github.")),
        "{shown}"
    );
    assert!(
        shown.contains("\narguments: {") && shown.contains("\"project\""),
        "{shown}"
    );
    let called = (CallOutcome::Completed, format!("{ISSUES} was called"));
    assert_eq!(ended[1..], [called.clone(), called]);

    let requests = world.model.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.tools == requests[0].tools)
    );
    let names: Vec<_> = requests[0]
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert!(
        names.contains(&"search_tools") && names.contains(&"use_tool"),
        "{names:?}"
    );
    assert!(
        !names.iter().any(|name| name.starts_with("mcp__")),
        "{names:?}"
    );
    world.assert_log_gives_requests();
}

#[tokio::test]
async fn a_tool_is_searched_for_before_its_first_call_and_again_after_five_answers_without_a_use() {
    let looks = (0..5).map(|at| one("recall", &format!(r#"{{"of":"m1","offset":{at}}}"#)));
    let mut replies = vec![through(ISSUES), search(), through(ISSUES)];
    replies.extend(looks);
    replies.extend([
        through(ISSUES),
        search(),
        through(ISSUES),
        Reply::says("done"),
    ]);
    let world = world(replies);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let ended = ends_of(&world);
    let outcomes: Vec<_> = [0, 2, 8, 10].map(|at| ended[at].0).into();
    let (no, yes) = (CallOutcome::Refused, CallOutcome::Completed);
    assert_eq!(outcomes, [no, yes, no, yes], "{ended:#?}");
    for at in [0, 8] {
        assert!(
            ended[at].1.contains("search for it with search_tools"),
            "{}",
            ended[at].1
        );
    }
}

#[tokio::test]
async fn what_cannot_be_called_through_another_tool_says_how_to_call_it() {
    let world = world([
        search(),
        through("Shell"),
        through("mcp__none__at_all"),
        one("use_tool", r#"{"arguments":{}}"#),
        one(
            "use_tool",
            &json!({ "name": ISSUES, "arguments": {} }).to_string(),
        ),
        Reply::says("done"),
    ]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let words = [
        "call it by its own name",
        "and those that search_tools finds",
        "name a tool that search_tools has shown",
        "\"project\" is missing",
    ];
    for ((outcome, said), words) in ends_of(&world)[1..].iter().zip(words) {
        assert_eq!(*outcome, CallOutcome::Refused);
        assert!(said.contains(words), "{said}");
    }
    assert!(world.sandbox.scripted.asked().is_empty(), "nothing ran");
}

#[tokio::test]
async fn people_are_asked_about_the_tool_itself() {
    let world = world([search(), through(ISSUES), Reply::says("done")]);
    let terms = Terms {
        mode: Some(Mode::Ask),
        ..Terms::default()
    };
    set_terms(&world, terms);
    let carried = world.spawn_carrying().await.expect("it does not panic");
    assert!(matches!(carried, Ok(Carried::Waits(_))), "{carried:?}");
    let asked = world
        .log
        .events()
        .into_iter()
        .find_map(|event| match event {
            Event::ApprovalAsked {
                question: Question::Call(call),
                ..
            } => Some(call),
            _ => None,
        });
    assert_eq!(asked.expect("people are asked").tool, ISSUES);
}

#[test]
fn two_hundred_tools_cost_a_request_at_most_two_percent_of_all_in_it() {
    let usual = World::new([], []).engine().sources;
    let all: Vec<Arc<dyn ToolSource>> = [&usual[..], &[Arc::new(Servers) as _]].concat();
    let cost = |tools: &ToolSet| -> (usize, usize) {
        let specs = tools.specs().into_iter().map(|spec| {
            json!({ "name": spec.name, "description": spec.description, "input_schema": spec.parameters })
                .to_string()
        });
        let text = specs.collect::<String>() + &tools.guidance();
        (text.len(), tokens(&text))
    };
    let without = cost(&ToolSet::of(&usual, None));
    let searched = cost(&ToolSet::of(&all, None).searched());
    let whole = cost(&ToolSet::new(
        all.iter().flat_map(|source| source.tools(None)),
    ));
    let (few, many) = (searched.1 - without.1, whole.1 - without.1);
    println!(
        "200 tools: {} bytes ({few} tokens) a request by search, {} bytes ({many} tokens) whole",
        searched.0 - without.0,
        whole.0 - without.0,
    );
    assert!(few * 100 <= many * 2, "{few} of {many} tokens");
}
