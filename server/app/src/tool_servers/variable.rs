//! Variables in the declaration of a tool server, as Claude Code writes them: `${NAME}` and `${NAME:-DEFAULT}`.

/// A variable in a text. Its name may be none: see [`super::values::is_variable`].
pub(super) struct Variable<'a> {
    /// The text before it.
    pub(super) before: &'a str,
    /// All that its braces hold.
    pub(super) inner: &'a str,
    pub(super) name: &'a str,
    pub(super) default: Option<&'a str>,
    /// The text after it.
    pub(super) after: &'a str,
}

impl<'a> Variable<'a> {
    /// The first variable of a text.
    pub(super) fn first(text: &'a str) -> Option<Self> {
        let (before, rest) = text.split_once("${")?;
        let (inner, after) = rest.split_once('}')?;
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        Some(Self {
            before,
            inner,
            name,
            default,
            after,
        })
    }
}
