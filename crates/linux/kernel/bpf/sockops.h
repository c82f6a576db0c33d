/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sockets of a control group as the kernel passes them to a program.
 *
 * The including file must have `address`, `namespace_low` and `namespace_high` in its settings.
 */
#ifndef SOCKOPS_H
#define SOCKOPS_H

/* Values of `op` (BPF_SOCK_OPS_… of include/uapi/linux/bpf.h), and flags that request calls. */
enum {
	TCP_CONNECT_CB = 3,
	ACTIVE_ESTABLISHED_CB = 4,
	PASSIVE_ESTABLISHED_CB = 5,
	RTO_CB = 8,
	STATE_CB = 10,
	RTT_CB = 12,
	PARSE_HDR_OPT_CB = 13,
	HDR_OPT_LEN_CB = 14,
	WRITE_HDR_OPT_CB = 15,
};
#define RTO_CB_FLAG (1 << 0)
#define STATE_CB_FLAG (1 << 2)
#define RTT_CB_FLAG (1 << 3)
/*
 * Requests calls for packets with an option that the kernel does not know, and for all sent
 * packets.
 */
#define PARSE_UNKNOWN_HDR_OPT_CB_FLAG (1 << 5)
#define WRITE_HDR_OPT_CB_FLAG (1 << 6)
/* First argument of a call that asks for the size of segments only, without a packet. */
#define WRITE_HDR_TCP_CURRENT_MSS 1

#define SOL_TCP 6
#define TCP_THIN_LINEAR_TIMEOUTS 16
#define TCP_USER_TIMEOUT 18
#define TCP_RTO_MAX_MS 44
/* TCP_SYN_SENT, TCP_CLOSE. */
#define STATE_SYN_SENT 2
#define STATE_CLOSE 7
/* AF_INET. */
#define FAMILY_IPV4 2

struct bpf_sock;

/* Layout of include/uapi/linux/bpf.h, which is stable. */
struct bpf_sock_ops {
	u32 op;
	u32 args[4];
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 is_fullsock;
	u32 snd_cwnd;
	u32 srtt_us;
	u32 bpf_sock_ops_cb_flags;
	u32 state;
	u32 rtt_min;
	u32 snd_ssthresh;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 snd_una;
	u32 mss_cache;
	u32 ecn_flags;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 packets_out;
	u32 retrans_out;
	u32 total_retrans;
	u32 segs_in;
	u32 data_segs_in;
	u32 segs_out;
	u32 data_segs_out;
	u32 lost_out;
	u32 sacked_out;
	u32 sk_txhash;
	u64 bytes_received;
	u64 bytes_acked;
	struct bpf_sock *sk;
	void *skb_data __attribute__((aligned(8)));
	void *skb_data_end __attribute__((aligned(8)));
	u32 skb_len;
	u32 skb_tcp_flags;
};

/*
 * True if the settings select the connection: by its local IPv4 address, in network byte order, and
 * by the cookie of its network namespace, in halves. Zero selects any.
 */
static __always_inline bool is_ours(struct bpf_sock_ops *ctx)
{
	u64 namespace = (u64)settings.namespace_high << 32 | settings.namespace_low;

	if (settings.address && (ctx->family != FAMILY_IPV4 || ctx->local_ip4 != settings.address))
		return 0;
	return !namespace || bpf_get_netns_cookie(ctx) == namespace;
}

#endif
