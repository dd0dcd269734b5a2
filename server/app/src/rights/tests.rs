use std::collections::BTreeMap;

use super::*;

const PAGE: &str = include_str!("../../../../docs/rights.md");

const ROLES: [Role; 4] = [Viewer, Member, Admin, Owner];

const US: UserId = UserId::from_u128(1);

/// How a thing may stand to the subject, in the words of the table.
const THINGS: [(&str, Resource); 3] = [
    (
        "own",
        Resource::Thing {
            owner: US,
            shared: false,
        },
    ),
    (
        "shared",
        Resource::Thing {
            owner: THEM,
            shared: true,
        },
    ),
    (
        "others'",
        Resource::Thing {
            owner: THEM,
            shared: false,
        },
    ),
];

/// The same of people.
const PEOPLE: [(&str, Resource); 3] = [
    (
        "oneself",
        Resource::Person {
            id: US,
            role: Viewer,
        },
    ),
    (
        "others",
        Resource::Person {
            id: THEM,
            role: Admin,
        },
    ),
    (
        "owners",
        Resource::Person {
            id: THEM,
            role: Owner,
        },
    ),
];

fn relations(action: Action) -> [(&'static str, Resource); 3] {
    match action {
        Action::SeePeople
        | Action::InvitePerson
        | Action::ChangeRole
        | Action::RemovePerson
        | Action::AddServiceAccount
        | Action::ManageServiceKeys => PEOPLE,
        _ => THINGS,
    }
}

const THEM: UserId = UserId::from_u128(2);

/// The table of the page: for each action the scopes, and for each role the things.
fn page() -> BTreeMap<&'static str, Vec<Vec<&'static str>>> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| to "));
    rows.map(|row| {
        let mut cells = row.trim_end_matches('|').split('|').map(str::trim);
        let action = cells.next().expect("an action");
        let cells = cells.map(|cell| cell.split(", ").filter(|word| *word != "–").collect());
        (action, cells.collect())
    })
    .collect()
}

fn every_set_of_scopes() -> impl Iterator<Item = Scopes> {
    (0..1 << Scope::ALL.len()).map(|bits: u8| {
        let chosen = Scope::ALL.into_iter().enumerate();
        let chosen = chosen.filter(|(place, _)| bits & (1 << place) != 0);
        chosen.map(|(_, scope)| scope).collect()
    })
}

#[test]
fn every_action_is_allowed_to_exactly_the_roles_scopes_and_things_that_the_page_names() {
    let page = page();
    assert_eq!(page.len(), Action::ALL.len(), "one row for each action");
    for action in Action::ALL {
        let row = page.get(action.to_string().as_str());
        let row = row.unwrap_or_else(|| panic!("docs/rights.md has no row for: {action}"));
        let [good_for, roles @ ..] = row.as_slice() else {
            panic!("{action}: a row has scopes and roles");
        };
        for (role, things) in ROLES.iter().zip(roles) {
            for scopes in every_set_of_scopes() {
                let subject = RightSubject {
                    user: US,
                    role: *role,
                    scopes,
                };
                let has_scope = scopes
                    .iter()
                    .any(|scope| good_for.contains(&scope.to_string().as_str()));
                for (thing, resource) in relations(*action) {
                    let allowed = allow(&subject, *action, &resource).is_ok();
                    let said = has_scope && things.contains(&thing);
                    assert_eq!(allowed, said, "{role} with {scopes}: {action}: {thing}");
                }
                let made = allow(&subject, *action, &Resource::Own).is_ok();
                assert_eq!(
                    made,
                    has_scope && things.contains(&relations(*action)[0].0),
                    "{role}: {action}"
                );
                let unknown = allow(&subject, *action, &Resource::Unknown).is_ok();
                assert_eq!(unknown, has_scope && !things.is_empty(), "{role}: {action}");
            }
        }
    }
}

#[test]
fn the_list_of_actions_is_whole() {
    for (place, action) in Action::ALL.iter().enumerate() {
        assert_eq!(*action as usize, place, "{action}");
    }
    assert_eq!(Action::ALL.len(), Action::ReadMetrics as usize + 1);
}

#[test]
fn what_a_subject_may_not_see_is_refused_like_nothing_whatever_its_scopes() {
    let [_, _, (_, others)] = THINGS;
    for action in Action::ALL {
        for role in ROLES {
            for scopes in every_set_of_scopes() {
                let subject = RightSubject {
                    user: US,
                    role,
                    scopes,
                };
                // Before the look-up it is refused for any id, or the look-up decides.
                let first = allow(&subject, *action, &Resource::Unknown);
                let denied = first.and_then(|()| allow(&subject, *action, &others));
                let by_look_up = first.is_ok() && denied.is_err();
                assert!(
                    !by_look_up || denied == Err(Denied::Hidden),
                    "{role}: {action}: {denied:?}"
                );
            }
        }
    }
}

#[test]
fn a_refusal_says_which_role_or_scope_is_needed() {
    let [own, shared, _] = THINGS;
    let subject = |role, scopes: &[Scope]| RightSubject {
        user: US,
        role,
        scopes: scopes.iter().copied().collect(),
    };
    let words = |subject: RightSubject, action, (_, resource): (&str, Resource)| {
        let denied = allow(&subject, action, &resource);
        denied.expect_err("it is refused").to_string()
    };
    assert_eq!(
        words(subject(Viewer, &Scope::ALL), Action::SendMessage, own),
        "your role, viewer, may not send a message: that takes the role member; ask an admin for it \
         (gantry people role NAME member)"
    );
    assert_eq!(
        words(subject(Member, &Scope::ALL), Action::RemoveRunner, shared),
        "only its owner or an admin may remove a runner; ask one of them"
    );
    assert_eq!(
        words(subject(Owner, &[Scope::Metrics]), Action::SendMessage, own),
        "this key may not send a message: it needs the scope chat, and has metrics; make a key with \
         that scope: gantry keys add NAME --scope chat"
    );
}

#[test]
fn no_key_is_good_for_more_than_its_maker() {
    for role in ROLES {
        for scopes in every_set_of_scopes() {
            let maker = RightSubject {
                user: US,
                role,
                scopes,
            };
            for asked in every_set_of_scopes().map(Some).chain([None]) {
                let Ok(made) = new_key(&maker, asked) else {
                    continue;
                };
                assert!(
                    scopes.contains_all(made) && !made.is_empty(),
                    "{role} {scopes}: {made}"
                );
                assert!(asked.is_none_or(|asked| asked == made));
                let metrics = made.contains(Scope::Metrics);
                assert!(!metrics || matches!(role, Admin | Owner), "{role}");
                assert!(role != Viewer || made == [Scope::Read].into_iter().collect());
            }
        }
    }
}
