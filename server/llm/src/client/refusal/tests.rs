use reqwest::header::{HeaderName, HeaderValue};
use serde_json::json;

use super::*;

fn quotes() -> Quotes {
    Quotes::new(crate::ApiKey::new("sk-0123456789"), Named::default())
}

fn refusal(status: u16, body: &str) -> ModelError {
    let status = StatusCode::from_u16(status).expect("it is a status");
    of_response(status, &HeaderMap::new(), body.as_bytes(), &quotes()).error
}

fn class(error: &ModelError) -> &'static str {
    match error {
        ModelError::Unauthenticated(_) => "unauthenticated",
        ModelError::QuotaExhausted(_) => "quota",
        ModelError::Overflow(_) => "overflow",
        ModelError::Refused(_) => "refused",
        ModelError::RateLimited(_) => "rate limited",
        ModelError::Unavailable(_) => "unavailable",
        ModelError::Broken(_) => "broken",
        ModelError::TimedOut(_) => "timed out",
    }
}

#[test]
fn the_status_and_the_most_specific_words_decide() {
    for (status, body, expected) in [
        (401, "{}", "unauthenticated"),
        (403, "", "unauthenticated"),
        (402, "", "quota"),
        (429, r#"{"error":{"code":"insufficient_quota"}}"#, "quota"),
        (429, r#"{"error":{"type":"insufficient_quota"}}"#, "quota"),
        (
            429,
            r#"{"error":{"code":"rate_limit_exceeded"}}"#,
            "rate limited",
        ),
        (429, "slow down", "rate limited"),
        (
            429,
            r#"{"error":{"code":"rate_limit_exceeded","message":"Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 36278. The input or output tokens must be reduced in order to run successfully."}}"#,
            "overflow",
        ),
        (
            400,
            r#"{"error":{"message":"You passed 9000 input tokens and requested 1 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 8191 tokens."}}"#,
            "overflow",
        ),
        (
            400,
            r#"{"message":"The input (9000 tokens) is longer than the model's context length (8192 tokens)."}"#,
            "overflow",
        ),
        (
            400,
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            "overflow",
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens","code":400}"#,
            "overflow",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}"#,
            "overflow",
        ),
        (
            400,
            r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"}}"#,
            "overflow",
        ),
        (
            400,
            r#"{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            "overflow",
        ),
        (
            400,
            r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192"}}"#,
            "overflow",
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 205000 tokens > 200000 maximum"},"request_id":"req_1"}"#,
            "overflow",
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#,
            "quota",
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01."}}"#,
            "quota",
        ),
        (
            500,
            r#"{"error":{"message":"credit balance is too low to tell"}}"#,
            "unavailable",
        ),
        (
            403,
            r#"{"type":"error","error":{"type":"billing_error","message":"x"}}"#,
            "quota",
        ),
        (
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            "unauthenticated",
        ),
        (
            403,
            r#"{"type":"error","error":{"type":"permission_error","message":"x"}}"#,
            "unauthenticated",
        ),
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}"#,
            "refused",
        ),
        (
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"x"}}"#,
            "rate limited",
        ),
        (
            504,
            r#"{"type":"error","error":{"type":"timeout_error","message":"x"}}"#,
            "unavailable",
        ),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "unavailable",
        ),
        (413, "", "overflow"),
        (400, r#"{"detail":"no such field"}"#, "refused"),
        (422, r#"{"detail":[{"loc":["x"]}]}"#, "refused"),
        (404, "<html>nothing here</html>", "refused"),
        (308, "", "refused"),
        (408, "", "timed out"),
        (409, "", "unavailable"),
        (425, "", "unavailable"),
        (
            500,
            r#"{"error":"context window of the log"}"#,
            "unavailable",
        ),
        (503, "", "unavailable"),
        (529, "", "unavailable"),
        (103, "", "broken"),
    ] {
        let error = refusal(status, body);
        assert_eq!(class(&error), expected, "{status} {body} gave {error}");
    }
}

#[test]
fn the_errors_of_google_are_told_apart() {
    let quota = |quota: &str| {
        json!([{ "error": {
            "code": 429, "status": "RESOURCE_EXHAUSTED",
            "message": "You exceeded your current quota, please check your plan and billing details.",
            "details": [
                { "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [
                    { "quotaMetric": "generate_content_requests", "quotaId": quota },
                ] },
                { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "20s" },
            ],
        } }])
    };
    let plain = |code: u16, status: &str, message: &str| json!({ "error": { "code": code, "message": message, "status": status } });
    for (status, body, expected) in [
        (
            429,
            quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
            "rate limited",
        ),
        (
            429,
            quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
            "quota",
        ),
        (
            429,
            plain(
                429,
                "RESOURCE_EXHAUSTED",
                "Resource has been exhausted (e.g. check quota).",
            ),
            "rate limited",
        ),
        (
            429,
            plain(
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota. * Quota exceeded for metric: free_tier_requests, limit: 0, model: gemini-2.5-pro",
            ),
            "quota",
        ),
        (
            429,
            plain(
                429,
                "RESOURCE_EXHAUSTED",
                "Your prepayment credits are depleted.",
            ),
            "quota",
        ),
        (
            401,
            plain(
                401,
                "UNAUTHENTICATED",
                "Request had invalid authentication credentials.",
            ),
            "unauthenticated",
        ),
        (
            403,
            plain(
                403,
                "PERMISSION_DENIED",
                "Your API key was reported as leaked.",
            ),
            "unauthenticated",
        ),
        (
            400,
            plain(
                400,
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid API key.",
            ),
            "unauthenticated",
        ),
        (
            400,
            plain(
                400,
                "FAILED_PRECONDITION",
                "User location is not supported for the API use.",
            ),
            "refused",
        ),
        (
            400,
            plain(
                400,
                "INVALID_ARGUMENT",
                "Request payload size exceeds the limit: 20971520 bytes.",
            ),
            "overflow",
        ),
        (
            503,
            plain(
                503,
                "UNAVAILABLE",
                "The model is overloaded. Please try again later.",
            ),
            "unavailable",
        ),
        (
            500,
            plain(500, "INTERNAL", "An internal error has occurred."),
            "unavailable",
        ),
        (
            499,
            plain(499, "CANCELLED", "The operation was cancelled."),
            "unavailable",
        ),
    ] {
        let error = refusal(status, &body.to_string());
        assert_eq!(class(&error), expected, "{body} gave {error}");
        let within = in_value(&body, &quotes()).expect("it is an error");
        assert_eq!(class(&within), expected, "{body} gave {within}");
    }
    for (status, expected) in [
        ("RESOURCE_EXHAUSTED", "rate limited"),
        ("UNAVAILABLE", "unavailable"),
        ("PERMISSION_DENIED", "unauthenticated"),
        ("INVALID_ARGUMENT", "refused"),
    ] {
        let error = in_value(&json!({ "error": { "status": status } }), &quotes());
        assert_eq!(class(&error.expect("it is an error")), expected, "{status}");
    }
}

#[test]
fn an_error_inside_of_a_stream_is_classified_by_its_code_or_type() {
    for (value, expected) in [
        (json!({ "error": { "code": 429 } }), "rate limited"),
        (json!({ "error": { "code": "502" } }), "unavailable"),
        (
            json!({ "error": { "type": "rate_limit_error" } }),
            "rate limited",
        ),
        (
            json!({ "error": { "type": "invalid_request_error" } }),
            "refused",
        ),
        (
            json!({ "error": { "code": "invalid_api_key" } }),
            "unauthenticated",
        ),
        (
            json!({ "error": { "message": "prompt is too long: 9 tokens" } }),
            "overflow",
        ),
        (json!({ "error": "out of memory" }), "unavailable"),
        (
            json!({ "object": "error", "message": "x", "code": 400 }),
            "refused",
        ),
    ] {
        let error = in_value(&value, &quotes()).expect("it is an error");
        assert_eq!(class(&error), expected, "{value} gave {error}");
    }
    for (code, expected) in [
        ("rate_limit_exceeded", "rate limited"),
        ("server_error", "unavailable"),
        ("vector_store_timeout", "unavailable"),
        ("insufficient_quota", "quota"),
        ("context_length_exceeded", "overflow"),
        ("invalid_prompt", "refused"),
        ("image_too_large", "refused"),
    ] {
        let error = json!({ "code": code, "message": "x" });
        for value in [
            json!({ "type": "response.failed", "response": { "status": "failed", "error": error } }),
            json!({ "object": "response", "status": "failed", "error": error }),
            json!({ "type": "error", "code": code, "message": "x", "param": null }),
            json!([{ "candidates": [] }, { "error": error }]),
        ] {
            let error = in_value(&value, &quotes()).expect("it is an error");
            assert_eq!(class(&error), expected, "{value} gave {error}");
        }
    }
    for value in [
        json!({ "type": "response.created", "response": { "error": null, "status": "queued" } }),
        json!({ "error": null, "choices": [] }),
        json!({}),
        json!({ "error": {} }),
        json!({ "error": { "code": 0, "message": "" }, "choices": [{ "error": null }] }),
    ] {
        assert_eq!(in_value(&value, &quotes()), None, "{value}");
    }
}

#[test]
fn the_message_quotes_the_server_without_the_key_and_says_what_to_do() {
    let error = refusal(
        401,
        r#"{"error":{"message":"Incorrect API key\nprovided: sk-0123456789."}}"#,
    );
    assert_eq!(
        error.to_string(),
        "the model server does not accept the key (status 401: Incorrect API key provided: [key]): \
         check OPENAI_API_KEY and that it belongs to OPENAI_BASE_URL"
    );
    assert!(!refusal(404, "<html>x</html>").to_string().contains('<'));
    let long = refusal(400, &"x".repeat(60_000)).to_string();
    assert!(long.len() < 1000, "{} bytes", long.len());
}

#[test]
fn the_time_to_wait_is_read_in_each_of_its_forms() {
    let date = "Wed, 21 Oct 2026 07:28:00 GMT";
    let later = "Wed, 21 Oct 2026 07:28:09 GMT";
    for (headers, expected) in [
        (vec![("retry-after", "7")], Some(7000)),
        (vec![("retry-after", " 0.5 ")], Some(500)),
        (
            vec![("retry-after", "7"), ("retry-after-ms", "250")],
            Some(250),
        ),
        (vec![("retry-after", later), ("date", date)], Some(9000)),
        (vec![("retry-after", date), ("date", later)], Some(0)),
        (vec![("retry-after", later)], None),
        (vec![("retry-after", "-1")], None),
        (vec![("retry-after", "1e300")], None),
        (vec![("retry-after", "NaN")], None),
        (vec![("retry-after", "soon")], None),
        (vec![], None),
    ] {
        let map = headers
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        assert_eq!(
            retry_after(&map),
            expected.map(Duration::from_millis),
            "{headers:?}"
        );
    }
}

#[test]
fn the_time_to_wait_is_read_in_the_body_too() {
    let told = |delay: serde_json::Value| {
        let body = json!([{ "error": { "code": 429, "details": [
            { "@type": "type.googleapis.com/google.rpc.QuotaFailure" },
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay },
        ] } }])
        .to_string();
        let refused = of_response(
            StatusCode::TOO_MANY_REQUESTS,
            &HeaderMap::new(),
            body.as_bytes(),
            &quotes(),
        );
        refused.retry_after
    };
    assert_eq!(told(json!("36.5s")), Some(Duration::from_millis(36_500)));
    for wrong in [
        json!("36"),
        json!("-1s"),
        json!("NaNs"),
        json!(36),
        json!("s"),
    ] {
        assert_eq!(told(wrong.clone()), None, "{wrong}");
    }
}
