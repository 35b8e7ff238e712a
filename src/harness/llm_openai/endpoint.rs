//! The base address as people write it, the one rule that turns it into the address asked, and how it is shown.
//!
//! The rule: final slashes are dropped, `/chat/completions` is appended to what is given (the path is never
//! shortened), a full address is used as it is, a query stays at the end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;
use serde::Deserialize;

const PATH: &str = "/chat/completions";

/// Where requests go. Parsed with the configuration, so that a bad address is refused before anything is unmounted.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Endpoint(Url);

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if !["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err("`baseUrl` begins with http:// or https://".into());
        }
        if text.contains(char::is_whitespace) {
            return Err("`baseUrl` has no blanks in it".into());
        }
        let mut url = Url::parse(&text).map_err(|err| format!("`baseUrl` is no address: {err}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "`baseUrl` holds a name or password; keep it in a variable that `apiKeyEnv` names"
                    .into(),
            );
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&if path.ends_with(PATH) { path } else { path + PATH });
        Ok(Self(url))
    }
}

impl Endpoint {
    /// The address asked.
    pub(super) fn url(&self) -> &Url {
        &self.0
    }

    /// The address as errors show it.
    pub(super) fn shown(&self) -> String {
        shown(&self.0)
    }

    /// This very machine, whatever a proxy variable says.
    pub(super) fn is_local(&self) -> bool {
        match self.host() {
            Host::Address(IpAddr::V4(it)) => it.is_loopback() || it == Ipv4Addr::UNSPECIFIED,
            Host::Address(IpAddr::V6(it)) => it.is_loopback() || it == Ipv6Addr::UNSPECIFIED,
            Host::Name(it) => it == "localhost" || it.ends_with(".localhost"),
        }
    }

    /// The host, told apart as rules about hosts need it.
    pub(super) fn host(&self) -> Host<'_> {
        let name = self.0.host_str().expect("an http address has a host").trim_end_matches('.');
        match name.trim_matches(['[', ']']).parse() {
            Ok(address) => Host::Address(IpAddr::to_canonical(&address)),
            Err(_) => Host::Name(name),
        }
    }

    /// The port, also where the scheme implies it.
    pub(super) fn port(&self) -> u16 {
        self.0.port_or_known_default().expect("http and https have a default port")
    }
}

/// A host is a name or an address.
pub(super) enum Host<'a> {
    Name(&'a str),
    Address(IpAddr),
}

/// An address without what may be secret in it: user, password, values of the query, fragment.
pub(super) fn shown(url: &Url) -> String {
    let keys: Vec<String> = url.query_pairs().map(|(key, _)| format!("{key}=***")).collect();
    let query = if keys.is_empty() { String::new() } else { format!("?{}", keys.join("&")) };
    let port = url.port().map(|it| format!(":{it}")).unwrap_or_default();
    format!("{}://{}{port}{}{query}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// What to write as `baseUrl` to reach this address.
pub(super) fn base_of(url: &Url) -> String {
    let mut base = url.clone();
    base.set_query(None);
    let whole = shown(&base);
    whole.strip_suffix(PATH).unwrap_or(&whole).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(base: &str) -> String {
        Endpoint::try_from(base.to_owned()).unwrap().url().to_string()
    }

    #[test]
    fn h_101_the_path_ends_in_exactly_one_chat_completions() {
        for (base, wanted) in [
            ("https://host", "https://host/chat/completions"),
            ("https://host/", "https://host/chat/completions"),
            ("https://host/v1", "https://host/v1/chat/completions"),
            ("https://host/v1/", "https://host/v1/chat/completions"),
            ("https://host/api/v1//", "https://host/api/v1/chat/completions"),
            ("https://host/v1/chat/completions", "https://host/v1/chat/completions"),
            ("https://host/v1/chat/completions/", "https://host/v1/chat/completions"),
            ("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
            ("https://host/my%20model/v1", "https://host/my%20model/v1/chat/completions"),
        ] {
            assert_eq!(asked(base), wanted, "for {base}");
        }
    }

    #[test]
    fn h_101_a_query_stays_at_the_end() {
        assert_eq!(
            asked("https://host/v1?api-version=2"),
            "https://host/v1/chat/completions?api-version=2"
        );
        assert_eq!(
            asked("https://host/v1/?a=/x/&b#top"),
            "https://host/v1/chat/completions?a=/x/&b"
        );
        assert_eq!(
            asked("https://host/v1/chat/completions?a=1"),
            "https://host/v1/chat/completions?a=1"
        );
    }

    #[test]
    fn an_address_without_a_scheme_or_with_a_blank_or_a_password_is_refused() {
        for base in [
            "host/v1",
            "localhost:11434/v1",
            "ftp://host",
            "https://host/v 1",
            "https://",
            "https://me:pw@host",
        ] {
            let refusal = Endpoint::try_from(base.to_owned()).expect_err(base);
            assert!(!refusal.contains("pw@"), "{refusal}");
        }
    }

    #[test]
    fn what_is_shown_has_no_value_of_the_query() {
        let endpoint =
            Endpoint::try_from("https://host:8443/v1?key=geheim&v=2".to_owned()).unwrap();

        assert_eq!(endpoint.shown(), "https://host:8443/v1/chat/completions?key=***&v=***");
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        for (host, local) in [
            ("localhost", true),
            ("LocalHost.", true),
            ("model.localhost", true),
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("0.0.0.0", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("localhost.example.com", false),
            ("128.0.0.1", false),
            ("[fe80::1]", false),
        ] {
            let endpoint = Endpoint::try_from(format!("http://{host}/v1")).unwrap();
            assert_eq!(endpoint.is_local(), local, "for {host}");
        }
    }
}
