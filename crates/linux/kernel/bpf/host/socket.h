/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One socket and the kernel's clock, for programs that model the kernel: the parts of kernel.h that
 * controllers use.
 */
#pragma once
#include "host.h"

/* kernel_rtt.h needs the kernel. */
#define KERNEL_RTT_H

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { CA_ACK_ECE = 4 };
enum tcp_ca_event { CA_EVENT_TX_START };
enum { SK_PACING_NONE, SK_PACING_NEEDED };
#define CA_PRIV_BYTES 104

struct tcp_sock;

/* All socket types of the kernel in one. */
struct sock {
	unsigned long sk_pacing_rate;
	u32 sk_pacing_status, sk_gso_max_size;
	u8 state;
	u64 private[CA_PRIV_BYTES / 8];
	struct tcp_sock *tp;
};

/*
 * `flight` (segments) and `srtt_us` stay zero for controllers that use only the ACK's sample.
 * `echoed` is -1 if an ACK echoed no timestamp.
 */
struct tcp_sock {
	u32 snd_cwnd, snd_cwnd_clamp, snd_cwnd_cnt, snd_ssthresh, prior_cwnd, snd_una, snd_nxt,
		lost_out, lsndtime;
	u32 least_rtt, srtt_us, mss_cache, flight;
	s32 echoed;
	u64 tcp_mstamp;
	bool limited;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct tcp_congestion_ops {
	char name[16];
	u32 flags;
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_control)(struct sock *sk);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

/*
 * Clock in µs; a tick is a millisecond. It starts above zero, which means "never" to a controller.
 */
static u64 now = 1000000;
#define HZ 1000
/* Retransmission timeout, constant here. */
#define RTO_TICKS 200

static u32 jiffies(void)
{
	return now / (1000000 / HZ);
}

static void *private(struct sock *sk)
{
	return sk->private;
}

static struct tcp_sock *tcp_sk(struct sock *sk)
{
	return sk->tp;
}

static u8 ca_state(struct sock *sk)
{
	return sk->state;
}

static bool established(const struct sock *sk)
{
	(void)sk;
	return 1;
}

static bool cwnd_limited(const struct tcp_sock *tp)
{
	return tp->limited;
}

static u32 least_rtt(const struct tcp_sock *tp)
{
	return tp->least_rtt;
}

static u32 in_flight(const struct tcp_sock *tp)
{
	return tp->flight;
}

static u32 smoothed_rtt(const struct tcp_sock *tp)
{
	return tp->srtt_us;
}

static u32 timeout_ticks(struct sock *sk)
{
	(void)sk;
	return RTO_TICKS;
}

static s32 echoed_rtt(const struct tcp_sock *tp)
{
	return tp->echoed;
}

static void *bpf_sk_storage_get(void *map, struct sock *sk, void *value, u64 flags);
static long bpf_sk_storage_delete(void *map, struct sock *sk);
