/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the kernel did not tell. It enters programs of a table through code that may leave one out, and whoever called then
 * takes what stood on the stack for the answer: a threshold, or a window that is restored, of two thousand million segments
 * (docs/kernel.md). All that belongs to the same ACK is left out with it, so the next one looks: a socket whose state is not
 * the last that was told, or whose threshold is none, was reduced or restored meanwhile, and that is made up for here.
 *
 * Whoever includes this has these three, and programs that do just that: TOLD(name).
 */
#pragma once

static __always_inline void take_up(struct sock *sk);
static __always_inline u32 threshold(struct sock *sk);
static __always_inline void hear_state(struct sock *sk, u8 new_state);

#define TOLD(name) \
	OP(void, name##_init, struct sock *sk) { take_up(sk); } \
	OP(u32, name##_ssthresh, struct sock *sk) { return threshold(sk); } \
	OP(void, name##_set_state, struct sock *sk, u8 new_state) { hear_state(sk, new_state); }

/* TCP_INFINITE_SSTHRESH: no threshold is above it. */
#define NO_THRESHOLD 0x7fffffff

/* `in_ack_event`, before all else. Whether an ACK that was not heard carried ECE is not known, so CWR counts as `local`. */
static __always_inline void catch_up(struct heard *heard, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool wild = tp->snd_ssthresh > NO_THRESHOLD;
	u8 now = ca_state(sk);
	u32 window = tp->snd_cwnd;
	/* The window before the last reduction. */
	u32 most = tp->prior_cwnd;

	if (!heard->begun) {
		/* The answer to a SYN comes before a controller begins. */
		if (!established(sk))
			return;
		COUNT(untold);
		take_up(sk);
	}
	if (now == heard->told && !wild)
		return;
	COUNT(untold);
	if (wild && !most) {
		/* It never was reduced: another connection left this, in the kernel's memory of peers. */
		tp->snd_ssthresh = NO_THRESHOLD;
	} else if (most && (wild || (now >= TCP_CA_CWR && heard->told < TCP_CA_CWR))) {
		tp->snd_cwnd = most;
		tp->snd_ssthresh = threshold(sk);
		/* Where the reduction is over it was as long as an ACK: to the threshold, at once. */
		if (now < TCP_CA_CWR && most > tp->snd_ssthresh)
			most = tp->snd_ssthresh;
		tp->snd_cwnd = window;
	} else if (now < TCP_CA_CWR && heard->told < TCP_CA_CWR) {
		/* Nothing was reduced or restored. */
		most = 0;
	}
	/* No reduction leaves more than there was, and none that is taken back. */
	if (most && window > most)
		tp->snd_cwnd = most;
	hear_state(sk, now);
}
