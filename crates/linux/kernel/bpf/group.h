/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transport of load estimates from receiver to sender, for the connections of a control group.
 *
 * At the receiver, one program sees each data packet before TCP does, and updates the estimate.
 * Another writes it into ACKs, as an experimental TCP option (RFC 4727): kind 253, length 4, the
 * place of a threshold. At the sender the same program reads the option. No packet is held back.
 */
#ifndef GROUP_H
#define GROUP_H

#include "skb.h"
#include "sockops.h"

#define TCP_HEADER_BYTES 20
/* Bit of `ecn_flags` for a connection that negotiated ECN. */
#define TCP_ECN_OK 1

/* Estimates of receivers that echo. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct echo);
} cwnd_echoes SEC(".maps");

static __always_inline u16 two_bytes(const u8 *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

static __always_inline u32 four_bytes(const u8 *bytes)
{
	return (u32)two_bytes(bytes) << 16 | two_bytes(bytes + 2);
}

/*
 * Starts a connection that may receive estimates; a receiver that echoes them gets an `echo`, too.
 */
static __always_inline void begin(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	u32 flags = PARSE_UNKNOWN_HDR_OPT_CB_FLAG;
	bool tells = ctx->ecn_flags & TCP_ECN_OK && ctx->family == FAMILY_IPV4 && is_ours(ctx);

	if (tells && sk && bpf_sk_storage_get(&cwnd_echoes, sk, 0, BPF_SK_STORAGE_GET_F_CREATE))
		flags |= WRITE_HDR_OPT_CB_FLAG;
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | flags);
}

/*
 * Reserves room for the option in an ACK that echoes. Data of a receiver has none: its segments are
 * already as large as they can be without it.
 */
static __always_inline void reserve(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct echo *echo;
	struct echo was;

	/* No packet exists when the kernel only asks for the size of future segments. */
	if (ctx->args[0] == WRITE_HDR_TCP_CURRENT_MSS || ctx->skb_len || !sk)
		return;
	echo = bpf_sk_storage_get(&cwnd_echoes, sk, 0, 0);
	if (!echo || !echo->hears)
		return;
	was = *echo;
	/* Three SACK blocks leave no room; the next ACK carries it. */
	if (echo_takes(echo, settings.carried) && bpf_reserve_hdr_opt(ctx, OPTION_BYTES, 0)) {
		echo->i = was.i;
		echo->without = was.without;
	}
}

static __always_inline void write(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct echo *echo = sk ? bpf_sk_storage_get(&cwnd_echoes, sk, 0, 0) : 0;
	u8 option[OPTION_BYTES] = { OPTION_KIND, OPTION_BYTES };

	if (!echo)
		return;
	option[2] = echo->place >> 8;
	option[3] = echo->place;
	if (!bpf_store_hdr_opt(ctx, option, sizeof(option), 0))
		COUNT(options_written);
}

/*
 * Reads an option that the kernel does not know from an ACK.
 *
 * The kernel has checked the sequence number. Here the acknowledgment must be within the
 * outstanding data, so that an off-path attacker has to guess both. A forged estimate is one of
 * 2^16 places, and the next estimate replaces it.
 */
static __always_inline void read(struct bpf_sock_ops *ctx)
{
	u8 *data = ctx->skb_data;
	u8 *end = ctx->skb_data_end;
	struct bpf_sock *sk = ctx->sk;
	struct load_note *note = sk ? bpf_sk_storage_get(&cwnd_loads, sk, 0, 0) : 0;
	enum found found;
	u16 place;
	u32 ack;

	/* Only senders with this controller have a note. */
	if (!note || data + TCP_HEADER_BYTES > end)
		return;
	ack = four_bytes(data + 8);
	found = option_find(data + TCP_HEADER_BYTES, end, &place);
	if (found == FOUND_NONE)
		return;
	if (found == FOUND_MALFORMED) {
		COUNT(malformed);
		return;
	}
	if (before(ack, ctx->snd_una) || before(ctx->snd_nxt, ack)) {
		COUNT(outside);
		return;
	}
	COUNT(load_acks_heard);
	note->place = place;
	note->heard = 1;
}

SEC("sockops")
int cwnd_options(struct bpf_sock_ops *ctx)
{
	switch (ctx->op) {
	case ACTIVE_ESTABLISHED_CB:
	case PASSIVE_ESTABLISHED_CB:
		begin(ctx);
		break;
	case HDR_OPT_LEN_CB:
		reserve(ctx);
		break;
	case WRITE_HDR_OPT_CB:
		write(ctx);
		break;
	case PARSE_HDR_OPT_CB:
		read(ctx);
		break;
	}
	return 1;
}

/*
 * Updates the estimate by a packet for a receiver. TCP has not checked it yet, so packets outside
 * the receive window are ignored.
 */
SEC("cgroup_skb/ingress")
int cwnd_loads_seen(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct echo *echo;
	struct tcp_sock *tp;
	u8 ip[20], tcp[TCP_HEADER_BYTES];
	u32 header, sequence, payload;

	if (!sk)
		return 1;
	sk = bpf_sk_fullsock(sk);
	echo = sk ? bpf_sk_storage_get(&cwnd_echoes, sk, 0, 0) : 0;
	if (!echo || bpf_skb_load_bytes_relative(skb, 0, ip, sizeof(ip), BPF_HDR_START_NET))
		return 1;
	header = (ip[0] & 15) * 4;
	if (ip[0] >> 4 != 4 || ip[9] != PROTOCOL_TCP || (ip[1] & 3) == NOT_ECT)
		return 1;
	if (bpf_skb_load_bytes_relative(skb, header, tcp, sizeof(tcp), BPF_HDR_START_NET))
		return 1;
	header += (tcp[12] >> 4) * 4;
	payload = two_bytes(ip + 2);
	/* A GRO packet whose length does not fit the header (BIG TCP) has data. */
	if (payload && payload <= header)
		return 1;
	sequence = four_bytes(tcp + 4);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || before(sequence + skb->len - header, tp->rcv_wup) ||
	    before(tp->rcv_wup + tp->rcv_wnd, sequence)) {
		COUNT(outside);
		return 1;
	}
	COUNT(told);
	if ((ip[1] & 3) == ECN_CE)
		COUNT(marks);
	/*
	 * GRO merges packets with equal ECN bits but different identifications; the first of them
	 * counts.
	 */
	if (echo_hear(echo, ip[1] & 3, two_bytes(ip + 4)))
		COUNT(moved);
	return 1;
}

#endif
