//! Writes what a release says of itself: what its programs were built from, what they were built with, and
//! the images. Called by `release/sbom` and `release/pack`.

mod image;
mod provenance;
mod sbom;

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};
use std::{env, fs};

use sha2::{Digest, Sha256};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("release-documents {}: {error}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<String, Failure> {
    match words {
        ["sbom", program, lock, seconds] => {
            let mut tree = String::new();
            std::io::stdin().read_to_string(&mut tree)?;
            let sbom = sbom::sbom(program, &tree, &fs::read_to_string(lock)?, &date(seconds)?)?;
            Ok(serde_json::to_string_pretty(&sbom)?)
        }
        ["provenance", version, commit, directory, tools @ ..] => {
            let statement = provenance::statement(version, commit, Path::new(directory), tools)?;
            Ok(serde_json::to_string_pretty(&statement)?)
        }
        ["image", name, dockerfile, seconds, layout, layers @ ..] => {
            let dockerfile = fs::read_to_string(dockerfile)?;
            image::write(name, &dockerfile, &date(seconds)?, Path::new(layout), layers)
        }
        _ => Err("not understood: the scripts in release/ call this".into()),
    }
}

/// As in JSON, from seconds since 1970.
fn date(seconds: &str) -> Result<String, Failure> {
    let time = UNIX_EPOCH + Duration::from_secs(seconds.parse()?);
    Ok(humantime::format_rfc3339_seconds(time).to_string())
}

/// In hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
