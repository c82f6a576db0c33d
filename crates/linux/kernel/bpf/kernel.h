/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Kernel types, constants and functions that the controllers use, for kernels 6.1 to 7.3, and all
 * differences between these.
 *
 * Structures have only the members that are used. Their offsets are relocated when the object is
 * loaded, from the types of the running kernel (CO-RE). So one object works on every version,
 * without vmlinux.h. In the simulator the types are those of python/cwnd/c.
 */
#ifndef KERNEL_H
#define KERNEL_H

#ifdef __bpf__

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

/* Values of enum bpf_map_type; bpf_helpers.h needs only the name of the first. */
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_SK_STORAGE 24
/* Flags of a map, and of a lookup in socket storage. */
#define BPF_F_NO_PREALLOC 1
#define BPF_SK_STORAGE_GET_F_CREATE 1

#else
#include "vmlinux.h"
#endif

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* Size of a controller's private area in a socket (ICSK_CA_PRIV_SIZE), bytes; 104 since 5.1. */
#define CA_PRIV_BYTES 104

#ifdef __bpf__

/* States of congestion control (enum tcp_ca_state). */
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
/* Flag of enum tcp_ca_ack_event_flags: the ACK carried ECE. */
enum { CA_ACK_ECE = 4 };
/* First member of enum tcp_ca_event: the first transmission after all data was acknowledged. */
enum tcp_ca_event { CA_EVENT_TX_START };
/* States of pacing (enum sk_pacing). */
enum { SK_PACING_NONE, SK_PACING_NEEDED };

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

/* Running minimum over a time window; the first sample is the minimum. */
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

/* Argument of `pkts_acked`. */
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

#pragma clang attribute pop

/*
 * The table of a controller's operations. The loader maps members by name, so their order is free:
 * those that our loader writes come first.
 *
 * The loader clears one of the two members for a first transmission. Since 7.1 the kernel has
 * `cwnd_event_tx_start` for that, and no longer calls `cwnd_event`.
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
	/*
	 * If present, the kernel leaves windows and pacing to it. Its arguments after the socket
	 * differ between versions.
	 */
	void (*cong_control)(struct sock *sk);
	u32 (*min_tso_segs)(struct sock *sk);
};

#endif

/* Functions that the kernel exports to controllers (kfuncs, since 5.13). */
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;

/* Defines one member of the table: OP(u32, ssthresh, struct sock *sk) { … } */
#define OP(type, name, args...) \
	SEC("struct_ops/" #name) \
	type BPF_PROG(name, args)

/* Settings, which the loader writes before it loads the object; constant afterwards. */
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

/* True if the handshake is over: the state is neither TCP_SYN_SENT nor TCP_SYN_RECV. */
static __always_inline bool established(const struct sock *sk)
{
	u8 state = sk->__sk_common.skc_state;

	return state != 2 && state != 3;
}

/*
 * True if the window limited the sender, and not the application. In slow start half of it
 * suffices, so that an application that sends a window every other round trip still grows it.
 */
static __always_inline bool cwnd_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Returns TCP's minimum RTT, µs; the largest number before the first sample. */
static __always_inline u32 least_rtt(const struct tcp_sock *tp)
{
	return tp->rtt_min.s[0].v;
}

/* Returns the segments that are presumed in the network. */
static __always_inline u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/* Returns the smoothed RTT in 8ths of a µs; zero before the first sample. */
static __always_inline u32 smoothed_rtt(const struct tcp_sock *tp)
{
	return tp->srtt_us;
}

/* Returns the retransmission timeout, ticks. */
static __always_inline u32 timeout_ticks(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_rto;
}

/* True if a sequence number precedes another, modulo 2^32. */
static __always_inline bool before(u32 one, u32 other)
{
	return (s32)(one - other) < 0;
}

/* Returns the kernel's tick counter, which its own controllers use. */
static __always_inline u32 jiffies(void)
{
	return bpf_jiffies64();
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#endif
