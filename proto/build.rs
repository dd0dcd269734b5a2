//! Compiles the .proto files with protox, so that no `protoc` need be installed.

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its folder in the environment"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(
        [
            "gantry/runner/v1/link.proto",
            "gantry/runner/v1/enrolment.proto",
        ],
        ["proto"],
    )?;
    tonic_prost_build::configure()
        .bytes(".gantry.runner.v1.Output.data")
        .bytes(".gantry.runner.v1.Sealed.sealed")
        .bytes(".gantry.runner.v1.Input.data")
        .bytes(".gantry.runner.v1.ModelAskBody.data")
        .bytes(".gantry.runner.v1.ModelAnswer.data")
        // Rare and large: apart, so that the room for frames that wait is small on every link.
        .boxed(".gantry.runner.v1.ServerFrame.kind.operation")
        .boxed(".gantry.runner.v1.RunnerFrame.kind.proof")
        .boxed(".gantry.runner.v1.RunnerFrame.kind.hello")
        .codec_path("crate::codec::FrameCodec")
        .compile_fds(files)?;
    // The files of the link are generated a second time with those that import them. They stay apart and are not used.
    let apart = std::path::Path::new(&std::env::var("OUT_DIR")?).join("peer");
    std::fs::create_dir_all(&apart)?;
    let peers = protox::compile(["gantry/peer/v1/peer.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .out_dir(apart)
        .bytes(".gantry.peer.v1.Output.data")
        .extern_path(".gantry.runner.v1", "crate::v1")
        .codec_path("crate::codec::FrameCodec")
        .compile_fds(peers)?;
    Ok(())
}
