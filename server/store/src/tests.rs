//! One suite for every backend. A file lists its tests in `on_every_backend!`, and each of them
//! gets a [`Fixture`] with an empty, real database; a second backend is a second module in the
//! macro and a second constructor of the fixture. What is particular to one backend's files is in
//! `opening.rs`.

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
    };
}

mod callers;
mod choices;
mod fixture;
mod join_states;
mod opening;
mod operations;
mod people;
mod runners;
mod silence;
mod tenancy;
mod turns;
mod unheard;
