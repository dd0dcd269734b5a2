//! What a server is started with.

use std::time::Duration;

use crate::postgres::database_of_run;

/// Names the server's database.
pub(super) const DATABASE_URL: &str = "GANTRY_DATABASE_URL";

/// How a server is set up; the default is the practice model, plain text and a free port.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Where the model answers, in OpenAI's format; `None` is the practice model.
    pub model: Option<String>,
    /// Whether it ends TLS with a certificate of its own.
    pub tls: bool,
    /// The address and port.
    pub listen: String,
    /// The URL of its database; without one it is that of the test run, see [`crate::postgres::DATABASE`].
    pub database: Option<String>,
    /// The text of `gantry.toml`.
    pub settings: String,
    /// Further variables of its environment.
    pub variables: Vec<(String, String)>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            model: None,
            tls: false,
            listen: "127.0.0.1:0".to_owned(),
            database: None,
            settings: String::new(),
            variables: Vec::new(),
        }
    }
}

impl Setup {
    /// How long a link of [`Setup::with_short_links`] may be silent before an end holds it for
    /// lost. Long enough for a machine that is busy with other tests.
    pub const SHORT_SILENCE: Duration = Duration::from_millis(1500);

    /// After this long without a word its server holds a runner for offline.
    pub const SHORT_LEASE: Duration = Duration::from_millis(2000);

    /// Links on which silence is noticed soon, so that a test need not wait for minutes.
    pub fn with_short_links() -> Self {
        Self {
            settings: format!(
                "[link]\nheartbeat_every_ms = 200\nsilence_ms = {}\nlease_ms = {}\n",
                Self::SHORT_SILENCE.as_millis(),
                Self::SHORT_LEASE.as_millis()
            ),
            ..Self::default()
        }
    }

    /// A server that lets one credential begin a few hundred sessions at once.
    pub fn with_many_sessions() -> Self {
        Self {
            settings: "[limits]\nnew_per_minute = 600\n".to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn environment(&self) -> Vec<(String, String)> {
        let model = self.model.iter().flat_map(|base_url| {
            [
                ("OPENAI_BASE_URL".to_owned(), base_url.clone()),
                ("GANTRY_MODEL".to_owned(), "scripted".to_owned()),
            ]
        });
        let database = self.database.clone().or_else(database_of_run);
        let database = database.map(|url| (DATABASE_URL.to_owned(), url));
        let further = self.variables.iter().cloned();
        // Nobody sits at a test to be asked.
        let mode = ("GANTRY_MODE".to_owned(), "full".to_owned());
        let usual = std::iter::once(mode);
        usual.chain(model).chain(database).chain(further).collect()
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        self.tls.then(|| "--tls".to_owned()).into_iter().collect()
    }
}
