//! What a person can do, and what must never happen: each test starts the real programs.

mod scenarios {
    mod access;
    mod bad_input;
    mod clones;
    mod placement;
    mod survival;
    mod terminal;
    mod tools;
}
