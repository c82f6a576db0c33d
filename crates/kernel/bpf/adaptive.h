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
};

SETTINGS settings SEC(".rodata.settings") = { .delta = 800000000, .hz = 1000 };

/* `adapted`: reductions by the round trip; in the others none was known. `adapted_permille`: the parts that stayed, summed. */
#define COUNTERS(X) \
	X(adapted) X(adapted_permille) X(ecn) X(loss) X(timeout) X(local) X(loss_after_ecn) X(opened) X(closed)
#include "card.h"
#include "cause.h"
#include "delay.h"

struct adaptive {
	struct heard heard;
	struct rtts rtts;
};

static __always_inline void adaptive_init(struct adaptive *adaptive, const struct tcp_sock *tp)
{
	heard_init(&adaptive->heard);
	rtts_init(&adaptive->rtts, tp);
}

/* `ssthresh`, of a controller that would leave `fixed`. */
static __always_inline u32 adaptive_ssthresh(struct adaptive *adaptive, const struct tcp_sock *tp, u32 fixed)
{
	u32 part = rtts_part(&adaptive->rtts, settings.delta);
	struct card *card = the_card();
	u32 kept;

	if (!part)
		return fixed;
	if (card) {
		__sync_fetch_and_add(&card->counted.adapted, 1);
		__sync_fetch_and_add(&card->counted.adapted_permille, part / 1000000);
	}
	kept = (u64)tp->snd_cwnd * part / BILLION;
	return kept > LEAST_SSTHRESH ? kept : LEAST_SSTHRESH;
}
