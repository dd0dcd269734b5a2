//! The address of a PostgreSQL database. Its password is shown nowhere: not in an error, a log line or `Debug`.

use std::{fmt, str::FromStr};

use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};

/// The URL of a PostgreSQL database, such as `postgres://gantry:password@db.example.com/gantry`. Parts that it leaves
/// out come from libpq's variables (`PGPASSWORD` and others) and `~/.pgpass`.
#[derive(Clone)]
pub struct PostgresUrl {
    options: PgConnectOptions,
    shown: String,
}

/// The reason why a text is no such URL. It repeats nothing of the text, which may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPostgresUrl {
    /// It is of another kind.
    #[error(
        "must begin with postgres://, as in postgres://gantry:PASSWORD@db.example.com:5432/gantry"
    )]
    Scheme,
    /// It has a parameter that has no effect.
    #[error(
        "may have no other parameters than sslmode, sslrootcert, sslcert, sslkey, host and application_name"
    )]
    Parameter,
    /// It cannot be taken apart.
    #[error(
        "cannot be read; write @ : / ? # % in the user's name and password as %40 %3A %2F %3F %23 %25"
    )]
    Unreadable,
    /// It has a password where other users of the machine can see it.
    #[error(
        "must have no password, because every user of this machine can read a program's arguments; write it into ~/.pgpass, or set PGPASSWORD, and choose another one if this one was seen"
    )]
    Password,
}

const PARAMETERS: [&str; 6] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "application_name",
];

impl PostgresUrl {
    /// A URL that stands where others can read it.
    ///
    /// # Errors
    /// [`BadPostgresUrl`].
    pub fn without_password(text: &str) -> Result<Self, BadPostgresUrl> {
        let after_scheme = text.split_once("://").map_or(text, |(_, rest)| rest);
        let user = after_scheme.rsplit_once('@').map_or("", |(user, _)| user);
        match user.contains(':') {
            true => Err(BadPostgresUrl::Password),
            false => text.parse(),
        }
    }

    pub(super) fn options(&self) -> &PgConnectOptions {
        &self.options
    }
}

impl FromStr for PostgresUrl {
    type Err = BadPostgresUrl;

    fn from_str(text: &str) -> Result<Self, BadPostgresUrl> {
        let rest = ["postgres://", "postgresql://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
            .ok_or(BadPostgresUrl::Scheme)?;
        // The driver only logs a parameter that it does not know, with its value.
        let (before, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let known = |parameter: &str| {
            let name = parameter.split_once('=').map(|(name, _)| name);
            name.is_some_and(|name| PARAMETERS.contains(&name))
        };
        if !parameters.split('&').filter(|it| !it.is_empty()).all(known) {
            return Err(BadPostgresUrl::Parameter);
        }
        // A password that is not escaped ends up in the path, which is shown.
        let path = before.split_once('/').map_or("", |(_, path)| path);
        if text.contains('#') || path.contains(['@', ':', '/']) {
            return Err(BadPostgresUrl::Unreadable);
        }
        let options: PgConnectOptions = text.parse().map_err(|_| BadPostgresUrl::Unreadable)?;
        let place = match options.get_socket() {
            Some(folder) => folder.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        let user = options.get_username();
        let database = options.get_database().unwrap_or(user);
        Ok(Self {
            shown: format!("postgres://{user}@{place}/{database}"),
            options: options.disable_statement_logging(),
        })
    }
}

/// Without the password.
impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Without the password.
impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_password() {
        let text = "postgres://me:hush%40hush@db.example.com/gantry?sslmode=require";
        let url: PostgresUrl = text.parse().expect("it is one");
        assert_eq!(url.to_string(), "postgres://me@db.example.com:5432/gantry");
        assert!(!format!("{url:?}").contains("hush"));
    }

    #[test]
    fn what_is_no_url_is_refused_without_being_repeated() {
        for (text, error) in [
            ("mysql://me:hush@db/gantry", BadPostgresUrl::Scheme),
            ("hush", BadPostgresUrl::Scheme),
            (
                "postgres://me:hush@db/gantry?keepalives=1",
                BadPostgresUrl::Parameter,
            ),
            ("postgres://me:1?hush@db/gantry", BadPostgresUrl::Parameter),
            ("postgres://me:1#hush@db/gantry", BadPostgresUrl::Unreadable),
            (
                "postgres://me:x@y/hush@db/gantry",
                BadPostgresUrl::Unreadable,
            ),
            ("postgres://me:x/hush@db/gantry", BadPostgresUrl::Unreadable),
            (
                "postgres://me:hush@db/gantry?sslmode=hush",
                BadPostgresUrl::Unreadable,
            ),
        ] {
            let refused = text.parse::<PostgresUrl>().expect_err("it is refused");
            assert_eq!(refused, error, "{text}");
            assert!(!refused.to_string().contains("hush"));
        }
    }

    #[test]
    fn a_password_is_refused_where_others_can_read_it() {
        for text in [
            "postgres://me:hush@db/gantry",
            "postgres://me:hu@sh@db/gantry",
            "me:hush@db",
        ] {
            let refused = PostgresUrl::without_password(text).expect_err("it has a password");
            assert_eq!(refused, BadPostgresUrl::Password, "{text}");
            assert!(!refused.to_string().contains("hush"));
        }
        for text in [
            "postgres://me@db:5432/gantry",
            "postgres://db/gantry?sslmode=require",
        ] {
            PostgresUrl::without_password(text).expect("it has none");
        }
    }
}
