//! Tokens: for a code, for an older token, and given back.

use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::Value;
use shared_types::clean::peer_words;
use url::form_urlencoded;

use super::{Answer, Begun, Grant, MAX_WORD_BYTES, Party, SignInError, SignIns, scopes_of};

/// The fields of a form.
type Form = Vec<(&'static str, String)>;

impl SignIns {
    /// The tokens for the code that a browser brought.
    ///
    /// # Errors
    /// The answer is a refusal, comes from another authorization server, or has no code that is accepted.
    pub async fn redeem(&self, begun: &Begun, answer: &Answer) -> Result<Grant, SignInError> {
        let party = &begun.party;
        // Before all else: an answer of another server is not even shown (RFC 9207, section 2.4).
        match &answer.iss {
            Some(iss) if *iss != party.issuer => {
                return Err(SignInError::Unsafe(format!(
                    "the answer comes from {}, and you were sent to {}",
                    peer_words(iss),
                    peer_words(&party.issuer)
                )));
            }
            None if begun.says_issuer => {
                return Err(SignInError::Unsafe(
                    "the answer does not say which authorization server gave it".to_owned(),
                ));
            }
            _ => {}
        }
        if !answer.error.is_empty() {
            return Err(SignInError::Refused {
                code: peer_words(&answer.error),
                words: peer_words(&answer.error_description),
            });
        }
        if answer.code.is_empty() || answer.code.len() > MAX_WORD_BYTES {
            return Err(SignInError::Form("its answer has no code".to_owned()));
        }
        let form = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", answer.code.clone()),
            ("redirect_uri", begun.redirect.clone()),
            ("code_verifier", begun.verifier.clone()),
        ];
        self.tokens(party, form, None).await
    }

    /// New tokens in place of these.
    ///
    /// # Errors
    /// They cannot be renewed; [`SignInError::ends_grant`] tells if they ever can.
    pub async fn refresh(&self, grant: &Grant) -> Result<Grant, SignInError> {
        let Some(refresh) = &grant.refresh else {
            return Err(SignInError::Refused {
                code: "invalid_grant".to_owned(),
                words: "the token has ended, and it cannot be renewed".to_owned(),
            });
        };
        let form = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh.clone()),
        ];
        self.tokens(&grant.party, form, Some(refresh)).await
    }

    /// Gives the tokens back, where the authorization server takes them.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn revoke(&self, grant: &Grant) -> Result<(), SignInError> {
        let Some(at) = &grant.party.revocation_endpoint else {
            return Ok(());
        };
        let token = grant.refresh.as_ref().unwrap_or(&grant.access);
        self.post(at, &grant.party, vec![("token", token.clone())])
            .await
            .map(drop)
    }

    async fn tokens(
        &self,
        party: &Party,
        mut form: Form,
        refresh: Option<&String>,
    ) -> Result<Grant, SignInError> {
        form.push(("resource", party.resource.clone()));
        let (status, answer) = self.post(&party.token_endpoint, party, form).await?;
        let answer = answer.unwrap_or_default();
        if !(200..300).contains(&status) {
            return Err(refusal(status, &answer));
        }
        let word = |name: &str| {
            let word = answer[name].as_str().map(str::to_owned);
            word.filter(|word| !word.is_empty() && word.len() <= MAX_WORD_BYTES)
        };
        let is_bearer = answer["token_type"]
            .as_str()
            .is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
        if !is_bearer {
            return Err(SignInError::Form("its token is no bearer token".to_owned()));
        }
        let access =
            word("access_token").filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
        let access = access.ok_or_else(|| SignInError::Form("it gives no token".to_owned()))?;
        let mut party = party.clone();
        if let Some(scope) = word("scope") {
            party.scopes = scopes_of(&scope);
        }
        Ok(Grant {
            party,
            access,
            refresh: word("refresh_token").or(refresh.cloned()),
            good_for: answer["expires_in"].as_u64(),
        })
    }

    async fn post(
        &self,
        at: &str,
        party: &Party,
        mut form: Form,
    ) -> Result<(u16, Option<Value>), SignInError> {
        let at = self.client.url(at)?;
        let request = self.client.request(Method::POST, &at)?;
        let request = party.client.shown(request, &mut form);
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&form)
            .finish();
        let request = request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(reqwest::header::ACCEPT, "application/json")
            .body(body);
        self.ask(&at, request).await
    }
}

/// The refusal of an authorization server (RFC 6749, section 5.2).
pub(super) fn refusal(status: u16, answer: &Value) -> SignInError {
    let word = |name: &str| peer_words(answer[name].as_str().unwrap_or_default());
    let (code, words) = (word("error"), word("error_description"));
    match code.is_empty() {
        true => SignInError::Refused {
            code: format!("status {status}"),
            words: "it does not say why".to_owned(),
        },
        false => SignInError::Refused { code, words },
    }
}
