/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Alternative Backoff with ECN (RFC 8511), for any controller whose answer to a loss is `ssthresh`: that always answers as
 * for a loss, and `set_state`, which knows the cause (cause.h), puts the threshold of an ECN-echo in its place.
 */
#pragma once

struct settings {
	/* Part of the window that stays after an ECN-echo, in billionths (as crates/cc counts it). */
	u32 beta_ecn;
	/* Whether it also answers an ECN-echo that ends slow start (ABE § III; RFC 8511 changes congestion avoidance only). */
	u32 always;
	/* Whether a loss in the window that ECN reduced lowers the threshold to what the loss alone would have left. */
	u32 deepen;
	/* Ticks a second (CONFIG_HZ). */
	u32 hz;
};

SETTINGS settings SEC(".rodata.settings") = { .beta_ecn = 800000000, .hz = 1000 };

/* `ecn_in_slow_start`: of `ecn`, reductions that ended or interrupted slow start. */
#define COUNTERS(X) CAUSES(X) X(ecn_in_slow_start)
#include "cause.h"

/* The part of a socket's private area that is ABE's; zero when the socket takes the controller. */
struct abe {
	struct heard heard;
	/* The window before the last reduction, and the threshold that a loss would have left. */
	u32 before;
	u32 after_loss;
	/* The last reduction found congestion avoidance. */
	bool avoiding;
};

static __always_inline void abe_init(struct abe *abe, struct sock *sk)
{
	heard_init(&abe->heard, sk);
}

static __always_inline void abe_release(struct abe *abe)
{
	heard_release(&abe->heard);
}

static __always_inline void abe_ack(struct abe *abe, const struct tcp_sock *tp, u32 flags)
{
	heard_ack(&abe->heard, tp, flags);
}

/* `ssthresh`: what a loss leaves, for a reason that is not known yet. */
static __always_inline u32 abe_ssthresh(struct abe *abe, const struct tcp_sock *tp, u32 after_loss)
{
	abe->before = tp->snd_cwnd;
	abe->after_loss = after_loss;
	abe->avoiding = tp->snd_cwnd >= tp->snd_ssthresh;
	return after_loss;
}

/* `set_state`: now the reason is known. */
static __always_inline void abe_state(struct abe *abe, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	enum cause cause = heard_state(&abe->heard, sk, state);

	if (cause == CAUSE_ECN) {
		if (!abe->avoiding)
			COUNT(ecn_in_slow_start);
		if (abe->avoiding || settings.always)
			tp->snd_ssthresh = part_of(abe->before, settings.beta_ecn);
	} else if (cause == CAUSE_LOSS_IN_CWR) {
		if (settings.deepen && abe->after_loss < tp->snd_ssthresh)
			tp->snd_ssthresh = abe->after_loss;
	}
}
