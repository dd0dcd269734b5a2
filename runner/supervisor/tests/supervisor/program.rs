//! The program itself.

/// Of a program header: who loads the program (elf(5)).
const PT_INTERP: usize = 3;

#[test]
fn the_supervisor_needs_no_library_of_its_host() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_gantry-supervisor")).expect("the program");
    assert_eq!(program[..5], *b"\x7fELF\x02", "a program of 64 bits");
    let number = |at: usize, bytes: usize| {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(&program[at..at + bytes]);
        usize::try_from(u64::from_le_bytes(number)).expect("an offset")
    };
    let (headers, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    assert!(count > 0);
    for header in 0..count {
        let kind = number(headers + header * size, 4);
        assert_ne!(kind, PT_INTERP, "it asks for an interpreter");
    }
}
