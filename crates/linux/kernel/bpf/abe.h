/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Alternative Backoff with ECN (RFC 8511), for any controller that reduces for a loss in
 * `ssthresh`.
 *
 * `ssthresh` does not know the cause and always returns the threshold of a loss. `set_state`, which
 * knows it (cause.h), replaces that by the threshold of an ECN-echo.
 */
#pragma once

struct settings {
	/* Fraction of the window kept after an ECN-echo, in billionths (as in crates/cc). */
	u32 beta_ecn;
	/*
	 * `beta_ecn` is also for an ECN-echo that ends slow start (ABE § III); RFC 8511 changes
	 * congestion avoidance only.
	 */
	u32 always;
	/* A loss in a window that ECN reduced lowers the threshold to that of the loss alone. */
	u32 deepen;
	/* Ticks per second (CONFIG_HZ). */
	u32 hz;
};

SETTINGS settings SEC(".rodata.settings") = { .beta_ecn = 800000000, .hz = 1000 };

/* `ecn_in_slow_start`: those reductions of `ecn` that ended or interrupted slow start. */
#define COUNTERS(X) CAUSES(X) X(ecn_in_slow_start)
#include "cause.h"

/* ABE's part of a socket's private area; zero when the socket starts to use the controller. */
struct abe {
	struct cause_state cause_state;
	/*
	 * Window before the last reduction, and the threshold that a loss would have left,
	 * segments.
	 */
	u32 before;
	u32 after_loss;
	/* The last reduction happened in congestion avoidance. */
	bool avoiding;
};

static __always_inline void abe_init(struct abe *abe, struct sock *sk)
{
	cause_init(&abe->cause_state, sk);
}

static __always_inline void abe_release(struct abe *abe)
{
	cause_release(&abe->cause_state);
}

static __always_inline void abe_ack(struct abe *abe, const struct tcp_sock *tp, u32 flags)
{
	cause_on_ack(&abe->cause_state, tp, flags);
}

/* For `ssthresh`: returns the threshold of a loss, as the cause is not known yet. */
static __always_inline u32 abe_ssthresh(struct abe *abe, const struct tcp_sock *tp, u32 after_loss)
{
	abe->before = tp->snd_cwnd;
	abe->after_loss = after_loss;
	abe->avoiding = tp->snd_cwnd >= tp->snd_ssthresh;
	return after_loss;
}

/* For `set_state`: sets the threshold for the cause, which is known now. */
static __always_inline void abe_state(struct abe *abe, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	enum cause cause = cause_on_state(&abe->cause_state, sk, state);

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
