//! `[model]`: the models that answer, and the waits for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read as _,
    ops::RangeInclusive,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;
use server_app::models::check_account_name;
use server_llm::{
    ApiKey, Catalogue, DEFAULT_BASE_URL, Named, Profile, Provider, ServerOptions, WireFormat,
};
use shared_types::clean::is_clean_line;

/// The shortest and the longest that a wait may be, in seconds.
const ANY_S: RangeInclusive<u32> = 1..=3600;

/// The smallest window of a model that can be set, in tokens: the system prompt and the tools alone
/// take about 3,000.
const SMALLEST_WINDOW: usize = 4096;

/// Longest text of the operator with which a system prompt begins, in bytes.
const MAX_PROMPT_BYTES: u64 = 32 * 1024;

/// Most models that can be offered beside the first one.
const OTHERS_AT_MOST: usize = 64;

/// Most further accounts.
const ACCOUNTS_AT_MOST: usize = 32;

/// Longest name of a model, in bytes.
const MAX_MODEL_NAME_BYTES: usize = 128;

/// The flags, with the variables that stand for them.
#[derive(Args, Default, Clone)]
pub(crate) struct ModelArgs {
    /// The model's name.
    #[arg(long, env = "GANTRY_MODEL")]
    pub(super) model: Option<String>,
    /// The address of an OpenAI-compatible server.
    #[arg(long, env = "OPENAI_BASE_URL", hide_env_values = true)]
    pub(super) base_url: Option<String>,
    /// The longest wait for the first byte of an answer, in seconds [default: 600].
    #[arg(long, env = "GANTRY_FIRST_BYTE_WITHIN_S", value_name = "SECONDS")]
    pub(super) first_byte_within_s: Option<u32>,
    /// The longest silence of the model within its answer, in seconds [default: 120].
    #[arg(long, env = "GANTRY_IDLE_AT_MOST_S", value_name = "SECONDS")]
    pub(super) idle_at_most_s: Option<u32>,
}

/// The section of the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ModelSection {
    /// The model's name, as `--model` [default: the practice model, which is no AI].
    #[schemars(example = &"gpt-5")]
    name: Option<String>,
    /// Further models of the same server, which people may choose [default: none].
    #[schemars(example = ["gpt-5-mini"])]
    others: Vec<String>,
    /// The provider, such as `anthropic` or `gemini`; its format, address and prices count then [default: openai, or
    /// none where base_url is set].
    #[schemars(example = &"anthropic")]
    provider: Option<String>,
    /// The address of the model server, as `--base-url` [default: that of the provider].
    #[schemars(example = &"http://127.0.0.1:11434/v1")]
    base_url: Option<String>,
    /// The wire format of that server: openai-chat, openai-responses, anthropic-messages or gemini [default: that of the
    /// provider, or openai-chat].
    #[schemars(example = &"openai-chat")]
    format: Option<String>,
    /// True if the model accounts that people add may have addresses of private networks, such as that of a server
    /// beside this one [default: false].
    pub(super) private_addresses: bool,
    /// A file with the text with which each system prompt begins, in place of Gantry's own; what the tools say of
    /// themselves follows it. A reload reads it again [default: Gantry's own text].
    #[schemars(example = &"/etc/gantry/prompt.md")]
    prompt_file: Option<PathBuf>,
    /// A file with the key for that server. The variable of the provider, such as OPENAI_API_KEY, goes before it
    /// [default: no key].
    #[schemars(example = &"/etc/gantry/openai.key")]
    key_file: Option<PathBuf>,
    /// Tokens that fit into one request and its answer, of any of the models [default: the model says].
    #[schemars(example = 128_000)]
    window: Option<usize>,
    /// The longest wait for the first byte of an answer, 1 to 3600 [default: 600].
    first_byte_within_s: Option<u32>,
    /// The longest silence of the model within its answer, 1 to 3600 [default: 120].
    idle_at_most_s: Option<u32>,
    /// Further accounts of the operator, whose models people may choose beside the first ones. All people use them, and
    /// the operator pays.
    accounts: Vec<AccountSection>,
}

/// A further account, as it is written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AccountSection {
    /// Its name: letters, digits, dots, underscores and dashes. Its models are named `NAME/MODEL` [default: none; each
    /// account needs one].
    #[schemars(example = &"work")]
    name: String,
    /// Its provider, such as `anthropic` or `gemini`; the format, address and prices of that count [default: none, where
    /// base_url is set].
    #[schemars(example = &"anthropic")]
    provider: Option<String>,
    /// The address of its server [default: that of the provider].
    #[schemars(example = &"http://127.0.0.1:11434/v1")]
    base_url: Option<String>,
    /// The wire format of that server [default: that of the provider, or openai-chat].
    #[schemars(example = &"openai-chat")]
    format: Option<String>,
    /// Its models, the first one first [default: those that the server knows of the provider].
    #[schemars(example = ["claude-sonnet-5-5"])]
    #[serde(default)]
    models: Vec<String>,
    /// A file with its key. It goes before the variable of the provider, because several accounts of a provider have
    /// several keys [default: that variable, such as ANTHROPIC_API_KEY].
    #[schemars(example = &"/etc/gantry/work.key")]
    key_file: Option<PathBuf>,
}

/// The model that answers.
pub(crate) enum ModelChoice {
    /// No AI: for trying things out.
    Practice,
    /// Model servers.
    Servers {
        /// The server of the model that answers where no other one was chosen.
        first: Box<ModelServer>,
        /// Those of the further accounts.
        accounts: Vec<ModelServer>,
    },
}

/// A model server and its models.
pub(crate) struct ModelServer {
    pub(crate) format: WireFormat,
    /// The server, with its first model.
    pub(crate) options: ServerOptions,
    /// Its other models.
    pub(crate) others: Vec<Profile>,
}

impl ModelServer {
    /// The options of each of its models, the first one first.
    pub(crate) fn models(self) -> impl Iterator<Item = (WireFormat, ServerOptions)> {
        let options = self.options.clone();
        let others = self.others.into_iter().map(move |profile| ServerOptions {
            profile,
            ..options.clone()
        });
        let all = std::iter::once(self.options).chain(others);
        all.map(move |options| (self.format, options))
    }
}

impl ModelSection {
    /// Tokens that fit into one request and its answer, where they are known.
    ///
    /// # Errors
    /// Fails if they are too few for an agent.
    pub(super) fn window(&self) -> anyhow::Result<Option<usize>> {
        if self.window.is_some_and(|window| window < SMALLEST_WINDOW) {
            bail!(
                "window under [model] is below {SMALLEST_WINDOW} tokens, which is too small for an agent: set the number of tokens that fit into one request of the model"
            );
        }
        Ok(self.window)
    }

    /// The text with which the system prompt begins.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is empty, too long or no text.
    pub(super) fn prompt(&self) -> anyhow::Result<Option<Arc<str>>> {
        let Some(path) = &self.prompt_file else {
            return Ok(None);
        };
        let context = || {
            format!(
                "failed to read prompt_file under [model]: {}",
                path.display()
            )
        };
        let mut text = String::new();
        let file = File::open(path).with_context(context)?;
        let mut file = file.take(MAX_PROMPT_BYTES + 1);
        file.read_to_string(&mut text).with_context(context)?;
        ensure!(
            text.len() as u64 <= MAX_PROMPT_BYTES,
            "the prompt_file under [model] has more than {MAX_PROMPT_BYTES} bytes: write a shorter text"
        );
        ensure!(
            !text.trim().is_empty(),
            "the prompt_file under [model] is empty: write the text, or remove the setting"
        );
        Ok(Some(text.into()))
    }

    /// Combines the flags, the environment's keys and the section.
    ///
    /// # Errors
    /// Fails if they name half a model, if a value is out of bounds, or if the key cannot be read.
    pub(super) fn choose(
        self,
        args: ModelArgs,
        keys: &BTreeMap<String, String>,
        catalogue: &Catalogue,
    ) -> anyhow::Result<ModelChoice> {
        let first_byte_within = args.first_byte_within_s.or(self.first_byte_within_s);
        let idle_at_most = args.idle_at_most_s.or(self.idle_at_most_s);
        let named = filled(args.model.or(self.name));
        let base_url = filled(args.base_url.or(self.base_url));
        let provider = provider(self.provider.as_deref(), base_url.is_some(), catalogue)?;
        let variable = provider.and_then(|provider| provider.key.as_deref());
        let variable = variable.unwrap_or(OPENAI_API_KEY);
        let key = key(keys.get(variable), self.key_file)?;
        let others = others(
            self.others,
            named.as_deref(),
            "others under [model] in gantry.toml",
        )?;
        let is_chosen = self.provider.is_some();
        let default = provider.and_then(|provider| provider.default.clone());
        let name = named.or(default.filter(|_| is_chosen));
        let Some(name) = name else {
            ensure!(
                others.is_empty(),
                "others under [model] in gantry.toml names models, and no first one is named: set name under [model], or GANTRY_MODEL"
            );
            ensure!(
                self.accounts.is_empty(),
                "[[model.accounts]] in gantry.toml are further accounts, and no first model is named: set name under [model], or GANTRY_MODEL"
            );
            ensure!(
                base_url.is_none() && key.is_none(),
                "{variable} or OPENAI_BASE_URL is set but no model is named: set GANTRY_MODEL (or name under [model] in gantry.toml), or unset them to use the practice model"
            );
            return Ok(ModelChoice::Practice);
        };
        let needs_key = provider.is_none_or(|provider| provider.key.is_some());
        ensure!(
            base_url.is_some() || key.is_some() || !needs_key,
            "a model is named but there is no way to reach it: set {variable}, or OPENAI_BASE_URL for a server without keys"
        );
        let address = base_url.unwrap_or_else(|| address(provider));
        let waits = Waits::new(first_byte_within, idle_at_most)?;
        let mut options = ServerOptions::new(address, profile(provider, &name));
        options.named = Named {
            key: variable.to_owned(),
            ..Named::default()
        };
        options.key = key;
        waits.set(&mut options);
        let first = ModelServer {
            format: format(
                self.format.as_deref(),
                provider,
                "under [model] in gantry.toml",
            )?,
            options,
            others: others.iter().map(|name| profile(provider, name)).collect(),
        };
        Ok(ModelChoice::Servers {
            first: Box::new(first),
            accounts: accounts(self.accounts, &waits, keys, catalogue)?,
        })
    }
}

/// The longest waits for a model.
struct Waits {
    first_byte_within: Option<Duration>,
    idle_at_most: Option<Duration>,
}

impl Waits {
    fn new(first_byte_within_s: Option<u32>, idle_at_most_s: Option<u32>) -> anyhow::Result<Self> {
        let of = |key, seconds: Option<u32>| seconds.map(|it| wait(key, it)).transpose();
        Ok(Self {
            first_byte_within: of("first_byte_within_s", first_byte_within_s)?,
            idle_at_most: of("idle_at_most_s", idle_at_most_s)?,
        })
    }

    fn set(&self, options: &mut ServerOptions) {
        let first_byte_within = self.first_byte_within;
        options.first_byte_within = first_byte_within.unwrap_or(options.first_byte_within);
        options.idle_at_most = self.idle_at_most.unwrap_or(options.idle_at_most);
    }
}

/// The servers of the further accounts.
fn accounts(
    sections: Vec<AccountSection>,
    waits: &Waits,
    keys: &BTreeMap<String, String>,
    catalogue: &Catalogue,
) -> anyhow::Result<Vec<ModelServer>> {
    ensure!(
        sections.len() <= ACCOUNTS_AT_MOST,
        "there are more than {ACCOUNTS_AT_MOST} [[model.accounts]] in gantry.toml"
    );
    let mut names = BTreeSet::new();
    let mut servers = Vec::with_capacity(sections.len());
    for section in sections {
        let name = section.name.clone();
        check_account_name(&name)
            .with_context(|| format!("[[model.accounts]] in gantry.toml has the name {name:?}"))?;
        let server = section.server(waits, keys, catalogue).with_context(|| {
            format!("the account {name:?} of [[model.accounts]] in gantry.toml cannot be used")
        })?;
        ensure!(
            names.insert(name.clone()),
            "two [[model.accounts]] in gantry.toml have the name {name:?}: give one of them another"
        );
        servers.push(server);
    }
    Ok(servers)
}

impl AccountSection {
    fn server(
        self,
        waits: &Waits,
        keys: &BTreeMap<String, String>,
        catalogue: &Catalogue,
    ) -> anyhow::Result<ModelServer> {
        let named = self.provider.as_deref();
        let provider = named.map(|name| known(name, catalogue)).transpose()?;
        let base_url = filled(self.base_url);
        ensure!(
            provider.is_some() || base_url.is_some(),
            "it names no server: set provider, or base_url"
        );
        let variable = provider.and_then(|provider| provider.key.as_deref());
        let in_environment = variable.and_then(|variable| keys.get(variable));
        let key = key(
            in_environment.filter(|_| self.key_file.is_none()),
            self.key_file,
        )?;
        if let (Some(variable), None, None) = (variable, &key, &base_url) {
            bail!("it has no key: set key_file, or {variable}");
        }
        let mut models = others(self.models, None, "models")?;
        if models.is_empty() {
            let listed = provider.into_iter().flat_map(|provider| &provider.models);
            models.extend(listed.map(|profile| profile.model.clone()));
        }
        let mut models = models.iter().map(|name| profile(provider, name));
        let Some(first) = models.next() else {
            bail!("its models are not known: name them in models");
        };
        let address = base_url.unwrap_or_else(|| address(provider));
        let mut options = ServerOptions::new(address, first);
        options.named = Named {
            key: format!("the key of the account {}", self.name),
            address: format!("base_url of the account {}", self.name),
            model: format!("models of the account {}", self.name),
        };
        options.key = key;
        waits.set(&mut options);
        let format = format(self.format.as_deref(), provider, "of it")?;
        options.account = Some(self.name);
        Ok(ModelServer {
            format,
            options,
            others: models.collect(),
        })
    }
}

/// The profile of a model of this provider; of one without a provider the name alone.
fn profile(provider: Option<&Provider>, name: &str) -> Profile {
    match provider {
        Some(provider) => provider.profile(name),
        None => Profile {
            model: name.to_owned(),
            ..Profile::default()
        },
    }
}

fn address(provider: Option<&Provider>) -> String {
    let address = provider.map(|provider| provider.base_url.clone());
    address.unwrap_or_else(|| DEFAULT_BASE_URL.to_owned())
}

/// The wire format that is written, or that of the provider. `place` is where it is written.
fn format(
    written: Option<&str>,
    provider: Option<&Provider>,
    place: &str,
) -> anyhow::Result<WireFormat> {
    match (written, provider) {
        (Some(format), _) => format
            .parse()
            .with_context(|| format!("format {place} is {format:?}")),
        (None, Some(provider)) => Ok(provider.format),
        (None, None) => Ok(WireFormat::OpenAiChat),
    }
}

/// The variable of the key where no provider is named.
const OPENAI_API_KEY: &str = "OPENAI_API_KEY";

/// The keys of providers in the environment, by their variables; each is overwritten there.
pub(super) fn keys_of_environment() -> BTreeMap<String, String> {
    let catalogue = Catalogue::built_in().ok();
    let providers = catalogue.iter().flat_map(Catalogue::providers);
    let variables = providers.filter_map(|provider| provider.key.clone());
    // Each once, because the first look overwrites it.
    let variables: BTreeSet<_> = variables.chain([OPENAI_API_KEY.to_owned()]).collect();
    let keys = variables.into_iter().filter_map(|variable| {
        let key = shared_program::take_secret(&variable)?;
        Some((variable, key))
    });
    keys.collect()
}

/// The provider of the operator's models; `None` if the settings give only a server's address.
fn provider<'a>(
    named: Option<&str>,
    has_address: bool,
    catalogue: &'a Catalogue,
) -> anyhow::Result<Option<&'a Provider>> {
    let Some(name) = named else {
        return Ok(catalogue.provider("openai").filter(|_| !has_address));
    };
    let found = known(name, catalogue);
    found
        .context("provider under [model] in gantry.toml")
        .map(Some)
}

/// The provider of this name.
fn known<'a>(name: &str, catalogue: &'a Catalogue) -> anyhow::Result<&'a Provider> {
    catalogue.provider(name).with_context(|| {
        let names: Vec<_> = catalogue.providers().map(|it| it.name.as_str()).collect();
        format!(
            "there is no provider {name:?}: choose one of {}, or describe it under [providers]",
            names.join(", ")
        )
    })
}

/// The key from the environment, or from the file.
fn key(given: Option<&String>, file: Option<PathBuf>) -> anyhow::Result<Option<ApiKey>> {
    if let Some(given) = given {
        return Ok(ApiKey::new(given));
    }
    let Some(path) = file else {
        return Ok(None);
    };
    let path = path.display().to_string();
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("the model's key file {path} cannot be read"))?;
    let key =
        ApiKey::new(&text).with_context(|| format!("the model's key file {path} holds no key"))?;
    Ok(Some(key))
}

fn filled(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

/// The names of further models, each once. `key` is where they are named.
fn others(named: Vec<String>, first: Option<&str>, key: &str) -> anyhow::Result<Vec<String>> {
    ensure!(
        named.len() <= OTHERS_AT_MOST,
        "{key} names more than {OTHERS_AT_MOST} models"
    );
    let mut others: Vec<String> = Vec::with_capacity(named.len());
    for name in named {
        let name = name.trim();
        ensure!(
            (1..=MAX_MODEL_NAME_BYTES).contains(&name.len()) && is_clean_line(name),
            "{key} holds names of models, each of 1 to {MAX_MODEL_NAME_BYTES} bytes on one line"
        );
        if Some(name) != first && !others.iter().any(|known| known == name) {
            others.push(name.to_owned());
        }
    }
    Ok(others)
}

fn wait(key: &str, seconds: u32) -> anyhow::Result<Duration> {
    if !ANY_S.contains(&seconds) {
        bail!(
            "{key} under [model] in gantry.toml, or as a flag, is a number of seconds from {} to {}",
            ANY_S.start(),
            ANY_S.end()
        );
    }
    Ok(Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(toml: &str, args: ModelArgs) -> anyhow::Result<ModelChoice> {
        let section: ModelSection = toml::from_str(toml).expect("a section");
        section.choose(args, &BTreeMap::new(), &Catalogue::built_in()?)
    }

    fn error(toml: &str, args: ModelArgs) -> String {
        format!("{:#}", choose(toml, args).err().expect("it is refused"))
    }

    fn options(toml: &str, args: ModelArgs) -> ServerOptions {
        match choose(toml, args).expect("it is fine") {
            ModelChoice::Servers { first, .. } => first.options,
            ModelChoice::Practice => panic!("a model is named"),
        }
    }

    const LOCAL: &str = "name = \"llama\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";

    #[test]
    fn a_model_needs_a_name_and_a_way_to_reach_it() {
        let named = |name: &str| ModelArgs {
            model: Some(name.to_owned()),
            ..ModelArgs::default()
        };
        let based = ModelArgs {
            base_url: Some("http://127.0.0.1:1/v1".to_owned()),
            ..ModelArgs::default()
        };
        assert!(matches!(
            choose("", ModelArgs::default()).expect("it is fine"),
            ModelChoice::Practice
        ));
        assert!(error("", named("gpt-5")).contains("OPENAI_API_KEY"));
        assert!(error("", based).contains("GANTRY_MODEL"));
        let options = options(LOCAL, named("qwen"));
        assert_eq!(options.profile.model, "qwen");
        assert_eq!(options.base_url, "http://127.0.0.1:1/v1");
        assert!(options.key.is_none());
    }

    #[test]
    fn further_models_are_offered_once_each_beside_a_first_one() {
        let others = |names: &str| format!("{LOCAL}others = {names}\n");
        let offered = choose(
            &others(r#"["qwen", "llama", "qwen", "phi"]"#),
            ModelArgs::default(),
        );
        let ModelChoice::Servers { first, .. } = offered.expect("they are fine") else {
            panic!("a model is named");
        };
        assert_eq!(first.options.profile.model, "llama");
        let names: Vec<_> = first.others.iter().map(|it| it.model.as_str()).collect();
        assert_eq!(names, ["qwen", "phi"]);
        for wrong in [r#"[""]"#, r#"["a\nb"]"#] {
            let message = error(&others(wrong), ModelArgs::default());
            assert!(message.contains("names of models"), "{message}");
        }
        let message = error("others = [\"qwen\"]\n", ModelArgs::default());
        assert!(message.contains("no first one is named"), "{message}");
    }

    fn accounts(toml: &str, keys: &[(&str, &str)]) -> anyhow::Result<Vec<ModelServer>> {
        let section: ModelSection = toml::from_str(&format!("{LOCAL}{toml}"))?;
        let keys = keys
            .iter()
            .map(|&(name, key)| (name.to_owned(), key.to_owned()));
        let keys: BTreeMap<_, _> = keys.collect();
        match section.choose(ModelArgs::default(), &keys, &Catalogue::built_in()?)? {
            ModelChoice::Servers { accounts, .. } => Ok(accounts),
            ModelChoice::Practice => panic!("a model is named"),
        }
    }

    #[test]
    fn further_accounts_have_models_and_keys_of_their_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("work.key");
        std::fs::write(&file, "sk-of-work\n").expect("it is written");
        let toml = format!(
            "idle_at_most_s = 30\n\
             [[accounts]]\nname = \"work\"\nprovider = \"claude\"\nmodels = [\"claude-x\", \"claude-y\"]\nkey_file = {file:?}\n\
             [[accounts]]\nname = \"fast\"\nprovider = \"anthropic\"\n\
             [[accounts]]\nname = \"home\"\nbase_url = \"http://127.0.0.1:2\"\nformat = \"gemini\"\nmodels = [\"m\"]\n"
        );
        let keys = [
            ("ANTHROPIC_API_KEY", "sk-of-all"),
            ("OPENAI_API_KEY", "sk-of-first"),
        ];
        let servers = accounts(&toml, &keys).expect("they are fine");
        let told = servers.iter().map(|server| {
            let options = &server.options;
            let key = options.key.is_some();
            (
                options.account.clone(),
                server.format,
                options.base_url.clone(),
                key,
            )
        });
        let expected = [
            (
                "work",
                WireFormat::AnthropicMessages,
                "https://api.anthropic.com",
                true,
            ),
            (
                "fast",
                WireFormat::AnthropicMessages,
                "https://api.anthropic.com",
                true,
            ),
            ("home", WireFormat::Gemini, "http://127.0.0.1:2", false),
        ];
        let expected = expected
            .map(|(name, format, url, key)| (Some(name.to_owned()), format, url.to_owned(), key));
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert!(
            servers
                .iter()
                .all(|it| it.options.idle_at_most.as_secs() == 30)
        );
        let models = servers.into_iter().map(|server| {
            let models = server.models().map(|(_, options)| options.profile.model);
            models.collect::<Vec<_>>()
        });
        let models: Vec<_> = models.collect();
        assert_eq!(models[0], ["claude-x", "claude-y"]);
        assert!(models[1].len() > 1, "those of the catalogue: {models:?}");
    }

    #[test]
    fn an_account_that_cannot_be_used_is_refused_with_what_to_do() {
        let account = |rest: &str| format!("[[accounts]]\nname = \"work\"\n{rest}\n");
        let local = account("base_url = \"http://127.0.0.1:2\"\nmodels = [\"m\"]");
        for (toml, words) in [
            (
                local.repeat(2),
                "two [[model.accounts]] in gantry.toml have the name \"work\"",
            ),
            (local.repeat(33), "more than 32"),
            (local.replace("work", "a/b"), "letters, digits"),
            (local.replace("work", "operator"), "neither operator"),
            (
                account("provider = \"nobody\""),
                "there is no provider \"nobody\": choose one of",
            ),
            (
                account("provider = \"anthropic\""),
                "set key_file, or ANTHROPIC_API_KEY",
            ),
            (account(""), "set provider, or base_url"),
            (account("provider = \"ollama\""), "name them in models"),
            (
                account("base_url = \"http://127.0.0.1:2\"\nmodels = [\"\"]"),
                "models holds names of models",
            ),
            (
                account("provider = \"anthropic\"\nkey_file = \"/no/such.key\""),
                "key file /no/such.key cannot be read",
            ),
            (
                account("provider = \"ollama\"\nmodels = [\"m\"]\nformat = \"telegraph\""),
                "openai-chat",
            ),
        ] {
            let error = accounts(&toml, &[]).err().map(|error| format!("{error:#}"));
            let error = error.unwrap_or_else(|| panic!("it is refused: {toml}"));
            assert!(error.contains(words), "{error}");
        }
        let message = error(&local, ModelArgs::default());
        assert!(message.contains("no first model is named"), "{message}");
    }

    #[test]
    fn the_waits_come_from_the_flags_then_the_file_then_the_defaults() {
        let waits = |toml: &str, args| {
            let options = options(&format!("{LOCAL}{toml}"), args);
            (
                options.first_byte_within.as_secs(),
                options.idle_at_most.as_secs(),
            )
        };
        assert_eq!(waits("", ModelArgs::default()), (600, 120));
        let file = "first_byte_within_s = 900\nidle_at_most_s = 30\n";
        assert_eq!(waits(file, ModelArgs::default()), (900, 30));
        let args = ModelArgs {
            first_byte_within_s: Some(5),
            ..ModelArgs::default()
        };
        assert_eq!(waits(file, args), (5, 30));
        for (key, seconds) in [("first_byte_within_s", 0), ("idle_at_most_s", 3601)] {
            let toml = format!("{LOCAL}{key} = {seconds}\n");
            let message = error(&toml, ModelArgs::default());
            assert!(
                message.contains(key) && message.contains("1 to 3600"),
                "{message}"
            );
        }
    }
}
