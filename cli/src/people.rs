//! People: listing, inviting and removing them, and their roles.

use anyhow::bail;
use shared_api::{Person, RoleName};
use shared_client::Client;
use shared_types::{
    Clock as _, SystemClock, Timestamp,
    human::{ago, duration},
};

use crate::{args::Role, render::clean::clean_line, screen::Screen, table::Table};

/// The word for oneself.
const ME: &str = "me";

/// Longest name in a line, in characters.
const MAX_NAME: usize = 64;

pub(crate) async fn list(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let people = client.people().await?;
    if json {
        return people.iter().try_for_each(|person| screen.json(person));
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["", "PERSON", "ROLE", "STATE"]);
    for person in &people {
        table.row([
            if person.is_you { "*" } else { "" }.to_owned(),
            person.name.clone(),
            word(person.role).to_owned(),
            state(person, now),
        ]);
    }
    screen.print(&table.show(screen.style()))
}

pub(crate) async fn invite(
    client: &Client,
    screen: Screen,
    name: &str,
    (role, json): (Role, bool),
) -> anyhow::Result<()> {
    let invitation = client.invite(name, role.into()).await?;
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
    screen.note(&format!(
        "it works once, within {left}; for a new one: gantry people invite {name} --role {}",
        word(invitation.person.role)
    ));
    Ok(())
}

pub(crate) async fn change_role(
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

pub(crate) async fn remove(client: &Client, screen: Screen, name: &str) -> anyhow::Result<()> {
    let people = client.people().await?;
    let person = pick(&people, name)?;
    client.remove_person(person.id).await?;
    let name = clean_line(&person.name, MAX_NAME);
    match person.is_you {
        true => screen.line("you have left"),
        false => screen.line(&format!("removed {name}")),
    }
}

/// The person who is meant: by name, by id, or oneself. A name is taken only as a whole.
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
