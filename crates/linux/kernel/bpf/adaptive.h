/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Adaptive backoff (McCullagh 2008 § 4.2): a loss or an ECN-echo leaves δ · minRTT / RTT of the
 * window instead of a fixed fraction (crates/cc, `adaptive_delta`). Growth is the controller's.
 */
#pragma once

struct settings {
	/* δ, in billionths. */
	u32 delta;
	/* Ticks per second (CONFIG_HZ). */
	u32 hz;
	/* Source of RTT samples (rtt_source.h). */
	u32 rtt_from;
};

SETTINGS settings SEC(".rodata.settings") = { .delta = 800000000, .hz = 1000 };

/*
 * `adapted`: reductions that used the RTT; for the others none was known. `adapted_permille`: the
 * sum of the fractions kept, in thousandths.
 */
#define COUNTERS(X) CAUSES(X) X(adapted) X(adapted_permille)
#include "cause.h"
#include "delay.h"
#include "rtt_source.h"

struct adaptive {
	struct cause_state cause_state;
	struct rtts rtts;
	struct rtt_source rtt_source;
};

static __always_inline void adaptive_init(struct adaptive *adaptive, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	cause_init(&adaptive->cause_state, sk);
	rtts_init(&adaptive->rtts, rtt_source_initial_min(tp));
	rtt_source_init(&adaptive->rtt_source, tp);
}

/*
 * For `pkts_acked`: returns this ACK's RTT for the rest of the controller, µs; negative if it has
 * none.
 */
static __always_inline s32 adaptive_hear(struct adaptive *adaptive, const struct tcp_sock *tp,
					 const struct ack_sample *sample)
{
	s32 rtt = rtt_source_sample(&adaptive->rtt_source, tp, sample);

	rtts_hear(&adaptive->rtts, rtt);
	return rtt;
}

/* For `ssthresh`: returns the threshold of a controller whose own would be `fixed`. */
static __always_inline u32 adaptive_ssthresh(struct adaptive *adaptive, const struct tcp_sock *tp,
					     u32 fixed)
{
	u32 part = rtts_part(&adaptive->rtts, settings.delta);

	if (!part)
		return fixed;
	COUNT(adapted);
	COUNT_BY(adapted_permille, part / 1000000);
	return part_of(tp->snd_cwnd, part);
}
