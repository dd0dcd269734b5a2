//! `gantry-runner status`: the facts that the home alone gives.

use std::fmt;

use shared_types::Isolation;

use crate::{
    home::{EnrolledHome, Home, HomeError},
    policy::{self, PolicySource},
};

/// The enrolment of a home, and the daemon that uses it.
#[derive(Debug)]
pub(crate) struct Status {
    enrolled: Option<EnrolledHome>,
    running: bool,
    /// The endpoint of the link, where there is one.
    link: Option<String>,
    /// True if operations happen in containers.
    has_containers: bool,
    /// The machine's policy, in one line.
    policy: String,
}

impl Status {
    /// True if a daemon runs and has a link.
    pub(crate) fn is_linked(&self) -> bool {
        self.enrolled.is_some() && self.running && self.link.is_some()
    }
}

/// Reads the status of a home, and of its machine's policy.
pub(crate) fn of(home: &Home, policy: &PolicySource) -> Result<Status, HomeError> {
    Ok(Status {
        enrolled: home.enrolled()?,
        running: home.is_taken(),
        link: home.link(),
        has_containers: home.has_containers(),
        policy: policy::shown(policy),
    })
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(enrolled) = &self.enrolled else {
            return f.write_str("not enrolled: run `gantry-runner enrol --server URL`");
        };
        let daemon = match (self.running, &self.link) {
            (true, Some(link)) => format!("running; linked to {link}"),
            (true, None) => "running; no link now".to_owned(),
            (false, _) => "not running: start it with `gantry-runner run`".to_owned(),
        };
        writeln!(f, "runner     {} ({})", enrolled.name, enrolled.runner)?;
        for (number, server) in enrolled.servers.iter().enumerate() {
            let label = if number == 0 { "server" } else { "  or" };
            writeln!(f, "{label:<9}  {server}")?;
        }
        if self.has_containers {
            // The daemon finds out the isolation of a container, and reports it to the server.
            writeln!(
                f,
                "isolation  a Docker container for each user: `gantry runners` says what it keeps apart"
            )?;
        } else {
            writeln!(f, "workspace  {}", enrolled.workspace.display())?;
            for further in &enrolled.workspaces {
                let (name, folder) = (&further.name, further.folder.display());
                writeln!(f, "      and  {name}, {folder}")?;
            }
            writeln!(
                f,
                "isolation  {}: commands run as this user",
                Isolation::none()
            )?;
        }
        writeln!(f, "policy     {}", self.policy)?;
        write!(f, "daemon     {daemon}")
    }
}
