//! (see the crate's first page)
