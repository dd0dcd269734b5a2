//! A connection of its own that hears PostgreSQL's notifications.
//!
//! It is no connection of the pool: a transaction would keep it from listening. The driver's own way to connect again
//! is not used, because a caller has to know that notifications were lost.

use std::time::Duration;

use sqlx::{
    Executor as _,
    postgres::{PgListener, PgPoolOptions},
    raw_sql,
};
use tokio::time::timeout;

use super::{
    PostgresUrl,
    pool::{SETTINGS, SHORT_ANSWER_WITHIN},
};
use crate::database::CONNECTION_WITHIN;

/// After this long without a notification the connection is asked if it lives. One that died without a word brings
/// none either.
const ASKED_EVERY: Duration = Duration::from_secs(20);

/// Hears the notifications of one channel until its connection is lost.
pub(crate) struct NotificationListener {
    listener: PgListener,
}

impl NotificationListener {
    /// Listens to the channel: what is sent after this returned is heard.
    pub(super) async fn connect(url: &PostgresUrl, channel: &str) -> Result<Self, sqlx::Error> {
        let listening = async {
            let one = PgPoolOptions::new().max_connections(1);
            let one = one.acquire_timeout(CONNECTION_WITHIN);
            let pool = one.connect_lazy_with(url.options().clone());
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.eager_reconnect(false);
            listener.execute(raw_sql(SETTINGS)).await?;
            listener.listen(channel).await?;
            Ok(Self { listener })
        };
        let connected = timeout(CONNECTION_WITHIN, listening).await;
        connected.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// The text of the next notification; `None` once the connection is lost.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            match timeout(ASKED_EVERY, self.listener.try_recv()).await {
                Ok(heard) => return heard.ok()?.map(|heard| heard.payload().to_owned()),
                Err(_) => {
                    let asked = self.listener.execute("SELECT 1");
                    timeout(SHORT_ANSWER_WITHIN, asked).await.ok()?.ok()?;
                }
            }
        }
    }
}
