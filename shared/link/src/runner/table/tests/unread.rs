use super::*;
use crate::testing::Exhausted;

#[test]
fn output_that_cannot_be_read_for_a_while_is_told_whole_before_the_end() {
    let mut scene = linked();
    start(&mut scene, 1, "echo output");
    told(&mut scene);
    scene.write(id(1), b"output");
    scene.exit(id(1), ExitCause::Exited);
    assert_eq!(scene.table.next_frame(&mut Exhausted), None);
    assert_eq!(told(&mut scene), [""; 0], "nobody has asked again");
    scene.read_again();
    assert_eq!(told(&mut scene).len(), 2, "the output and the end");
    scene.read_again();
    assert_eq!(told(&mut scene), [""; 0], "once");
}
