//! The REST API as it is on the wire, for what a well-behaved client would never say.

use serde_json::Value;

use super::Gantry;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The content type; empty where there is none.
    pub kind: String,
    /// How many seconds to wait before another attempt, where it says so.
    pub retry_after: Option<u64>,
    /// The body; null where there is none or it is no JSON.
    pub body: Value,
}

impl Gantry {
    /// One request as the owner; `body` is sent as it is.
    pub async fn ask(&self, method: &str, path: &str, body: Option<String>) -> Answer {
        self.ask_as(self.token(), method, path, body).await
    }

    /// The same as whoever has this token.
    pub async fn ask_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Answer {
        let mut request = self.request(method, path).bearer_auth(token);
        if let Some(body) = body {
            request = request
                .header(reqwest::header::CONTENT_TYPE, "application/json")
                .body(body);
        }
        Answer::to(request).await
    }

    /// A request as a stranger, to be sent with [`Answer::to`].
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.to_uppercase().parse().expect("a method");
        self.http.request(method, format!("{}{path}", self.url()))
    }
}

impl Answer {
    /// Sends a request.
    pub async fn to(request: reqwest::RequestBuilder) -> Self {
        let answer = request.send().await.expect("an answer");
        let kind = answer.headers().get(reqwest::header::CONTENT_TYPE);
        let retry_after = answer.headers().get(reqwest::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        Self {
            retry_after,
            status: answer.status().as_u16(),
            kind: kind
                .and_then(|kind| kind.to_str().ok())
                .unwrap_or_default()
                .to_owned(),
            body: answer.json().await.unwrap_or_default(),
        }
    }
}
