//! `gantry models`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// List them (the default)
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Add your account at a provider, or replace it: asks for the key, and tries it
    Add {
        /// The provider, such as anthropic, openai or gemini; or a name of your own, with --url
        provider: String,
        /// The account's name [default: that of the provider]
        #[arg(long)]
        name: Option<String>,
        /// The address of the server [default: that of the provider]
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// The wire format: openai-chat, openai-responses, anthropic-messages or gemini [default: the provider's]
        #[arg(long)]
        format: Option<String>,
        /// A model that it offers; may be given several times [default: the models that the server knows]
        #[arg(long = "model", value_name = "MODEL")]
        models: Vec<String>,
        /// The server asks for no key
        #[arg(long)]
        no_key: bool,
        /// Add it for all people of the tenant
        #[arg(long)]
        tenant: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Ask a model, or an account's first model, one small thing
    Test {
        /// The name of the model or the account
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove an account, with its key
    Remove {
        /// The account's name or id
        name: String,
        /// Remove the account of the tenant
        #[arg(long)]
        tenant: bool,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}
