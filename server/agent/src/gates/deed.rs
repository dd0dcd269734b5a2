//! The deed of a call: what it asks for, as rules see it.

use shared_consent::Deed;
use shared_sandbox::{Command, Exec, Request, path_from_root};
use shared_types::event::Worktree;

use crate::tools::{AgentAsk, Ask, CREATE_CHAT, WebAsk};

/// The command as which a call is judged that has an agent work in a worktree.
pub(super) const MAKES_WORKTREE: &str = "git worktree add .gantry/worktrees/agent";

/// The deed of a request, with its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnedDeed {
    /// A script, and the folder in which it starts.
    Shell(String, String),
    /// A program with its arguments, and the folder in which it starts.
    Argv(Vec<String>, String),
    Read(String),
    Search(String),
    Write(String),
    Fetch(String),
    Tool(String),
}

impl OwnedDeed {
    /// The deed of this request in a session that works in this directory. `None` for what only concerns the
    /// conversation itself.
    pub(crate) fn of(ask: &Ask, directory: &str) -> Option<Self> {
        match ask {
            Ask::Operation(prepared) => Some(Self::of_request(&prepared.request, directory)),
            Ask::Web(WebAsk::Fetch { url }) => Some(Self::Fetch(url.clone())),
            Ask::Web(WebAsk::Search { .. }) => Some(Self::Tool("web_search".to_owned())),
            Ask::Server(ask) => Some(Self::Tool(ask.name.clone())),
            Ask::Chat(_) => Some(Self::Tool(CREATE_CHAT.to_owned())),
            Ask::Agent(AgentAsk::Begin(ask)) if ask.worktree => {
                Some(Self::Shell(MAKES_WORKTREE.to_owned(), directory.to_owned()))
            }
            // A question to people has an answer of theirs.
            Ask::Person(_)
            // What an agent does passes its own gate, in no higher mode.
            | Ask::Agent(_)
            | Ask::Tasks(_)
            | Ask::Recall(_)
            | Ask::Context(_)
            | Ask::History(_)
            | Ask::Todo(_)
            | Ask::Skill(_)
            | Ask::FindTools(_) => None,
        }
    }

    fn of_request(request: &Request, directory: &str) -> Self {
        let read = |path: &str| Self::Read(path_from_root(directory, path));
        let write = |path: &str| Self::Write(path_from_root(directory, path));
        // An absolute folder of a container stays one.
        let folder = |exec: &Exec| match exec.directory.starts_with('/') {
            true => exec.directory.clone(),
            false => path_from_root(directory, &exec.directory),
        };
        match request {
            Request::Exec(exec) => match &exec.command {
                Command::Shell(script) => Self::Shell(script.clone(), folder(exec)),
                Command::Argv(words) => Self::Argv(words.clone(), folder(exec)),
            },
            Request::Read(read_) => read(&read_.path),
            Request::List(list) => read(&list.path),
            Request::Glob(glob) => read(&glob.path),
            Request::Grep(grep) => Self::Search(path_from_root(directory, &grep.path)),
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

    /// The same deed on the original of its file: the file in the repository, where this one is the copy in an agent's
    /// worktree. None for another file, and for a deed on no file.
    pub(crate) fn in_repository(&self, worktree: &Worktree) -> Option<Self> {
        let original = |path: &String| {
            let below = path.strip_prefix(&worktree.path)?;
            let below = below.trim_start_matches('/');
            Some(match worktree.settled_in() {
                "" => below.to_owned(),
                holder => format!("{holder}/{below}"),
            })
        };
        Some(match self {
            Self::Read(path) => Self::Read(original(path)?),
            Self::Search(path) => Self::Search(original(path)?),
            Self::Write(path) => Self::Write(original(path)?),
            Self::Shell(..) | Self::Argv(..) | Self::Fetch(_) | Self::Tool(_) => return None,
        })
    }

    /// The folder in which a command starts; empty for the root, and for what is no command.
    pub(crate) fn folder(&self) -> &str {
        match self {
            Self::Shell(_, folder) | Self::Argv(_, folder) => folder,
            _ => "",
        }
    }

    /// The deed, as rules see it.
    pub(crate) fn as_deed(&self) -> Deed<'_> {
        match self {
            Self::Shell(script, _) => Deed::Shell(script),
            Self::Argv(words, _) => Deed::Argv(words),
            Self::Search(path) => Deed::Search(path),
            Self::Read(path) => Deed::Read(path),
            Self::Write(path) => Deed::Write(path),
            Self::Fetch(url) => Deed::Fetch(url),
            Self::Tool(name) => Deed::Tool(name),
        }
    }
}
