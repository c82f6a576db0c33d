/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes up for calls that the kernel skipped. It enters the programs of a table through code that
 * may skip one. The caller then takes stale stack contents for the result: a threshold, or a
 * restored window, of two thousand million segments (docs/how-to/kernel.md).
 *
 * All calls for the same ACK are skipped, so the next ACK checks. A socket whose state is not the
 * last one passed to `set_state`, or whose threshold is impossible, was reduced or restored
 * meanwhile.
 *
 * The including file must define the three functions below. TABLE_PROGRAMS(name) defines programs
 * that only call them.
 */
#pragma once

static __always_inline void on_start(struct sock *sk);
static __always_inline u32 threshold(struct sock *sk);
static __always_inline void on_state(struct sock *sk, u8 new_state);

#define TABLE_PROGRAMS(name) \
	OP(void, name##_init, struct sock *sk) { on_start(sk); } \
	OP(u32, name##_ssthresh, struct sock *sk) { return threshold(sk); } \
	OP(void, name##_set_state, struct sock *sk, u8 new_state) { on_state(sk, new_state); }

/* TCP_INFINITE_SSTHRESH: the largest valid threshold. */
#define NO_THRESHOLD 0x7fffffff

/*
 * For `in_ack_event`, before all else. It is unknown whether a skipped ACK carried ECE, so CWR
 * counts as `local`.
 */
static __always_inline void make_up_skipped(struct cause_state *cause, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool wild = tp->snd_ssthresh > NO_THRESHOLD;
	u8 now = ca_state(sk);
	u32 window = tp->snd_cwnd;
	/* Window before the last reduction. */
	u32 most = tp->prior_cwnd;

	if (!cause->started) {
		/* The answer to a SYN precedes `init`. */
		if (!established(sk))
			return;
		COUNT(untold);
		on_start(sk);
	}
	if (now == cause->last_state && !wild)
		return;
	COUNT(untold);
	if (wild && !most) {
		/*
		 * There was no reduction: the kernel's metrics of the peer contain this threshold
		 * of another connection.
		 */
		tp->snd_ssthresh = NO_THRESHOLD;
	} else if (most && (wild || (now >= TCP_CA_CWR && cause->last_state < TCP_CA_CWR))) {
		tp->snd_cwnd = most;
		tp->snd_ssthresh = threshold(sk);
		/* If the reduction has already ended, the window falls to the threshold at once. */
		if (now < TCP_CA_CWR && most > tp->snd_ssthresh)
			most = tp->snd_ssthresh;
		tp->snd_cwnd = window;
	} else if (now < TCP_CA_CWR && cause->last_state < TCP_CA_CWR) {
		/* Nothing was reduced or restored. */
		most = 0;
	}
	/* Neither a reduction nor its undo leaves more than the window before it. */
	if (most && window > most)
		tp->snd_cwnd = most;
	on_state(sk, now);
}
