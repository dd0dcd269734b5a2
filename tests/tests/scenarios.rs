//! What a person can do, and what must never happen: each test starts the real programs.

mod scenarios {
    mod access;
    mod aimock;
    mod api;
    mod background;
    mod bad_input;
    mod clones;
    mod daemon_kills;
    mod dismissals;
    mod endpoints;
    mod ends;
    mod ends_as_root;
    mod ephemeral;
    mod journal;
    mod kills;
    mod link_faults;
    mod many_execs;
    mod operator;
    mod other_servers;
    mod outputs;
    mod partitions;
    mod passing;
    mod placement;
    mod restarts;
    mod retention;
    mod room;
    mod rotation;
    mod stops;
    mod strangers;
    mod streams;
    mod survival;
    mod terminal;
    mod tools;
    mod unheard;
    mod websocket;
    mod websocket_links;
    mod wire;
    mod wire_abuse;
    mod wire_seals;
}
