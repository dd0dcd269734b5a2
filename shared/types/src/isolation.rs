//! The isolation that is proved for a sandbox.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// One thing that an isolated command cannot do, or that can be done to it for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Property {
    /// It cannot write outside its workspace.
    FileWrites,
    /// It cannot read the host's private files.
    FileReads,
    /// It cannot read the runner's credential.
    Credential,
    /// It cannot reach the host's sockets.
    Sockets,
    /// Its network is the one that policy gives it.
    Network,
    /// It cannot see or signal the host's processes.
    Processes,
    /// Its memory, processor time and process count are bounded.
    Resources,
    /// Its whole process tree can be killed for certain.
    KillTree,
    /// It runs on a kernel of its own.
    Kernel,
}

/// The set of properties that a runner has proved for a sandbox. Policy demands a subset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation(BTreeSet<Property>);

impl Isolation {
    /// Nothing is kept apart: commands run as the runner's own user on its host.
    pub fn none() -> Self {
        Self::default()
    }

    /// The set of exactly these properties.
    pub fn of(properties: impl IntoIterator<Item = Property>) -> Self {
        Self(properties.into_iter().collect())
    }

    /// True if every property in `demanded` is proved here.
    pub fn satisfies(&self, demanded: &Self) -> bool {
        self.0.is_superset(&demanded.0)
    }

    /// The properties that are in one of the two, or in both.
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// The properties that are in both.
    pub fn in_both(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// The properties of `demanded` that are not proved here, in a fixed order.
    pub fn missing(&self, demanded: &Self) -> Self {
        Self(demanded.0.difference(&self.0).copied().collect())
    }
}

impl fmt::Display for Isolation {
    /// `none`, or the properties with `+` between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let names: Vec<_> = self
            .0
            .iter()
            .map(|p| {
                serde_json::to_value(p)
                    .ok()
                    .and_then(|v| v.as_str().map(str::to_owned))
                    .unwrap_or_default()
            })
            .collect();
        f.write_str(&names.join("+"))
    }
}

impl FromStr for Isolation {
    type Err = UnknownProperty;

    /// The inverse of the text form.
    fn from_str(text: &str) -> Result<Self, UnknownProperty> {
        if text == "none" {
            return Ok(Self::none());
        }
        let property = |name: &str| {
            serde_json::from_value(name.into()).map_err(|_| UnknownProperty(name.to_owned()))
        };
        Ok(Self(
            text.split('+').map(property).collect::<Result<_, _>>()?,
        ))
    }
}

impl Serialize for Isolation {
    /// Writes the text form, so that records hold the word that people see.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Isolation {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A name that no isolation property has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no isolation property is called {0:?}")]
pub struct UnknownProperty(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_satisfies_a_demand_for_more_than_is_proved() {
        let proved = Isolation::of([Property::FileWrites]);
        let demanded = Isolation::of([Property::FileWrites, Property::Network]);
        assert!(!proved.satisfies(&demanded));
        assert!(
            demanded.satisfies(&proved),
            "more than is demanded is enough"
        );
        assert!(Isolation::none().satisfies(&Isolation::none()));
        assert_eq!(proved.missing(&demanded).to_string(), "network");
    }

    #[test]
    fn the_text_form_reads_back() {
        for isolation in [
            Isolation::none(),
            Isolation::of([Property::KillTree, Property::FileWrites]),
        ] {
            assert_eq!(isolation.to_string().parse(), Ok(isolation));
        }
        assert!("none+network".parse::<Isolation>().is_err());
    }
}
