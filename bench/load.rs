//! Load for one route: keep-alive connections that send a request, wait for the answer and repeat.
//!
//! Usage: `bench-load ADDR PATH CONNECTIONS REQUESTS [CA-FILE TOKEN-FILE]`; with a CA over TLS.
//! Prints the seconds it took. It ends by itself after that many requests, and at the first answer
//! that is not 200.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (address, path, connections, requests, secure) = match arguments.as_slice() {
        [address, path, connections, requests] => (address, path, connections, requests, None),
        [address, path, connections, requests, ca, token] => {
            (address, path, connections, requests, Some((ca, token)))
        }
        _ => return Err("usage: bench-load ADDR PATH CONNECTIONS REQUESTS [CA TOKEN]".into()),
    };
    let mut head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
    let mut tls = None;
    if let Some((ca, token)) = secure {
        let token = std::fs::read_to_string(token)?;
        head.push_str(&format!("Authorization: Bearer {}\r\n", token.trim()));
        tls = Some(connector(ca)?);
    }
    head.push_str("\r\n");
    let head: Arc<[u8]> = head.into_bytes().into();
    let connections: u32 = connections.parse()?;
    let each = requests.parse::<u32>()? / connections;

    let began = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..connections {
        let (head, tls) = (head.clone(), tls.clone());
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        clients.spawn(async move {
            match tls {
                None => ask(stream, &head, each).await,
                Some(tls) => {
                    let name = ServerName::try_from("localhost")?;
                    ask(tls.connect(name, stream).await?, &head, each).await
                }
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    println!("{}", began.elapsed().as_secs_f64());
    Ok(())
}

fn connector(ca: &str) -> Result<TlsConnector, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca)?)?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn ask(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    head: &[u8],
    requests: u32,
) -> Result<(), Failure> {
    let mut answer = Vec::with_capacity(16 * 1024);
    for _ in 0..requests {
        stream.write_all(head).await?;
        stream.flush().await?;
        answer.clear();
        while missing(&answer)? > 0 {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err("the connection was closed".into());
            }
        }
    }
    Ok(())
}

/// How many bytes of the answer are missing, at least.
fn missing(answer: &[u8]) -> Result<usize, Failure> {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(1);
    };
    let head = std::str::from_utf8(&answer[..end])?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(format!("not 200: {head}").into());
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    });
    let length = length.ok_or("an answer without Content-Length")??;
    Ok((end + 4 + length).saturating_sub(answer.len()))
}
