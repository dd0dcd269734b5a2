//! The commands about extensions.

use clap::{Args as Arguments, Subcommand};

use crate::pick::SessionName;

#[derive(Debug, Subcommand)]
pub(crate) enum Extensions {
    /// List what counts in a session, and where each thing comes from (the default)
    List {
        /// The session: an id, the beginning of one, or `last`
        #[arg(default_value = "last")]
        session: SessionName,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Trust the files with hooks, tool servers and plugins that a session found, as they are now
    Trust {
        /// Only this file
        file: Option<String>,
        /// The session whose last turn found them: an id, the beginning of one, or `last`
        #[arg(long, default_value = "last")]
        session: SessionName,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Trust a file no more
    Untrust {
        /// The file, as the list shows it
        file: String,
        /// The session whose last turn found it: an id, the beginning of one, or `last`
        #[arg(long, default_value = "last")]
        session: SessionName,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Skills {
    /// List the skills that are registered for you (the default)
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Print the instructions of a skill
    Show {
        /// The name of the skill
        name: String,
    },
    /// Register a skill from a folder with a SKILL.md, or from the address of one
    Add {
        /// The folder, its SKILL.md, or the address of a SKILL.md or a .tar.gz
        source: String,
        /// For all people of the tenant; that takes an admin
        #[arg(long)]
        tenant: bool,
    },
    /// Read a skill's source again, show what is different, and take it
    Update {
        /// The name of the skill
        name: String,
        /// The skill of the tenant
        #[arg(long)]
        tenant: bool,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Give a skill of yours to all people of the tenant; that takes an admin
    Publish {
        /// The name of the skill
        name: String,
    },
    /// Remove a skill
    Remove {
        /// The name of the skill
        name: String,
        /// The skill of the tenant
        #[arg(long)]
        tenant: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Registered {
    /// List those that are registered for you (the default)
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Print the file that was registered
    Show {
        /// Its name
        name: String,
    },
    /// Register what a file says; one of the same name is replaced
    Add {
        /// The file
        file: std::path::PathBuf,
        /// The name under which it is registered [default: that of the file]
        #[arg(long)]
        name: Option<String>,
        /// For all people of the tenant; that takes an admin
        #[arg(long)]
        tenant: bool,
    },
    /// Remove one
    Remove {
        /// Its name
        name: String,
        /// The one of the tenant
        #[arg(long)]
        tenant: bool,
    },
}

/// The way to a tool server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Transport {
    /// An address
    Http,
    /// A program on the runner
    Stdio,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// List the tool servers that are registered for you (the default)
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Register a tool server: its address, or the command that starts it on the runner, as in
    /// gantry mcp add files -- npx -y PACKAGE
    #[command(
        override_usage = "gantry mcp add [OPTIONS] <NAME> <ADDRESS>\n       gantry mcp add [OPTIONS] <NAME> -- <COMMAND>..."
    )]
    Add(AddToolServer),
    /// Start a tool server where it would run, show what it has, and stop it
    Test {
        /// Its name
        name: String,
        /// The session whose place and project count: an id, the beginning of one, or `last`
        #[arg(long, default_value = "last")]
        session: SessionName,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a tool server
    Remove {
        /// Its name
        name: String,
        /// That of the tenant
        #[arg(long)]
        tenant: bool,
    },
    /// Sign in to a tool server that wants it: prints an address for your browser, and waits until you have signed in there
    Login {
        /// Its name
        name: String,
        /// The session that found it in its project, where it is not registered
        #[arg(long, value_name = "SESSION")]
        session: Option<SessionName>,
        /// Read the address at which your browser ends from standard input, where no browser is signed in to Gantry
        #[arg(long)]
        paste: bool,
    },
    /// List your values, set or remove one: they stand for ${NAME} in addresses and headers of tool servers
    Values {
        #[command(subcommand)]
        command: Option<Values>,
    },
    /// Sign out of a tool server
    Logout {
        /// Its name
        name: String,
        /// The session that found it in its project, where it is not registered
        #[arg(long, value_name = "SESSION")]
        session: Option<SessionName>,
    },
}

#[derive(Debug, Arguments)]
pub(crate) struct AddToolServer {
    /// Its name
    pub(crate) name: String,
    /// The address of a server that speaks streamable HTTP, such as https://mcp.example.org/mcp
    #[arg(group = "at", conflicts_with = "command")]
    pub(crate) address: Vec<String>,
    /// The address, in another way to say it
    #[arg(long, group = "at", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The way to the server: http with an address, stdio with a command. It need not be told
    #[arg(long, short)]
    pub(crate) transport: Option<Transport>,
    /// A variable of the program's environment, as NAME=VALUE, or as NAME to be asked for the value; may be repeated
    #[arg(long, short, value_name = "NAME[=VALUE]", conflicts_with = "at")]
    pub(crate) env: Vec<String>,
    /// A header with which the address is asked, as 'NAME: VALUE', or as NAME to be asked for the value; may be repeated
    #[arg(long, short = 'H', value_name = "NAME[: VALUE]", requires = "at")]
    pub(crate) header: Vec<String>,
    /// The id of the client that you have registered at the server's authorization server, where that wants it
    #[arg(long, requires = "at")]
    pub(crate) client_id: Option<String>,
    /// Ask for the secret of that client
    #[arg(long, requires = "client_id")]
    pub(crate) client_secret: bool,
    /// The issuer of the authorization server, as it names itself, which is to be the only one; a client secret needs it
    #[arg(
        long,
        value_name = "URL",
        requires = "url",
        required_if_eq("client_secret", "true")
    )]
    pub(crate) issuer: Option<String>,
    /// The time in which it has to be ready, in seconds, up to 600 [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) startup_timeout: Option<u16>,
    /// For all people of the tenant; that takes an admin
    #[arg(long)]
    pub(crate) tenant: bool,
    /// The command, behind --
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Values {
    /// Set a value; asks for it, or reads it from standard input
    Set {
        /// Its name
        name: String,
        /// The host to which it may be sent, such as api.example.org; it goes to no other
        #[arg(long)]
        host: String,
    },
    /// Remove a value
    Remove {
        /// Its name
        name: String,
    },
}
