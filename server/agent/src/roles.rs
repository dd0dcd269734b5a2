//! The roles by which agents are begun: those that every session has, and those that people brought. The role of an agent
//! is recorded in its log, so a later change of the role changes no agent.

use shared_types::event::{Extensions, Role};

/// The role of a call that names none.
pub(crate) const GENERAL: &str = "general";

/// The role that only reads. Its agents are in the mode *plan*.
const EXPLORE: &str = "explore";

/// The tools that turn to people. An agent says in its answer what is unclear or left, and its caller sees to it.
const FOR_PEOPLE: [&str; 3] = ["ask_user", "present_plan", "create_chat"];

/// The tools of the role that only reads.
const READING: [&str; 8] = [
    "Glob",
    "Grep",
    "List",
    "Read",
    "SubAgent",
    "recall",
    "web_fetch",
    "web_search",
];

const EXPLORE_WORDS: &str = "\
You look things up, and change nothing. Search broadly first, then read what matters. Answer what was asked, with the \
paths and line numbers on which the answer rests; quote no long texts. Say what you looked for and did not find.";

/// The role of this name: one of every session before one that people brought.
pub(crate) fn role(name: &str, brought: &Extensions) -> Option<Role> {
    let known = || brought.roles.iter().find(|role| role.name == name).cloned();
    let mut role = built_in(name).or_else(known)?;
    role.denied_tools.extend(FOR_PEOPLE.map(str::to_owned));
    Some(role)
}

/// The role of an agent that was begun before. Only its name is known here; the log of the agent has the rest.
pub(crate) fn unknown(name: &str) -> Role {
    Role {
        name: name.to_owned(),
        description: String::new(),
        instructions: String::new(),
        tools: None,
        denied_tools: Vec::new(),
        model: None,
        steps: None,
        worktree: false,
        from: None,
    }
}

/// True if agents with this role only read, whatever their caller may do.
pub(crate) fn only_reads(role: &Role) -> bool {
    role.from.is_none() && role.name == EXPLORE
}

/// True for the name of a role of every session, which no file may take.
pub(crate) fn is_built_in(name: &str) -> bool {
    built_in(name).is_some()
}

/// The names of all roles.
pub(crate) fn names(brought: &Extensions) -> Vec<&str> {
    let brought = brought.roles.iter().map(|role| role.name.as_str());
    [GENERAL, EXPLORE].into_iter().chain(brought).collect()
}

fn built_in(name: &str) -> Option<Role> {
    let (description, instructions, tools) = match name {
        GENERAL => ("any task", "", None),
        EXPLORE => ("looking things up", EXPLORE_WORDS, Some(READING)),
        _ => return None,
    };
    Some(Role {
        name: name.to_owned(),
        description: description.to_owned(),
        instructions: instructions.to_owned(),
        tools: tools.map(|tools| tools.map(str::to_owned).to_vec()),
        denied_tools: Vec::new(),
        model: None,
        steps: None,
        worktree: false,
        from: None,
    })
}
