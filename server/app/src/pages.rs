//! Pages of lists. A use case asks the store for one row more than a page has, so that it knows whether
//! the list goes on.

use server_store::Page;

/// The same place, and one row more.
pub(crate) fn and_one<T>(page: Page<T>) -> Page<T> {
    Page {
        limit: page.limit + 1,
        ..page
    }
}

/// The rows of a page, and whether there are more behind it.
pub(crate) fn cut<T>(mut rows: Vec<T>, limit: u32) -> (Vec<T>, bool) {
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    (rows, more)
}
