//! Which apiserver is asked, and over which way: as kubectl does it.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::fixture::{Fixture, idle};
use crate::support::program::{Ended, finish};

async fn run(mut command: std::process::Command) -> Ended {
    tokio::task::spawn_blocking(move || finish(&mut command)).await.unwrap()
}

#[tokio::test] // proves UPDATE-45
async fn a_kubeconfig_that_is_absent_is_left_out_and_a_broken_one_is_an_error() {
    let fixture = Fixture::with(idle()).await;
    let good = fixture.kubeconfig().display().to_string();
    let directory = fixture.kubeconfig().parent().unwrap().to_owned();
    for files in [format!("{good}:/nonexistent/a"), format!("/nonexistent/a:{good}:")] {
        let mut command = fixture.command("status");
        command.env("KUBECONFIG", &files);
        let ended = run(command).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{files}");
    }
    let broken = directory.join("broken");
    std::fs::write(&broken, "clusters: {").unwrap();
    let mut command = fixture.command("status");
    command.env("KUBECONFIG", format!("{good}:{}", broken.display()));
    let ended = run(command).await;
    assert_eq!(ended.code, 64, "{}", ended.stderr);
    assert!(ended.stderr.contains("no usable kubeconfig"), "{}", ended.stderr);
    // A file that is chosen by an option must be there.
    let ended = run(fixture.command("status --kubeconfig /nonexistent/a")).await;
    assert_eq!(ended.code, 64, "{}", ended.stderr);
    assert!(ended.stderr.contains("/nonexistent/a: No such file"), "{}", ended.stderr);
}

/// An HTTP proxy that connects to one address, whatever it is asked for.
async fn proxy_to(server: SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(tunnel(client, server));
        }
    });
    format!("http://{address}")
}

async fn tunnel(client: TcpStream, server: SocketAddr) {
    let mut client = BufReader::new(client);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if client.read_line(&mut head).await.unwrap_or_default() == 0 {
            return;
        }
    }
    if !head.starts_with("CONNECT apiserver.test:8001 ") {
        return;
    }
    let mut server = TcpStream::connect(server).await.unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

#[tokio::test] // proves UPDATE-45
async fn behind_a_proxy_it_works_as_kubectl_does() {
    let fixture = Fixture::with(idle()).await;
    let url = fixture.server.url();
    let proxy = proxy_to(url.strip_prefix("http://").unwrap().parse().unwrap()).await;
    let kubeconfig = |with: &str| {
        let text = fixture.server.kubeconfig();
        let server = format!("\"server\": \"{url}\"");
        assert!(text.contains(&server), "{text}");
        let with = format!("\"server\": \"http://apiserver.test:8001\"{with}");
        std::fs::write(fixture.kubeconfig(), text.replace(&server, &with)).unwrap();
    };
    let status = |variables: &[(&str, &str)]| {
        let mut command = fixture.command("status");
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "no_proxy"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        run(command)
    };
    kubeconfig("");
    // `NO_PROXY` is about the apiserver, and not about the proxy.
    let ended = status(&[("HTTP_PROXY", &proxy), ("NO_PROXY", "127.0.0.1")]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let ended = status(&[("HTTP_PROXY", &proxy), ("NO_PROXY", ".test")]).await;
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    kubeconfig(&format!(", \"proxy-url\": \"{proxy}\""));
    let ended = status(&[("NO_PROXY", "*")]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    kubeconfig(", \"proxy-url\": \"ftp://user:password@127.0.0.1\"");
    let ended = status(&[("NO_PROXY", "")]).await;
    assert_eq!(ended.code, 64, "{}", ended.stderr);
    assert!(ended.stderr.contains("proxy-url") && !ended.stderr.contains("password"));
}

/// Loopback is never reached over the proxy of the environment.
#[tokio::test] // proves UPDATE-45
async fn a_proxy_is_not_asked_for_this_machine() {
    let fixture = Fixture::with(idle()).await;
    let mut command = fixture.command("status");
    command.envs([("HTTP_PROXY", "http://127.0.0.1:9"), ("HTTPS_PROXY", "http://127.0.0.1:9")]);
    let ended = run(command).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}
