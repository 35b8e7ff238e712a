//! `fetch` in scripts: whom it asks, what comes back, and what is refused.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::script_world::run;

/// Answers each request with what `answer` makes of it; gives its port and what it was asked.
#[expect(clippy::disallowed_methods, reason = "a server of the test belongs to no plugin")]
async fn server(answer: impl Fn(&str) -> String + 'static) -> (u16, Rc<RefCell<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked: Rc<RefCell<Vec<String>>> = Rc::default();
    let seen = asked.clone();
    tokio::task::spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = whole(&mut stream).await;
            let reply = answer(&request);
            seen.borrow_mut().push(request);
            stream.write_all(reply.as_bytes()).await.ok();
        }
    });
    (port, asked)
}

async fn whole(stream: &mut tokio::net::TcpStream) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|it| it.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if count == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

fn reply(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

const ASK: &str = "export async function apply(ctx, config) {
  const note = text => ctx.emit('cordis/notice', text)
  for (const [url, init] of config.ask) {
    try {
      const response = await fetch(url, init)
      note(`${response.status} ${response.ok} ${response.headers.get('X-Kind')} ${await response.text()}`)
    } catch (error) { note(error.message) }
  }
}";

#[test]
fn d_63_a_host_that_the_entry_allows_is_asked_as_the_script_says() {
    run(async |world| {
        let (port, asked) =
            server(|_| reply("201 Created", "X-Kind: good\r\n", "\u{feff}{\"a\":1}")).await;
        let url = format!("http://127.0.0.1:{port}/path?q=1");
        let init = json!({ "method": "post", "headers": { "X-Mine": "yes", "Host": "elsewhere" }, "body": "text" });

        world
            .script_with(
                "ask.js",
                ASK,
                json!({ "allow": [format!("127.0.0.1:{port}")], "ask": [[url, init]] }),
            )
            .await;

        assert_eq!(world.noted(), ["201 true good {\"a\":1}"]);
        let request = asked.borrow()[0].to_ascii_lowercase();
        assert!(request.starts_with("post /path?q=1 "), "{request}");
        assert!(request.contains("x-mine: yes") && request.ends_with("\r\n\r\ntext"), "{request}");
        assert!(!request.contains("elsewhere") && !request.contains("authorization"), "{request}");
    });
}

#[test]
fn d_63_every_other_host_port_and_scheme_is_refused_unasked() {
    run(async |world| {
        let (port, asked) = server(|_| reply("200 OK", "", "no")).await;
        let other = port.wrapping_sub(1).max(1);
        let ask = json!([
            [format!("http://127.0.0.1:{other}/")],
            [format!("http://localhost:{port}/")],
            ["http://example.com/"],
            ["file:///etc/passwd"],
            ["no address"],
        ]);
        let allow = json!([format!("127.0.0.1:{port}"), "example.com"]);

        world.script_with("ask.js", ASK, json!({ "allow": allow, "ask": ask })).await;

        let notes = world.noted();
        assert!(
            notes[0].starts_with(&format!("fetch: `127.0.0.1:{other}` is not allowed")),
            "{notes:?}"
        );
        assert!(
            notes[1].starts_with(&format!("fetch: `localhost:{port}` is not allowed")),
            "{notes:?}"
        );
        assert_eq!(notes[2], "fetch: http://example.com is not asked without TLS; use https");
        assert!(notes[3].contains("kind file") && notes[4].contains("no address"), "{notes:?}");
        assert!(asked.borrow().is_empty());
    });
}

#[test]
fn d_63_nothing_is_allowed_unless_the_entry_says_so() {
    run(async |world| {
        world.script_with("ask.js", ASK, json!({ "ask": [["https://example.com/"]] })).await;

        let notes = world.noted();

        assert_eq!(
            notes,
            [
                "fetch: `example.com` is not allowed; `allow: [example.com]` in the config of the entry would allow it"
            ]
        );
    });
}

#[test]
fn d_63_a_redirect_is_followed_only_to_whom_the_entry_allows_and_takes_no_headers_along() {
    run(async |world| {
        let (target, asked) = server(|_| reply("200 OK", "", "there")).await;
        let (first, _) = server(move |request| {
            let to = if request.contains("/out") {
                "http://127.0.0.2:9/".to_owned()
            } else {
                format!("http://127.0.0.1:{target}/in")
            };
            reply("302 Found", &format!("Location: {to}\r\n"), "")
        })
        .await;
        let init = json!({ "headers": { "Authorization": "mine" } });
        let ask = json!([
            [format!("http://127.0.0.1:{first}/in"), init],
            [format!("http://127.0.0.1:{first}/out")]
        ]);
        let allow = json!([format!("127.0.0.1:{first}"), format!("127.0.0.1:{target}")]);

        world.script_with("ask.js", ASK, json!({ "allow": allow, "ask": ask })).await;

        let notes = world.noted();
        assert_eq!(notes[0], "200 true null there");
        assert!(notes[1].starts_with("fetch: `127.0.0.2:9` is not allowed"), "{notes:?}");
        assert!(!asked.borrow()[0].to_ascii_lowercase().contains("authorization"));
    });
}

#[test]
fn an_answer_that_is_too_long_is_refused_and_one_that_never_comes_can_be_cancelled() {
    run(async |world| {
        let (port, _) = server(|_| reply("200 OK", "", &"x".repeat(9 << 20))).await;
        let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = mute.local_addr().unwrap().port();
        let source = "export async function apply(ctx, config) {
           const note = text => ctx.emit('cordis/notice', text)
           await fetch(config.long).catch(error => note(error.message))
           const stop = new AbortController()
           setTimeout(() => stop.abort(), 20)
           await fetch(config.silent, { signal: stop.signal }).catch(error => note(error.message))
           fetch(config.silent)
         }";
        let allow = json!([format!("127.0.0.1:{port}"), format!("127.0.0.1:{silent}")]);
        let config = json!({ "allow": allow, "long": format!("http://127.0.0.1:{port}/"), "silent": format!("http://127.0.0.1:{silent}/") });

        let mount = world.script_with("ask.js", source, config).await;
        mount.dispose().await;

        assert_eq!(
            world.noted(),
            [
                format!("fetch: http://127.0.0.1:{port} answered with more than 8 MiB"),
                "aborted".to_owned()
            ]
        );
    });
}

#[test]
fn allow_is_checked_like_any_config_and_stays_visible() {
    run(async |world| {
        let typed = "export const Config = { type: 'object', properties: { a: { type: 'number', default: 1 } } }
           export function apply(ctx, config) { ctx.emit('cordis/notice', JSON.stringify(config)) }";
        world.script_with("typed.js", typed, json!({ "allow": ["a.example"] })).await;

        let wrong = world
            .mount("typed.js", typed, json!({ "allow": "a.example" }))
            .ready()
            .await
            .unwrap_err()
            .to_string();
        world.take_report();
        let bare = "export function apply() {}";
        let free = world
            .mount("bare.js", bare, json!({ "allow": [5] }))
            .ready()
            .await
            .unwrap_err()
            .to_string();
        world.take_report();

        assert_eq!(world.noted(), ["{\"allow\":[\"a.example\"],\"a\":1}"]);
        assert!(wrong.contains("allow: must be a list"), "{wrong}");
        assert!(free.contains("allow.0: must be a text"), "{free}");
    });
}

#[test]
fn d_63_a_schema_of_a_script_gives_it_no_hosts() {
    run(async |world| {
        let deep = "{ $defs: { a: { properties: { allow: { default: ['a.example'] } } } }, anyOf: [{ allOf: [{ $ref: '#/$defs/a' }] }] }";
        for schema in ["{ properties: { allow: { default: ['a.example'] } } }", deep] {
            let source = format!("export const Config = {schema}; export function apply() {{}}");

            let refused = world.refused("own.js", &source);

            assert!(
                refused.contains("whom a script may fetch from only its entry says"),
                "{refused}"
            );
        }
        let none = "export const Config = { properties: { allow: { default: [] } } }; export function apply() {}";
        world.script("none.js", none).await;
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a server of the test belongs to no plugin")]
fn so_many_requests_of_a_script_are_under_way_at_a_time_and_the_others_wait() {
    run(async |world| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (now, peak) = (open.clone(), most.clone());
        tokio::task::spawn_local(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                now.set(now.get() + 1);
                peak.set(peak.get().max(now.get()));
                let now = now.clone();
                tokio::task::spawn_local(async move {
                    whole(&mut stream).await;
                    // Whoever else is on the way arrives first.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    now.set(now.get() - 1);
                    stream.write_all(reply("200 OK", "", "x").as_bytes()).await.unwrap();
                });
            }
        });
        let source = "export async function apply(ctx, config) {
           const all = Array.from({ length: 100 }, () => fetch(config.url).then(it => it.text()))
           ctx.emit('cordis/notice', (await Promise.all(all)).join(''))
         }";
        let address = format!("127.0.0.1:{port}");

        world
            .script_with(
                "many.js",
                source,
                json!({ "allow": [address], "url": format!("http://{address}/") }),
            )
            .await;

        assert_eq!(world.noted(), ["x".repeat(100)]);
        assert!((2..=16).contains(&most.get()), "{}", most.get());
    });
}
