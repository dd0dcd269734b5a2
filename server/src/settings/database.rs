//! `[database]`: where everything durable is kept. Without a word, in a file of the server's folder.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde::Deserialize;
use server_store::{OpenError, PostgresUrl, Store};

/// Names the database without a file that would hold its password; goes before the file.
pub(super) const URL: &str = "GANTRY_DATABASE_URL";

/// The section of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DatabaseSection {
    /// A PostgreSQL database [default: SQLite, in the home folder].
    url: Option<String>,
}

/// The database that was chosen.
#[derive(Debug)]
pub(crate) enum Database {
    /// A SQLite file.
    File(PathBuf),
    /// PostgreSQL.
    Postgres(Box<PostgresUrl>),
}

impl DatabaseSection {
    /// The database of the environment, else of the file, else a file below the home folder.
    ///
    /// # Errors
    /// If the URL is none; the text is not repeated.
    pub(super) fn choose(
        self,
        environment: Option<String>,
        home: &Path,
    ) -> anyhow::Result<Database> {
        let set = |text: &String| !text.is_empty();
        let (from, url) = match (environment.filter(set), self.url.filter(set)) {
            (Some(url), _) => (URL, url),
            (None, Some(url)) => ("url under [database] in gantry.toml", url),
            (None, None) => return Ok(Database::File(home.join("server/gantry.db"))),
        };
        let parsed: Result<PostgresUrl, _> = url.parse();
        let url = parsed.map_err(|error| anyhow!("{from} {error}"))?;
        Ok(Database::Postgres(url.into()))
    }
}

impl Database {
    /// For a server: see [`Store::open`] and [`Store::open_postgres`].
    pub(crate) async fn open(&self) -> Result<Store, OpenError> {
        match self {
            Self::File(path) => Store::open(path).await,
            Self::Postgres(url) => Store::open_postgres(url).await,
        }
    }

    /// For a short job beside a server.
    pub(crate) async fn open_beside(&self) -> Result<Store, OpenError> {
        match self {
            Self::File(path) => Store::open_beside(path).await,
            Self::Postgres(url) => Store::open_postgres_beside(url).await,
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
