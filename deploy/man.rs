//! Writes the man pages of all programs and their commands, for packages and releases:
//! `cargo run --example man-pages -- DIRECTORY`.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.ok_or_else(|| std::io::Error::other("usage: man-pages DIRECTORY"))?;
    for program in [
        stayput_manager::cli::definition(),
        stayput_controller::cli::definition(),
        stayput_kubectl::definition(),
    ] {
        clap_mangen::generate_to(program, &directory)?;
    }
    Ok(())
}
