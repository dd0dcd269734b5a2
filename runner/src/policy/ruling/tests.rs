use shared_sandbox::{Command, Exec, List, Write};

use super::*;
use crate::policy::rules::parsed;

const ALLOW_AND_DENY: &str = r#"
    allow = ["Shell(cargo test *)"]
    deny = ["Shell(git push *)", "Write(**/.env)"]
"#;

fn place() -> OperationPlace {
    OperationPlace {
        workspace: Some("/home/me/work/api".into()),
        roots: vec!["/home/me/work/api".into()],
        isolation: Isolation::none(),
        has_network: false,
    }
}

fn shell(script: &str) -> Request {
    Request::Exec(Exec::new(Command::Shell(script.to_owned())))
}

fn write(path: &str) -> Request {
    Request::Write(Write {
        path: path.to_owned(),
        content: Vec::new(),
    })
}

fn list() -> Request {
    Request::List(List {
        path: "src".to_owned(),
        max_entries: 1,
        tree: false,
        after: String::new(),
    })
}

fn approved(request: &Request) -> Consent {
    Consent::Approved {
        mode: Mode::Ask,
        plan: request.digest(),
    }
}

/// The answer of a policy of this text about a request at a place.
fn at(
    place: &OperationPlace,
    text: &str,
    request: &Request,
    consent: Consent,
) -> Result<(), Forbidden> {
    let policy = parsed(text).expect("a policy");
    policy.permits(request, consent, place)
}

fn here(text: &str, request: &Request, consent: Consent) -> Result<(), Forbidden> {
    at(&place(), text, request, consent)
}

#[test]
fn what_is_denied_is_denied_to_all_also_with_an_approval() {
    for request in [
        shell("git push origin main"),
        write("api/.env"),
        write(".env"),
    ] {
        for consent in [
            Consent::Caller,
            Consent::Agent(Mode::Full),
            approved(&request),
        ] {
            let told = here(ALLOW_AND_DENY, &request, consent);
            assert!(
                matches!(told, Err(Forbidden::Denied(_))),
                "{request:?} {told:?}"
            );
        }
    }
    assert_eq!(here(ALLOW_AND_DENY, &write("env"), Consent::Caller), Ok(()));
}

#[test]
fn a_path_by_which_rules_could_be_gone_around_is_refused_where_any_is_denied() {
    for path in ["link/../../.env", "/etc/passwd", ".."] {
        let told = here(ALLOW_AND_DENY, &write(path), Consent::Caller);
        assert!(
            matches!(told, Err(Forbidden::Astray(_))),
            "{path}: {told:?}"
        );
        // The kernel decides where it leads.
        assert_eq!(here("", &write(path), Consent::Caller), Ok(()));
    }
    let within = write("/home/me/work/api/src/..a");
    assert_eq!(here(ALLOW_AND_DENY, &within, Consent::Caller), Ok(()));
}

#[test]
fn the_mode_bounds_agents_whatever_mode_the_server_names() {
    let change = shell("make install");
    for mode in Mode::ALL {
        let agent = Consent::Agent(mode);
        let told = here("mode = \"ask\"", &change, agent);
        assert!(
            matches!(told, Err(Forbidden::Unapproved(_))),
            "{mode}: {told:?}"
        );
        assert_eq!(here("mode = \"ask\"", &list(), agent), Ok(()), "{mode}");
        assert_eq!(here("mode = \"full\"", &change, agent), Ok(()), "{mode}");
    }
    let told = here("mode = \"auto\"", &change, Consent::Agent(Mode::Full));
    assert!(matches!(told, Err(Forbidden::Unapproved(_))), "{told:?}");
    assert_eq!(
        here("mode = \"auto\"", &write("a"), Consent::Agent(Mode::Full)),
        Ok(())
    );
    for consent in [approved(&change), Consent::Caller] {
        assert_eq!(here("mode = \"ask\"", &change, consent), Ok(()));
    }
}

#[test]
fn in_mode_plan_agents_only_read_also_with_an_approval() {
    let plan = "mode = \"plan\"";
    let change = write("a");
    let told = here(plan, &change, approved(&change));
    assert!(matches!(told, Err(Forbidden::Plan(_))), "{told:?}");
    assert!(here(plan, &change, Consent::Agent(Mode::Full)).is_err());
    assert_eq!(here(plan, &list(), Consent::Agent(Mode::Plan)), Ok(()));
    assert_eq!(here(plan, &change, Consent::Caller), Ok(()));
}

#[test]
fn what_the_machine_allows_needs_no_approval_unless_its_environment_could_change_it() {
    let policy = format!("mode = \"ask\"\n{ALLOW_AND_DENY}");
    let agent = Consent::Agent(Mode::Ask);
    assert_eq!(here(&policy, &shell("cargo test -p api"), agent), Ok(()));
    let Request::Exec(exec) = shell("cargo test -p api") else {
        panic!("no command");
    };
    let with_environment = Request::Exec(Exec {
        environment: [("RUSTC_WRAPPER".to_owned(), "./mine".to_owned())].into(),
        ..exec
    });
    assert_eq!(
        here(&policy, &with_environment, agent),
        Err(Forbidden::Environment)
    );
    assert_eq!(
        here(&policy, &with_environment, approved(&with_environment)),
        Ok(())
    );
}

#[test]
fn where_commands_are_denied_one_that_cannot_be_read_needs_a_person_who_read_it() {
    let unread = shell("eval \"$x\"");
    let told = here(ALLOW_AND_DENY, &unread, Consent::Caller);
    assert!(matches!(told, Err(Forbidden::Unread(_))), "{told:?}");
    assert!(here(ALLOW_AND_DENY, &unread, Consent::Agent(Mode::Full)).is_err());
    assert_eq!(here(ALLOW_AND_DENY, &unread, approved(&unread)), Ok(()));
    assert_eq!(here("", &unread, Consent::Caller), Ok(()));
}

#[test]
fn a_workspace_outside_of_the_roots_serves_nobody_and_a_pool_has_none() {
    let outside = Forbidden::Outside("/home/me/work/api".into());
    for roots in ["roots = []", "roots = [\"/home/me/wo\", \"/srv\"]"] {
        for consent in [Consent::Caller, Consent::Agent(Mode::Plan)] {
            assert_eq!(here(roots, &list(), consent).as_ref(), Err(&outside));
        }
        let pool = OperationPlace {
            workspace: None,
            ..place()
        };
        assert_eq!(at(&pool, roots, &list(), Consent::Caller), Ok(()));
    }
    let roots = "roots = [\"/srv\", \"/home/me/work\"]";
    assert_eq!(here(roots, &list(), Consent::Caller), Ok(()));
}

#[test]
fn people_and_programs_run_nothing_where_only_agents_may() {
    let policy = "callers = false";
    assert_eq!(
        here(policy, &list(), Consent::Caller),
        Err(Forbidden::Callers)
    );
    assert_eq!(here(policy, &list(), Consent::Agent(Mode::Plan)), Ok(()));
    assert_eq!(
        here(policy, &shell("make"), approved(&shell("make"))),
        Ok(())
    );
}

#[test]
fn a_sandbox_with_a_network_serves_nobody_where_there_must_be_none() {
    let pool = OperationPlace {
        has_network: true,
        ..place()
    };
    let told = at(&pool, "network = false", &list(), Consent::Caller);
    assert_eq!(told, Err(Forbidden::Network));
    assert_eq!(at(&pool, "", &list(), Consent::Caller), Ok(()));
}
