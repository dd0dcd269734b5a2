//! A browser that is signed in, spoken by hand: what its cookie and its pages say to the server.

use reqwest::{RequestBuilder, Response, header};
use serde_json::json;

use crate::gantry::{Answer, Gantry};

/// What a browser says of a request that a page of the server's own makes.
pub const OWN_PAGE: (&str, &str) = ("sec-fetch-site", "same-origin");

/// A browser with a cookie.
pub struct Browser<'a> {
    gantry: &'a Gantry,
    /// The header `Set-Cookie` of the sign-in.
    pub set_cookie: String,
}

impl<'a> Browser<'a> {
    /// Signs in with this code, from the server's own page.
    pub async fn sign_in(gantry: &'a Gantry, code: &str) -> Self {
        let answer = Self::try_to_sign_in(gantry, code, &[OWN_PAGE]).await;
        assert_eq!(answer.status(), 200, "{answer:?}");
        let set_cookie = set_cookie(&answer).expect("a cookie");
        Self { gantry, set_cookie }
    }

    /// The answer to a sign-in with these headers.
    pub async fn try_to_sign_in(gantry: &Gantry, code: &str, headers: &[(&str, &str)]) -> Response {
        let request = gantry.request("post", "/api/v1/browser/sign-in");
        let request = request.json(&json!({ "code": code, "device": "Firefox" }));
        with(request, headers).send().await.expect("an answer")
    }

    /// The header with which it shows its cookie.
    pub fn cookie(&self) -> &str {
        let pair = self.set_cookie.split(';').next();
        pair.expect("a name and a value")
    }

    /// The secret in the cookie.
    pub fn secret(&self) -> &str {
        let (_, secret) = self.cookie().split_once('=').expect("a name and a value");
        secret
    }

    /// A request of a page of the server's own.
    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.request_with(method, path, &[OWN_PAGE])
    }

    /// A request with its cookie and these headers.
    pub fn request_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> RequestBuilder {
        let request = self.gantry.request(method, path);
        with(request.header(header::COOKIE, self.cookie()), headers)
    }

    /// The answer to a page of the server's own.
    pub async fn ask(&self, method: &str, path: &str, body: serde_json::Value) -> Answer {
        Answer::to(self.request(method, path).json(&body)).await
    }

    /// A ticket for the stream of this operation, else of sessions.
    pub async fn ticket(&self, operation: Option<&str>) -> String {
        let asked = match operation {
            None => json!({}),
            Some(operation) => json!({ "operation": operation }),
        };
        let made = self.ask("post", "/api/v1/stream-tickets", asked).await;
        assert_eq!(made.status, 201, "{made:?}");
        let ticket = made.body["ticket"].as_str();
        ticket.expect("a ticket").to_owned()
    }
}

/// The cookie that an answer gives.
pub fn set_cookie(answer: &Response) -> Option<String> {
    let cookie = answer.headers().get(header::SET_COOKIE)?;
    Some(cookie.to_str().expect("text").to_owned())
}

fn with(request: RequestBuilder, headers: &[(&str, &str)]) -> RequestBuilder {
    let all = headers.iter();
    all.fold(request, |request, (name, value)| {
        request.header(*name, *value)
    })
}
