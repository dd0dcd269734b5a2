//! Compiles the .proto files with protox, so that no `protoc` need be installed.

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
        .bytes(".gantry.runner.v1.Input.data")
        .compile_fds(files)?;
    Ok(())
}
