use server_store::{Role, Scopes};

use super::*;
use crate::{Scope, testing::Fixture};

fn of_user(values: &[(SettingName, Option<&str>)]) -> ChangeSettings {
    let values = values.iter();
    ChangeSettings {
        layer: SettingLayer::User,
        session: None,
        values: values
            .map(|(name, value)| (*name, value.map(str::to_owned)))
            .collect(),
        generation: None,
    }
}

/// A setting's value, and who has set it.
fn value(current: &CurrentSettings, name: SettingName) -> (Option<&str>, SetBy) {
    let mut found = current.settings.iter();
    let found = found.find(|setting| setting.name == name);
    let found = found.expect("each is listed");
    (found.value.as_deref(), found.set_by)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_values_without_ones_own_are_the_tenants_and_the_defaults() {
    let fixture = Fixture::practice().await;
    let settings = &fixture.app.settings;
    let of_tenant = ChangeSettings {
        layer: SettingLayer::Tenant,
        ..of_user(&[(SettingName::Steps, Some("80"))])
    };
    let own = of_user(&[
        (SettingName::Steps, Some("9")),
        (SettingName::Language, Some("German")),
    ]);
    for change in [of_tenant, own] {
        let changed = settings.change(&fixture.ctx, change).await;
        changed.expect("it is allowed");
    }
    let listed = settings.list_without_own(&fixture.ctx).await;
    let listed = listed.expect("it is read");
    let tenant = SetBy::Layer(SettingLayer::Tenant);
    assert_eq!(value(&listed, SettingName::Steps), (Some("80"), tenant));
    assert_eq!(
        value(&listed, SettingName::Language),
        (None, SetBy::Default)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_not_allowed_is_refused_with_what_is_and_nothing_of_the_change_is_done() {
    let fixture = Fixture::practice().await;
    let settings = &fixture.app.settings;
    let long = "x".repeat(41);
    for (name, wrong, allowed) in [
        (SettingName::Runner, "nowhere", "gantry runners add"),
        (
            SettingName::Model,
            "gpt-9",
            "those that may: practice model (no AI)",
        ),
        (SettingName::Language, "", "the name of a language"),
        (SettingName::Language, "a\u{1b}b", "on one line"),
        (SettingName::Language, &long, "at most 40"),
        (SettingName::Steps, "0", "a number from 1 to 500"),
        (SettingName::Steps, "501", "a number from 1 to 500"),
        (SettingName::Steps, "many", "a number from 1 to 500"),
    ] {
        let good = (SettingName::Steps, Some("9"));
        let change = of_user(&[good, (name, Some(wrong))]);
        let refused = settings.change(&fixture.ctx, change).await;
        let refused = refused.expect_err("it is refused");
        assert!(matches!(refused, AppError::Invalid(_)), "{refused:?}");
        assert!(refused.to_string().contains(allowed), "{refused}");
    }
    let current = settings.list(&fixture.ctx, None).await;
    let current = current.expect("they are listed");
    assert_eq!(current.generation, 0);
    let steps = value(&current, SettingName::Steps);
    assert_eq!(steps, (Some("50"), SetBy::Default));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_was_meant_for_an_older_generation_is_refused_and_says_so() {
    let fixture = Fixture::practice().await;
    let settings = &fixture.app.settings;
    let change = |steps, generation| ChangeSettings {
        generation,
        ..of_user(&[(SettingName::Steps, steps)])
    };
    let set = settings
        .change(&fixture.ctx, change(Some("9"), Some(0)))
        .await;
    let set = set.expect("it is the generation");
    assert_eq!(set.generation, 1);
    let by_user = SetBy::Layer(SettingLayer::User);
    assert_eq!(value(&set, SettingName::Steps), (Some("9"), by_user));
    let stale = settings
        .change(&fixture.ctx, change(Some("8"), Some(0)))
        .await;
    let stale = stale.expect_err("it was changed");
    assert!(matches!(stale, AppError::Conflict(_)), "{stale:?}");
    assert!(stale.to_string().contains("generation 1"), "{stale}");
    let unset = settings.change(&fixture.ctx, change(None, Some(1))).await;
    let unset = unset.expect("it is the generation");
    let steps = value(&unset, SettingName::Steps);
    assert_eq!((steps, unset.generation), ((Some("50"), SetBy::Default), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_changes_nothing_and_a_member_not_the_tenants() {
    let fixture = Fixture::practice().await;
    let settings = &fixture.app.settings;
    let as_role = |role| OpContext {
        role,
        ..fixture.ctx.clone()
    };
    let own = of_user(&[(SettingName::Steps, Some("9"))]);
    let tenants = ChangeSettings {
        layer: SettingLayer::Tenant,
        ..own.clone()
    };
    for (role, change, needs) in [
        (Role::Viewer, &own, "takes the role member"),
        (Role::Viewer, &tenants, "takes the role admin"),
        (Role::Member, &tenants, "takes the role admin"),
    ] {
        let refused = settings.change(&as_role(role), change.clone()).await;
        let refused = refused.expect_err("it is refused");
        assert!(refused.to_string().contains(needs), "{role}: {refused}");
    }
    let admin = as_role(Role::Admin);
    let set = settings.change(&admin, tenants).await.expect("it may");
    let by_tenant = SetBy::Layer(SettingLayer::Tenant);
    assert_eq!(value(&set, SettingName::Steps), (Some("9"), by_tenant));
    let scopes: Scopes = [Scope::Read].into_iter().collect();
    let reader = OpContext { scopes, ..admin };
    let refused = settings.change(&reader, own).await;
    let refused = refused.expect_err("it is refused").to_string();
    assert!(
        refused.contains("needs the scope chat or admin"),
        "{refused}"
    );
}
