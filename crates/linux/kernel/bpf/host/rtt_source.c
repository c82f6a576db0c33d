/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The source of a controller's RTT samples as a program: `rtt_from < ACKS`.
 *
 * The first line is the smoothed RTT of the handshake, µs. Each other describes an ACK:
 * `acknowledged oldest newest echoed`, in segments, and RTTs in µs, -1 if there is none. The output
 * is the sample. SRTT is updated below as in the kernel.
 */
#include "socket.h"

static struct {
	u32 rtt_from;
} settings;

#include "rtt_source.h"

int main(int count, char **arguments)
{
	struct tcp_sock tp = { 0 };
	struct ack_sample sample;
	struct rtt_source rtt_source;
	s32 oldest;

	if (count != 2 || scanf("%u", &tp.srtt_us) != 1)
		return 2;
	settings.rtt_from = strtoul(arguments[1], NULL, 10);
	/* RFC 6298 § 2.2, in eighths. */
	tp.srtt_us *= 8;
	rtt_source_init(&rtt_source, &tp);
	while (scanf("%u %d %d %d", &sample.pkts_acked, &oldest, &sample.rtt_us, &tp.echoed) == 4) {
		/* § 2.3: SRTT becomes 7/8 SRTT + R'/8, in the kernel's integers. */
		if (oldest >= 0)
			tp.srtt_us = tp.srtt_us ? tp.srtt_us + (oldest - (tp.srtt_us >> 3)) :
						  (u32)oldest << 3;
		printf("%d\n", rtt_source_sample(&rtt_source, &tp, &sample));
	}
	return 0;
}
