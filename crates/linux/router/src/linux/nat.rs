//! Source address translation for packets from behind a link to hosts beyond this machine
//! (nf_tables).

use std::io;
use std::net::IpAddr;

use rustix::net::netlink;

use crate::linux::netlink::{ACK, CREATE, NESTED, Netlink, Request, octets, push_attribute};

/// A table of nf_tables that translates a source address to those of this machine. Its socket owns
/// it: the kernel removes the table when the socket is closed, however the process ends.
#[derive(Debug)]
pub struct Nat {
    _socket: Netlink,
}

impl Nat {
    /// Translates `address` with a table of this name in the calling thread's network namespace.
    ///
    /// # Errors
    /// Those of the kernel: without nf_tables or translation (`EOPNOTSUPP`, `ENOENT`), or without
    /// ownership of tables (before Linux 5.12: `EINVAL`).
    pub fn hide(address: IpAddr, table: &str) -> io::Result<Self> {
        let mut socket = Netlink::open(Some(netlink::NETFILTER))?;
        let table = terminated(table);
        let family = if address.is_ipv4() { FAMILY_IPV4 } else { FAMILY_IPV6 };
        let message = |kind: u16, flags: u16| {
            Request::new(SUBSYSTEM << 8 | kind, flags).put(&generic_header(family, 0))
        };
        let requests = [
            Request::new(BATCH_BEGIN, 0).put(&generic_header(0, SUBSYSTEM)),
            message(NEWTABLE, ACK | CREATE)
                .attribute(TABLE_NAME, &table)
                .attribute(TABLE_FLAGS, &TABLE_OWNED.to_be_bytes()),
            message(NEWCHAIN, ACK | CREATE)
                .attribute(CHAIN_TABLE, &table)
                .attribute(CHAIN_NAME, CHAIN)
                .attribute(CHAIN_HOOK | NESTED, &hook())
                .attribute(CHAIN_TYPE, b"nat\0"),
            message(NEWRULE, ACK | CREATE | APPEND)
                .attribute(RULE_TABLE, &table)
                .attribute(RULE_CHAIN, CHAIN)
                .attribute(RULE_EXPRESSIONS | NESTED, &expressions(address)),
            Request::new(BATCH_END, 0).put(&generic_header(0, SUBSYSTEM)),
        ];
        socket.request(&requests)?;
        Ok(Self { _socket: socket })
    }
}

/// `struct nfgenmsg`: family, version, resource.
const fn generic_header(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

/// Encodes the hook after routing, at the priority of source translation.
fn hook() -> Vec<u8> {
    let mut hook = Vec::new();
    push_attribute(&mut hook, HOOK_NUMBER, &HOOK_POSTROUTING.to_be_bytes());
    push_attribute(&mut hook, HOOK_PRIORITY, &PRIORITY_SOURCE_NAT.to_be_bytes());
    hook
}

/// Encodes the rule `ip saddr ADDRESS masquerade`, or the same with `ip6`.
fn expressions(address: IpAddr) -> Vec<u8> {
    let source = if address.is_ipv4() { SOURCE_OFFSET } else { SOURCE_OFFSET_V6 };
    let address = octets(address);
    let mut load = Vec::new();
    for (kind, value) in [
        (PAYLOAD_INTO, REGISTER_1),
        (PAYLOAD_BASE, NETWORK_HEADER),
        (PAYLOAD_OFFSET, source),
        (PAYLOAD_LENGTH, address.len() as u32),
    ] {
        push_attribute(&mut load, kind, &value.to_be_bytes());
    }
    let mut value = Vec::new();
    push_attribute(&mut value, DATA_VALUE, &address);
    let mut compare = Vec::new();
    push_attribute(&mut compare, COMPARE_FROM, &REGISTER_1.to_be_bytes());
    push_attribute(&mut compare, COMPARE_HOW, &EQUAL.to_be_bytes());
    push_attribute(&mut compare, COMPARE_WITH | NESTED, &value);
    let mut list = Vec::new();
    for (name, data) in
        [(&b"payload\0"[..], Some(load)), (b"cmp\0", Some(compare)), (b"masq\0", None)]
    {
        let mut expression = Vec::new();
        push_attribute(&mut expression, EXPRESSION_NAME, name);
        if let Some(data) = data {
            push_attribute(&mut expression, EXPRESSION_DATA | NESTED, &data);
        }
        push_attribute(&mut list, LIST_ELEMENT | NESTED, &expression);
    }
    list
}

fn terminated(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// Constants of linux/netfilter/nfnetlink.h, linux/netfilter.h and linux/netlink.h.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;
const FAMILY_IPV4: u8 = 2;
const FAMILY_IPV6: u8 = 10;
const APPEND: u16 = 0x800;
/// Constants of linux/netfilter/nf_tables.h, linux/netfilter.h and linux/netfilter_ipv4.h; `CHAIN`
/// is the name of this table's chain.
const NEWTABLE: u16 = 0;
const NEWCHAIN: u16 = 3;
const NEWRULE: u16 = 6;
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
/// Flag that lets the socket own the table.
const TABLE_OWNED: u32 = 0x2;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_TYPE: u16 = 7;
const CHAIN: &[u8] = b"out\0";
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const HOOK_POSTROUTING: u32 = 4;
const PRIORITY_SOURCE_NAT: u32 = 100;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const PAYLOAD_INTO: u16 = 1;
const PAYLOAD_BASE: u16 = 2;
const PAYLOAD_OFFSET: u16 = 3;
const PAYLOAD_LENGTH: u16 = 4;
const REGISTER_1: u32 = 1;
const NETWORK_HEADER: u32 = 1;
/// Offset of the source address in IPv4 (RFC 791 § 3.1) and IPv6 headers (RFC 8200 § 3), bytes.
const SOURCE_OFFSET: u32 = 12;
const SOURCE_OFFSET_V6: u32 = 8;
const COMPARE_FROM: u16 = 1;
const COMPARE_HOW: u16 = 2;
const COMPARE_WITH: u16 = 3;
const EQUAL: u32 = 0;
const DATA_VALUE: u16 = 1;
