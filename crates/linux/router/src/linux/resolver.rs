//! Parts of DNS without input and output: the file that lists servers, and a failure response.

use std::net::{IpAddr, Ipv4Addr};

/// Returns the servers listed in a file (resolv.conf(5)), each once; this host if it lists none.
/// Addresses with a zone, such as `fe80::1%eth0`, are left out: they are not valid on another link.
#[must_use]
pub fn servers_in(file: &str) -> Vec<IpAddr> {
    let named: Vec<&str> = file
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            words.next().filter(|&word| word == "nameserver").and_then(|_| words.next())
        })
        .collect();
    if named.is_empty() {
        return vec![Ipv4Addr::LOCALHOST.into()];
    }
    let mut servers: Vec<IpAddr> = Vec::new();
    for server in named.iter().filter_map(|name| name.parse().ok()) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers
}

/// Returns the response "server failure" to a query (RFC 1035 § 4.1.1), after which a client asks
/// the next server at once; `None` if the query is too short.
#[must_use]
pub fn refusal(query: &[u8]) -> Option<Vec<u8>> {
    let mut answer = query.to_vec();
    let flags = answer.get_mut(2..4)?;
    flags[0] |= IS_RESPONSE;
    flags[1] = flags[1] & !CODE | SERVER_FAILURE;
    Some(answer)
}

/// Flags of a DNS message (RFC 1035 § 4.1.1).
const IS_RESPONSE: u8 = 0x80;
const CODE: u8 = 0x0f;
const SERVER_FAILURE: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn named(file: &str) -> Vec<String> {
        servers_in(file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn servers_are_those_of_the_file_in_its_order() {
        let file = "# nameserver 192.0.2.1\nsearch example.org\nnameserver 127.0.0.53\n\
                    nameserver ::1\noptions edns0 trust-ad\nnameserver\t10.0.0.1 # ours\n\
                    nameserver ::1\n";
        assert_eq!(named(file), ["127.0.0.53", "::1", "10.0.0.1"]);
    }

    #[test]
    fn a_file_without_servers_means_this_host() {
        assert_eq!(named(""), ["127.0.0.1"]);
        assert_eq!(named("search example.org\n"), ["127.0.0.1"]);
    }

    #[test]
    fn an_address_of_a_single_link_is_no_server_elsewhere() {
        assert_eq!(named("nameserver fe80::1%eth0\n"), [""; 0]);
    }
}
