//! One suite for every backend. A file lists its tests in `on_every_backend!`, and each of them
//! gets a [`Fixture`] with an empty, real database. What is particular to one of them is in `opening.rs`
//! and in `postgres.rs`. `tests/postgres run cargo nextest run -p server-store` brings a PostgreSQL.

macro_rules! on_every_backend {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(crate::tests::fixture::Fixture::sqlite().await).await;
                }
            )+
        }

        mod postgres {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(crate::tests::fixture::Fixture::postgres().await).await;
                }
            )+
        }
    };
}

mod agents;
mod announced;
mod approvals;
mod at_once;
mod backups;
mod browser;
mod callers;
mod chat_texts;
mod choices;
mod copies;
mod counts;
mod ended_credentials;
mod fixture;
mod hints;
mod history;
mod images;
mod join_states;
mod opening;
mod operations;
mod outputs;
mod pages;
mod people;
mod pools;
mod ports;
mod postgres;
mod rates;
mod replicas;
mod request_keys;
mod rewinds;
mod rights;
mod runners;
mod secrets;
mod session_ends;
mod settings;
mod silence;
mod steers;
mod tenancy;
mod texts;
mod todo;
mod tool_grants;
mod traces;
mod trusted_files;
mod turns;
mod unheard;
mod usage;
mod waiting;
