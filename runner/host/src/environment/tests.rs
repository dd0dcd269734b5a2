use super::*;

fn vars(names: &[&str]) -> impl Iterator<Item = (String, String)> {
    names
        .iter()
        .map(|name| ((*name).to_owned(), "x".to_owned()))
}

#[test]
fn only_the_allow_list_passes() {
    let passed = allowed_environment(vars(&[
        "PATH",
        "HOME",
        "LC_ALL",
        "LC_TIME",
        "TMPDIR",
        "OPENAI_API_KEY",
        "GANTRY_TOKEN",
        "LD_PRELOAD",
        "SSH_AUTH_SOCK",
        "BASH_ENV",
        "path",
    ]));
    let names: Vec<_> = passed.keys().map(String::as_str).collect();
    assert_eq!(names, ["HOME", "LC_ALL", "LC_TIME", "PATH", "TMPDIR"]);
}

#[test]
fn a_runner_without_a_path_gives_its_commands_one() {
    let empty = [("PATH".to_owned(), String::new())];
    for vars in [Vec::new(), empty.to_vec()] {
        assert_eq!(allowed_environment(vars.into_iter())["PATH"], DEFAULT_PATH);
    }
}

#[test]
fn a_dangerous_variable_is_refused_by_name() {
    for name in [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "DYLD_LIBRARY_PATH",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PERL5OPT",
        "RUBYOPT",
        "RUBYLIB",
        "JAVA_TOOL_OPTIONS",
        "BASH_ENV",
        "ENV",
        "ZDOTDIR",
    ] {
        let refusal =
            check_additions(&vars(&[name]).collect()).expect_err("a dangerous name is refused");
        assert_eq!(refusal.code, RefusalCode::Invalid);
        assert!(refusal.message.contains(name), "{}", refusal.message);
    }
}

#[test]
fn a_name_that_no_environment_can_hold_is_refused() {
    for name in ["", "A=B", "A\0B"] {
        assert!(check_additions(&vars(&[name]).collect()).is_err());
    }
    let value = BTreeMap::from([("A".to_owned(), "x\0y".to_owned())]);
    assert!(check_additions(&value).is_err());
    assert_eq!(
        check_additions(&vars(&["A", "GOFLAGS", "ENVIRONMENT"]).collect()),
        Ok(())
    );
}
