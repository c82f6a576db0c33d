/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Source of a controller's RTT samples (McCullagh 2008 ch. 5): the kernel's sample, that of the
 * oldest segment, or that of echoed timestamps. For laboratories: the kernel's controllers all use
 * the first.
 *
 * The including file must have `rtt_from` in its settings.
 */
#pragma once

#include "kernel_rtt.h"

/*
 * Samples of the newest segment acknowledged or newly reported by SACK; of the oldest; of the
 * echoed timestamp.
 */
enum { FROM_SACK, FROM_OLDEST, FROM_TIMESTAMPS };

/* Part of a socket's private area: eight times the smoothed RTT, as of the last ACK. */
struct rtt_source {
	u32 srtt;
};

static __always_inline void rtt_source_init(struct rtt_source *source, const struct tcp_sock *tp)
{
	source->srtt = smoothed_rtt(tp);
}

/*
 * Returns the initial minimum RTT. Echoes of a handshake cannot be falsified, as the kernel refuses
 * a SYN-ACK that echoes a timestamp it did not send. So the minimum of echoes starts with data.
 */
static __always_inline u32 rtt_source_initial_min(const struct tcp_sock *tp)
{
	return settings.rtt_from == FROM_TIMESTAMPS ? ~0U : least_rtt(tp);
}

/*
 * For `pkts_acked`: returns this ACK's RTT, µs; negative if it has none.
 *
 * The kernel does not show controllers the RTT of the oldest segment. But SRTT is updated by it
 * with each ACK that has a sample (tcp_rtt_estimator): srtt + rtt - srtt / 8. This solves for rtt.
 */
static __always_inline s32 rtt_source_sample(struct rtt_source *source, const struct tcp_sock *tp,
				    const struct ack_sample *sample)
{
	u32 srtt = smoothed_rtt(tp);
	u32 before = source->srtt;
	s32 rtt = sample->rtt_us;

	source->srtt = srtt;
	if (settings.rtt_from == FROM_TIMESTAMPS)
		return sample->pkts_acked ? echoed_rtt(tp) : -1;
	if (settings.rtt_from == FROM_OLDEST && rtt >= 0)
		return before ? srtt - before + (before >> 3) : srtt >> 3;
	return rtt;
}
