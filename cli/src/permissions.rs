//! `gantry permissions`: the rules about what agents may do.

use anyhow::bail;
use shared_api::{
    AddPermissionRule, Decision, PermissionRule, PermissionVerdict, RuleSetBy, TestPermission,
    TestedDeed, TrustedFile,
};
use shared_client::{Client, ClientError};
use shared_types::{Clock as _, SystemClock, human::ago};

use crate::{
    agreed::says_yes,
    args::{Permissions, RuleDecision},
    pick::{self, SessionName},
    render::clean::clean_line,
    screen::Screen,
    table::Table,
};

/// Longest rule that is shown, in characters.
const MAX_RULE: usize = 200;

/// Longest path that is shown, in characters. It is also more than a rule can have: those to be trusted are shown whole.
const MAX_WHOLE: usize = 1024;

/// Longest line of an explanation, in characters.
const MAX_LINE: usize = 300;

/// Carries out a command about rules; without one, lists them.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    json: bool,
    command: Option<Permissions>,
) -> anyhow::Result<()> {
    match command {
        None => list(client, screen, json).await,
        Some(Permissions::List { json: also }) => list(client, screen, json || also).await,
        Some(Permissions::Add {
            decision,
            rule,
            tenant,
        }) => {
            let new = AddPermissionRule {
                rule,
                decision: match decision {
                    RuleDecision::Allow => Decision::Allow,
                    RuleDecision::Ask => Decision::Ask,
                    RuleDecision::Deny => Decision::Deny,
                },
                for_everyone: tenant,
            };
            let added = client.add_permission_rule(&new).await?;
            screen.line(&format!("{} {}", word(added.decision), added.rule))
        }
        Some(Permissions::Remove { rule }) => remove(client, screen, &rule).await,
        Some(Permissions::Trust { session, yes }) => trust(client, screen, &session, yes).await,
        Some(Permissions::Untrust { file }) => untrust(client, screen, &file).await,
        Some(Permissions::Test {
            text,
            mode,
            isolation,
            read,
            write,
            fetch,
            json: also,
        }) => {
            let deed = match (read, write, fetch) {
                (true, _, _) => TestedDeed::Read,
                (_, true, _) => TestedDeed::Write,
                (_, _, true) => TestedDeed::Fetch,
                _ => TestedDeed::Shell,
            };
            let test = TestPermission {
                text,
                deed,
                mode,
                isolation,
            };
            let verdict = client.test_permission(&test).await?;
            match json || also {
                true => screen.json(&verdict),
                false => screen.print(&explained(&verdict)),
            }
        }
    }
}

async fn list(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let rules = client.permission_rules().await?;
    if json {
        return rules.iter().try_for_each(|rule| screen.json(rule));
    }
    if rules.is_empty() {
        screen.note("no rule is set; the mode alone decides (gantry config set mode MODE)");
        return Ok(());
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["", "RULE", "SET BY", "SINCE"]).whole(&[0]);
    for rule in &rules {
        table.row([
            word(rule.decision).to_owned(),
            clean_line(&rule.rule, MAX_RULE),
            set_by(rule),
            rule.since.map_or_else(String::new, |at| ago(now.since(at))),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))
}

async fn remove(client: &Client, screen: Screen, named: &str) -> anyhow::Result<()> {
    let rules = client.permission_rules().await?;
    let is_it = |rule: &&PermissionRule| {
        rule.rule == named || rule.id.is_some_and(|id| id.to_string() == named)
    };
    let found: Vec<_> = rules.iter().filter(is_it).collect();
    let rule = match found.as_slice() {
        [rule] => rule,
        [] => bail!("there is no rule {named}; gantry permissions lists them"),
        _ => bail!("several rules are {named}; name one by its id (gantry permissions --json)"),
    };
    let id = match (rule.id, &rule.file) {
        (Some(id), _) => id,
        (None, Some(file)) => bail!(
            "{named} stands in {}; trust that file no more with: gantry permissions untrust {}",
            place(file),
            file.id
        ),
        (None, None) => bail!("the operator has set {named}, in gantry.toml"),
    };
    client.remove_permission_rule(id).await?;
    screen.line(&format!("removed: {} {}", word(rule.decision), rule.rule))
}

/// Shows the rules of a project's file, and trusts them if the person agrees.
async fn trust(
    client: &Client,
    screen: Screen,
    session: &SessionName,
    yes: bool,
) -> anyhow::Result<()> {
    let session = pick::session(client, session).await?;
    let proposed = match client.proposed_rules(session.id).await {
        Ok(proposed) => proposed,
        Err(ClientError::Refused(problem)) if problem.status == 404 => bail!(
            "the last turn of session {} found no .gantry/permissions.toml; each turn looks for it when it begins, in \
             the folder of the session and above",
            session.id
        ),
        Err(error) => return Err(error.into()),
    };
    let place = format!(
        "{} on {}",
        clean_line(&proposed.path, MAX_WHOLE),
        clean_line(&proposed.runner, MAX_LINE)
    );
    if let Some(problem) = &proposed.problem {
        bail!(
            "{place} cannot be trusted: {}",
            clean_line(problem, MAX_LINE)
        );
    }
    screen.line(&place)?;
    for rule in &proposed.rules {
        let text = clean_line(&rule.rule, MAX_WHOLE);
        screen.line(&format!("  {:5}  {text}", word(rule.decision)))?;
    }
    if proposed.trusted {
        return screen.line("you trust these rules already");
    }
    if !yes && !says_yes("trust these rules?", "trust these rules")? {
        return screen.line("nothing was changed");
    }
    let file = client.trust_project(session.id, proposed.digest).await?;
    screen.line(&format!(
        "trusted, until the file changes; end it with: gantry permissions untrust {}",
        file.id
    ))
}

/// Trusts the file with this path or id no more.
async fn untrust(client: &Client, screen: Screen, named: &str) -> anyhow::Result<()> {
    let rules = client.permission_rules().await?;
    let mut files: Vec<_> = rules.into_iter().filter_map(|rule| rule.file).collect();
    files.retain(|file| file.path == named || file.id.to_string() == named);
    files.dedup_by_key(|file| file.id);
    let file = match files.as_slice() {
        [file] => file,
        [] => bail!("you trust no file {named}; gantry permissions lists them"),
        several => {
            let ids = several
                .iter()
                .map(|file| format!("{} on {}", file.id, file.runner));
            bail!(
                "several files are {named}; name one by its id: {}",
                ids.collect::<Vec<_>>().join(", ")
            )
        }
    };
    client.untrust_project(file.id).await?;
    screen.line(&format!("trusted no more: {}", place(file)))
}

/// The place of a file, in a few words.
fn place(file: &TrustedFile) -> String {
    let path = clean_line(&file.path, MAX_WHOLE);
    format!("{path} on {}", clean_line(&file.runner, MAX_LINE))
}

fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}

fn set_by(rule: &PermissionRule) -> String {
    if let Some(file) = &rule.file {
        let counts = match (file.changed, rule.decision) {
            (false, _) => "",
            (true, Decision::Allow) => ", which has changed since: does not count",
            (true, _) => ", which has changed since",
        };
        return format!("{}{counts}", place(file));
    }
    match (rule.set_by, &rule.who) {
        (RuleSetBy::Operator, _) => "the operator".to_owned(),
        (RuleSetBy::Tenant, Some(who)) => format!("{who}, for everyone"),
        (RuleSetBy::Tenant, None) => "the tenant".to_owned(),
        (RuleSetBy::User, _) => "you".to_owned(),
        (RuleSetBy::Project, _) => "a project".to_owned(),
    }
}

/// The verdict, with its reasons.
fn explained(verdict: &PermissionVerdict) -> String {
    let mut text = format!(
        "{}: {}\nrisk: {}",
        word(verdict.decision),
        clean_line(&verdict.why, MAX_LINE),
        verdict.risk
    );
    if !verdict.reasons.is_empty() {
        text.push_str(&format!(
            " ({})",
            clean_line(&verdict.reasons.join("; "), MAX_LINE)
        ));
    }
    text.push_str(&format!("\nmode: {}\n", verdict.mode));
    if let Some(rule) = &verdict.rule {
        text.push_str(&format!("rule: {}\n", clean_line(rule, MAX_RULE)));
    }
    if let Some(rule) = &verdict.suggestion {
        text.push_str(&format!(
            "to allow it always: gantry permissions add allow \"{rule}\"\n"
        ));
    }
    text
}
