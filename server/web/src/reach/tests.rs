use super::*;
use crate::testing::Names;

fn reach(allowed: &[&str]) -> Reach {
    let ranges = allowed.iter().map(|range| range.parse().expect("a range"));
    Reach::new(ranges.collect())
}

#[test]
fn an_address_that_is_not_public_is_refused_however_it_is_written() {
    for url in [
        "http://127.0.0.1/",
        "http://127.0.0.1./",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://0x7f.0.0.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://017700000001/",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http://0/",
        "http:127.0.0.1/",
        "http:\\\\127.0.0.1\\",
        "HTTP://127.0.0.1:80/",
        "http://example.org@127.0.0.1.:443/../",
        "http://10.0.0.1:6379/",
        "http://172.16.0.1/",
        "http://192.168.0.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://168.63.129.16/",
        "http://192.0.2.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://[::]/",
        "http://[::1]:7000/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::169.254.169.254]/",
        "http://[64:ff9b:1::a00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:7f00:1::]/",
        "http://[fd00:ec2::254]/",
        "http://[fc00::1]/",
        "http://[fe80::1]/",
        "http://[ff02::1]/",
        "http://[2001:db8::1]/",
        "http://[3fff::1]/",
    ] {
        let refused = reach(&[]).parse(url).expect_err("it is refused");
        let is_private = matches!(refused, WebError::Private(_));
        // The address behind a user name is refused for that name already.
        assert!(is_private || url.contains('@'), "{url}: {refused}");
    }
    for url in [
        "http://8.8.8.8:8080/",
        "https://[2606:4700::1]/",
        "https://example.org/?q=1",
    ] {
        assert_eq!(reach(&[]).parse(url).map(String::from).as_deref(), Ok(url));
    }
}

#[test]
fn a_network_that_the_operator_allows_is_reached_in_its_own_notation() {
    let allowed = reach(&["10.1.0.0/16", "fd00::/8"]);
    for url in [
        "http://10.1.2.3/",
        "http://[::ffff:10.1.2.3]/",
        "http://[fd00::1]/",
        "http://1.1.1.1/",
    ] {
        assert!(allowed.parse(url).is_ok(), "{url}");
    }
    for url in [
        "http://10.2.0.1/",
        "http://[2002:a01:203::]/",
        "http://[64:ff9b::10.1.2.3]/",
        "http://127.0.0.1/",
    ] {
        assert!(
            matches!(allowed.parse(url), Err(WebError::Private(_))),
            "{url}"
        );
    }
}

#[test]
fn a_text_that_is_no_address_of_the_web_is_refused_with_what_to_write() {
    let long = format!("https://example.org/{}", "x".repeat(100 * 1024));
    for (url, words) in [
        ("file:///etc/passwd", "must begin with https:// or http://"),
        ("ftp://example.org/", "must begin with https:// or http://"),
        ("data:text/html,x", "must begin with https:// or http://"),
        ("javascript:alert(1)", "must begin with https:// or http://"),
        (
            "unix:/run/docker.sock",
            "must begin with https:// or http://",
        ),
        ("http://", "write it whole"),
        ("https:///", "write it whole"),
        ("example.org", "write it whole"),
        ("//example.org/", "write it whole"),
        ("", "write it whole"),
        ("http://[::1/", "write it whole"),
        ("http://example.org:99999/", "write it whole"),
        ("http://a b/", "write it whole"),
        (
            "https://user:password@example.org/",
            "user name or password",
        ),
        ("https://user@example.org/", "user name or password"),
        (&long, "more than 8192 bytes"),
    ] {
        let refused = reach(&[])
            .parse(url)
            .expect_err("it is refused")
            .to_string();
        assert!(refused.contains(words), "{url:.80}: {refused}");
        assert!(
            refused.len() < 200 && !refused.contains("password@"),
            "{refused}"
        );
    }
    let url = reach(&[])
        .parse(" https://example.org/a#b\n")
        .expect("a page");
    assert_eq!(
        url.as_str(),
        "https://example.org/a",
        "the part behind # is the reader's"
    );
}

#[tokio::test]
async fn a_name_is_refused_if_one_of_its_addresses_is_not_allowed() {
    let names = Names::new(&[
        ("public.test", &[&["1.1.1.1", "2606:4700::1"]]),
        ("private.test", &[&["10.0.0.1"]]),
        ("both.test", &[&["1.1.1.1", "127.0.0.1"]]),
        ("metadata.test", &[&["fd00:ec2::254", "1.1.1.1"]]),
        ("mapped.test", &[&["::ffff:169.254.169.254"]]),
        ("none.test", &[&[]]),
    ]);
    let checked = Checked {
        reach: reach(&[]),
        lookup: names,
    };
    let resolve = async |name: &str| {
        let found = checked.resolve(name.parse().expect("a name")).await;
        found.map(|found| found.map(|it| it.ip().to_string()).collect::<Vec<_>>())
    };
    let found = resolve("public.test").await.expect("it is public");
    assert_eq!(found, ["1.1.1.1", "2606:4700::1"]);
    for name in ["private.test", "both.test", "metadata.test", "mapped.test"] {
        let refused = resolve(name).await.expect_err("it is refused");
        assert!(refused.is::<NotAllowed>(), "{name}: {refused}");
    }
    for name in ["none.test", "unknown.test"] {
        let failed = resolve(name).await.expect_err("it has no address");
        assert!(!failed.is::<NotAllowed>(), "{name}: {failed}");
    }
}

#[tokio::test]
async fn the_name_of_this_machine_is_refused() {
    let checked = Checked {
        reach: reach(&[]),
        lookup: Arc::new(SystemLookup),
    };
    let refused = checked.resolve("localhost".parse().expect("a name")).await;
    assert!(refused.err().expect("it is refused").is::<NotAllowed>());
}
