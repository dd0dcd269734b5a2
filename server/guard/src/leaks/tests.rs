//! Examples of both kinds. Secrets are put together here, so that no scanner takes this file for a leak.

use proptest::prelude::*;

use super::*;

/// 64 letters and digits that look random.
const RANDOM: &str = "q7Rk2ZpX9vLm4TnB8sWd3YhJ6cFgA1uEoKi5bNwP0xSzQrVtMyHlCjGaDfUeIq82";
const UPPER: &str = "Q7RK2ZPX9VLM4TNB";

/// A prefix, the length of what follows, and the kind.
const TOKENS: [(&str, usize, &str); 24] = [
    ("ghp_", 36, "GitHub token"),
    ("gho_", 36, "GitHub token"),
    ("ghs_", 36, "GitHub token"),
    ("ghu_", 36, "GitHub token"),
    ("ghr_", 36, "GitHub token"),
    ("github_pat_", 60, "GitHub token"),
    ("glpat-", 20, "GitLab token"),
    ("xoxb-", 40, "Slack token"),
    ("xoxp-", 40, "Slack token"),
    ("xoxa-", 40, "Slack token"),
    ("sk_live_", 24, "Stripe key"),
    ("rk_live_", 24, "Stripe key"),
    ("sk-", 48, "OpenAI key"),
    ("sk-proj-", 48, "OpenAI key"),
    ("sk-ant-api03-", 60, "Anthropic key"),
    ("AIza", 35, "Google key"),
    ("npm_", 36, "npm token"),
    ("pypi-", 60, "PyPI token"),
    ("hf_", 34, "Hugging Face token"),
    ("gantry_join_", 64, "Gantry token"),
    ("gantry_key_", 48, "Gantry token"),
    ("gantry_user_", 48, "Gantry token"),
    ("gantry_share_", 48, "Gantry token"),
    ("gantry_browser_", 64, "Gantry token"),
];

/// The places in which a secret stands. `@` is the secret.
const PLACES: [&str; 4] = ["@", "export KEY=\"@\"\n", "see (@), please", "ключ: @ é"];

/// Texts around a secret `@` that only they tell, and its kind.
const TOLD: [(&str, &str); 25] = [
    ("postgres://app:@@db:5432/x", "password"),
    ("postgresql://app:@@db/x", "password"),
    ("mysql://root:@@127.0.0.1", "password"),
    ("mongodb://u:@@h/db", "password"),
    ("mongodb+srv://u:@@h/db", "password"),
    ("redis://:@@cache:6379", "password"),
    ("amqp://u:@@mq", "password"),
    ("DATABASE_URL=postgres://a:@@h", "password"),
    ("Authorization: Bearer @", "bearer token"),
    ("authorization: bearer @", "bearer token"),
    ("-H 'Authorization: Bearer @'", "bearer token"),
    ("{\"Authorization\": \"Bearer @\"}", "bearer token"),
    ("aws_secret_access_key = @", "secret"),
    ("AWS_SECRET_ACCESS_KEY=@", "secret"),
    ("password=@", "secret"),
    ("DB_PASSWORD=@", "secret"),
    ("password: \"@\"", "secret"),
    ("api_key: @", "secret"),
    ("apiKey: '@',", "secret"),
    ("\"api-key\": \"@\"", "secret"),
    ("client_secret=@ ", "secret"),
    ("{\"command\":\"x password=\\\"@\\\"\"}", "secret"),
    ("auth_token => '@'", "secret"),
    ("passwd := \"@\"", "secret"),
    ("SECRET_KEY='@'", "secret"),
];

/// Ordinary texts.
const ORDINARY: &str = include_str!("tests/ordinary.txt");

#[test]
fn secrets_with_a_prefix_are_redacted_wherever_they_stand() {
    for (prefix, length, kind) in TOKENS {
        let secret = format!("{prefix}{}", &RANDOM[..length]);
        for place in PLACES {
            let told = redact(&place.replace('@', &secret)).into_owned();
            let kept: String = secret.chars().take(4).collect();
            assert_eq!(
                told,
                place.replace('@', &format!("{kept}… [{kind} redacted]"))
            );
        }
    }
}

#[test]
fn secrets_that_their_surroundings_tell_are_redacted_whole() {
    for (place, kind) in TOLD {
        let secret = &RANDOM[..44];
        let told = redact(&place.replacen('@', secret, 1)).into_owned();
        assert_eq!(told, place.replacen('@', &format!("[{kind} redacted]"), 1));
    }
}

#[test]
fn key_ids_web_tokens_and_private_keys_are_redacted() {
    for prefix in ["AKIA", "ASIA"] {
        let told = redact(&format!("id {prefix}{UPPER}\n")).into_owned();
        assert_eq!(told, format!("id {prefix}… [AWS key id redacted]\n"));
    }
    let header = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
    let token = format!("{header}.eyJzdWIiOiIxIn0.{}", &RANDOM[..43]);
    assert_eq!(redact(&token), "[JSON web token redacted]");
    for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let key = format!("-----BEGIN {kind}PRIVATE KEY-----\n{RANDOM}\n");
        let whole = format!("a\n{key}-----END {kind}PRIVATE KEY-----\nb");
        assert_eq!(redact(&whole), "a\n[private key redacted]\nb");
        assert_eq!(redact(&key), "[private key redacted]", "cut off");
    }
}

#[test]
fn ordinary_texts_stay_as_they_are() {
    let lines: Vec<_> = ORDINARY.lines().collect();
    assert!(lines.len() >= 60, "{}", lines.len());
    for line in lines {
        assert_eq!(redact(line), line);
    }
    let image = format!(
        "data:image/png;base64,{}",
        format!("{RANDOM}/+").repeat(400)
    );
    assert_eq!(redact(&image), image);
}

#[test]
fn a_secret_behind_a_name_that_has_none_is_found() {
    let text = format!("password: token: secret = {}", &RANDOM[..30]);
    assert_eq!(redact(&text), "password: token: secret = [secret redacted]");
}

proptest! {
    #[test]
    fn redacting_leaves_no_secret_and_changes_nothing_twice(
        parts in proptest::collection::vec((0..TOKENS.len(), 0..TOLD.len(), 0..4_u8, ".{0,12}"), 0..6)
    ) {
        let mut text = String::new();
        for (token, told, form, other) in parts {
            let (prefix, length, _) = TOKENS[token];
            match form {
                0 => text.push_str(&format!(" {prefix}{}", &RANDOM[..length])),
                1 => text.push_str(&format!(" {}", TOLD[told].0.replacen('@', &RANDOM[..30], 1))),
                2 => text.push_str("-----BEGIN PRIVATE KEY-----"),
                _ => text.push_str(" AKIA"),
            }
            text.push_str(&other);
        }
        let once = redact(&text).into_owned();
        prop_assert_eq!(find(&once), vec![], "{}", once);
        prop_assert_eq!(redact(&once), once.as_str());
        for leak in find(&text).iter().filter(|leak| leak.range.len() >= LONG_SECRET) {
            prop_assert!(!once.contains(&text[leak.range.clone()]), "{}", once);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "(?s).{0,200}") {
        let once = redact(&text).into_owned();
        prop_assert_eq!(redact(&once), once.as_str());
    }
}
