//! The catalogue: providers of models, and what is known of their models.
//!
//! It is data. The file `catalogue/providers.toml` is part of the program, and the operator's settings replace or add
//! to any of it. A model that the catalogue does not list can be used all the same; its window and its price are then
//! unknown, and its cost is shown as unpriced.

mod written;

use std::{collections::BTreeMap, str::FromStr};

use crate::{Price, Profile, Thinking, ToolCalls, WireFormat};
use written::{WrittenModel, WrittenProvider};

pub use written::Providers;

/// The catalogue that is part of the program.
const BUILT_IN: &str = include_str!("catalogue/providers.toml");

/// Most providers, and most models of one of them.
const AT_MOST: usize = 256;

/// Providers by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    providers: BTreeMap<String, Provider>,
}

/// A provider of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// Its name, such as `anthropic`.
    pub name: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// The wire format of its servers.
    pub format: WireFormat,
    /// The base address of its servers.
    pub base_url: String,
    /// The environment variable that holds its key; `None` for servers without keys.
    pub key: Option<String>,
    /// The model that answers where none is named.
    pub default: Option<String>,
    /// The models that stand for the tiers.
    pub tiers: BTreeMap<Tier, String>,
    /// The beginnings of the names of its models.
    pub names: Vec<String>,
    /// True if those of its models that are not listed can read images.
    pub sees: bool,
    /// The way in which those of its models that are not listed call tools.
    pub tools: ToolCalls,
    /// Its models that are known by name.
    pub models: Vec<Profile>,
}

/// A name for the best model that is at hand, of three kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The most able one.
    Vanguard,
    /// The one for most work.
    Balance,
    /// The quickest one.
    Swift,
}

impl Tier {
    /// All tiers.
    pub const ALL: [Self; 3] = [Self::Vanguard, Self::Balance, Self::Swift];

    /// The name of the tier.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vanguard => "vanguard",
            Self::Balance => "balance",
            Self::Swift => "swift",
        }
    }
}

impl FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|tier| tier.name() == name).ok_or(UnknownTier)
    }
}

/// No tier has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no tier has that name; there are: vanguard, balance, swift")]
pub struct UnknownTier;

/// The reason why a catalogue cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// It is not TOML of the catalogue's form.
    #[error("the providers of models cannot be read: {0}")]
    Form(String),
    /// A value of a provider is not allowed.
    #[error("the provider {provider:?} cannot be used: {reason}")]
    Provider {
        /// The provider.
        provider: String,
        /// The value, and what is allowed.
        reason: String,
    },
}

impl Catalogue {
    /// The catalogue that is part of the program.
    ///
    /// # Errors
    /// If the file is damaged; a test reads it.
    pub fn built_in() -> Result<Self, CatalogueError> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            providers: Providers,
        }
        let file: File =
            toml::from_str(BUILT_IN).map_err(|error| CatalogueError::Form(error.to_string()))?;
        let empty = Self {
            providers: BTreeMap::new(),
        };
        empty.with(file.providers)
    }

    /// The catalogue with these providers. A key that is given replaces that of the provider of this name, a model
    /// that is listed replaces the model of this name, and the rest stays.
    ///
    /// # Errors
    /// If a value is not allowed, or a new provider lacks one.
    pub fn with(mut self, others: Providers) -> Result<Self, CatalogueError> {
        for (name, written) in others.0 {
            let known = self.providers.remove(&name);
            let provider = Provider::of(name.clone(), known, written).map_err(|reason| {
                CatalogueError::Provider {
                    provider: name.clone(),
                    reason,
                }
            })?;
            self.providers.insert(name, provider);
        }
        match self.providers.len() <= AT_MOST {
            true => Ok(self),
            false => Err(CatalogueError::Form(format!(
                "there are more than {AT_MOST} of them"
            ))),
        }
    }

    /// All providers, by name.
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.values()
    }

    /// The provider of this name or alias.
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.get(name).or_else(|| {
            let mut all = self.providers.values();
            all.find(|provider| provider.aliases.iter().any(|alias| alias == name))
        })
    }

    /// The provider of a model, by the model's name: the one that lists it, or the one with the longest beginning of
    /// it.
    pub fn provider_of(&self, model: &str) -> Option<&Provider> {
        let lists = |provider: &&Provider| provider.models.iter().any(|known| known.model == model);
        let beginning = |provider: &Provider| {
            let fitting = provider
                .names
                .iter()
                .filter(|name| model.starts_with(*name));
            fitting.map(String::len).max()
        };
        let by_beginning = || {
            let all = self.providers.values();
            let fitting = all.filter_map(|provider| Some((beginning(provider)?, provider)));
            fitting.max_by_key(|(length, _)| *length)
        };
        match by_beginning() {
            Some((_, provider)) => Some(provider),
            None => self.providers.values().find(lists),
        }
    }
}

impl Provider {
    /// The profile of this model of the provider.
    pub fn profile(&self, model: &str) -> Profile {
        let mut listed = self.models.iter();
        let listed = listed.find(|known| known.model == model).cloned();
        listed.unwrap_or_else(|| Profile {
            model: model.to_owned(),
            provider: self.name.clone(),
            sees: self.sees,
            tools: self.tools,
            ..Profile::default()
        })
    }

    fn of(name: String, known: Option<Self>, written: WrittenProvider) -> Result<Self, String> {
        let mut provider = match known {
            Some(known) => known,
            None => Self {
                aliases: Vec::new(),
                format: WireFormat::OpenAiChat,
                base_url: String::new(),
                key: None,
                default: None,
                tiers: BTreeMap::new(),
                names: Vec::new(),
                sees: false,
                tools: ToolCalls::default(),
                models: Vec::new(),
                name,
            },
        };
        provider.replace(written)?;
        if provider.base_url.is_empty() {
            return Err("base_url is missing: give the address of its server".to_owned());
        }
        let is_listed = |name: &String| provider.models.iter().any(|model| model.model == *name);
        // A provider without a list of models has models that only its server knows.
        let mut named = provider.default.iter().chain(provider.tiers.values());
        match named.find(|name| !provider.models.is_empty() && !is_listed(name)) {
            Some(name) => Err(format!("the model {name:?} is named and not listed")),
            None => Ok(provider),
        }
    }

    fn replace(&mut self, written: WrittenProvider) -> Result<(), String> {
        if let Some(format) = written.format {
            self.format = format
                .parse()
                .map_err(|error| format!("format is {format:?}: {error}"))?;
        }
        let replace = |known: &mut String, given: Option<String>| {
            if let Some(given) = given {
                *known = given;
            }
        };
        replace(&mut self.base_url, written.base_url);
        self.aliases = written.aliases.unwrap_or(std::mem::take(&mut self.aliases));
        self.names = written.names.unwrap_or(std::mem::take(&mut self.names));
        self.key = written.key.or(self.key.take());
        self.default = written.default.or(self.default.take());
        self.sees = written.sees.unwrap_or(self.sees);
        self.tools = tools(written.tools.as_deref(), self.tools)
            .map_err(|reason| format!("tools is {reason}"))?;
        let tiers = [
            (Tier::Vanguard, written.vanguard),
            (Tier::Balance, written.balance),
            (Tier::Swift, written.swift),
        ];
        let given = tiers
            .into_iter()
            .filter_map(|(tier, model)| Some((tier, model?)));
        self.tiers.extend(given);
        for model in written.models {
            let listed = self
                .models
                .iter()
                .position(|known| known.model == model.name);
            let known = listed.map(|place| self.models.remove(place));
            let profile = profile(known, model, self)?;
            let place = listed.unwrap_or(self.models.len());
            self.models.insert(place, profile);
        }
        match self.models.len() <= AT_MOST {
            true => Ok(()),
            false => Err(format!("it lists more than {AT_MOST} models")),
        }
    }
}

fn profile(
    known: Option<Profile>,
    written: WrittenModel,
    provider: &Provider,
) -> Result<Profile, String> {
    let known = known.unwrap_or_else(|| Profile {
        model: written.name.clone(),
        provider: provider.name.clone(),
        sees: provider.sees,
        tools: provider.tools,
        ..Profile::default()
    });
    let tools = tools(written.tools.as_deref(), known.tools)
        .map_err(|reason| format!("tools of {:?} is {reason}", written.name))?;
    let thinking = match written.thinking.as_deref() {
        None => known.thinking,
        Some("adaptive") => Thinking::Adaptive,
        Some("unasked") => Thinking::Unasked,
        Some(other) => {
            return Err(format!(
                "thinking of {:?} is {other:?}: write adaptive, or unasked",
                written.name
            ));
        }
    };
    let price = match written.price {
        None => known.price,
        Some(price) => Some(
            Price::try_from(price)
                .map_err(|reason| format!("the price of {:?} {reason}", written.name))?,
        ),
    };
    Ok(Profile {
        window: written.window.or(known.window),
        output: written.output.or(known.output),
        sees: written.sees.unwrap_or(known.sees),
        tools,
        thinking,
        binds_thoughts: written.binds_thoughts.unwrap_or(known.binds_thoughts),
        price,
        ..known
    })
}

fn tools(written: Option<&str>, known: ToolCalls) -> Result<ToolCalls, String> {
    match written {
        None => Ok(known),
        Some("native") => Ok(ToolCalls::Native),
        Some("text") => Ok(ToolCalls::Text),
        Some("unknown") => Ok(ToolCalls::Unknown),
        Some(other) => Err(format!("{other:?}: write native, text, or unknown")),
    }
}

#[cfg(test)]
mod tests;
