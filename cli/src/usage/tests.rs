use shared_api::{Tokens, UsageSum};
use shared_types::Timestamp;

use super::*;

fn row(key: UsageKey, calls: u64, unpriced: u64, cost_micros: u64, tokens: Tokens) -> UsageRow {
    UsageRow {
        key,
        calls,
        tokens,
        cost_micros,
        unpriced,
    }
}

fn of_model(model: &str, provider: Option<&str>) -> UsageKey {
    UsageKey {
        model: Some(model.to_owned()),
        provider: provider.map(str::to_owned),
        ..UsageKey::default()
    }
}

fn usage(rows: Vec<UsageRow>, total: UsageSum) -> ModelUsage {
    ModelUsage {
        since: Some(Timestamp::from_micros(1_793_491_200_000_000)),
        rows,
        total,
    }
}

fn text(usage: &ModelUsage, by: UsageBy, columns: Option<usize>) -> String {
    shown(usage, by, "by you", Style::new(false), columns)
}

#[test]
fn numbers_stand_below_one_another_and_an_unknown_price_is_not_free() {
    let large = Tokens {
        fresh: 12_345,
        cached: 4_500_000,
        output: 800,
        thoughts: 120,
        ..Tokens::default()
    };
    let small = Tokens {
        fresh: 999,
        output: 10,
        ..Tokens::default()
    };
    let rows = vec![
        row(of_model("gpt-5", Some("openai")), 120, 0, 12_340_000, large),
        row(of_model("mine", None), 3, 3, 0, small),
    ];
    let total = UsageSum {
        calls: 123,
        tokens: Tokens {
            fresh: 13_344,
            output: 810,
            ..large
        },
        cost_micros: 12_340_000,
        unpriced: 3,
    };
    let both = usage(rows, total);
    assert_eq!(
        text(&both, UsageBy::Model, None),
        "usage of models by you since 2026-11-01\n\
         MODEL           CALLS  FRESH  CACHED  OUTPUT  THOUGHTS                 COST\n\
         gpt-5 (openai)    120  12.3k    4.5M     800       120               $12.34\n\
         mine                3    999              10                       unpriced\n\
         total             123  13.3k    4.5M     810       120  $12.34 + 3 unpriced\n"
    );
    let narrow = text(&both, UsageBy::Model, Some(60));
    assert!(
        !narrow.contains("THOUGHTS") && narrow.contains("$12.34 + 3 unpriced"),
        "{narrow}"
    );
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 60),
        "{narrow}"
    );
}

#[test]
fn one_row_needs_no_total_and_rows_that_are_left_out_are_named() {
    let total = |calls| UsageSum {
        calls,
        tokens: Tokens::default(),
        cost_micros: 5,
        unpriced: 0,
    };
    let day = UsageKey {
        day: Some("2026-11-02".to_owned()),
        ..UsageKey::default()
    };
    let row = row(day, 1, 0, 5, Tokens::default());
    let one = text(&usage(vec![row.clone()], total(1)), UsageBy::Day, None);
    assert!(
        one.contains("DAY (UTC)") && one.contains("2026-11-02"),
        "{one}"
    );
    assert!(!one.contains("total"), "{one}");
    let cut = text(&usage(vec![row], total(2)), UsageBy::Day, None);
    assert!(
        cut.ends_with("the first 1 are listed; the total has all\n"),
        "{cut}"
    );
}

#[test]
fn nothing_says_what_to_do() {
    let total = UsageSum {
        calls: 0,
        tokens: Tokens::default(),
        cost_micros: 0,
        unpriced: 0,
    };
    let none = nothing(&usage(Vec::new(), total), "by you");
    assert_eq!(
        none,
        "no call of a paid model by you since 2026-11-01; name an earlier day with --since, or ask one with: \
         gantry chat \"…\""
    );
}
