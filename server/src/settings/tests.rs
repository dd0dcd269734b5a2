use super::*;

// Built by hand, not parsed, so that the environment of the test run does not show.
fn resolve(toml: &str, args: RunArgs) -> anyhow::Result<ServerSettings> {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("gantry.toml"), toml).expect("it is written");
    ServerSettings::resolve(args, Environment::default(), None, home.path())
}

fn error(toml: &str, args: RunArgs) -> String {
    format!("{:#}", resolve(toml, args).err().expect("it is refused"))
}

fn listen(address: &str) -> RunArgs {
    RunArgs {
        listen: Some(address.parse().expect("an address")),
        ..RunArgs::default()
    }
}

#[test]
fn the_metrics_have_a_listener_of_their_own_only_where_one_is_set() {
    let nowhere = resolve("", RunArgs::default()).expect("it is fine");
    assert_eq!(nowhere.metrics, None);
    let file = "[metrics]\nlisten = \"127.0.0.1:9464\"\n";
    let at = |args| resolve(file, args).expect("it is fine").metrics;
    let port = |address: Option<SocketAddr>| address.map(|address| address.port());
    assert_eq!(port(at(RunArgs::default())), Some(9464));
    let flag = RunArgs {
        metrics: Some("127.0.0.1:9000".parse().expect("an address")),
        ..RunArgs::default()
    };
    assert_eq!(port(at(flag)), Some(9000), "a flag goes before the file");
}

#[test]
fn other_servers_are_answered_only_where_an_address_is_set_and_told_where() {
    const POSTGRES: &str = "[database]\nurl = \"postgres://gantry@db/gantry\"\n[peers]\n";
    let peers = |file: &str| {
        let file = format!("{POSTGRES}{file}");
        resolve(&file, RunArgs::default())
            .expect("it is fine")
            .peers
    };
    assert_eq!(peers(""), None);
    let told = |file: &str, bound: &str| {
        let bound = bound.parse().expect("an address");
        peers(file)
            .expect("a listener")
            .advertised(bound, Some("box"))
    };
    let every = "listen = \"0.0.0.0:7001\"\n";
    assert_eq!(told(every, "0.0.0.0:7001"), "box:7001");
    assert_eq!(
        told("listen = \"10.0.0.1:0\"\n", "10.0.0.1:7005"),
        "10.0.0.1:7005"
    );
    let named = format!("{every}address = \"a.example:443\"\n");
    assert_eq!(told(&named, "0.0.0.0:7001"), "a.example:443");

    let file = error("[peers]\nlisten = \"127.0.0.1:7001\"\n", RunArgs::default());
    assert!(file.contains("needs PostgreSQL"), "{file}");
    let unlistened = error("[peers]\naddress = \"a.example:443\"\n", RunArgs::default());
    assert!(unlistened.contains("--peer-listen"), "{unlistened}");
    let no_port = format!("{POSTGRES}{every}address = \"a.example\"\n");
    let no_port = error(&no_port, RunArgs::default());
    assert!(no_port.contains("--peer-address"), "{no_port}");
}

#[test]
fn traces_are_sent_only_where_a_collector_is_named() {
    let traces = |toml: &str, flag: Option<&str>| {
        let args = RunArgs {
            traces: flag.map(str::to_owned),
            ..RunArgs::default()
        };
        resolve(toml, args).expect("it is fine").traces
    };
    assert_eq!(traces("", None), None);
    assert_eq!(traces("[traces]\nsample = 0.5\n", Some("")), None);
    let file = "[traces]\nendpoint = \"http://collector:4317\"\nsample = 0.5\n";
    let of_file = TraceSettings {
        endpoint: "http://collector:4317".to_owned(),
        sample: 0.5,
    };
    assert_eq!(traces(file, None), Some(of_file));
    let flag = traces(file, Some("http://127.0.0.1:4317")).expect("a collector");
    assert_eq!(flag.endpoint, "http://127.0.0.1:4317");
    for wrong in ["endpoint = \"https://collector:4317\"", "sample = 1.5"] {
        let message = error(&format!("[traces]\n{wrong}\n"), RunArgs::default());
        assert!(message.contains("traces"), "{message}");
    }
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let message = error("[server]\nlissten = \"127.0.0.1:1\"\n", RunArgs::default());
    assert!(
        message.contains("lissten") && message.contains("line 2"),
        "{message}"
    );
}

#[test]
fn a_mistake_in_the_file_is_told_on_one_line_and_without_what_the_file_says() {
    for toml in [
        "[model]\nkey = \"sk-secret\"\n",
        "\n[model\n",
        "[model]\nname = \"sk-secret\n",
    ] {
        let message = error(toml, RunArgs::default());
        assert!(message.contains("gantry.toml, line 2: "), "{message}");
        assert!(
            !message.contains('\n') && !message.contains("secret"),
            "{message}"
        );
    }
}

#[test]
fn a_header_names_a_clients_address_only_behind_a_proxy() {
    let header = "[server]\nclient_address_header = \"X-Forwarded-For\"\n";
    let message = error(header, RunArgs::default());
    assert!(message.contains("behind_proxy"), "{message}");
    let settings = resolve(
        &format!("{header}behind_proxy = true\n"),
        RunArgs::default(),
    );
    let named = settings.expect("it is fine").client_address;
    assert_eq!(named.expect("a header"), "x-forwarded-for");
    let none = header.replace("X-Forwarded-For", "no header");
    let message = error(&format!("{none}behind_proxy = true\n"), RunArgs::default());
    assert!(message.contains("name of a header"), "{message}");
}

#[test]
fn plain_text_is_refused_on_an_address_that_others_can_reach() {
    assert!(error("", listen("0.0.0.0:7000")).contains("--tls"));
    assert!(
        resolve(
            "",
            RunArgs {
                tls: true,
                ..listen("0.0.0.0:7000")
            }
        )
        .is_ok()
    );
    assert!(
        resolve(
            "",
            RunArgs {
                behind_proxy: true,
                ..listen("0.0.0.0:7000")
            }
        )
        .is_ok()
    );
    assert!(resolve("", listen("[::1]:7000")).is_ok());
}

#[test]
fn the_models_window_is_unknown_unless_it_is_set() {
    let window = |toml: &str| resolve(toml, RunArgs::default()).map(|it| it.app.model_window);
    assert_eq!(window("").expect("it is fine"), None);
    let set = window("[model]\nwindow = 128000\n");
    assert_eq!(set.expect("it is fine"), Some(128_000));
    assert!(error("[model]\nwindow = 100\n", RunArgs::default()).contains("4096 tokens"));
}

#[test]
fn a_name_is_a_hosts_without_scheme_and_port() {
    let file = "[server]\nnames = [\"gantry.example\", \"*.example.com\"]\n";
    let args = RunArgs {
        names: vec!["server".to_owned()],
        ..RunArgs::default()
    };
    let settings = resolve(file, args).expect("they are names");
    assert_eq!(
        settings.names,
        ["server", "gantry.example", "*.example.com"]
    );
    for name in [
        "https://gantry.example",
        "gantry.example:443",
        "",
        "*",
        "*.",
    ] {
        let refused = error(
            &format!("[server]\nnames = [{name:?}]\n"),
            RunArgs::default(),
        );
        assert!(refused.contains("no host's name"), "{refused}");
    }
}
