//! The mistakes in a request, in words for the person who wrote it.
//!
//! The libraries that read requests speak of their own types and of how they read: `Failed to deserialize the JSON
//! body into the target type: text: invalid type: integer 3, expected a string at line 1 column 9`. Here that is:
//! "`text` has to be text, and is the number 3".

use axum::{
    extract::rejection::{BytesRejection, JsonRejection, QueryRejection},
    http::StatusCode,
};
use serde_json::error::Category;
use server_app::AppError;

/// The mistake in a query.
pub(crate) fn of_query(rejection: QueryRejection) -> AppError {
    AppError::Invalid(fact(without_kind(&rejection.body_text())))
}

/// The mistake in a JSON body.
pub(crate) fn of_json(rejection: &JsonRejection) -> String {
    match rejection {
        JsonRejection::MissingJsonContentType(_) => {
            "send the body as JSON, with the header Content-Type: application/json".to_owned()
        }
        JsonRejection::JsonSyntaxError(wrong) => no_json(&wrong.body_text()),
        JsonRejection::BytesRejection(wrong) => of_bytes(wrong),
        wrong => fact(without_kind(&wrong.body_text())),
    }
}

/// The mistake in a message.
pub(crate) fn of_message(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Data => fact(&error.to_string()),
        Category::Eof | Category::Syntax | Category::Io => no_json(&error.to_string()),
    }
}

/// The reason why a body did not arrive.
pub(crate) fn of_bytes(rejection: &BytesRejection) -> String {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => "the body is too large".to_owned(),
        _ => "the body did not come whole; send it again".to_owned(),
    }
}

/// The text without the words that the web library puts before it.
fn without_kind(said: &str) -> &str {
    match said.split_once(": ") {
        Some((kind, rest)) if kind.starts_with("Failed to ") => rest,
        _ => said,
    }
}

/// Tells that a text is not JSON, and where.
fn no_json(said: &str) -> String {
    let place = said.rsplit_once(" at line ").map(|(_, place)| place);
    let place = place.map(|place| place.replace(" column ", ", column "));
    let place = place.map_or(String::new(), |place| format!(" (line {place})"));
    match said.contains("EOF") {
        true => format!("the JSON ends too early{place}"),
        false => format!("this is not JSON{place}"),
    }
}

/// A reader's message in plain words: perhaps the field, and a fact. The place is left out, because the field shows it.
fn fact(said: &str) -> String {
    let said = said.rsplit_once(" at line ").map_or(said, |(said, _)| said);
    let found = FACTS.iter().find_map(|(begin, told)| {
        let (field, rest) = said.split_once(begin)?;
        Some((field.trim_end_matches([':', ' ']), told(rest)))
    });
    match found {
        None => said.to_owned(),
        Some(("" | ".", told)) => told,
        Some((field, told)) => format!("`{field}`: {told}"),
    }
}

/// The beginning of a fact, and a function for the words of its rest.
type Fact = (&'static str, fn(&str) -> String);

const FACTS: [Fact; 13] = [
    ("missing field ", |name| {
        format!("the field {name} is missing")
    }),
    ("duplicate field ", |name| {
        format!("the field {name} is there twice")
    }),
    ("unknown field ", |rest| unknown("no field", rest)),
    ("unknown variant ", |rest| unknown("no value", rest)),
    ("invalid type: ", expected),
    ("invalid value: ", expected),
    ("invalid length ", expected),
    ("data did not match any variant", |_| {
        "it has none of the documented forms".to_owned()
    }),
    ("invalid digit found in string", |_| {
        "it has to be a whole number".to_owned()
    }),
    ("cannot parse integer from empty string", |_| {
        "it has to be a whole number".to_owned()
    }),
    ("number too large to fit", |_| {
        "the number is too large".to_owned()
    }),
    ("number too small to fit", |_| {
        "the number is too small".to_owned()
    }),
    ("provided string was not", |_| {
        "it has to be true or false".to_owned()
    }),
];

/// The fact behind "`x`, expected one of `a`, `b`": `x` is unknown, and these are known.
fn unknown(no: &str, rest: &str) -> String {
    match rest.split_once(", ") {
        None => format!("there is {no} {rest}"),
        Some((name, known)) => {
            let known = known.trim_start_matches("expected ");
            let known = known.trim_start_matches("one of ");
            format!("there is {no} {name} here, only: {known}")
        }
    }
}

/// The fact behind "integer `3`, expected a string": the demanded kind, and the given one.
fn expected(rest: &str) -> String {
    let Some((is, wanted)) = rest.rsplit_once(", expected ") else {
        return rest.to_owned();
    };
    let wanted = match wanted {
        "a string" | "a borrowed string" | "string" => "text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on, not too large",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number, not too large",
        "f32" | "f64" => "a number",
        wanted if is_of_ours(wanted) => "an object",
        wanted => wanted,
    };
    let (kind, value) = is.split_once(' ').unwrap_or((is, ""));
    let is = match kind {
        "sequence" => "a list".to_owned(),
        "map" => "an object".to_owned(),
        "null" | "unit" => "null".to_owned(),
        "string" => format!("the text {value}"),
        "boolean" => value.trim_matches('`').to_owned(),
        "integer" => format!("the number {}", value.trim_matches('`')),
        "floating" => format!(
            "the number {}",
            value.trim_start_matches("point ").trim_matches('`')
        ),
        _ => is.to_owned(),
    };
    format!("it has to be {wanted}, and is {is}")
}

/// True for a kind of value that names this program's own types, which no caller knows.
fn is_of_ours(wanted: &str) -> bool {
    [
        "struct ",
        "tuple ",
        "internally ",
        "adjacently ",
        "variant ",
        "enum ",
    ]
    .iter()
    .any(|kind| wanted.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use axum::{Json, extract::Query, http::Uri};
    use serde::{Deserialize, de::DeserializeOwned};
    use shared_types::Timestamp;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is only read")]
    struct Asked {
        text: String,
        count: Option<u32>,
        deep: Option<Deep>,
        since: Option<Timestamp>,
        kind: Option<Kind>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is only read")]
    struct Deep {
        rows: Vec<bool>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Big,
        Small,
    }

    fn body(text: &str) -> String {
        let read = Json::<Asked>::from_bytes(text.as_bytes());
        of_json(&read.map(drop).expect_err(text))
    }

    fn query<T: DeserializeOwned>(query: &str) -> String {
        let uri: Uri = format!("/?{query}").parse().expect("an address");
        let read = Query::<T>::try_from_uri(&uri).map(drop);
        of_query(read.expect_err(query)).to_string()
    }

    #[test]
    fn a_wrong_body_is_told_in_the_words_of_its_author() {
        for (sent, told) in [
            ("{}", "the field `text` is missing"),
            (
                r#"{"text":3}"#,
                "`text`: it has to be text, and is the number 3",
            ),
            (
                r#"{"text":"a","count":-1}"#,
                "`count`: it has to be a whole number from 0 on, not too large, and is the number -1",
            ),
            (
                r#"{"text":"a","deep":"b"}"#,
                "`deep`: it has to be an object, and is the text \"b\"",
            ),
            (
                r#"{"text":"a","deep":{"rows":[true,null]}}"#,
                "`deep.rows[1]`: it has to be true or false, and is null",
            ),
            (
                r#"{"text":"a","kind":"huge"}"#,
                "`kind`: there is no value `huge` here, only: `big` or `small`",
            ),
            (
                r#"{"text":"a","text":"b"}"#,
                "the field `text` is there twice",
            ),
            (
                r#"{"text":"a","since":"2026"}"#,
                "since: a time has to be written like 2026-11-24T13:05:00Z",
            ),
            (r#"{"text":"#, "the JSON ends too early (line 1, column 8)"),
            ("text=a", "this is not JSON (line 1, column 2)"),
        ] {
            assert_eq!(body(sent), told, "{sent}");
        }
        let unknown = body(r#"{"text":"a","words":1}"#);
        assert_eq!(
            unknown,
            "`words`: there is no field `words` here, only: `text`, `count`, `deep`, `since`, `kind`"
        );
    }

    #[test]
    fn a_wrong_query_is_told_in_the_words_of_its_author() {
        for (sent, told) in [
            ("count=many&text=a", "`count`: it has to be a whole number"),
            (
                "count=99999999999&text=a",
                "`count`: the number is too large",
            ),
            ("count=1", "the field `text` is missing"),
            (
                "since=yesterday&text=a",
                "since: a time has to be written like 2026-11-24T13:05:00Z",
            ),
        ] {
            assert_eq!(query::<Asked>(sent), told, "{sent}");
        }
    }
}
