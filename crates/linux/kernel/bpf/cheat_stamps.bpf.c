/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A misbehaving receiver (McCullagh 2008 § 5.1.1), for laboratories: at an interface, it makes the
 * timestamps that egress segments echo older by a constant. The host's own stack is not involved.
 */
#include "kernel.h"

struct settings {
	/* Amount to subtract, in ticks of the timestamp clock, which are ms on Linux. */
	u32 subtract;
	/* Source address of the affected segments, in network byte order; zero for all. */
	u32 address;
};

SETTINGS settings SEC(".rodata.settings") = { .subtract = 100 };

/* `rewritten`: segments. No socket uses it, so `opened` and `closed` stay zero. */
#define COUNTERS(X) X(rewritten) X(failed) X(opened) X(closed)
#include "info_map.h"
#include "stamps.h"

/* Largest link-layer header: Ethernet with two VLAN tags, bytes. */
#define MOST_BEFORE 22
/* Offset of the checksum in a TCP header. */
#define TCP_CHECKSUM 16

struct header {
	u8 bytes[HEADER_ROOM];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct header);
} cwnd_header SEC(".maps");

SEC("tc/egress")
int cwnd_cheat(struct __sk_buff *skb)
{
	u8 ip[LEAST_IP];
	struct header *tcp;
	u32 only = 0;
	u32 source, before, segment, header, echo, less;
	/*
	 * As wide as a register: the verifier of 6.1 does not track comparisons of the lower half.
	 */
	u64 at;

	if (skb->protocol != PACKET_IPV4)
		return TC_ACT_UNSPEC;
	if (bpf_skb_load_bytes_relative(skb, 0, ip, LEAST_IP, BPF_HDR_START_NET))
		return TC_ACT_UNSPEC;
	__builtin_memcpy(&source, ip + 12, sizeof(source));
	segment = segment_at(ip);
	if (!segment || (settings.address && settings.address != source))
		return TC_ACT_UNSPEC;
	/*
	 * Writes count from the first byte of the packet. Its length less the IPv4 total length is
	 * the offset of the IPv4 header.
	 */
	before = skb->len - (ip[2] << 8 | ip[3]);
	if (before > MOST_BEFORE)
		return TC_ACT_UNSPEC;
	segment += before;
	tcp = bpf_map_lookup_elem(&cwnd_header, &only);
	if (!tcp || bpf_skb_load_bytes(skb, segment, tcp->bytes, LEAST_TCP))
		return TC_ACT_UNSPEC;
	header = header_of(tcp->bytes);
	if (header <= LEAST_TCP || header > HEADER_ROOM)
		return TC_ACT_UNSPEC;
	if (bpf_skb_load_bytes(skb, segment, tcp->bytes, header))
		return TC_ACT_UNSPEC;
	at = echo_at(tcp->bytes, header);
	__asm__ volatile("" : "+r"(at));
	if (!at || at > HEADER_ROOM - sizeof(echo))
		return TC_ACT_UNSPEC;
	__builtin_memcpy(&echo, tcp->bytes + at, sizeof(echo));
	less = echo_minus(echo, settings.subtract);
	if (less == echo)
		return TC_ACT_UNSPEC;
	/*
	 * If a device or a later stage of the kernel still has to compute the checksum, the first
	 * of these has no effect.
	 */
	if (bpf_l4_csum_replace(skb, segment + TCP_CHECKSUM, as_words(echo, at),
				as_words(less, at), sizeof(echo)) ||
	    bpf_skb_store_bytes(skb, segment + at, &less, sizeof(less), 0))
		COUNT(failed);
	else
		COUNT(rewritten);
	return TC_ACT_UNSPEC;
}
