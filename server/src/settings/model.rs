//! `[model]`: the models that answer, and the waits for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;
use server_llm::{
    ApiKey, Catalogue, DEFAULT_BASE_URL, Named, Profile, Provider, ServerOptions, WireFormat,
};
use shared_types::clean::is_clean_line;

/// The shortest and the longest that a wait may be, in seconds.
const ANY_S: RangeInclusive<u32> = 1..=3600;

/// The smallest window of a model that can be set, in tokens: the system prompt and the tools alone
/// take about 3,000.
const SMALLEST_WINDOW: usize = 4096;

/// Most models that can be offered beside the first one.
const OTHERS_AT_MOST: usize = 64;

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
}

/// The model that answers.
pub(crate) enum ModelChoice {
    /// No AI: for trying things out.
    Practice,
    /// A model server: its format, the model that answers where no other one was chosen, and the others.
    Server(WireFormat, Box<ServerOptions>, Vec<Profile>),
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
        let others = others(self.others, named.as_deref())?;
        let is_chosen = self.provider.is_some();
        let default = provider.and_then(|provider| provider.default.clone());
        let name = named.or(default.filter(|_| is_chosen));
        let Some(name) = name else {
            ensure!(
                others.is_empty(),
                "others under [model] in gantry.toml names models, and no first one is named: set name under [model], or GANTRY_MODEL"
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
        let profile = |name: String| match provider {
            Some(provider) => provider.profile(&name),
            None => Profile {
                model: name,
                ..Profile::default()
            },
        };
        let address = provider.map(|provider| provider.base_url.clone());
        let address = base_url.or(address);
        let address = address.unwrap_or_else(|| DEFAULT_BASE_URL.to_owned());
        let mut options = ServerOptions::new(address, profile(name));
        options.named = Named {
            key: variable.to_owned(),
            ..Named::default()
        };
        options.key = key;
        if let Some(seconds) = first_byte_within {
            options.first_byte_within = wait("first_byte_within_s", seconds)?;
        }
        if let Some(seconds) = idle_at_most {
            options.idle_at_most = wait("idle_at_most_s", seconds)?;
        }
        let format = match (self.format, provider) {
            (Some(format), _) => format
                .parse()
                .with_context(|| format!("format under [model] in gantry.toml is {format:?}"))?,
            (None, Some(provider)) => provider.format,
            (None, None) => WireFormat::OpenAiChat,
        };
        let others = others.into_iter().map(profile).collect();
        Ok(ModelChoice::Server(format, Box::new(options), others))
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

/// The provider of the operator's models; none for a server of which only the address is known.
fn provider<'a>(
    named: Option<&str>,
    has_address: bool,
    catalogue: &'a Catalogue,
) -> anyhow::Result<Option<&'a Provider>> {
    let Some(name) = named else {
        return Ok(catalogue.provider("openai").filter(|_| !has_address));
    };
    let found = catalogue.provider(name).with_context(|| {
        let names: Vec<_> = catalogue.providers().map(|it| it.name.as_str()).collect();
        format!(
            "provider under [model] in gantry.toml is {name:?}, and there is none: choose one of {}, or describe it under [providers]",
            names.join(", ")
        )
    })?;
    Ok(Some(found))
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

/// The names of the other models, each once.
fn others(named: Vec<String>, first: Option<&str>) -> anyhow::Result<Vec<String>> {
    ensure!(
        named.len() <= OTHERS_AT_MOST,
        "others under [model] in gantry.toml names more than {OTHERS_AT_MOST} models"
    );
    let mut others: Vec<String> = Vec::with_capacity(named.len());
    for name in named {
        let name = name.trim();
        ensure!(
            (1..=MAX_MODEL_NAME_BYTES).contains(&name.len()) && is_clean_line(name),
            "others under [model] in gantry.toml holds names of models, each of 1 to {MAX_MODEL_NAME_BYTES} bytes on one line"
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
            ModelChoice::Server(_, options, _) => *options,
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
        let ModelChoice::Server(_, first, others_offered) = offered.expect("they are fine") else {
            panic!("a model is named");
        };
        assert_eq!(first.profile.model, "llama");
        let names: Vec<_> = others_offered.iter().map(|it| it.model.as_str()).collect();
        assert_eq!(names, ["qwen", "phi"]);
        for wrong in [r#"[""]"#, r#"["a\nb"]"#] {
            let message = error(&others(wrong), ModelArgs::default());
            assert!(message.contains("names of models"), "{message}");
        }
        let message = error("others = [\"qwen\"]\n", ModelArgs::default());
        assert!(message.contains("no first one is named"), "{message}");
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
