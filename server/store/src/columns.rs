//! Reads the columns of a row as our types. A value that does not parse is an error of the column,
//! never a default: a damaged row must not turn into another one.

use std::{error::Error, str::FromStr};

use serde::{Serialize, de::DeserializeOwned};
use shared_types::{Digest, Timestamp};

use crate::database::Row;

type Name = &'static str;

pub(crate) trait Columns {
    fn maybe_text(&self, name: Name) -> Result<Option<String>, sqlx::Error>;
    fn maybe_integer(&self, name: Name) -> Result<Option<i64>, sqlx::Error>;

    fn text(&self, name: Name) -> Result<String, sqlx::Error> {
        let text = self.maybe_text(name)?;
        text.ok_or_else(|| damaged(name, Missing))
    }

    /// A counter; never negative.
    fn count(&self, name: Name) -> Result<u64, sqlx::Error> {
        let value = self.maybe_integer(name)?.ok_or(Missing);
        let value = value.map_err(|error| damaged(name, error))?;
        u64::try_from(value).map_err(|error| damaged(name, error))
    }

    fn small(&self, name: Name) -> Result<u32, sqlx::Error> {
        u32::try_from(self.count(name)?).map_err(|error| damaged(name, error))
    }

    fn time(&self, name: Name) -> Result<Timestamp, sqlx::Error> {
        self.maybe_time(name)?.ok_or_else(|| damaged(name, Missing))
    }

    fn maybe_time(&self, name: Name) -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(self.maybe_integer(name)?.map(Timestamp::from_micros))
    }

    /// A value in its text form, such as an id.
    fn parsed<T>(&self, name: Name) -> Result<T, sqlx::Error>
    where
        T: FromStr<Err: Error + Send + Sync + 'static>,
    {
        self.text(name)?
            .parse()
            .map_err(|error| damaged(name, error))
    }

    fn maybe_parsed<T>(&self, name: Name) -> Result<Option<T>, sqlx::Error>
    where
        T: FromStr<Err: Error + Send + Sync + 'static>,
    {
        self.maybe_text(name)?
            .map(|text| text.parse().map_err(|error| damaged(name, error)))
            .transpose()
    }

    fn json<T: DeserializeOwned>(&self, name: Name) -> Result<T, sqlx::Error> {
        serde_json::from_str(&self.text(name)?).map_err(|error| damaged(name, error))
    }

    fn maybe_json<T: DeserializeOwned>(&self, name: Name) -> Result<Option<T>, sqlx::Error> {
        self.maybe_text(name)?
            .map(|text| serde_json::from_str(&text).map_err(|error| damaged(name, error)))
            .transpose()
    }

    /// One word of a closed set; see [`word`].
    fn word<T: DeserializeOwned>(&self, name: Name) -> Result<T, sqlx::Error> {
        serde_json::from_value(self.text(name)?.into()).map_err(|error| damaged(name, error))
    }

    fn digest(&self, name: Name) -> Result<Digest, sqlx::Error> {
        Digest::from_hex(&self.text(name)?).ok_or_else(|| damaged(name, Missing))
    }
}

impl Columns for Row {
    fn maybe_text(&self, name: Name) -> Result<Option<String>, sqlx::Error> {
        self.get_text(name)
    }

    fn maybe_integer(&self, name: Name) -> Result<Option<i64>, sqlx::Error> {
        self.get_integer(name)
    }
}

/// The stored form of an enum without data: its name in JSON, without the quotes.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => unreachable!("an enum without data is a JSON string, not {other:?}"),
    }
}

/// The stored form of a value as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("maps and lists of text become JSON")
}

/// The stored form of a counter. The end of the range is out of reach: one step per nanosecond
/// would take 292 years.
pub(crate) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn damaged(name: Name, error: impl Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::ColumnDecode {
        index: name.to_owned(),
        source: Box::new(error),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the value is missing or has another form")]
struct Missing;
