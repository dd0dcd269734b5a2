//! The cost of turns, as the server sums it. A cost that the server does not tell in time is not shown: it is less
//! important than what comes next.

use std::{collections::BTreeMap, time::Duration};

use shared_api::{UsageRow, UsageSum};
use shared_client::{Client, ClientError};
use shared_types::{
    SessionId, TurnId,
    human::{cost, tokens},
};
use tokio::time::timeout;

use super::model;

/// The longest wait for the cost of one turn.
const ONE_WITHIN: Duration = Duration::from_secs(2);

/// The longest wait for the costs of all turns of a session.
const ALL_WITHIN: Duration = Duration::from_secs(10);

/// The most models that are named.
const MAX_MODELS: usize = 3;

/// The cost of the turns of a session.
pub(crate) struct TurnCosts {
    client: Client,
    session: SessionId,
    /// The lines of the turns that had ended when the costs were asked for.
    known: BTreeMap<TurnId, String>,
    /// The last event before that.
    until: u64,
}

impl TurnCosts {
    /// Asks for the cost of all turns so far.
    pub(crate) async fn ask(client: &Client, session: SessionId) -> Self {
        let mut costs = Self {
            client: client.clone(),
            session,
            known: BTreeMap::new(),
            until: 0,
        };
        // Those that did not come in time are not shown.
        let _ = timeout(ALL_WITHIN, costs.ask_all()).await;
        costs
    }

    async fn ask_all(&mut self) -> Result<(), ClientError> {
        // A turn that ends later may have cost more by then.
        self.until = self.client.session(self.session).await?.last_seq;
        let mut after: Option<String> = None;
        loop {
            let page = self.client.turn_usage(self.session, after.as_deref());
            let page = page.await?;
            for turn in &page.turns {
                if let Some(line) = line(&turn.rows, &turn.total) {
                    self.known.insert(turn.turn, line);
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// The cost of a turn that ended with this event.
    pub(crate) async fn of(&self, turn: TurnId, seq: u64) -> Option<String> {
        match seq <= self.until {
            true => self.known.get(&turn).cloned(),
            false => cost_of_turn(&self.client, self.session, turn).await,
        }
    }
}

/// The cost of a turn that has ended; `None` where it asked no paid model, or the server does not tell it in time.
pub(crate) async fn cost_of_turn(
    client: &Client,
    session: SessionId,
    turn: TurnId,
) -> Option<String> {
    let usage = timeout(ONE_WITHIN, client.session_usage(session, Some(turn))).await;
    let usage = usage.ok()?.ok()?;
    line(&usage.rows, &usage.total)
}

/// The line at the end of a turn; none where no token was counted.
fn line(rows: &[UsageRow], total: &UsageSum) -> Option<String> {
    let (input, output) = (total.tokens.input(), total.tokens.output);
    if input == 0 && output == 0 {
        return None;
    }
    let of_which = |count: u64, word: &str| match count {
        0 => String::new(),
        count => format!(" ({} {word})", tokens(count)),
    };
    let mut models: Vec<_> = rows.iter().map(|row| model(&row.key)).collect();
    if models.len() > MAX_MODELS {
        let more = models.split_off(MAX_MODELS).len();
        models.push(format!("{more} more"));
    }
    Some(format!(
        "{} tokens in{}, {} out{} · {} · {}",
        tokens(input),
        of_which(total.tokens.cached, "cached"),
        tokens(output),
        of_which(total.tokens.thoughts, "thoughts"),
        cost(total.calls, total.cost_micros, total.unpriced),
        models.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use shared_api::{Tokens, UsageKey};

    use super::*;

    fn turn(unpriced: u64, tokens: Tokens, models: &[(&str, &str)]) -> Option<String> {
        let total = UsageSum {
            calls: 3,
            tokens,
            cost_micros: 4200,
            unpriced,
        };
        let rows: Vec<_> = models
            .iter()
            .map(|(model, provider)| UsageRow {
                key: UsageKey {
                    model: Some((*model).to_owned()),
                    provider: Some((*provider).to_owned()).filter(|name| !name.is_empty()),
                    ..UsageKey::default()
                },
                calls: 1,
                tokens: Tokens::default(),
                cost_micros: 0,
                unpriced: 0,
            })
            .collect();
        line(&rows, &total)
    }

    #[test]
    fn a_turn_ends_with_its_tokens_its_cost_and_its_models() {
        let tokens = Tokens {
            fresh: 300,
            cached: 800,
            cache_written: 100,
            output: 300,
            thoughts: 120,
        };
        let openai = ("gpt-5", "openai");
        assert_eq!(
            turn(0, tokens, &[openai]).as_deref(),
            Some("1.2k tokens in (800 cached), 300 out (120 thoughts) · $0.0042 · gpt-5 (openai)")
        );
        let plain = Tokens {
            fresh: 12_300,
            output: 4_500_000,
            ..Tokens::default()
        };
        assert_eq!(
            turn(3, plain, &[("mine", "")]).as_deref(),
            Some("12.3k tokens in, 4.5M out · unpriced · mine")
        );
        let all = [openai, ("a", ""), ("b", ""), ("c", ""), ("d", "")];
        assert_eq!(
            turn(1, plain, &all).as_deref(),
            Some("12.3k tokens in, 4.5M out · $0.0042 + 1 unpriced · gpt-5 (openai), a, b, 2 more")
        );
        assert_eq!(turn(0, Tokens::default(), &[]), None, "the practice model");
    }
}
