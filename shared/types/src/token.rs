//! Bearer secrets in their text form: a prefix that secret scanners know, the secret, a checksum.
//!
//! `gantry_<kind>_<base64url of secret (32 bytes) ‖ second part (32 bytes, some kinds) ‖ CRC-32>`.
//! The server stores only hashes. The second part of a join token is a pin: the server's Ed25519 identity
//! key. A runner trusts it because the person who handed over the token chose the server. The second part of
//! a browser's token is another secret, which is replaced while the first one stays. So the server can tell
//! a token that was replaced from one that it never made.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq;

use crate::{Digest, Entropy, clean::without_mark};

/// The purpose of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Enrols one runner.
    Join,
    /// Speaks to the API for a program.
    ApiKey,
    /// Speaks to the API for a person's terminal.
    SignIn,
    /// Reads one session.
    Share,
    /// Speaks to the API for a person's browser, as a cookie.
    Browser,
    /// Opens one WebSocket, once.
    Ticket,
}

impl TokenKind {
    const ALL: [Self; 6] = [
        Self::Join,
        Self::ApiKey,
        Self::SignIn,
        Self::Share,
        Self::Browser,
        Self::Ticket,
    ];

    fn prefix(self) -> &'static str {
        match self {
            Self::Join => "gantry_join_",
            Self::ApiKey => "gantry_key_",
            Self::SignIn => "gantry_user_",
            Self::Share => "gantry_share_",
            Self::Browser => "gantry_browser_",
            Self::Ticket => "gantry_ticket_",
        }
    }
}

/// A bearer secret. It has no `Display`: to show it, call [`Token::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    kind: TokenKind,
    secret: [u8; 32],
    second: Option<[u8; 32]>,
}

impl Token {
    /// A new secret.
    ///
    /// # Panics
    /// For [`TokenKind::Join`]: those carry a pin, see [`Token::join`].
    pub fn generate(kind: TokenKind, entropy: &dyn Entropy) -> Self {
        assert!(kind != TokenKind::Join, "a join token carries a pin");
        Self {
            kind,
            secret: random(entropy),
            second: (kind == TokenKind::Browser).then(|| random(entropy)),
        }
    }

    /// A new join token that pins the server's Ed25519 identity key.
    pub fn join(identity: [u8; 32], entropy: &dyn Entropy) -> Self {
        Self {
            kind: TokenKind::Join,
            secret: random(entropy),
            second: Some(identity),
        }
    }

    /// The browser's token that takes this one's place: the first secret stays, the second one is made of
    /// both and a salt. So each that shows this one can be given the same successor, although the server
    /// stores only hashes, and the salt alone tells nothing.
    #[must_use]
    pub fn replaced(&self, salt: &Digest) -> Self {
        let made_of = |second: [u8; 32]| {
            let all = [self.secret, second, *salt.as_bytes()].concat();
            *Digest::of(&all).as_bytes()
        };
        Self {
            second: self.second.map(made_of),
            ..self.clone()
        }
    }

    /// The purpose of this token.
    pub fn kind(&self) -> TokenKind {
        self.kind
    }

    /// The identity key that a join token pins.
    pub fn pin(&self) -> Option<&[u8; 32]> {
        self.second
            .as_ref()
            .filter(|_| self.kind == TokenKind::Join)
    }

    /// SHA-256 of the secret, which the server stores and looks up.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Digest::of(&self.secret))
    }

    /// SHA-256 of the second secret; a browser's token has one.
    pub fn second_hash(&self) -> Option<TokenHash> {
        let second = self
            .second
            .as_ref()
            .filter(|_| self.kind == TokenKind::Browser);
        second.map(|second| TokenHash(Digest::of(second)))
    }

    /// The text form, for the one who may have it.
    pub fn reveal(&self) -> String {
        let mut bytes = self.secret.to_vec();
        bytes.extend(self.second.iter().flatten());
        let checksum = crc32fast::hash(&bytes);
        bytes.extend(checksum.to_be_bytes());
        format!("{}{}", self.kind.prefix(), URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = without_mark(text).trim();
        if text.is_empty() {
            return Err(TokenError::Empty);
        }
        let kind = TokenKind::ALL
            .into_iter()
            .find(|kind| text.starts_with(kind.prefix()))
            .ok_or(TokenError::Foreign)?;
        let bytes = URL_SAFE_NO_PAD
            .decode(&text[kind.prefix().len()..])
            .map_err(|_| TokenError::Damaged)?;
        let (body, checksum) = bytes.split_last_chunk::<4>().ok_or(TokenError::Damaged)?;
        if crc32fast::hash(body).to_be_bytes() != *checksum {
            return Err(TokenError::Damaged);
        }
        let (secret, rest) = body.split_first_chunk::<32>().ok_or(TokenError::Damaged)?;
        let second = match (kind, rest.len()) {
            (TokenKind::Join | TokenKind::Browser, 32) => rest.try_into().ok(),
            (TokenKind::ApiKey | TokenKind::SignIn | TokenKind::Share | TokenKind::Ticket, 0) => {
                None
            }
            _ => return Err(TokenError::Damaged),
        };
        Ok(Self {
            kind,
            secret: *secret,
            second,
        })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:?}, …)", self.kind)
    }
}

/// The stored form of a token. Comparison takes the same time wherever the two differ.
#[derive(Clone, Copy, Debug)]
pub struct TokenHash(Digest);

impl TokenHash {
    /// A stored hash from its 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        Digest::from_hex(text).map(Self)
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for TokenHash {}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The reason why a text is not a token. It never quotes the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Nothing was given.
    #[error("the token is empty: paste the whole token")]
    Empty,
    /// It does not start as ours do.
    #[error(
        "this is not a Gantry token: it should start with gantry_join_, gantry_key_ or gantry_user_"
    )]
    Foreign,
    /// The checksum or the length is wrong.
    #[error("the token is damaged: copy it again, whole")]
    Damaged,
}

fn random(entropy: &dyn Entropy) -> [u8; 32] {
    let mut bytes = [0; 32];
    entropy.fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SeededEntropy;

    #[test]
    fn a_token_reads_back_with_its_kind_and_pin() {
        let entropy = SeededEntropy::new(1);
        let join = Token::join([7; 32], &entropy);
        assert_eq!(join.reveal().parse(), Ok(join.clone()));
        assert_eq!(join.pin(), Some(&[7; 32]));
        let key = Token::generate(TokenKind::ApiKey, &entropy);
        assert_eq!(format!(" {}\n", key.reveal()).parse(), Ok(key.clone()));
        assert!(key.hash() != join.hash());
    }

    #[test]
    fn a_browsers_token_that_is_replaced_keeps_its_first_secret_alone() {
        let entropy = SeededEntropy::new(4);
        let first = Token::generate(TokenKind::Browser, &entropy);
        let next = first.replaced(&Digest::of(b"salt"));
        assert_eq!(next, first.replaced(&Digest::of(b"salt")));
        assert!(next != first.replaced(&Digest::of(b"other")));
        assert_eq!(next.reveal().parse(), Ok(next.clone()));
        assert!(next.hash() == first.hash() && next.second_hash() != first.second_hash());
        assert!(next.second_hash().is_some() && next.pin().is_none());
        assert!(Token::join([7; 32], &entropy).second_hash().is_none());
    }

    #[test]
    fn an_empty_foreign_or_mistyped_token_is_told_apart() {
        assert_eq!("  ".parse::<Token>(), Err(TokenError::Empty));
        assert_eq!("sk-12345".parse::<Token>(), Err(TokenError::Foreign));
        let text = Token::generate(TokenKind::SignIn, &SeededEntropy::new(2)).reveal();
        assert_eq!(
            text[..text.len() - 1].parse::<Token>(),
            Err(TokenError::Damaged)
        );
        let swapped = text.replace("gantry_user_", "gantry_join_");
        assert_eq!(swapped.parse::<Token>(), Err(TokenError::Damaged));
    }

    #[test]
    fn a_token_does_not_show_in_debug_output() {
        let token = Token::generate(TokenKind::ApiKey, &SeededEntropy::new(3));
        assert_eq!(format!("{token:?}"), "Token(ApiKey, …)");
    }
}
