//! Which proxy a request goes through: decided once, for one host.
//!
//! `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY` name it, `NO_PROXY` lists who is reached without, in either case.
//! Watch for: this machine is never reached through a proxy. The variables come from [`Env`], not from the process:
//! the client's own reading of them is off, because it knows neither rule nor test.

use std::net::IpAddr;

use reqwest::Url;

use super::endpoint::{Endpoint, Host};
use crate::harness::{env::Env, llm::LlmError};

/// The proxy for this endpoint, if there is one.
pub(super) fn choose(endpoint: &Endpoint, env: &Env) -> Result<Option<Url>, LlmError> {
    if endpoint.is_local()
        || is_excluded(endpoint, &first(env, &["NO_PROXY", "no_proxy"]).unwrap_or_default().1)
    {
        return Ok(None);
    }
    let named = match endpoint.url().scheme() {
        "https" => first(env, &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
        _ => first(env, &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]),
    };
    named.map(|(variable, value)| parse(variable, &value)).transpose()
}

fn first(env: &Env, names: &[&'static str]) -> Option<(&'static str, String)> {
    names
        .iter()
        .find_map(|name| env.get(name).filter(|it| !it.trim().is_empty()).map(|it| (*name, it)))
}

fn parse(variable: &str, value: &str) -> Result<Url, LlmError> {
    let value = value.trim();
    let whole = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
    match Url::parse(&whole) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(url) => Err(LlmError::Setup(format!(
            "{variable} names a proxy of kind {}; only http and https are known",
            url.scheme()
        ))),
        Err(err) => {
            Err(LlmError::Setup(format!("{variable} is not the address of a proxy: {err}")))
        }
    }
}

fn is_excluded(endpoint: &Endpoint, list: &str) -> bool {
    list.split([',', ' '])
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .any(|entry| excludes(entry, endpoint))
}

fn excludes(entry: &str, endpoint: &Endpoint) -> bool {
    let (host, port) = split_port(entry);
    if port.is_some_and(|it| it != endpoint.port()) {
        return false;
    }
    match endpoint.host() {
        _ if host == "*" => true,
        Host::Address(address) => is_within(address, host),
        Host::Name(name) => {
            let suffix = host.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
            name.strip_suffix(&suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        }
    }
}

/// `host:port`, but not the colons of an IPv6 address without brackets.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    let split =
        entry.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let (host, port) = match split.map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host, Some(port)),
        _ => (entry, None),
    };
    (host.trim_matches(['[', ']']), port)
}

/// `range` is an address, or an address and the number of leading bits that count.
fn is_within(address: IpAddr, range: &str) -> bool {
    let (base, bits) = range.split_once('/').unwrap_or((range, "128"));
    let (Ok(base), Ok(bits)) = (base.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let differing = match (address, base) {
        (IpAddr::V4(one), IpAddr::V4(two)) => u128::from(one.to_bits() ^ two.to_bits()) << 96,
        (IpAddr::V6(one), IpAddr::V6(two)) => one.to_bits() ^ two.to_bits(),
        _ => return false,
    };
    differing.leading_zeros() >= bits.min(128)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(base: &str, vars: &[(&str, &str)]) -> Option<String> {
        let endpoint = Endpoint::try_from(base.to_owned()).unwrap();
        choose(&endpoint, &Env::fixed(vars.iter().copied())).unwrap().map(|it| it.to_string())
    }

    #[test]
    fn the_variable_is_that_of_the_scheme_and_then_the_one_for_all() {
        let vars = [("HTTP_PROXY", "http://one:1"), ("https_proxy", "two:2")];

        assert_eq!(chosen("http://model.test", &vars).as_deref(), Some("http://one:1/"));
        assert_eq!(chosen("https://model.test", &vars).as_deref(), Some("http://two:2/"));
        assert_eq!(
            chosen("https://model.test", &[("all_proxy", "three:3"), ("HTTPS_PROXY", "")])
                .as_deref(),
            Some("http://three:3/")
        );
        assert_eq!(chosen("https://model.test", &[]), None);
    }

    #[test]
    fn a_37_this_machine_is_never_reached_through_a_proxy() {
        for host in ["localhost", "127.0.0.1", "127.3.4.5", "[::1]"] {
            assert_eq!(
                chosen(&format!("http://{host}:8080/v1"), &[("ALL_PROXY", "http://one:1")]),
                None,
                "{host}"
            );
        }
    }

    #[test]
    fn a_37_no_proxy_knows_names_suffixes_addresses_ranges_and_ports() {
        for (host, list, direct) in [
            ("model.test", "model.test", true),
            ("a.model.test", "model.test", true),
            ("a.model.test", ".test", true),
            ("a.model.test", "other, *.MODEL.test", true),
            ("mymodel.test", "model.test", false),
            ("model.test", "*", true),
            ("model.test:8443", "model.test:8443", true),
            ("model.test", "model.test:8443", false),
            ("10.1.2.3", "10.0.0.0/8", true),
            ("11.1.2.3", "10.0.0.0/8", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.4", "10.1.2.3", false),
            ("10.1.2.3", "0.0.0.0/0", true),
            ("[fd00::1]", "fd00::/8", true),
            ("[fd00::1]:8443", "[fd00::1]:8443", true),
            ("[fd00::1]", "fd00::2", false),
            ("10.1.2.3", "10.0.0.0/x", false),
            ("model.test", "", false),
        ] {
            let vars = [("HTTPS_PROXY", "http://one:1"), ("NO_PROXY", list)];
            assert_eq!(
                chosen(&format!("https://{host}/v1"), &vars).is_none(),
                direct,
                "{host} with {list}"
            );
        }
    }

    #[test]
    fn a_37_a_proxy_of_an_unknown_kind_is_refused_by_name_and_its_password_is_not_shown() {
        let endpoint = Endpoint::try_from("https://model.test".to_owned()).unwrap();

        let refusal = choose(&endpoint, &Env::fixed([("ALL_PROXY", "socks5h://me:geheim@one:1")]))
            .unwrap_err()
            .to_string();

        assert_eq!(
            refusal,
            "ALL_PROXY names a proxy of kind socks5h; only http and https are known"
        );
    }
}
