//! What a person can do, and what must never happen: each test starts the real programs.

mod scenarios {
    mod access;
    mod aimock;
    mod api;
    mod bad_input;
    mod clones;
    mod link_faults;
    mod operator;
    mod other_servers;
    mod partitions;
    mod placement;
    mod restarts;
    mod streams;
    mod survival;
    mod terminal;
    mod tools;
    mod websocket;
    mod wire;
}
