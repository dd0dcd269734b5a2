//! The deed of a call: what it asks for, as rules see it.

use shared_consent::Deed;
use shared_sandbox::{Command, Request, path_from_root};

use crate::tools::{Ask, WebAsk};

/// The deed of a request, with its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnedDeed {
    Shell(String),
    Argv(Vec<String>),
    Read(String),
    Write(String),
    Fetch(String),
    Tool(&'static str),
}

impl OwnedDeed {
    /// The deed of this request in a session that works in this directory. `None` for what only concerns the
    /// conversation itself.
    pub(crate) fn of(ask: &Ask, directory: &str) -> Option<Self> {
        match ask {
            Ask::Operation(prepared) => Some(Self::of_request(&prepared.request, directory)),
            Ask::Web(WebAsk::Fetch { url }) => Some(Self::Fetch(url.clone())),
            Ask::Web(WebAsk::Search { .. }) => Some(Self::Tool("web_search")),
            // A question to people has an answer of theirs.
            Ask::Person(_)
            | Ask::Tasks(_)
            | Ask::Recall(_)
            | Ask::Context(_)
            | Ask::History(_)
            | Ask::Todo(_) => None,
        }
    }

    fn of_request(request: &Request, directory: &str) -> Self {
        let read = |path: &str| Self::Read(path_from_root(directory, path));
        let write = |path: &str| Self::Write(path_from_root(directory, path));
        match request {
            Request::Exec(exec) => match &exec.command {
                Command::Shell(script) => Self::Shell(script.clone()),
                Command::Argv(words) => Self::Argv(words.clone()),
            },
            Request::Read(read_) => read(&read_.path),
            Request::List(list) => read(&list.path),
            Request::Glob(glob) => read(&glob.path),
            Request::Grep(grep) => read(&grep.path),
            Request::Download(download) => read(&download.path),
            Request::Stat(stat) => read(&stat.path),
            Request::Pack(pack) => read(&pack.path),
            Request::Survey(survey) => read(&survey.path),
            Request::Write(write_) => write(&write_.path),
            Request::Edit(edit) => write(&edit.path),
            Request::MakeDirectory(made) => write(&made.path),
            Request::Remove(removed) => write(&removed.path),
            Request::Upload(upload) => write(&upload.path),
            Request::Unpack(unpack) => write(&unpack.path),
            // No tool moves a file. If one did, it would change both ends of the way.
            Request::Move(moved) => write(&moved.to),
        }
    }

    /// The deed, as rules see it.
    pub(crate) fn as_deed(&self) -> Deed<'_> {
        match self {
            Self::Shell(script) => Deed::Shell(script),
            Self::Argv(words) => Deed::Argv(words),
            Self::Read(path) => Deed::Read(path),
            Self::Write(path) => Deed::Write(path),
            Self::Fetch(url) => Deed::Fetch(url),
            Self::Tool(name) => Deed::Tool(name),
        }
    }
}
