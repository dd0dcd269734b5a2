use axum::{Router, http::StatusCode, middleware::from_fn_with_state, routing::post};
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

#[tokio::test(start_paused = true)]
async fn a_whole_request_that_the_server_does_not_finish_is_the_servers_fault() {
    let stuck = async |_: String| std::future::pending::<&str>().await;
    let within = from_fn_with_state(Duration::from_secs(30), in_time);
    let routes = Router::new().route("/", post(stuck)).layer(within);
    for body in [Body::empty(), Body::from("whole")] {
        let request = Request::post("/").body(body).expect("it is a request");
        let Ok(answer) = routes.clone().oneshot(request).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        let body = axum::body::to_bytes(answer.into_body(), 1024).await;
        let body = String::from_utf8_lossy(&body.expect("it is short")).into_owned();
        assert!(body.contains("not_in_time"), "{body}");
    }
}
