//! An engine whose answers a test makes up.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Answers each request with status 200 and what `answer` makes of its target; never answers it if
/// that is `None`. Returns the port on 127.0.0.1.
pub async fn served(answer: impl Fn(&str) -> Option<Value> + Send + Sync + 'static) -> u16 {
    served_as("200 OK", answer).await
}

/// Answers each request with this status and what `answer` makes of its target; never answers it if
/// that is `None`. Returns the port on 127.0.0.1.
pub async fn served_as(
    status: &'static str,
    answer: impl Fn(&str) -> Option<Value> + Send + Sync + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, status, Arc::clone(&answer)));
        }
    });
    port
}

async fn serve(
    stream: TcpStream,
    status: &'static str,
    answer: Arc<impl Fn(&str) -> Option<Value>>,
) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.expect("a request") == 0 {
                return;
            }
        }
        let Some(body) = answer(head.split(' ').nth(1).expect("a target")) else {
            return std::future::pending().await;
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await.expect("a client");
    }
}
