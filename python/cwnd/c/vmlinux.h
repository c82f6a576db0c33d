/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Types of the kernel that a congestion controller uses, with their members of kernels 6.1 to 7.3,
 * in place of a `vmlinux.h` written by bpftool. For the kernel, offsets are relocated at loading
 * (CO-RE). In the simulator the layout is this one, and members that the kernel lets no controller
 * write are read-only.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif
#if defined(__bpf__) || defined(CWND_LINUX)
#define CWND_READ_ONLY
#else
#define CWND_READ_ONLY const
#endif

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u16 __le16;
typedef __u32 __le32;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef _Bool bool;
typedef unsigned long size_t;
typedef long ssize_t;

enum { false = 0, true = 1 };

#ifndef NULL
#define NULL ((void *)0)
#endif

enum bpf_map_type {
	BPF_MAP_TYPE_UNSPEC = 0,
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_SK_STORAGE = 24,
};

/* Flags of maps, of updates, and of a socket's storage. */
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1, BPF_SK_STORAGE_GET_F_CREATE = 1 };

enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_SYN_RECV = 3,
	TCP_FIN_WAIT1 = 4,
	TCP_FIN_WAIT2 = 5,
	TCP_TIME_WAIT = 6,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
	TCP_LAST_ACK = 9,
	TCP_LISTEN = 10,
	TCP_CLOSING = 11,
};

/* States of loss recovery. */
enum tcp_ca_state {
	TCP_CA_Open = 0,
	TCP_CA_Disorder = 1,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
};

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

/* Flags of `in_ack_event`. */
enum tcp_ca_ack_event_flags {
	CA_ACK_SLOWPATH = 1,
	CA_ACK_WIN_UPDATE = 2,
	CA_ACK_ECE = 4,
};

enum sk_pacing { SK_PACING_NONE = 0, SK_PACING_NEEDED = 1, SK_PACING_FQ = 2 };

/* Bits of `icsk_ack.pending`. */
enum inet_csk_ack_state_t {
	ICSK_ACK_SCHED = 1,
	ICSK_ACK_TIMER = 2,
	ICSK_ACK_PUSHED = 4,
	ICSK_ACK_PUSHED2 = 8,
	ICSK_ACK_NOW = 16,
	ICSK_ACK_NOMEM = 32,
};

struct sock_common {
	CWND_READ_ONLY u16 skc_family;
	CWND_READ_ONLY volatile u8 skc_state;
};

struct sock {
	struct sock_common __sk_common;
	CWND_READ_ONLY u32 sk_gso_max_size;
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	CWND_READ_ONLY unsigned long sk_max_pacing_rate;
};

struct inet_sock {
	struct sock sk;
};

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	CWND_READ_ONLY u32 icsk_rto;
	const struct tcp_congestion_ops *icsk_ca_ops;
	CWND_READ_ONLY u8 icsk_ca_state : 5, icsk_ca_initialized : 1;
	CWND_READ_ONLY u8 icsk_retransmits;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[104 / sizeof(u64)];
};

/* Running minimum over a time window; the first sample is the minimum. */
struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	u16 saw_tstamp : 1;
	u32 rcv_tsval;
	u32 rcv_tsecr;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	/* Sequence numbers: acknowledged; next; end of what the application wrote; of recovery. */
	CWND_READ_ONLY u32 snd_una, snd_nxt, write_seq, high_seq;
	CWND_READ_ONLY u32 rcv_nxt, rcv_wup, rcv_wnd, snd_wnd;
	/* Windows and counts of segments. */
	u32 snd_cwnd, snd_ssthresh, snd_cwnd_cnt, snd_cwnd_stamp;
	CWND_READ_ONLY u32 snd_cwnd_clamp, snd_cwnd_used;
	CWND_READ_ONLY u32 prior_cwnd, prior_ssthresh;
	CWND_READ_ONLY u32 prr_delivered, prr_out;
	CWND_READ_ONLY u32 packets_out, max_packets_out, sacked_out, lost_out, retrans_out;
	CWND_READ_ONLY u32 cwnd_usage_seq, reordering;
	/* Segments delivered since the start, those of marked ACKs, and those lost. */
	CWND_READ_ONLY u32 delivered, delivered_ce, lost, total_retrans;
	CWND_READ_ONLY u32 segs_out, data_segs_out;
	CWND_READ_ONLY u64 bytes_acked, bytes_sent;
	/* Time of the ACK in process, µs. */
	CWND_READ_ONLY u64 tcp_mstamp, tcp_clock_cache, first_tx_mstamp, delivered_mstamp;
	u32 app_limited;
	/* Ticks at which data was last sent. */
	CWND_READ_ONLY u32 lsndtime;
	/* Smoothed RTT in 8ths of a µs, and its mean deviation in 4ths. */
	CWND_READ_ONLY u32 srtt_us, mdev_us;
	CWND_READ_ONLY u32 mss_cache, advmss;
	CWND_READ_ONLY struct minmax rtt_min;
	CWND_READ_ONLY struct tcp_options_received rx_opt;
	CWND_READ_ONLY u8 is_cwnd_limited : 1, is_sack_reneg : 1, tcp_usec_ts : 1, nonagle : 4;
	u8 ecn_flags;
};

/* Argument of `pkts_acked`. */
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

/* Argument of `cong_control`: the delivery rate since a segment was sent. */
struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered, prior_delivered_ce;
	s32 delivered, delivered_ce;
	long interval_us;
	u32 snd_interval_us, rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked, prior_in_flight, last_end_seq;
	bool is_app_limited, is_retrans, is_ack_delayed;
};

#ifdef __bpf__
#pragma clang attribute pop
#endif

/* The table of a controller. Its size is a multiple of its alignment, so that tables of a file */
/* follow each other. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
} __attribute__((aligned(64)));

#endif
