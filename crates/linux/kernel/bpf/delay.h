/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Backoff by the RTT: a reduction keeps δ · minRTT / RTT of the window, with the smallest and the
 * newest RTT (McCullagh 2008 eq. 2.6 and 4.1). Times are µs, factors billionths, as in crates/cc.
 */
#pragma once

/* Part of a socket's private area: RTTs, µs. */
struct rtts {
	u32 least;
	u32 newest;
};

/*
 * Starts with the minimum `least`: TCP's before the controller started (rtt_source_initial_min).
 */
static __always_inline void rtts_init(struct rtts *rtts, u32 least)
{
	rtts->least = least;
	rtts->newest = 0;
}

/* For `pkts_acked`: records an RTT sample; returns true if there was one. */
static __always_inline bool rtts_hear(struct rtts *rtts, s32 rtt_us)
{
	if (rtt_us < 0)
		return 0;
	rtts->newest = rtt_us > 0 ? rtt_us : 1;
	if (rtts->newest < rtts->least)
		rtts->least = rtts->newest;
	return 1;
}

/*
 * Returns δ · minRTT / RTT in billionths; zero if no RTT is known. It is rounded up, so that a
 * whole number of segments is not reduced by a billionth.
 */
static __always_inline u32 rtts_part(const struct rtts *rtts, u32 delta)
{
	if (!rtts->newest || rtts->least > rtts->newest)
		return 0;
	return ((u64)delta * rtts->least + rtts->newest - 1) / rtts->newest;
}
