/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Adaptive backoff (McCullagh 2008 § 4.2): after a loss or an ECN-echo δ · minRTT / RTT of the window stays, in place of a
 * fixed part (crates/cc, `adaptive_delta`). Growth is the controller's own.
 */
#pragma once

struct settings {
	/* δ, in billionths. */
	u32 delta;
	/* Ticks a second (CONFIG_HZ). */
	u32 hz;
	/* See seen.h. */
	u32 rtt_from;
};

SETTINGS settings SEC(".rodata.settings") = { .delta = 800000000, .hz = 1000 };

/* `adapted`: reductions by the round trip; in the others none was known. `adapted_permille`: the parts that stayed, summed. */
#define COUNTERS(X) CAUSES(X) X(adapted) X(adapted_permille)
#include "cause.h"
#include "delay.h"
#include "seen.h"

struct adaptive {
	struct heard heard;
	struct rtts rtts;
	struct seen seen;
};

static __always_inline void adaptive_init(struct adaptive *adaptive, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	heard_init(&adaptive->heard, sk);
	rtts_init(&adaptive->rtts, seen_least(tp));
	seen_init(&adaptive->seen, tp);
}

/* `pkts_acked`: this ACK's round trip, for the rest of the controller; below zero if it has none. */
static __always_inline s32 adaptive_hear(struct adaptive *adaptive, const struct tcp_sock *tp, const struct ack_sample *sample)
{
	s32 rtt = seen_rtt(&adaptive->seen, tp, sample);

	rtts_hear(&adaptive->rtts, rtt);
	return rtt;
}

/* `ssthresh`, of a controller that would leave `fixed`. */
static __always_inline u32 adaptive_ssthresh(struct adaptive *adaptive, const struct tcp_sock *tp, u32 fixed)
{
	u32 part = rtts_part(&adaptive->rtts, settings.delta);

	if (!part)
		return fixed;
	COUNT(adapted);
	COUNT_BY(adapted_permille, part / 1000000);
	return part_of(tp->snd_cwnd, part);
}
