//! Tools that are found before they are called.
//!
//! With many tools the request would be mostly their schemas. So those that need not be there always are left out of it,
//! and two tools stand in for them: `search_tools` shows the ones that fit some words, and `use_tool` calls one of them.
//! The list of tools in the request stays the same, so a vendor's cache of the request's beginning holds.
//!
//! Which tools may be called is a function of the log: those that a search has shown, or that were used, in the last
//! [`ACTIVE_STEPS`] answers ([`crate::transcript::Transcript::is_active`]).

mod rank;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use shared_types::{
    Effect,
    event::{ToolCall, USE_TOOL},
};

use super::{Arguments, Ask, BadArguments, Kind, Parameter, Rendered, Tool, bounded};

/// Tools that are in a request without a search. With more, those that can be found are left out.
pub(super) const OFFERED_AT_MOST: usize = 30;

/// Answers of the model for which a tool stays active without a use.
pub(crate) const ACTIVE_STEPS: usize = 5;

/// Most tools that one search shows.
const SHOWN_AT_MOST: usize = 8;

/// Longest description that a search shows, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 1024;

/// Longest query, in bytes.
const MAX_QUERY_BYTES: usize = 512;

/// Most sources of tools that the description names.
const SOURCES_NAMED: usize = 20;

/// The name of the search.
pub(crate) const SEARCH_TOOLS: &str = "search_tools";

/// Shows the tools that fit a query.
#[derive(Debug, Clone)]
pub struct SearchTools {
    description: String,
}

impl SearchTools {
    /// A search in these tools.
    pub(super) fn of<'a>(found: impl Iterator<Item = &'a Arc<dyn Tool>>) -> Self {
        let sources = found.filter_map(|tool| source(tool.name()).map(str::to_owned));
        let sources: BTreeSet<_> = sources.collect();
        let named: Vec<_> = sources.into_iter().take(SOURCES_NAMED).collect();
        let of = match named.is_empty() {
            true => String::new(),
            false => format!(" There are tools of: {}.", named.join(", ")),
        };
        Self {
            description: format!(
                "Finds tools that are not in your list, and shows their names, descriptions and arguments. Call one \
                 with {USE_TOOL}.{of}"
            ),
        }
    }
}

/// The server of a tool, by its name: `github` of `mcp__github__create_issue`.
fn source(name: &str) -> Option<&str> {
    let (server, _) = name.strip_prefix("mcp__")?.split_once("__")?;
    Some(server)
}

impl Tool for SearchTools {
    fn name(&self) -> &str {
        SEARCH_TOOLS
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn guidance(&self) -> Option<&str> {
        Some(
            "There are more tools than you are shown: find them with search_tools before you say that you have none.",
        )
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[Parameter::required(
            "query",
            Kind::Text {
                empty: false,
                at_most: MAX_QUERY_BYTES,
                instead: "use a few words",
            },
            "What the tool should do, in a few words, or its name.",
        )];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Ask::FindTools(arguments.text("query").to_owned()))
    }
}

/// Stands for the call of a tool that was found. A call of it is planned as a call of that tool ([`called`]).
#[derive(Debug, Clone, Copy)]
pub struct UseTool;

impl Tool for UseTool {
    fn name(&self) -> &str {
        USE_TOOL
    }

    fn description(&self) -> &str {
        "Calls a tool that search_tools has shown, with the arguments of that tool. After 5 answers without a use, \
         search for it again first."
    }

    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "The name of the tool." },
                "arguments": { "type": "object", "description": "Its arguments." },
            },
            "required": ["name", "arguments"],
            "additionalProperties": false,
        })
    }

    fn check(&self, _written: &str) -> Result<Arguments, BadArguments> {
        Err(BadArguments::new(
            "name a tool that search_tools has shown, and its arguments: {\"name\": …, \"arguments\": {…}}",
        ))
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn prepare(&self, _arguments: &Arguments) -> Result<Ask, BadArguments> {
        Err(BadArguments::new("name a tool"))
    }
}

/// The result of a search, and the names of the tools that it shows whole.
pub(crate) fn found<'a>(
    tools: impl Iterator<Item = &'a Arc<dyn Tool>>,
    query: &str,
    limit: usize,
) -> (Rendered, Vec<String>) {
    let best = rank::best(tools, query, SHOWN_AT_MOST);
    if best.is_empty() {
        let text =
            "[no tool fits these words: try others, such as the name of a service or of a thing]";
        return (Rendered::completed(text.to_owned()), Vec::new());
    }
    let (mut text, mut names, mut left_out) = (String::new(), Vec::new(), Vec::new());
    for tool in best {
        let name = tool.name();
        let description = bounded(tool.description(), MAX_DESCRIPTION_BYTES);
        let shown = format!("{name}: {description}\narguments: {}\n\n", tool.schema());
        match text.len() + shown.len() <= limit.saturating_sub(NOTE_BYTES) {
            true => {
                text.push_str(&shown);
                names.push(name.to_owned());
            }
            false => left_out.push(name),
        }
    }
    text.push_str(&match left_out.is_empty() {
        true => format!("[call one with {USE_TOOL}]"),
        false => bounded(
            &format!(
                "[these fit too, and have no room here: {}; search for one by its name]",
                left_out.join(", ")
            ),
            NOTE_BYTES,
        ),
    });
    (Rendered::completed(text), names)
}

/// Room for the line behind the tools.
const NOTE_BYTES: usize = 640;

/// The tool and the arguments of a call, where it calls one through [`UseTool`].
pub(crate) fn called(name: &str, arguments: &str) -> Option<(String, String)> {
    let call = ToolCall {
        vendor_id: String::new(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        opaque: Default::default(),
    };
    call.through_use_tool()
}

#[cfg(test)]
mod tests;
