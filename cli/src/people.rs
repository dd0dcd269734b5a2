//! People and service accounts: listing, inviting and removing them, and their roles.

use anyhow::bail;
use shared_api::{Person, RoleName};
use shared_client::{Client, ClientError};
use shared_types::{
    Clock as _, SystemClock, Timestamp, UserId,
    human::{ago, duration},
};

use crate::{
    agreed::agreed,
    args::{People, Role},
    render::clean::clean_line,
    screen::Screen,
    table::Table,
};

/// The word for oneself.
const ME: &str = "me";

/// Longest name in a line, in characters.
const MAX_NAME: usize = 64;

/// Carries out a command about people; without one, lists them.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    json: bool,
    command: Option<People>,
) -> anyhow::Result<()> {
    match command {
        None => list(client, screen, "", json).await,
        Some(People::List { search, json: also }) => {
            let search = search.unwrap_or_default();
            list(client, screen, &search, json || also).await
        }
        Some(People::Invite {
            name,
            role,
            json: also,
        }) => invite(client, screen, &name, role, json || also).await,
        Some(People::AddService { name, role }) => add_service(client, screen, &name, role).await,
        Some(People::Role { name, role }) => change_role(client, screen, &name, role).await,
        Some(People::Remove { name, yes }) => remove(client, screen, &name, yes).await,
    }
}

async fn list(client: &Client, screen: Screen, name: &str, json: bool) -> anyhow::Result<()> {
    let people = client.people_found(name).await?;
    if json {
        return people.iter().try_for_each(|person| screen.json(person));
    }
    if people.is_empty() {
        screen.note("nobody has that in their name");
        return Ok(());
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["", "PERSON", "ROLE", "STATE"]).whole(&[0]);
    for person in &people {
        table.row([
            if person.is_you { "*" } else { "" }.to_owned(),
            person.name.clone(),
            word(person.role).to_owned(),
            state(person, now),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))?;
    if people.iter().any(|person| person.is_you) {
        screen.note("* you");
    }
    Ok(())
}

async fn invite(
    client: &Client,
    screen: Screen,
    name: &str,
    role: Option<Role>,
    json: bool,
) -> anyhow::Result<()> {
    let role = match role {
        Some(role) => role.into(),
        None => role_so_far(client, name).await?,
    };
    let invitation = client.invite(name, role).await?;
    if json {
        return screen.json(&invitation);
    }
    let name = clean_line(&invitation.person.name, MAX_NAME);
    let server = client.server();
    let left = duration(invitation.expires_at.since(SystemClock::new().now()));
    screen.note(&format!("{name} types this, and the code when asked:"));
    screen.line(&format!("gantry login --server {server}"))?;
    screen.note("the code, which is shown once:");
    screen.line(&invitation.code)?;
    // Behind `#`, so that no server and no proxy gets to see and log the code.
    screen.note("or opens this in a browser, with the code in it:");
    screen.line(&format!("{server}/sign-in#code={}", invitation.code))?;
    screen.note(&format!(
        "it works once, within {left}; for a new one: gantry people invite {name} --role {}",
        word(invitation.person.role)
    ));
    Ok(())
}

/// The role of a person who was invited before and has not signed in; a member's for everyone else.
async fn role_so_far(client: &Client, name: &str) -> anyhow::Result<RoleName> {
    let people = match client.people().await {
        Ok(people) => people,
        // The server refuses the invitation as well, and says why.
        Err(ClientError::Refused(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let name = name.to_lowercase();
    let invited = |person: &&Person| person.name == name && !person.joined && !person.is_service;
    let invited = people.iter().find(invited);
    Ok(invited.map_or(RoleName::Member, |person| person.role))
}

async fn add_service(
    client: &Client,
    screen: Screen,
    name: &str,
    role: Role,
) -> anyhow::Result<()> {
    let added = client.add_service_account(name, role.into()).await?;
    let name = clean_line(&added.name, MAX_NAME);
    screen.line(&format!("added service account {name}"))?;
    screen.note(&format!(
        "make a key for it with: gantry keys add KEY --service {name}"
    ));
    Ok(())
}

async fn change_role(
    client: &Client,
    screen: Screen,
    name: &str,
    role: Role,
) -> anyhow::Result<()> {
    let people = client.people().await?;
    let id = pick(&people, name)?.id;
    let person = client.change_role(id, role.into()).await?;
    let name = clean_line(&person.name, MAX_NAME);
    screen.line(&format!("{name} is {} now", with_article(person.role)))
}

async fn remove(client: &Client, screen: Screen, name: &str, yes: bool) -> anyhow::Result<()> {
    let people = client.people().await?;
    let person = pick(&people, name)?;
    let name = clean_line(&person.name, MAX_NAME);
    let what = match person.is_you {
        true => format!("remove {name}, which is you,"),
        false => format!("remove {name}"),
    };
    if !yes && !agreed(&what)? {
        screen.note("no person was removed");
        return Ok(());
    }
    client.remove_person(person.id).await?;
    match person.is_you {
        true => screen.line("you have left"),
        false => screen.line(&format!("removed {name}")),
    }
}

/// The id of the service account of this name or id.
pub(crate) async fn service(client: &Client, name: &str) -> anyhow::Result<UserId> {
    let people = client.people().await?;
    match pick(&people, name) {
        Ok(found) if found.is_service => Ok(found.id),
        _ => bail!("there is no service account {name}: gantry people lists them"),
    }
}

/// Finds a person by name or id, or the caller by `me`. A name has to be complete.
fn pick<'a>(people: &'a [Person], name: &str) -> anyhow::Result<&'a Person> {
    let stored = name.to_ascii_lowercase();
    let is_meant = |person: &&Person| {
        person.name == stored || person.id.to_string() == name || (person.is_you && name == ME)
    };
    match people.iter().find(is_meant) {
        Some(person) => Ok(person),
        None => bail!("there is no person {name}: gantry people lists them"),
    }
}

fn state(person: &Person, now: Timestamp) -> String {
    if person.is_service {
        let seen = person.last_used_at.map(|used| ago(now.since(used)));
        let seen = seen.map_or("never used".to_owned(), |ago| format!("last used {ago}"));
        return format!("service account, {seen}");
    }
    match (person.joined, person.invited_until, person.last_used_at) {
        (_, _, Some(used)) => format!("last seen {}", ago(now.since(used))),
        (true, _, None) => "signed in".to_owned(),
        (false, Some(until), None) if until > now => {
            format!("invited, for another {}", duration(until.since(now)))
        }
        (false, _, None) => "the invitation has expired".to_owned(),
    }
}

fn word(role: RoleName) -> &'static str {
    match role {
        RoleName::Owner => "owner",
        RoleName::Admin => "admin",
        RoleName::Member => "member",
        RoleName::Viewer => "viewer",
    }
}

fn with_article(role: RoleName) -> &'static str {
    match role {
        RoleName::Owner => "an owner",
        RoleName::Admin => "an admin",
        RoleName::Member => "a member",
        RoleName::Viewer => "a viewer",
    }
}

impl From<Role> for RoleName {
    fn from(role: Role) -> Self {
        match role {
            Role::Owner => Self::Owner,
            Role::Admin => Self::Admin,
            Role::Member => Self::Member,
            Role::Viewer => Self::Viewer,
        }
    }
}
