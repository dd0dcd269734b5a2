//! Ids as a person types them: the whole id, its beginning, or `last`.
//!
//! A beginning must fit exactly one id. If it fits several, the error lists them.

use std::{fmt::Display, str::FromStr};

use anyhow::bail;
use shared_api::{Approval, Key, ListedJoinToken, Runner, Sandbox, Session};
use shared_client::Client;
use shared_types::{
    ApprovalId, Clock as _, JoinTokenId, OperationId, SandboxId, SessionId, SystemClock, human::ago,
};

use crate::render::clean::clean_line;

/// Most entries that an error lists.
const CANDIDATES: u32 = 8;

/// Longest words beside an id in such a list, in characters.
const MAX_BESIDE: usize = 40;

/// Longest list of the workspaces of a runner, in characters.
const MAX_KNOWN: usize = 200;

/// Most sessions or operations that are looked for: one more than are listed.
const LOOKED_FOR: u32 = CANDIDATES + 1;

/// The newest questions among which a beginning of an id is looked for.
const APPROVALS_LOOKED_AT: usize = 500;

/// Letters of an id behind its prefix.
const ID_LETTERS: usize = 26;

/// Fewest letters of an id in a list, behind its prefix.
const MIN_LETTERS: usize = 6;

/// The word for the session that was used last, of those that are not archived.
const LAST: &str = "last";

/// A session as it is named on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionName {
    /// The one that was used last.
    Last,
    /// An id, or the beginning of one.
    Id(IdName<SessionId>),
}

/// An id as it is named on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdName<T> {
    Whole(T),
    /// With the prefix that tells the kind.
    Beginning(String),
}

impl FromStr for SessionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            LAST => Ok(Self::Last),
            text => match id_name(SessionId::PREFIX, text) {
                Some(name) => Ok(Self::Id(name)),
                None => Err(format!(
                    "write {LAST}, an id of gantry sessions, or the beginning of one, such as ses_01m8"
                )),
            },
        }
    }
}

/// An operation's id, or its beginning.
pub(crate) fn operation_name(text: &str) -> Result<IdName<OperationId>, String> {
    id_name(OperationId::PREFIX, text).ok_or_else(|| {
        "write an id of gantry ps, or the beginning of one, such as op_3k".to_owned()
    })
}

/// An approval's id, or its beginning.
pub(crate) fn approval_name(text: &str) -> Result<IdName<ApprovalId>, String> {
    id_name(ApprovalId::PREFIX, text).ok_or_else(|| {
        "write an id of gantry approvals, or the beginning of one, such as apr_3k".to_owned()
    })
}

/// The name, where it can be one: the prefix may be left out.
fn id_name<T: FromStr>(prefix: &str, text: &str) -> Option<IdName<T>> {
    if let Ok(id) = text.parse() {
        return Some(IdName::Whole(id));
    }
    let letters = match text.split_once('_') {
        Some((kind, letters)) if kind == prefix => letters,
        Some(_) => return None,
        None => text,
    };
    let is_one = (1..ID_LETTERS).contains(&letters.len())
        && letters
            .bytes()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    is_one.then(|| IdName::Beginning(format!("{prefix}_{letters}")))
}

/// The session with this name.
pub(crate) async fn session(client: &Client, name: &SessionName) -> anyhow::Result<Session> {
    let beginning = match name {
        SessionName::Last => {
            let newest = client.sessions(1).await?.into_iter().next();
            return match newest {
                Some(session) => Ok(session),
                None => bail!(
                    "there is no session, or all are archived (gantry sessions --archived); begin \
                     one with: gantry chat \"…\""
                ),
            };
        }
        SessionName::Id(IdName::Whole(id)) => return Ok(client.session(*id).await?),
        SessionName::Id(IdName::Beginning(beginning)) => beginning,
    };
    let found = client.sessions_beginning(beginning, LOOKED_FOR).await?;
    let now = SystemClock::new().now();
    let candidates = found.into_iter().map(|session| {
        let title = clean_line(&session.title, MAX_BESIDE);
        let beside = format!("{}  {title}", ago(now.since(session.updated_at)));
        (session.id.to_string(), beside, session)
    });
    only(
        "session",
        beginning,
        candidates.collect(),
        "gantry sessions",
    )
}

/// The id of the session with this name.
pub(crate) async fn session_id(client: &Client, name: &SessionName) -> anyhow::Result<SessionId> {
    match name {
        SessionName::Id(IdName::Whole(id)) => Ok(*id),
        name => Ok(session(client, name).await?.id),
    }
}

/// The operation with this name.
pub(crate) async fn operation(
    client: &Client,
    name: &IdName<OperationId>,
) -> anyhow::Result<OperationId> {
    let beginning = match name {
        IdName::Whole(id) => return Ok(*id),
        IdName::Beginning(beginning) => beginning,
    };
    let found = client.operations_beginning(beginning, LOOKED_FOR).await?;
    let candidates = found.into_iter().map(|operation| {
        let beside = clean_line(&operation.title, MAX_BESIDE);
        (operation.id.to_string(), beside, operation.id)
    });
    only("operation", beginning, candidates.collect(), "gantry ps -a")
}

/// The question with this name.
pub(crate) async fn approval(
    client: &Client,
    name: &IdName<ApprovalId>,
) -> anyhow::Result<Approval> {
    let beginning = match name {
        IdName::Whole(id) => return Ok(client.approval(*id).await?),
        IdName::Beginning(beginning) => beginning,
    };
    let newest = client.approvals(true, APPROVALS_LOOKED_AT).await?;
    let found = newest
        .into_iter()
        .filter(|one| one.id.to_string().starts_with(beginning));
    let candidates = found.map(|one| {
        let beside = clean_line(&one.question.title(), MAX_BESIDE);
        (one.id.to_string(), beside, one)
    });
    only(
        "question",
        beginning,
        candidates.collect(),
        "gantry approvals -a",
    )
}

/// The key with this id, with this beginning of an id, or with this name if no other key has it. A name that is also
/// the beginning of another key's id is ambiguous.
pub(crate) fn key<'a>(keys: &'a [Key], name: &str) -> anyhow::Result<&'a Key> {
    let candidates = keys.iter().map(|key| {
        let beside = clean_line(&key.name, MAX_BESIDE);
        (key.id.to_string(), beside, key)
    });
    let begins = of_beginning(shared_types::CredentialId::PREFIX, name, candidates.clone());
    let begins: Vec<_> = begins.into_iter().map(|(id, ..)| id).collect();
    let candidates = candidates.filter(|(id, _, key)| key.name == name || begins.contains(id));
    only("key", name, candidates.collect(), "gantry keys")
}

/// The join token with this id or beginning of an id.
pub(crate) fn join_token(tokens: &[ListedJoinToken], id: &str) -> anyhow::Result<JoinTokenId> {
    let candidates = tokens
        .iter()
        .map(|token| (token.id.to_string(), token.name.clone(), token.id));
    let candidates = of_beginning(JoinTokenId::PREFIX, id, candidates);
    only("join token", id, candidates, "gantry runners tokens")
}

/// The sandbox of this id, or of a beginning of it.
pub(crate) fn sandbox(sandboxes: &[Sandbox], id: &str) -> anyhow::Result<Sandbox> {
    let candidates = sandboxes.iter().map(|sandbox| {
        let beside = format!("of {} on {}", sandbox.owner, sandbox.runner_name);
        (sandbox.id.to_string(), beside, sandbox.clone())
    });
    let candidates = of_beginning(SandboxId::PREFIX, id, candidates);
    only("sandbox", format!("{id:?}"), candidates, "gantry sandboxes")
}

/// The runner with this name, id or beginning of an id. A name has to be complete, because a runner that is added later
/// must not change the result.
pub(crate) fn runner<'a>(runners: &'a [Runner], name: &str) -> anyhow::Result<&'a Runner> {
    if let Some(known) = runners.iter().find(|runner| runner.name == name) {
        return Ok(known);
    }
    let candidates = runners
        .iter()
        .map(|runner| (runner.id.to_string(), runner.name.clone(), runner));
    let candidates = of_beginning(shared_types::RunnerId::PREFIX, name, candidates);
    only("runner", name, candidates, "gantry runners")
}

/// The place in the form that the server takes: a runner as in [`runner`], alone or with the name of one of its
/// workspaces (`laptop/api`).
pub(crate) fn place(runners: &[Runner], name: &str) -> anyhow::Result<String> {
    let Some((name, workspace)) = name.split_once('/') else {
        return Ok(runner(runners, name)?.id.to_string());
    };
    let runner = runner(runners, name)?;
    let mut names = runner.sandboxes.iter().map(|known| known.name.as_str());
    if !names.clone().any(|known| known == workspace) {
        let known = names.by_ref().collect::<Vec<_>>().join(", ");
        bail!(
            "runner {} has no workspace {workspace:?}; it has: {}",
            runner.name,
            clean_line(&known, MAX_KNOWN)
        );
    }
    Ok(format!("{}/{workspace}", runner.id))
}

fn of_beginning<T>(
    prefix: &str,
    name: &str,
    all: impl Iterator<Item = (String, String, T)>,
) -> Vec<(String, String, T)> {
    let whole = match name.contains('_') {
        true => name.to_owned(),
        false => format!("{prefix}_{name}"),
    };
    // Without a letter of its own it is the beginning of all of them.
    let is_meant = |id: &str| whole.len() > prefix.len() + 1 && id.starts_with(&whole);
    all.filter(|(id, ..)| is_meant(id)).collect()
}

/// The beginning of an id that no other one of the list has: enough to name it.
pub(crate) fn beginning<'a>(id: &'a str, ids: &[String]) -> &'a str {
    let others = ids.iter().filter(|other| *other != id);
    let common = others.map(|other| {
        let pairs = id.bytes().zip(other.bytes());
        pairs.take_while(|(one, other)| one == other).count()
    });
    let unique = common.max().unwrap_or(0) + 1;
    let least = id.find('_').map_or(0, |prefix| prefix + 1) + MIN_LETTERS;
    &id[..unique.max(least).min(id.len())]
}

/// The only candidate. Each candidate is an id, the words beside it, and the thing itself.
fn only<T>(
    noun: &str,
    name: impl Display,
    mut candidates: Vec<(String, String, T)>,
    listed_by: &str,
) -> anyhow::Result<T> {
    if candidates.len() > 1 {
        let mut lines = format!("{name} names several {noun}s; write more of an id:");
        let most = CANDIDATES as usize;
        for (id, beside, _) in candidates.iter().take(most) {
            lines.push_str(&format!("\n  {id}  {beside}"));
        }
        if candidates.len() > most {
            lines.push_str(&format!("\n  … and more: {listed_by}"));
        }
        bail!(lines);
    }
    match candidates.pop() {
        Some((_, _, only)) => Ok(only),
        None => bail!("there is no {noun} {name}: {listed_by} lists them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "ses_01m834c15hf069cdbq6fg5pxq9";

    #[test]
    fn a_session_is_named_by_its_id_its_beginning_or_as_the_last_one() {
        let named = |text: &str| text.parse::<SessionName>();
        let beginning = |text: &str| Ok(SessionName::Id(IdName::Beginning(text.to_owned())));
        assert_eq!(named("last"), Ok(SessionName::Last));
        let id = ID.parse().expect("an id");
        assert_eq!(named(ID), Ok(SessionName::Id(IdName::Whole(id))));
        assert_eq!(named("ses_01m8"), beginning("ses_01m8"));
        assert_eq!(named("01m8"), beginning("ses_01m8"));
        for wrong in ["", "ses_", "trn_01m8", "run_1", "a b", &format!("{ID}0")] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_id_is_shown_as_far_as_it_takes_to_name_it_alone() {
        let ids = ["op_aaaaaaaaab", "op_aaaaaaaabb", "op_bbbbbbbbbb"];
        let all: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        let shown = ids.map(|id| beginning(id, &all));
        assert_eq!(shown, ["op_aaaaaaaaa", "op_aaaaaaaab", "op_bbbbbb"]);
    }

    #[test]
    fn of_several_candidates_none_is_taken_and_all_are_listed() {
        let candidates = |count: u32| -> Vec<_> {
            let one = |number| (format!("ses_{number}"), "a title".to_owned(), number);
            (0..count).map(one).collect()
        };
        let picked = |count| only("session", "ses_", candidates(count), "gantry sessions");
        assert_eq!(picked(1).expect("the only one"), 0);
        let none = picked(0).expect_err("there is none").to_string();
        assert_eq!(none, "there is no session ses_: gantry sessions lists them");
        let two = picked(2).expect_err("two").to_string();
        assert!(
            two.contains("several sessions") && two.contains("\n  ses_1  a title"),
            "{two}"
        );
        let many = picked(LOOKED_FOR).expect_err("many").to_string();
        assert!(many.ends_with("\n  … and more: gantry sessions"), "{many}");
    }
}
