//! Events as they are stored and sent, with those of earlier and of newer releases.

use std::{borrow::Cow, cmp::Ordering, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Event, SessionEvent, earlier};

impl SessionEvent {
    /// The event, where this reader knows its kind and version.
    pub fn known(&self) -> Option<&Event> {
        match &self.body {
            EventBody::Known(event) => Some(event),
            EventBody::Unknown(_) => None,
        }
    }

    /// The kind of an event that this reader knows by its kind and yet cannot read. It is of a newer version, or
    /// has a word or a field that no writer of this version writes.
    pub fn unreadable(&self) -> Option<&str> {
        match &self.body {
            EventBody::Known(_) => None,
            EventBody::Unknown(fields) => {
                kind_of(fields).filter(|kind| Event::version_of(kind).is_some())
            }
        }
    }
}

/// An event as it is stored and sent: `{"type": …, "v": …, …}`.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    /// One that this reader knows.
    Known(Event),
    /// One that this reader cannot read, kept as it is.
    Unknown(Map<String, Value>),
}

impl Serialize for EventBody {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Versioned<'a> {
            v: u32,
            #[serde(flatten)]
            event: &'a Event,
        }
        match self {
            Self::Known(event) => Versioned {
                v: event.version(),
                event,
            }
            .serialize(serializer),
            Self::Unknown(fields) => fields.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for EventBody {
    /// # Errors
    /// If it is no JSON object.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        let version = fields.get("v").and_then(Value::as_u64);
        let Some((kind, version)) = kind_of(&fields).zip(version) else {
            return Ok(Self::Unknown(fields));
        };
        let event = match Event::version_of(kind).map(|known| version.cmp(&known.into())) {
            None | Some(Ordering::Greater) => return Ok(Self::Unknown(fields)),
            Some(Ordering::Equal) => Event::deserialize(&fields),
            Some(Ordering::Less) => {
                let mut present = fields.clone();
                earlier::brought_up(kind, version, &mut present);
                Event::deserialize(&present)
            }
        };
        Ok(event.map_or(Self::Unknown(fields), Self::Known))
    }
}

impl FromStr for EventBody {
    type Err = serde_json::Error;

    /// Reads an event as deserialization does, and several times as fast. The speed matters because a log of
    /// thousands of events is read at the beginning of a turn.
    fn from_str(json: &str) -> Result<Self, Self::Err> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
            v: u64,
        }
        let event = serde_json::from_str(json)
            .ok()
            .filter(|Head { kind, v }| Event::version_of(kind).map(u64::from) == Some(*v))
            .and_then(|_| serde_json::from_str(json).ok());
        match event {
            Some(event) => Ok(Self::Known(event)),
            None => serde_json::from_str(json),
        }
    }
}

fn kind_of(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("type").and_then(Value::as_str)
}
