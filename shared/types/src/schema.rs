//! The OpenAPI schemas of the types here for which a derive is not enough.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, Object, ObjectBuilder, RefOr, Schema, SchemaFormat, schema::Type},
};

use crate::{Digest, Event, FileDigest, SessionEvent, Timestamp};

pub(crate) fn text(
    pattern: Option<&str>,
    format: Option<SchemaFormat>,
    description: &str,
) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let text = text.pattern(pattern).format(format);
    text.description(Some(description)).into()
}

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        text(None, Some(format), "A moment in UTC, in RFC 3339.")
    }
}

impl ToSchema for Timestamp {}

impl PartialSchema for Digest {
    fn schema() -> RefOr<Schema> {
        text(Some("^[0-9a-fA-F]{64}$"), None, "A SHA-256 in hexadecimal.")
    }
}

impl ToSchema for Digest {}

impl PartialSchema for FileDigest {
    fn schema() -> RefOr<Schema> {
        text(
            Some("^((sha256|blake3):)?[0-9a-fA-F]{64}$"),
            None,
            "The digest of a file: its algorithm, a colon and hexadecimal digits. Digits alone are a SHA-256.",
        )
    }
}

impl ToSchema for FileDigest {}

impl PartialSchema for SessionEvent {
    /// One flat object for each kind of event, with its place in the log.
    fn schema() -> RefOr<Schema> {
        let mut schema = Event::schema();
        if let RefOr::T(Schema::OneOf(kinds)) = &mut schema {
            kinds.description = Some(
                "An event at its place in a session's log. A newer server may send kinds and \
                 versions that are not listed here: keep them, or skip them."
                    .to_owned(),
            );
            for kind in &mut kinds.items {
                if let RefOr::T(Schema::Object(event)) = kind {
                    put_in_place(event);
                }
            }
        }
        schema
    }
}

fn put_in_place(event: &mut Object) {
    let number = |description: &str| {
        let number = ObjectBuilder::new().schema_type(Type::Integer);
        number.minimum(Some(1)).description(Some(description))
    };
    let placed: [(&str, RefOr<Schema>); 3] = [
        (
            "seq",
            number("The place in the log, from 1, without gaps.").into(),
        ),
        ("v", number("The version of the set of events.").into()),
        (
            "at",
            RefOr::Ref(utoipa::openapi::Ref::from_schema_name(Timestamp::name())),
        ),
    ];
    for (name, schema) in placed {
        event.required.push(name.to_owned());
        event.properties.insert(name.to_owned(), schema);
    }
}

impl ToSchema for SessionEvent {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Timestamp::name().into_owned(), Timestamp::schema()));
        Event::schemas(schemas);
    }
}
