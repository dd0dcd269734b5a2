use axum::{Router, body::Body, http::StatusCode, middleware::from_fn_with_state, routing::post};
use tower::ServiceExt as _;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_request_whose_body_does_not_come_is_given_up_in_the_words_of_its_door() {
    let read = async |_: String| "read";
    let within = from_fn_with_state(Duration::from_secs(30), in_time);
    let routes = Router::new().route("/", post(read)).layer(within);
    for (media_type, status, answered) in [
        ("application/json", 408, "application/problem+json"),
        ("application/grpc", 200, "application/grpc"),
    ] {
        let never = futures_util::stream::pending::<Result<&str, std::io::Error>>();
        let request = Request::post("/")
            .header(header::CONTENT_TYPE, media_type)
            .body(Body::from_stream(never))
            .expect("it is a request");
        let Ok(answer) = routes.clone().oneshot(request).await;
        assert_eq!(
            answer.status(),
            StatusCode::from_u16(status).expect("a status")
        );
        assert_eq!(answer.headers()[header::CONTENT_TYPE], answered);
    }
}
