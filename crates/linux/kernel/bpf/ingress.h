/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Records source quenches that arrive at an interface at the sockets that they concern. Packets are
 * neither changed nor held back.
 */
#ifndef INGRESS_H
#define INGRESS_H

#include "skb.h"

#define BPF_F_CURRENT_NETNS (-1)
/* `pkt_type` of packets to this host, not to a group or a promiscuous listener (if_packet.h). */
#define PACKET_HOST 0
/* Bits of `vlan_tci` with the VLAN id; zero is a priority tag only. */
#define VLAN_NUMBER 0xfff

/* First members of types in include/uapi/linux/bpf.h. */
struct bpf_sock {
	u32 bound_dev_if;
	u32 family;
	u32 type;
	u32 protocol;
	u32 mark;
	u32 priority;
	u32 src_ip4;
	u32 src_ip6[4];
	u32 src_port;
	u16 dst_port;
	u32 : 16;
	u32 dst_ip4;
	u32 dst_ip6[4];
	u32 state;
};

struct bpf_tcp_sock {
	u32 snd_cwnd;
	u32 srtt_us;
	u32 rtt_min;
	u32 snd_ssthresh;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 snd_una;
};

struct bpf_sock_tuple {
	u32 saddr;
	u32 daddr;
	u16 sport;
	u16 dport;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct packet);
} cwnd_packet SEC(".maps");

/*
 * True if data may be outstanding: TCP_ESTABLISHED, TCP_FIN_WAIT1, TCP_CLOSE_WAIT, TCP_CLOSING,
 * TCP_LAST_ACK.
 */
static __always_inline bool may_have_sent(u32 state)
{
	return state == 1 || state == 4 || state == 8 || state == 9 || state == 11;
}

/* Delivers a quench to the socket of this controller that it concerns; false if there is none. */
static __always_inline bool tell_socket(struct __sk_buff *skb, const struct quench *quench)
{
	/* Source and destination are swapped, as in a packet from the peer. */
	struct bpf_sock_tuple tuple = {
		.saddr = quench->remote,
		.daddr = quench->local,
		.sport = quench->remote_port,
		.dport = quench->local_port,
	};
	struct bpf_sock *sk = bpf_sk_lookup_tcp(skb, &tuple, sizeof(tuple), BPF_F_CURRENT_NETNS, 0);
	struct bpf_tcp_sock *tp;
	struct note *note;
	bool ours = 0;

	if (!sk)
		return 0;
	tp = may_have_sent(sk->state) ? bpf_tcp_sock(sk) : 0;
	if (tp) {
		/* Only sockets with this controller have a note. */
		note = bpf_sk_storage_get(&cwnd_notes, sk, 0, 0);
		if (note) {
			ours = 1;
			quench_hear(note, tp->snd_una, tp->snd_nxt, quench->sequence,
				    quench->fifth_octet);
		}
	}
	bpf_sk_release(sk);
	return ours;
}

/*
 * Loads `length` bytes. The verifier of 6.1 does not derive bounds from the single comparison that
 * compilers make of these two, nor from one of a copy.
 */
static __always_inline bool load_all(struct __sk_buff *skb, struct packet *packet, u64 length)
{
	barrier_var(length);
	if (length < QUENCH_LEAST)
		return 0;
	barrier_var(length);
	return length <= QUENCH_ROOM &&
	       !bpf_skb_load_bytes_relative(skb, 0, packet->bytes, length, BPF_HDR_START_NET);
}

SEC("tc/ingress")
int cwnd_quench(struct __sk_buff *skb)
{
	struct quench quench;
	struct packet *packet;
	u32 only = 0;
	u32 length;

	/*
	 * The host would not accept packets for others, or of another VLAN than this interface's.
	 */
	if (skb->protocol != PACKET_IPV4 || skb->pkt_type != PACKET_HOST)
		return TC_ACT_UNSPEC;
	if (skb->vlan_present && skb->vlan_tci & VLAN_NUMBER)
		return TC_ACT_UNSPEC;
	packet = bpf_map_lookup_elem(&cwnd_packet, &only);
	if (!packet || bpf_skb_load_bytes_relative(skb, 0, packet->bytes, 20, BPF_HDR_START_NET))
		return TC_ACT_UNSPEC;
	if (packet->bytes[9] != PROTOCOL_ICMP)
		return TC_ACT_UNSPEC;
	if (bpf_skb_load_bytes_relative(skb, (packet->bytes[0] & 15) * 4, packet->bytes + 20, 1,
					BPF_HDR_START_NET))
		return TC_ACT_UNSPEC;
	if (packet->bytes[20] != TYPE_SOURCE_QUENCH)
		return TC_ACT_UNSPEC;
	length = two(packet->bytes, 2);
	if (!load_all(skb, packet, length) || !quench_read(packet, length, &quench))
		COUNT(malformed);
	else if (!tell_socket(skb, &quench))
		COUNT(stranger);
	return TC_ACT_UNSPEC;
}

#endif
