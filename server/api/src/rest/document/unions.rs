//! Unions that a tag tells apart: each alternative becomes a schema of its own, and the union says by
//! which property to choose, because generators of clients follow only a discriminator between named
//! schemas.

use std::collections::BTreeMap;

use utoipa::openapi::{
    Components, Object, Ref, RefOr, Schema,
    schema::{Discriminator, OneOf, Type},
};

/// The properties that tell the variants of our unions apart.
const TAGS: [&str; 3] = ["type", "kind", "by"];

/// Names the alternatives of every union of tagged objects.
pub(super) fn name_variants(components: &mut Components) {
    let whole = components.schemas.clone();
    let mut joined = Vec::new();
    for schema in components.schemas.values_mut() {
        if let RefOr::T(Schema::OneOf(union)) = schema {
            let items = union.items.iter_mut();
            joined.extend(items.flat_map(|item| join(item, &whole)));
        }
    }
    // An object that is an alternative of a union, and nothing else, has no name of its own any more.
    let rest = serde_json::to_string(&components.schemas).unwrap_or_default();
    for name in joined {
        if !rest.contains(&format!("/{name}\"")) {
            components.schemas.remove(&name);
        }
    }
    let mut named = BTreeMap::new();
    for (name, schema) in &mut components.schemas {
        if let RefOr::T(Schema::OneOf(union)) = schema
            && let Some(tag) = tag(union)
        {
            named.extend(name_variants_of(name, union, tag));
        }
    }
    components.schemas.extend(named);
}

/// Makes one object of an alternative that is all of several: a named object and the tag beside it. Returns the names
/// of the objects that it has joined.
fn join(item: &mut RefOr<Schema>, named: &BTreeMap<String, RefOr<Schema>>) -> Vec<String> {
    let RefOr::T(Schema::AllOf(all)) = item else {
        return Vec::new();
    };
    let mut names = Vec::new();
    let mut joined = Object::new();
    joined.description.clone_from(&all.description);
    for part in &all.items {
        let part = match part {
            RefOr::Ref(Ref { ref_location, .. }) => {
                let name = ref_location.rsplit('/').next().unwrap_or_default();
                names.push(name.to_owned());
                named.get(name)
            }
            part => Some(part),
        };
        let Some(RefOr::T(Schema::Object(part))) = part else {
            return Vec::new();
        };
        joined.properties.extend(part.properties.clone());
        joined.required.extend(part.required.clone());
        joined.description = joined.description.or_else(|| part.description.clone());
    }
    joined.schema_type = Type::Object.into();
    *item = RefOr::T(Schema::Object(joined));
    names
}

fn name_variants_of(
    name: &str,
    union: &mut OneOf,
    tag: &'static str,
) -> BTreeMap<String, RefOr<Schema>> {
    let (mut named, mut mapping) = (BTreeMap::new(), BTreeMap::new());
    for variant in &mut union.items {
        let Some(value) = value(variant, tag) else {
            continue;
        };
        let own = format!("{name}{}", camel(&value));
        let reference = Ref::from_schema_name(&own);
        mapping.insert(value, reference.ref_location.clone());
        named.insert(own, std::mem::replace(variant, RefOr::Ref(reference)));
    }
    union.discriminator = Some(Discriminator::with_mapping(tag, mapping));
    named
}

/// The tag that every alternative has, if there is one.
fn tag(union: &OneOf) -> Option<&'static str> {
    let all_have = |tag: &&str| union.items.iter().all(|item| value(item, tag).is_some());
    TAGS.into_iter().find(all_have)
}

/// The one value that the tag of this alternative has.
fn value(variant: &RefOr<Schema>, tag: &str) -> Option<String> {
    let RefOr::T(Schema::Object(Object { properties, .. })) = variant else {
        return None;
    };
    let RefOr::T(Schema::Object(tag)) = properties.get(tag)? else {
        return None;
    };
    match tag.enum_values.as_deref()? {
        [value] => value.as_str().map(str::to_owned),
        _ => None,
    }
}

/// `turn.ended` becomes `TurnEnded`.
fn camel(value: &str) -> String {
    let words = value.split(|letter: char| !letter.is_ascii_alphanumeric());
    let capital = |word: &str| word.get(..1).unwrap_or_default().to_ascii_uppercase();
    words
        .map(|word| capital(word) + word.get(1..).unwrap_or_default())
        .collect()
}
