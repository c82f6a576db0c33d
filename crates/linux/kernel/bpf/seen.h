/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a controller takes for the round trip (McCullagh 2008 ch. 5): what the kernel made of its own notes for it, that of the
 * oldest segment, or what ACKs echo. For laboratories: the first is what every controller has today.
 *
 * Whoever includes this has `rtt_from` in its settings.
 */
#pragma once

#include "kernel_rtt.h"

/* Of the newest segment acknowledged, or newly reported by SACK; of the oldest; of the echoed timestamp. */
enum { FROM_SACK, FROM_OLDEST, FROM_TIMESTAMPS };

/* The part of a socket's private area that is for this: the smoothed round trip, eight times, as of the last ACK. */
struct seen {
	u32 srtt;
};

static __always_inline void seen_init(struct seen *seen, const struct tcp_sock *tp)
{
	seen->srtt = smoothed_rtt(tp);
}

/* Least that is known at first: handshakes cannot be cheated about, as a SYN-ACK that echoes what was not sent is refused, so the
 * least echo is that of data. */
static __always_inline u32 seen_least(const struct tcp_sock *tp)
{
	return settings.rtt_from == FROM_TIMESTAMPS ? ~0U : least_rtt(tp);
}

/*
 * `pkts_acked`: this ACK's round trip, µs; below zero if it has none.
 *
 * The kernel shows no controller the oldest segment's. But it is what SRTT hears, with each ACK that measured anything
 * (tcp_rtt_estimator): srtt + rtt - srtt / 8, of which the second is what is missing.
 */
static __always_inline s32 seen_rtt(struct seen *seen, const struct tcp_sock *tp, const struct ack_sample *sample)
{
	u32 srtt = smoothed_rtt(tp);
	u32 before = seen->srtt;
	s32 rtt = sample->rtt_us;

	seen->srtt = srtt;
	if (settings.rtt_from == FROM_TIMESTAMPS)
		return sample->pkts_acked ? echoed_rtt(tp) : -1;
	if (settings.rtt_from == FROM_OLDEST && rtt >= 0)
		return before ? srtt - before + (before >> 3) : srtt >> 3;
	return rtt;
}
