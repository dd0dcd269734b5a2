use serde_json::json;

use super::*;
use crate::testing::{Answer, Site, answer};

const CANARY: &str = "search-canary-5d1f0c";

fn searcher(provider: SearchProvider, url: &str) -> Searcher {
    Searcher::new(SearchOptions {
        provider,
        url: Some(url.to_owned()),
        key: SearchKey::new(CANARY),
        within: Duration::from_secs(30),
    })
    .expect("it can be set up")
}

fn says(body: Value) -> impl Fn(&str) -> Answer + Send + Sync + 'static {
    move |_| {
        answer(
            "200 OK",
            "content-type: application/json\r\n",
            body.to_string().as_bytes(),
        )
    }
}

fn found(number: u32) -> SearchHit {
    SearchHit {
        title: format!("Title {number}"),
        url: format!("https://example.org/{number}"),
        snippet: format!("words & {number}"),
    }
}

#[tokio::test]
async fn each_provider_is_asked_in_its_own_way_and_its_results_are_found() {
    let results = |snippet: &str| {
        let results = (1..=12).map(|n| {
            json!({
                "title": format!("<b>Title</b> {n}"),
                "url": format!("https://example.org/{n}"),
                snippet: format!("words &amp;\n {n}"),
            })
        });
        Value::from_iter(results)
    };
    for (provider, said, asked) in [
        (
            SearchProvider::Brave,
            json!({ "web": { "results": results("description") } }),
            [
                "GET /base/res/v1/web/search?q=two+words%26x%3D1&count=3&text_decorations=false ",
                "x-subscription-token: search-canary-5d1f0c\r\n",
            ],
        ),
        (
            SearchProvider::Tavily,
            json!({ "results": results("content") }),
            [
                "POST /base/search ",
                "authorization: Bearer search-canary-5d1f0c\r\n",
            ],
        ),
        (
            SearchProvider::Searxng,
            json!({ "results": results("content") }),
            [
                "GET /base/search?q=two+words%26x%3D1&format=json ",
                "accept: application/json\r\n",
            ],
        ),
    ] {
        let site = Site::start(says(said)).await;
        let searcher = searcher(provider, &site.url("/base/"));
        let results = searcher.search("two words&x=1", 3).await;
        assert_eq!(
            results,
            Ok(vec![found(1), found(2), found(3)]),
            "{provider:?}"
        );
        let many = searcher
            .search("two words&x=1", 100)
            .await
            .expect("an answer");
        assert_eq!(many.len(), RESULTS_AT_MOST, "{provider:?}");
        let request = &site.requests()[0];
        assert!(asked.iter().all(|part| request.contains(part)), "{request}");
        if provider == SearchProvider::Tavily {
            let (_, body) = request.split_once("\r\n\r\n").expect("a body");
            let body: Value = serde_json::from_str(body).expect("JSON");
            assert_eq!(body, json!({ "query": "two words&x=1", "max_results": 3 }));
        }
    }
}

#[tokio::test]
async fn a_search_without_results_is_an_answer_and_another_form_is_none() {
    for (provider, said, expected) in [
        (SearchProvider::Brave, json!({ "type": "search" }), Some(0)),
        (SearchProvider::Brave, json!({ "web": {} }), None),
        (SearchProvider::Brave, json!([]), None),
        (SearchProvider::Tavily, json!({ "results": [] }), Some(0)),
        (
            SearchProvider::Searxng,
            json!({ "results": [{ "title": "no address" }] }),
            Some(0),
        ),
        (SearchProvider::Searxng, json!({ "results": "none" }), None),
    ] {
        let site = Site::start(says(said.clone())).await;
        let results = searcher(provider, &site.url("")).search("x", 5).await;
        assert_eq!(results.ok().map(|found| found.len()), expected, "{said}");
    }
}

#[tokio::test]
async fn the_parts_of_a_result_are_short_and_on_one_line() {
    let long = "é\n".repeat(5000);
    let url = format!("https://example.org/{}", "x".repeat(5000));
    let said = json!({ "results": [{ "title": long, "url": url, "content": "a\u{1b}[2J b" }] });
    let site = Site::start(says(said)).await;
    let results = searcher(SearchProvider::Searxng, &site.url(""))
        .search("x", 5)
        .await;
    let found = &results.expect("an answer")[0];
    assert_eq!(found.title.chars().count(), TITLE_LETTERS + 1);
    assert_eq!(found.url.chars().count(), URL_LETTERS + 1);
    assert!(!found.title.contains('\n') && !found.snippet.contains('\u{1b}'));
}

#[tokio::test]
async fn a_refusal_is_told_without_the_key_and_without_the_words_of_the_provider() {
    for (provider, status, words) in [
        (
            SearchProvider::Brave,
            "401 Unauthorized",
            "check the key of [web.search]",
        ),
        (
            SearchProvider::Tavily,
            "429 Too Many Requests",
            "search again later",
        ),
        (
            SearchProvider::Searxng,
            "403 Forbidden",
            "allow json under search.formats",
        ),
        (
            SearchProvider::Brave,
            "500 Internal Server Error",
            "500 Internal Server Error",
        ),
        (SearchProvider::Brave, "302 Found", "302 Found"),
        (SearchProvider::Tavily, "200 OK", "no JSON"),
    ] {
        let head = "location: http://127.0.0.1:1/\r\n";
        let site = Site::start(move |_| answer(status, head, CANARY.as_bytes())).await;
        let searcher = searcher(provider, &site.url(""));
        let refused = searcher
            .search("a secret query", 5)
            .await
            .expect_err("it is refused");
        let refused = format!("{refused} {refused:?}");
        assert!(refused.contains(words), "{refused}");
        assert!(
            !refused.contains(CANARY) && !refused.contains("query"),
            "{refused}"
        );
    }
    let large = Site::start(|_| answer("200 OK", "", &vec![b' '; ANSWER_BYTES + 1])).await;
    let refused = searcher(SearchProvider::Brave, &large.url(""))
        .search("x", 5)
        .await;
    assert!(
        refused
            .expect_err("it is too large")
            .to_string()
            .contains("more than 1 MiB")
    );
    let gone = large.url("");
    drop(large);
    let refused = searcher(SearchProvider::Brave, &gone)
        .search("query", 5)
        .await;
    let refused = refused.expect_err("no server is there").to_string();
    assert!(
        refused.contains("the search provider cannot be reached"),
        "{refused}"
    );
    assert!(!refused.contains("query"), "{refused}");
}

#[tokio::test]
async fn a_provider_that_is_silent_ends_with_a_reason() {
    let site = Site::start(|_| Answer::Hangs(Vec::new())).await;
    let options = SearchOptions {
        provider: SearchProvider::Searxng,
        url: Some(site.url("")),
        key: None,
        within: Duration::from_millis(100),
    };
    let silent = Searcher::new(options)
        .expect("it can be set up")
        .search("x", 5)
        .await;
    assert_eq!(silent, Err(WebError::TimedOut(Duration::from_millis(100))));
}

#[test]
fn options_that_cannot_be_used_are_refused_and_show_no_key() {
    let new = |url: Option<&str>, key: &str| {
        let options = SearchOptions {
            provider: SearchProvider::Searxng,
            url: url.map(str::to_owned),
            key: SearchKey::new(key),
            within: Duration::from_secs(1),
        };
        assert!(!format!("{options:?}").contains("canary"));
        let refused = Searcher::new(options)
            .err()
            .expect("it is refused")
            .to_string();
        assert!(!refused.contains("canary"), "{refused}");
        refused
    };
    for url in [
        None,
        Some("search.example.org"),
        Some("ftp://search.example.org"),
        Some(""),
    ] {
        assert!(new(url, CANARY).contains("write it like https://search.example.org"));
    }
    assert!(new(Some("https://someone:word@example.org"), "").contains("leave it out"));
    assert!(new(Some("https://example.org"), "canary\u{7f}").contains("copy it again"));
    assert!(SearchKey::new(" \n").is_none());
    assert_eq!("brave".parse(), Ok(SearchProvider::Brave));
    let unknown = "google".parse::<SearchProvider>().expect_err("it is none");
    assert!(unknown.to_string().contains("brave, tavily or searxng"));
}
