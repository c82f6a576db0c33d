/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All that the controllers need to know of the kernel, 6.1 to 7.3, and all that differs between its versions.
 *
 * Structures name only the members that are used. Their places are filled in when the object is loaded, from the types
 * of the kernel that runs (CO-RE), so one object is right for every version and no vmlinux.h is needed.
 */
#ifndef KERNEL_H
#define KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef _Bool bool;

/* enum bpf_map_type; the header below only needs the first one's name. */
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_SK_STORAGE 24
/* Of a map, and of what is looked up in one of sockets. */
#define BPF_F_NO_PREALLOC 1
#define BPF_SK_STORAGE_GET_F_CREATE 1

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* enum tcp_ca_state. */
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
/* enum tcp_ca_ack_event_flags: the ACK carried ECE. */
enum { CA_ACK_ECE = 4 };
/* enum tcp_ca_event: the first of these is the first transmission after everything was acknowledged. */
enum tcp_ca_event { CA_EVENT_TX_START };
/* enum sk_pacing, 0: not paced. */
enum { SK_PACING_NONE, SK_PACING_NEEDED };
/* ICSK_CA_PRIV_SIZE, bytes: the room that a controller has in a socket; 104 since 4.10. */
#define CA_PRIV_BYTES 104

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	u8 skc_state;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	u32 sk_pacing_status;
	u32 sk_gso_max_size;
};

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u32 icsk_rto;
	u64 icsk_ca_priv[CA_PRIV_BYTES / sizeof(u64)];
};

/* The least of a window of time is the first. */
struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_cwnd_cnt;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 snd_una;
	u32 snd_nxt;
	u32 lost_out;
	u32 lsndtime;
	u64 tcp_mstamp;
	u32 max_packets_out;
	u32 packets_out;
	u32 retrans_out;
	u32 sacked_out;
	u32 mss_cache;
	u32 srtt_us;
	u32 rcv_wup;
	u32 rcv_wnd;
	u8 is_cwnd_limited : 1;
	struct minmax rtt_min;
};

/* What `pkts_acked` is told. */
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

#pragma clang attribute pop

/*
 * The table of a controller. The loader maps members by name, so the order is ours: what our loader writes comes first.
 * It takes out one of the two members that hear of a first transmission: since 7.1 the kernel has a member for that alone,
 * and no longer tells `cwnd_event`.
 */
struct tcp_congestion_ops {
	char name[16];
	u32 flags;
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*cwnd_event_tx_start)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	/* Where it stands, all else of windows and pacing is left to it; what it is told besides the socket differs between versions. */
	void (*cong_control)(struct sock *sk);
	u32 (*min_tso_segs)(struct sock *sk);
};

/* What the kernel lets controllers call (kfuncs, since 5.13). */
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;

/* One member of the table: OP(u32, ssthresh, struct sock *sk) { … } */
#define OP(type, name, args...) \
	SEC("struct_ops/" #name) \
	type BPF_PROG(name, args)

/* What the loader writes before the object is loaded, and nobody after. */
#define SETTINGS const volatile struct settings

#define TABLE SEC(".struct_ops.link") struct tcp_congestion_ops

static __always_inline void *private(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline u8 ca_state(struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;

	return BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
}

/* Whether the handshake is over: the state is neither TCP_SYN_SENT nor TCP_SYN_RECV. */
static __always_inline bool established(const struct sock *sk)
{
	u8 state = sk->__sk_common.skc_state;

	return state != 2 && state != 3;
}

/* Whether the window, and not the application, limited what was sent; in slow start half of it suffices, so that an
 * application that sends a window every other round trip still grows. */
static __always_inline bool cwnd_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* The least RTT that TCP knows of, µs; the largest number before there is one. */
static __always_inline u32 least_rtt(const struct tcp_sock *tp)
{
	return tp->rtt_min.s[0].v;
}

/* Segments that are presumed in the network. */
static __always_inline u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/* The smoothed RTT in 8ths of a µs; zero before there is one. */
static __always_inline u32 smoothed_rtt(const struct tcp_sock *tp)
{
	return tp->srtt_us;
}

/* The retransmission timeout, ticks. */
static __always_inline u32 timeout_ticks(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_rto;
}

/* Whether a sequence number is less than another, where they wrap. */
static __always_inline bool before(u32 one, u32 other)
{
	return (s32)(one - other) < 0;
}

/* The kernel's tick, as its own controllers read it. */
static __always_inline u32 jiffies(void)
{
	return bpf_jiffies64();
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#endif
