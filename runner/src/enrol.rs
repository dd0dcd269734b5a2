//! `gantry-runner enrol`: from a join token to a runner that the server knows.

use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
};

use shared_types::{Entropy, Isolation, Token, limits};

use crate::{
    endpoints::Endpoints,
    enrolment::{EnrolmentError, Introduction, Proven},
    home::{EnrolledHome, Home, HomeError},
    key::ServerIdentity,
};

/// The most labels that a runner may bring along.
const MAX_LABELS: usize = 32;

/// A person's choices for a new runner.
pub(crate) struct Enrolment {
    /// The server's addresses. The first that answers enrols it.
    pub(crate) endpoints: Endpoints,
    pub(crate) allow_plain_text: bool,
    pub(crate) token: Token,
    /// The wanted name; the join token's, or one that the server makes, where there is none.
    pub(crate) name: Option<String>,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) hostname: String,
    pub(crate) workspace: PathBuf,
    /// True if an earlier enrolment in the same home may be given up.
    pub(crate) replace: bool,
}

/// Makes the runner known to the server and remembers it in `home`.
pub(crate) async fn enrol(
    home: &Home,
    mut wanted: Enrolment,
    entropy: &dyn Entropy,
) -> Result<EnrolReport, EnrolError> {
    let pin = wanted.token.pin().copied();
    let server_identity = ServerIdentity(pin.ok_or(EnrolError::NoPin)?);
    let introduction = introduction(&wanted)?;
    let workspace = workspace(&wanted.workspace)?;

    let _lock = home.lock()?;
    if !wanted.replace
        && let Some(enrolled) = home.enrolled()?
    {
        return Err(EnrolError::Already {
            name: enrolled.name,
            server: enrolled.servers.join(", "),
        });
    }
    let key = home.prepare_key(&wanted.token, entropy)?;

    let proven = reach(&mut wanted.endpoints, &server_identity, entropy).await?;
    let certificate = proven.certificate;
    let (runner, name) = proven
        .enrol(&wanted.token, &key, introduction, entropy)
        .await?;
    let enrolled = EnrolledHome {
        servers: wanted.endpoints.texts(),
        allow_plain_text: wanted.allow_plain_text,
        runner,
        name,
        server_identity,
        certificate: certificate.and_then(|hash| shared_types::Digest::from_slice(&hash)),
        workspace,
        workspaces: Vec::new(),
    };
    home.enrol(&enrolled)
        .map_err(|source| EnrolError::Unsaved {
            name: enrolled.name.clone(),
            source,
        })?;
    Ok(EnrolReport(enrolled))
}

/// The one line that a person reads after an enrolment.
#[derive(Debug)]
pub(crate) struct EnrolReport(pub(crate) EnrolledHome);

impl fmt::Display for EnrolReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "enrolled as {} with {}; workspace {}; isolation: {} — commands run as your user, or in containers with `gantry-runner run --backend docker`",
            self.0.name,
            self.0.servers.join(", "),
            self.0.workspace.display(),
            Isolation::none(),
        )
    }
}

/// The first endpoint that answers. A server that proves another identity is reported to the
/// person.
async fn reach(
    endpoints: &mut Endpoints,
    identity: &ServerIdentity,
    entropy: &dyn Entropy,
) -> Result<Proven, EnrolmentError> {
    let mut left = endpoints.len();
    loop {
        left -= 1;
        let proven = match endpoints.next().await {
            Ok(route) => Proven::connect(&route, identity, entropy).await,
            Err(error) => Err(error.into()),
        };
        match proven {
            Err(
                error @ (EnrolmentError::Connect(_)
                | EnrolmentError::NotGantry { .. }
                | EnrolmentError::Silent),
            ) if left > 0 => {
                tracing::warn!(server = %endpoints.last(), %error, "trying the next address");
            }
            proven => return proven,
        }
    }
}

fn introduction(wanted: &Enrolment) -> Result<Introduction, EnrolError> {
    if let Some(name) = &wanted.name
        && !limits::is_name(name)
    {
        return Err(EnrolError::Name(name.clone()));
    }
    if wanted.labels.len() > MAX_LABELS {
        return Err(EnrolError::Labels);
    }
    let labels: HashMap<_, _> = wanted.labels.iter().cloned().collect();
    Ok(Introduction {
        name: wanted.name.clone().unwrap_or_default(),
        labels,
        hostname: wanted.hostname.clone(),
    })
}

fn workspace(path: &Path) -> Result<PathBuf, EnrolError> {
    let wrong = |reason: String| EnrolError::Workspace {
        path: path.to_owned(),
        reason,
    };
    let path = path.canonicalize().map_err(|e| wrong(e.to_string()))?;
    if path.is_dir() {
        Ok(path)
    } else {
        Err(wrong("it is not a directory".into()))
    }
}

/// The reason why a runner was not enrolled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnrolError {
    #[error("the token names no server: make a join token")]
    NoPin,
    #[error(
        "{0:?} cannot be a runner's name: use lower-case letters, digits and -._ inside, at most {max} of them",
        max = limits::MAX_NAME_BYTES
    )]
    Name(String),
    #[error("there are too many labels: give at most {MAX_LABELS}")]
    Labels,
    #[error("cannot use {} as the workspace ({reason}): give an existing directory with --workspace", path.display())]
    Workspace { path: PathBuf, reason: String },
    #[error(
        "this home already belongs to the runner {name} of {server}: give another --home, or --replace it"
    )]
    Already { name: String, server: String },
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Server(#[from] EnrolmentError),
    #[error(
        "the server knows this runner as {name} now, but it cannot be remembered here ({source}): remove it there, and enrol again with a new token"
    )]
    Unsaved { name: String, source: HomeError },
}

#[cfg(test)]
mod tests;
