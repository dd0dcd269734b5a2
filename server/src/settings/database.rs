//! `[database]`: the store of all durable data. By default it is a file of the server's folder.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use schemars::JsonSchema;
use serde::Deserialize;
use server_store::{BadPostgresUrl, PostgresUrl, Schema, Store, StoreOpenError};

/// Names the database without a file that would hold its password; goes before the file.
pub(super) const URL: &str = "GANTRY_DATABASE_URL";

/// The section of the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DatabaseSection {
    /// A PostgreSQL database. GANTRY_DATABASE_URL goes before it [default: SQLite, in the home folder].
    #[schemars(example = &"postgres://gantry:PASSWORD@db.example.com/gantry?sslmode=verify-full")]
    url: Option<String>,
}

/// The database that was chosen.
#[derive(Debug)]
pub(crate) enum DatabaseChoice {
    /// A SQLite file.
    File(PathBuf),
    /// PostgreSQL.
    Postgres(Box<PostgresUrl>),
}

impl DatabaseSection {
    /// The database of the environment, else of the file, else a file below the home folder.
    ///
    /// # Errors
    /// Fails if the URL is invalid; the error does not repeat its text.
    pub(super) fn choose(
        self,
        environment: Option<String>,
        home: &Path,
    ) -> anyhow::Result<DatabaseChoice> {
        let set = |text: &String| !text.is_empty();
        let (from, url) = match (environment.filter(set), self.url.filter(set)) {
            (Some(url), _) => (URL, url),
            (None, Some(url)) => ("url under [database] in gantry.toml", url),
            (None, None) => return Ok(DatabaseChoice::in_home(home)),
        };
        let parsed: Result<PostgresUrl, _> = url.parse();
        let url = parsed.map_err(|error| anyhow!("{from} {error}"))?;
        Ok(DatabaseChoice::Postgres(url.into()))
    }
}

impl DatabaseChoice {
    /// The file that is used where nothing is set.
    pub(crate) fn in_home(home: &Path) -> Self {
        Self::File(home.join("server/gantry.db"))
    }

    /// A database that a flag names: `sqlite`, or a URL without a password.
    ///
    /// # Errors
    /// Fails if it is neither; the error does not repeat its text.
    pub(crate) fn named(text: &str, home: &Path) -> anyhow::Result<Self> {
        if text == "sqlite" {
            return Ok(Self::in_home(home));
        }
        let url = PostgresUrl::without_password(text).map_err(|error| match error {
            BadPostgresUrl::Scheme => {
                anyhow!("is sqlite, or a URL such as postgres://gantry@db.example.com/gantry")
            }
            error => error.into(),
        })?;
        Ok(Self::Postgres(url.into()))
    }

    /// For a server: see [`Store::open`] and [`Store::open_postgres`].
    pub(crate) async fn open(&self) -> Result<Store, StoreOpenError> {
        match self {
            Self::File(path) => Store::open(path).await,
            Self::Postgres(url) => Store::open_postgres(url).await,
        }
    }

    /// Works as [`DatabaseChoice::open`], but for a backup of an older version: the schema goes no further than that.
    pub(crate) async fn open_at(&self, schema: i64) -> Result<Store, StoreOpenError> {
        match self {
            Self::File(path) => Store::open_at(path, schema).await,
            Self::Postgres(url) => Store::open_postgres_at(url, schema).await,
        }
    }

    /// The version of its schema. Nothing is changed.
    pub(crate) async fn schema(&self) -> Result<Schema, StoreOpenError> {
        match self {
            Self::File(path) => Store::schema_of_file(path).await,
            Self::Postgres(url) => Store::schema_of_postgres(url).await,
        }
    }

    /// For a short job beside a server.
    pub(crate) async fn open_beside(&self) -> Result<Store, StoreOpenError> {
        match self {
            Self::File(path) => Store::open_beside(path).await,
            Self::Postgres(url) => Store::open_postgres_beside(url).await,
        }
    }
}

/// The file, or the URL without its password.
impl fmt::Display for DatabaseChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(environment: Option<&str>, url: Option<&str>) -> anyhow::Result<String> {
        let section = DatabaseSection {
            url: url.map(str::to_owned),
        };
        let chosen = section.choose(environment.map(str::to_owned), Path::new("/home/me"))?;
        Ok(format!("{chosen:?}"))
    }

    #[test]
    fn nothing_set_is_a_file_and_the_environment_goes_before_the_settings() {
        let file = chosen(Some(""), Some("")).expect("it is fine");
        assert!(file.contains("/home/me/server/gantry.db"), "{file}");
        let set = chosen(None, Some("postgres://me:hush@one/gantry"));
        let set = set.expect("it is fine");
        assert!(set.contains("me@one") && !set.contains("hush"), "{set}");
        let both = chosen(
            Some("postgres://me:hush@two/gantry"),
            Some("postgres://me:hush@one/gantry"),
        );
        assert!(both.expect("it is fine").contains("me@two"));
    }

    #[test]
    fn what_is_no_url_is_named_by_where_it_stands() {
        for (refused, named) in [
            (chosen(Some("hush"), None), URL),
            (chosen(None, Some("hush")), "url under [database]"),
        ] {
            let refused = refused.expect_err("it is no URL").to_string();
            assert!(refused.starts_with(named), "{refused}");
            assert!(!refused.contains("hush"), "{refused}");
        }
    }
}
