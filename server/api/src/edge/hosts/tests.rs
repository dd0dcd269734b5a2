use axum::http::Request;

use super::*;

/// What a request is answered: 200 stands for what the routes say.
fn asked(version: Version, uri: &str, headers: &[(&str, &str)]) -> u16 {
    let names = ["Gantry.example", "*.wild.example"].map(str::to_owned);
    let mut request = Request::builder().version(version).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, ()) = request.body(()).expect("it is a request").into_parts();
    let names = names.into_iter().collect();
    let checked = check(&names, &parts.uri, parts.version, &parts.headers);
    checked.map_or_else(|problem| problem.status, |()| 200)
}

#[test]
fn the_server_answers_for_its_names_for_addresses_and_for_this_machine() {
    for (host, status) in [
        ("127.0.0.1:7000", 200),
        ("192.168.1.7:7443", 200),
        ("[::1]:7000", 200),
        ("[2001:db8::7]", 200),
        ("localhost", 200),
        ("LOCALHOST.:7000", 200),
        ("app.localhost:7000", 200),
        ("gantry.example", 200),
        ("GANTRY.example.:7443", 200),
        ("a.wild.example", 200),
        ("wild.example", 421),
        ("a.b.wild.example", 421),
        ("evil.example:7000", 421),
        ("127.0.0.1.evil.example", 421),
        ("gantry.example.evil.example", 421),
        ("localhost.evil.example", 421),
        ("notlocalhost", 421),
        ("evil.example@127.0.0.1", 421),
        ("127.0.0.1, evil.example", 400),
        ("", 400),
    ] {
        assert_eq!(
            asked(Version::HTTP_11, "/", &[("host", host)]),
            status,
            "{host:?}"
        );
        if let Ok(uri) = format!("http://{host}/").parse::<Uri>() {
            // As HTTP/2 carries it.
            assert_eq!(
                asked(Version::HTTP_2, &uri.to_string(), &[]),
                status,
                "{host:?}"
            );
        }
    }
}

#[test]
fn a_request_names_its_host_once_or_is_older_than_hosts() {
    let twice = [("host", "localhost"), ("host", "localhost")];
    assert_eq!(asked(Version::HTTP_11, "/", &twice), 400);
    assert_eq!(asked(Version::HTTP_11, "/", &[]), 400);
    assert_eq!(asked(Version::HTTP_2, "/", &[]), 400);
    assert_eq!(asked(Version::HTTP_10, "/", &[]), 200);
    let both = |host| asked(Version::HTTP_2, "http://localhost/", &[("host", host)]);
    assert_eq!((both("localhost"), both("evil.example")), (200, 421));
}

#[test]
fn only_pages_of_the_servers_own_may_ask() {
    for (host, origin, status) in [
        ("127.0.0.1:7000", "http://127.0.0.1:7000", 200),
        ("127.0.0.1:7000", "http://localhost:3000", 200),
        ("[::1]:7000", "http://app.localhost", 200),
        ("192.168.1.7:7443", "https://192.168.1.7:7443", 200),
        ("192.168.1.7:7443", "https://192.168.1.7:8080", 403),
        ("192.168.1.7:7443", "https://192.168.1.8:7443", 403),
        ("192.168.1.7:7443", "http://localhost:3000", 403),
        ("127.0.0.1:7000", "https://gantry.example", 200),
        ("127.0.0.1:7000", "https://evil.example", 403),
        ("127.0.0.1:7000", "http://evil.example:7000", 403),
        ("127.0.0.1:7000", "null", 403),
        ("127.0.0.1:7000", "", 403),
        ("127.0.0.1:7000", "localhost", 403),
        ("127.0.0.1:7000", "file://", 403),
        ("127.0.0.1:7000", "chrome-extension://localhost", 403),
    ] {
        let headers = [("host", host), ("origin", origin)];
        let answered = asked(Version::HTTP_11, "/", &headers);
        assert_eq!(answered, status, "{origin:?} asks {host:?}");
    }
    let two = [
        ("host", "localhost"),
        ("origin", "http://localhost"),
        ("origin", "http://evil.example"),
    ];
    assert_eq!(asked(Version::HTTP_11, "/", &two), 403);
}
