//! The forms of secrets, and what tells a secret from a text that only looks like one.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// The fewest bits for each character of a value that looks random.
const MIN_ENTROPY: f64 = 2.7;

/// A form of secrets.
pub(super) struct Form {
    /// Its kind, in words for people.
    pub(super) kind: &'static str,
    /// Finds it. The group is the secret.
    pub(super) pattern: &'static str,
    /// True of a match that is a secret.
    pub(super) is_it: fn(&str) -> bool,
    /// True if its first characters say only who made it.
    pub(super) has_prefix: bool,
    /// True if the match is only the first line of the secret.
    pub(super) is_block: bool,
}

/// A token with a prefix of its vendor.
const fn token(kind: &'static str, pattern: &'static str) -> Form {
    Form {
        kind,
        pattern,
        is_it: looks_random,
        has_prefix: true,
        is_block: false,
    }
}

/// A secret that its surroundings tell.
const fn told(kind: &'static str, pattern: &'static str, is_it: fn(&str) -> bool) -> Form {
    Form {
        kind,
        pattern,
        is_it,
        has_prefix: false,
        is_block: false,
    }
}

/// The forms. An earlier one wins at the same place.
pub(super) const FORMS: &[Form] = &[
    token("AWS key id", r"(?-u:\b)((?:AKIA|ASIA)[0-9A-Z]{16})(?-u:\b)"),
    token("GitHub token", r"(?-u:\b)(gh[opsur]_[A-Za-z0-9]{30,})"),
    token("GitHub token", r"(?-u:\b)(github_pat_[A-Za-z0-9_]{40,})"),
    token("GitLab token", r"(?-u:\b)(glpat-[A-Za-z0-9_-]{20,})"),
    token("Slack token", r"(?-u:\b)(xox[abeoprs]-[A-Za-z0-9-]{16,})"),
    token("Stripe key", r"(?-u:\b)([sr]k_live_[A-Za-z0-9]{16,})"),
    token("Anthropic key", r"(?-u:\b)(sk-ant-[A-Za-z0-9_-]{20,})"),
    Form {
        is_it: mixes_cases,
        ..token("OpenAI key", r"(?-u:\b)(sk-[A-Za-z0-9_-]{20,})")
    },
    token("Google key", r"(?-u:\b)(AIza[A-Za-z0-9_-]{35,})"),
    token("npm token", r"(?-u:\b)(npm_[A-Za-z0-9]{36,})"),
    token("PyPI token", r"(?-u:\b)(pypi-[A-Za-z0-9_-]{32,})"),
    token("Hugging Face token", r"(?-u:\b)(hf_[A-Za-z0-9]{30,})"),
    token(
        "Gantry token",
        r"(?-u:\b)(gantry_(?:join|key|user|share|browser|ticket)_[A-Za-z0-9_-]{48,})",
    ),
    told(
        "JSON web token",
        r"(?-u:\b)(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{10,})",
        is_web_token,
    ),
    Form {
        is_block: true,
        ..told(
            "private key",
            r"(-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY-----)",
            |_| true,
        )
    },
    told(
        "password",
        r"(?i-u:\b(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?)://)[!-.0-9;-?A-Z\[-~]{0,128}:([!-.0-?A-Z\[-~]+)@",
        is_no_placeholder,
    ),
    told(
        "bearer token",
        r"(?i-u:authorization)(?:\\?[\x22'])?[ \t]{0,4}[:=,][ \t]{0,4}(?:\\?[\x22'])?(?i-u:bearer|token|basic) ([A-Za-z0-9._~+/=-]{16,})",
        looks_random,
    ),
    told(
        "secret",
        r"(?i-u:aws_?secret_?access_?key)(?:\\?[\x22'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\?[\x22'])?([A-Za-z0-9/+]{40,})",
        looks_random,
    ),
    told(
        "secret",
        r"(?i-u:password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|auth[_-]?key)(?:\\?[\x22'])?[ \t]{0,4}(?:=>|:=|=|:)[ \t]{0,4}(?:\\?[\x22'])?([!#%&*+./0-9:=?@A-Z^_a-z~-]{8,})",
        is_assigned_secret,
    ),
];

/// True of a value that looks random: letters and digits, and many different ones.
fn looks_random(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
        && entropy(text) >= MIN_ENTROPY
        && is_no_placeholder(text)
}

/// The same with letters of both cases, which names in lower case lack.
fn mixes_cases(text: &str) -> bool {
    looks_random(text)
        && text.bytes().any(|byte| byte.is_ascii_uppercase())
        && text.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// The same, and no code, address, path, id or digest stands there.
fn is_assigned_secret(text: &str) -> bool {
    let is_place = text.contains("://") || text.contains("::") || text.starts_with(['/', '.', '@']);
    let is_call =
        text.contains("()") || text.starts_with("process.env") || text.starts_with("self.");
    let is_digest = ["sha1", "sha256", "sha384", "sha512", "md5"]
        .iter()
        .any(|name| text.starts_with(name));
    looks_random(text) && !is_place && !is_call && !is_digest && !is_uuid(text)
}

fn is_uuid(text: &str) -> bool {
    let dashes = text.bytes().filter(|byte| *byte == b'-').count();
    text.len() == 36
        && dashes == 4
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// True unless the text only stands for a secret, as in a manual.
fn is_no_placeholder(text: &str) -> bool {
    const WORDS: [&str; 8] = [
        "example",
        "changeme",
        "placeholder",
        "your",
        "xxxx",
        "****",
        "....",
        "redacted",
    ];
    let lower = text.to_ascii_lowercase();
    let is_variable = text.starts_with(['$', '%', '{', '<', '[']);
    !is_variable && !WORDS.iter().any(|word| lower.contains(word))
}

/// True if the first part is JSON with `alg`, as RFC 7519 has it.
fn is_web_token(text: &str) -> bool {
    let header = text.split('.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    serde_json::from_slice::<serde_json::Value>(&header)
        .is_ok_and(|header| header.get("alg").is_some())
}

/// Shannon's entropy of the bytes, in bits for each.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let all = text.len() as f64;
    let share = |count: &u32| f64::from(*count) / all;
    let parts = counts.iter().filter(|count| **count > 0).map(share);
    -parts.map(|part| part * part.log2()).sum::<f64>()
}
