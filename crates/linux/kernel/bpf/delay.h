/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A backoff that goes by the round trip: δ · minRTT / RTT of the window stays, with the least and the newest RTT
 * (McCullagh 2008 eq. 2.6 and 4.1). Times are µs, factors billionths, as in crates/cc.
 */
#pragma once

/* The part of a socket's private area that is for this. */
struct rtts {
	u32 least;
	u32 newest;
};

/* What TCP measured before there was a controller, the handshake's round trip too, counts for the least. */
static __always_inline void rtts_init(struct rtts *rtts, u32 least)
{
	rtts->least = least;
	rtts->newest = 0;
}

/* `pkts_acked`: whether this ACK measured a round trip. */
static __always_inline bool rtts_hear(struct rtts *rtts, s32 rtt_us)
{
	if (rtt_us < 0)
		return 0;
	rtts->newest = rtt_us > 0 ? rtt_us : 1;
	if (rtts->newest < rtts->least)
		rtts->least = rtts->newest;
	return 1;
}

/* δ · minRTT / RTT in billionths, rounded up, so that a whole number of segments is not cut short by a billionth; zero
 * where no round trip is known. */
static __always_inline u32 rtts_part(const struct rtts *rtts, u32 delta)
{
	if (!rtts->newest || rtts->least > rtts->newest)
		return 0;
	return ((u64)delta * rtts->least + rtts->newest - 1) / rtts->newest;
}
