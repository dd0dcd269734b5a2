use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use super::*;
use crate::testing::{Answer, Names, Site, answer};

const AT_MOST: usize = 64 * 1024;

/// A fetcher that may reach the address of the sites of these tests, and no other of loopback.
fn fetcher(names: Arc<Names>) -> Fetcher {
    let options = FetchOptions {
        allow: vec!["127.0.0.1".parse().expect("a range")],
        body_at_most: AT_MOST,
        ..FetchOptions::default()
    };
    Fetcher::with(options, names).expect("it can be set up")
}

async fn fetch(url: &str) -> Result<Page, WebError> {
    fetcher(Names::new(&[])).fetch(url).await
}

/// The fate of a page with these lines of its head and this body.
async fn page(head: &str, body: &[u8]) -> Result<String, WebError> {
    let (head, body) = (head.to_owned(), body.to_vec());
    let site = Site::start(move |_| answer("200 OK", &head, &body)).await;
    fetch(&site.url("/")).await.map(|page| page.text)
}

fn leads_to(url: &str) -> Answer {
    answer("302 Found", &format!("location: {url}\r\n"), b"")
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes).expect("it is memory");
    packer.finish().expect("it is memory")
}

#[tokio::test]
async fn a_page_is_asked_for_without_anything_that_tells_of_a_person() {
    let head = "content-type: text/html\r\nset-cookie: a=b\r\n";
    let site =
        Site::start(move |_| answer("200 OK", head, b"<title>T</title><a href=next>x</a>")).await;
    let fetcher = fetcher(Names::new(&[]));
    for _ in 0..2 {
        let page = fetcher
            .fetch(&site.url("/a/b?q=1#part"))
            .await
            .expect("it is there");
        assert_eq!(page.url, site.url("/a/b?q=1"));
        assert_eq!(
            page.text,
            format!("Title: T\n\n[x]({})", site.url("/a/next"))
        );
    }
    for request in site.requests() {
        let request = request.to_lowercase();
        assert!(
            request.starts_with("get /a/b?q=1 http/1.1\r\n"),
            "{request}"
        );
        let agent = format!("user-agent: gantry/{}\r\n", env!("CARGO_PKG_VERSION"));
        assert!(request.contains(&agent), "{request}");
        for header in ["cookie", "authorization", "referer"] {
            assert!(!request.contains(header), "{request}");
        }
    }
}

#[tokio::test]
async fn an_address_that_is_not_allowed_is_never_connected_to() {
    let site = Site::start(|_| answer("200 OK", "", b"secret")).await;
    let nowhere = Fetcher::new(FetchOptions::default()).expect("it can be set up");
    for host in [
        "127.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0.0.0.0",
    ] {
        let refused = nowhere.fetch(&site.at(host, "/?q=secret")).await;
        let refused = refused.expect_err("it is refused");
        assert!(matches!(refused, WebError::Private(_)), "{host}: {refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
    assert!(site.requests().is_empty());
}

#[tokio::test]
async fn a_page_leads_on_to_another_one_but_not_to_an_address_that_is_not_allowed() {
    let site = Site::start(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        match path.strip_prefix("/to?") {
            Some(url) => leads_to(url),
            None => answer("200 OK", "", b"here"),
        }
    })
    .await;
    let names = [("inside.test", &[&["10.0.0.1"][..]][..])];
    let to = async |url: &str| {
        fetcher(Names::new(&names))
            .fetch(&site.url(&format!("/to?{url}")))
            .await
    };
    for there in ["/there", "there", &site.url("/there")] {
        let page = to(there).await.expect("it is followed");
        assert_eq!((page.url, &*page.text), (site.url("/there"), "here"));
    }
    for inside in [
        "http://127.0.0.2/",
        "http://127.0.0.1.nip.test@10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.2]/",
        "//10.0.0.1/",
        "http://inside.test/",
    ] {
        let refused = to(inside).await.expect_err("it is refused");
        let is_private = matches!(refused, WebError::Private(_));
        assert!(is_private || inside.contains('@'), "{inside}: {refused}");
    }
    for (url, words) in [
        ("file:///etc/passwd", "must begin with"),
        ("gopher://example.org/", "must begin with"),
        ("http://user:secret@127.0.0.1/", "user name"),
        ("http://", "leads on to no URL"),
    ] {
        let refused = to(url).await.expect_err("it is refused").to_string();
        assert!(
            refused.contains(words) && !refused.contains("secret"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn at_most_five_pages_lead_on() {
    let site = Site::start(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        match path[1..].parse::<u32>() {
            Ok(0) | Err(_) => answer("200 OK", "", b"end"),
            Ok(left) => leads_to(&format!("/{}", left - 1)),
        }
    })
    .await;
    assert_eq!(fetch(&site.url("/5")).await.expect("it ends").text, "end");
    let refused = fetch(&site.url("/6")).await;
    assert_eq!(refused, Err(WebError::TooManyRedirects(5)));
    assert_eq!(site.requests().len(), 6 + 6);
}

#[tokio::test]
async fn an_encrypted_page_does_not_lead_on_to_a_plain_one() {
    let fetcher = fetcher(Names::new(&[]));
    let next = |from: &str, to: &str| {
        let response = ::http::Response::builder()
            .status(301)
            .header("location", to);
        let response = Response::from(response.body("").expect("it is one"));
        fetcher.next(&Url::parse(from).expect("a URL"), &response)
    };
    let refused = next("https://example.org/", "http://example.org/");
    assert_eq!(refused, Err(WebError::Downgrade("example.org".to_owned())));
    for (from, to) in [
        ("https://example.org/", "https://example.com/"),
        ("http://example.org/", "https://example.org/"),
        ("https://example.org/", "//example.com/"),
    ] {
        let next = next(from, to)
            .expect("it is followed")
            .expect("it leads on");
        assert_eq!(next.scheme(), "https");
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_for_a_connection_and_checked_at_each() {
    let site = Site::start(|request| match request.starts_with("GET /again ") {
        true => leads_to("/"),
        false => answer("200 OK", "", b"here"),
    })
    .await;
    let rebinds: &[&[&str]] = &[&["127.0.0.1"], &["127.0.0.2"]];
    let names = || {
        Names::new(&[
            ("site.test", &[&["127.0.0.1"]]),
            ("rebinds.test", rebinds),
            ("both.test", &[&["127.0.0.1", "10.0.0.1"]]),
            ("inside.test", &[&["::1"]]),
        ])
    };
    let known = names();
    let text = fetcher(known.clone())
        .fetch(&site.at("site.test", "/"))
        .await;
    assert_eq!(text.expect("it is there").text, "here");
    assert_eq!(known.asked(), ["site.test"]);

    let rebinding = names();
    let refused = fetcher(rebinding.clone())
        .fetch(&site.at("rebinds.test", "/again"))
        .await;
    assert_eq!(refused, Err(WebError::Private("rebinds.test".to_owned())));
    assert_eq!(
        rebinding.asked().len(),
        2,
        "the second page is another connection"
    );

    let asked = site.requests().len();
    for name in ["both.test", "inside.test"] {
        let refused = fetcher(names()).fetch(&site.at(name, "/")).await;
        assert_eq!(refused, Err(WebError::Private(name.to_owned())));
    }
    assert_eq!(site.requests().len(), asked, "no connection was made");
    let unknown = fetcher(names())
        .fetch("http://unknown.test/?q=secret")
        .await;
    let unknown = unknown.expect_err("it has no address").to_string();
    assert!(
        unknown.starts_with("unknown.test cannot be reached") && !unknown.contains("secret"),
        "{unknown}"
    );
}

#[tokio::test]
async fn a_page_is_read_up_to_its_bound_packed_or_not() {
    let (fits, long) = (vec![b'x'; AT_MOST], vec![b'x'; AT_MOST + 1]);
    let gzip = "content-encoding: gzip\r\n";
    let too_large = Err(WebError::TooLarge(AT_MOST));
    assert_eq!(page("", &fits).await.map(|text| text.len()), Ok(AT_MOST));
    assert_eq!(page("", &long).await, too_large);
    assert_eq!(
        page(gzip, &packed(&fits)).await.map(|text| text.len()),
        Ok(AT_MOST)
    );
    assert_eq!(page(gzip, &packed(&long)).await, too_large);
    // A bomb of a few KiB, and members that unpack to nothing.
    assert_eq!(
        page(gzip, &packed(&vec![0; 16 * 1024 * 1024])).await,
        too_large
    );
    assert_eq!(
        page(gzip, &packed(b"").repeat(AT_MOST / 10)).await,
        too_large
    );
    let twice = [packed(b"one "), packed(b"two")].concat();
    assert_eq!(page(gzip, &twice).await.as_deref(), Ok("one two"));
    let whole = packed(b"some words");
    for (head, body, words) in [
        (gzip, &whole[..whole.len() - 9], "gzip is damaged"),
        (gzip, b"no gzip at all", "gzip is damaged"),
        ("content-encoding: br\r\n", b"x", "not asked for"),
    ] {
        let broken = page(head, body)
            .await
            .expect_err("it is broken")
            .to_string();
        assert!(broken.contains(words), "{broken}");
    }
    // Without a length, the bound ends what never ends.
    let site = Site::start(|_| {
        Answer::Hangs([b"HTTP/1.1 200 OK\r\n\r\n", &vec![b'x'; AT_MOST + 1][..]].concat())
    })
    .await;
    assert_eq!(fetch(&site.url("/")).await.map(|page| page.text), too_large);
}

#[tokio::test]
async fn a_page_that_is_slow_or_breaks_off_ends_with_a_reason() {
    let slow = Site::start(|_| {
        Answer::Hangs(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nbegin".to_vec())
    })
    .await;
    let options = FetchOptions {
        allow: vec!["127.0.0.1".parse().expect("a range")],
        within: Duration::from_millis(100),
        ..FetchOptions::default()
    };
    let fetcher = Fetcher::new(options).expect("it can be set up");
    let late = fetcher.fetch(&slow.url("/")).await.expect_err("it is late");
    assert_eq!(late.to_string(), "there was no whole answer within 0.1 s");
    let cut = Site::start(|_| {
        Answer::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nbegin".to_vec())
    })
    .await;
    let broken = fetch(&cut.url("/?q=secret"))
        .await
        .expect_err("it broke off")
        .to_string();
    assert!(
        broken.contains("broke off") && !broken.contains("secret"),
        "{broken}"
    );
    let port = cut.url("/?q=secret");
    drop(cut);
    let gone = fetch(&port)
        .await
        .expect_err("no site is there")
        .to_string();
    assert!(
        gone.contains("127.0.0.1 cannot be reached") && !gone.contains("secret"),
        "{gone}"
    );
}

#[tokio::test]
async fn a_status_and_a_content_that_is_no_text_are_told() {
    for (status, head) in [
        ("404 Not Found", ""),
        ("503 Service Unavailable", ""),
        ("302 Found", ""),
    ] {
        let site = Site::start(move |_| answer(status, head, b"x")).await;
        let refused = fetch(&site.url("/"))
            .await
            .expect_err("it is no page")
            .to_string();
        assert_eq!(
            refused,
            format!("127.0.0.1 answered with the status {status}")
        );
    }
    let pdf = page("content-type: application/pdf\r\n", b"%PDF-").await;
    let pdf = pdf.expect_err("it is no text").to_string();
    assert!(
        pdf.contains("no text but application/pdf, 5 bytes"),
        "{pdf}"
    );
    let latin = page("content-type: text/plain; charset=latin1\r\n", b"caf\xe9").await;
    assert_eq!(latin.as_deref(), Ok("café"));
}
