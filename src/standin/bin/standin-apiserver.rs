//! A stand-in for kube-apiserver that serves until SIGTERM or SIGINT.
//!
//! `standin-apiserver [KUBECONFIG]` writes a kubeconfig, to that file or to
//! `standin-apiserver.kubeconfig`, and prints its address.

use std::path::PathBuf;
use std::process::ExitCode;

use stayput_standin::apiserver::ApiServer;

/// The exit code of a command line that cannot be used, as of all our programs.
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let file = std::env::args_os().nth(1).map_or_else(default_file, PathBuf::from);
    if file.as_os_str().as_encoded_bytes().starts_with(b"-") {
        eprintln!("usage: standin-apiserver [KUBECONFIG]");
        return ExitCode::from(USAGE);
    }
    match serve(&file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the stand-in apiserver cannot serve: {error}");
            ExitCode::FAILURE
        }
    }
}

fn default_file() -> PathBuf {
    PathBuf::from("standin-apiserver.kubeconfig")
}

fn serve(file: &std::path::Path) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = ApiServer::start().await?;
        std::fs::write(file, server.kubeconfig())?;
        println!("{} {}", server.url(), file.display());
        ended().await
    })
}

/// Returns at SIGTERM or SIGINT.
async fn ended() -> std::io::Result<()> {
    let (mut reader, writer) = tokio::net::UnixStream::pair()?;
    let writer = writer.into_std()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    tokio::io::AsyncReadExt::read_u8(&mut reader).await.map(drop)
}
