//! Encrypted connections. The fixtures are a made-up authority and a server `localhost` that it vouches for; the key of
//! the authority was thrown away.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
};

use nano_cordis::harness::env::Env;
use rustls::{
    ServerConfig, ServerConnection, Stream,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::{Bench, bench, mount};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tls");

/// A server that takes one connection and answers it; its base address.
fn encrypted_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let certificate = CertificateDer::from_pem_file(format!("{FIXTURES}/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(format!("{FIXTURES}/server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = Stream::new(&mut connection, &mut socket);
        let body = r#"{"choices":[{"message":{"content":"sealed"}}]}"#;
        // A client that does not trust the certificate is gone by now.
        if stream.read(&mut [0; 9_000]).is_ok() {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                .unwrap();
        }
    });
    format!("https://localhost:{port}/v1")
}

#[test]
fn an_authority_in_the_file_that_a_variable_names_is_trusted() {
    bench([], &Value::Null, async |it| {
        let env = Env::fixed([("SSL_CERT_FILE", format!("{FIXTURES}/authority.pem"))]);
        let it = it.at(&encrypted_server(), &env).await;

        let reply = it.ask(Vec::new()).await.unwrap();

        assert_eq!(reply.message.content.as_deref(), Some("sealed"));
    });
}

#[test]
fn an_unknown_authority_is_not_trusted_and_the_message_says_so() {
    bench([], &Value::Null, async |it| {
        let config = json!({"baseUrl": encrypted_server(), "model": "m", "retries": 2});
        let it = Bench { llm: mount(config, &Env::default()).await, ..it };

        let err = it.fail().await;

        assert_eq!((err.code(), it.retries().len()), ("transport", 0));
        assert!(err.to_string().ends_with("invalid peer certificate: UnknownIssuer"), "{err}");
    });
}

#[test]
fn https_to_a_server_without_tls_is_a_transport_error() {
    bench([], &Value::Null, async |it| {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("https://{}/v1", listener.local_addr().unwrap());
        let it = it.at(&base, &Env::default()).await;
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        });

        let err = it.fail().await;

        assert!(err.to_string().contains("cannot connect: received corrupt message"), "{err}");
    });
}

#[test]
fn certificates_that_cannot_be_read_are_named_with_their_variable() {
    for file in ["/nowhere/at/all.pem".to_owned(), format!("{FIXTURES}/server.key")] {
        bench([], &Value::Null, async |it| {
            let it = it.at("https://127.0.0.1:9", &Env::fixed([("SSL_CERT_FILE", &file)])).await;

            let err = it.fail().await;

            assert_eq!(err.code(), "setup");
            assert!(
                err.to_string()
                    .contains(&format!("cannot use {file}, which SSL_CERT_FILE names: ")),
                "{err}"
            );
        });
    }
}
