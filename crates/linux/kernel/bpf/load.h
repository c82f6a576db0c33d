/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Load factors by adaptive deterministic marking (BMCC: Qazi, Andrew, Znati 2009; sections and
 * equations refer to it): the receiver's estimate from two bits of a packet and its identification,
 * the choice of ACKs that carry it, and eq. 2, 3 and 6.
 *
 * The algorithms are those of crates/packet/src/adpm.rs, crates/tcp/src/echo/load.rs and
 * crates/cc/src/bmcc.rs, in fixed point, as the kernel has no other arithmetic.
 */
#pragma once

/*
 * Places of sorted thresholds (§ II-B): a quarter lies below η, a quarter between η and 1, half
 * above 1; the last stands for u.
 */
#define QUARTER (1 << 14)
#define HALF (1 << 15)
#define MOST 0xffff

/* Load factors are in 2^15ths of a billionth, in which every threshold is a whole number. */
#define LOAD_SHIFT 15
#define LOAD_ONE (BILLION << LOAD_SHIFT)

/* Returns the place of the threshold that an identification selects. */
static __always_inline u16 place_of(u16 id)
{
	u16 x = id;

	x ^= x >> 8;
	x *= 0x88b5;
	x ^= x >> 7;
	x *= 0xdb2d;
	return x ^ x >> 9;
}

static __always_inline bool is_over(u16 place)
{
	return place >= HALF;
}

/* ECN code points. */
enum { NOT_ECT, ECT_1, ECT_0, ECN_CE };

/* Choices of the ACKs that carry the estimate (§ VI). */
enum { CARRIED_SPACED, CARRIED_CHANGED, CARRIED_EVERY };

/* A receiver's estimate of the load of its connection's path. */
struct echo {
	/* f̂, as the place of the last threshold that tightened the estimate. */
	u16 place;
	/* An ECN-capable data packet has arrived. */
	u16 hears;
	/* "Reset to 1 each time the price changes and incremented by 1 each time f̂ is sent". */
	u32 i;
	/* ACKs since the last one that carried the estimate, or since its last change. */
	u32 without;
};

/* Updates the estimate by a data packet (§ II-B); returns true if it changed. */
static __always_inline bool echo_hear(struct echo *echo, u8 ecn, u16 id)
{
	u16 h = place_of(id);
	u16 place = echo->place;

	if (!echo->i)
		echo->i = 1;
	if (ecn == NOT_ECT)
		return 0;
	echo->hears = 1;
	if (ecn == ECN_CE)
		place = MOST;
	else if (ecn == ECT_0 ? h < place : h > place)
		place = h;
	if (place == echo->place)
		return 0;
	echo->place = place;
	echo->i = 1;
	echo->without = 0;
	return 1;
}

/* Counts an ACK; true if it carries the estimate. */
static __always_inline bool echo_takes(struct echo *echo, u32 carried)
{
	bool carries = 1;

	echo->without++;
	if (carried == CARRIED_SPACED)
		carries = echo->without >= echo->i;
	else if (carried == CARRIED_CHANGED)
		carries = echo->i <= 1;
	if (!carries)
		return 0;
	echo->without = 0;
	if (echo->i < ~0U)
		echo->i++;
	return 1;
}

/*
 * Returns the load factor at a place; `least`, `high` and `most` are η₀, η and u of the routers, in
 * billionths.
 */
static __always_inline u64 load_at(u16 place, u64 least, u64 high, u64 most)
{
	u64 at = place;

	if (at == MOST)
		return most << LOAD_SHIFT;
	if (at < QUARTER)
		return (least << LOAD_SHIFT) + (high - least) * at * 2;
	if (at < HALF)
		return (high << LOAD_SHIFT) + (BILLION - high) * (at - QUARTER) * 2;
	return LOAD_ONE + (most - BILLION) * (at - HALF);
}

/* Returns ξ = κ₂ (1 − f) / f (eq. 2), in 2^32ths. */
static __always_inline u64 xi_of(u64 load, u32 step)
{
	u64 left, xi;

	if (load >= LOAD_ONE || !load)
		return 0;
	left = LOAD_ONE - load;
	/* Long division in 16-bit steps: each remainder is below a load, which has 45 bits. */
	xi = left / load << 32;
	left = left % load << 16;
	xi += left / load << 16;
	left = left % load << 16;
	xi += left / load;
	return billionths_of(xi, step);
}

/* Returns β of eq. 6 for a load, in billionths; loads below 1 count as 1. */
static __always_inline u64 beta_of(u64 load, u64 most, u64 beta_most, u64 beta_least)
{
	u64 over = load > LOAD_ONE ? (load - LOAD_ONE) >> LOAD_SHIFT : 0;

	return beta_most - (beta_most - beta_least) * over / (most - BILLION);
}

/*
 * Returns log₂ (1 + ξ) in 2^27ths, for ξ in 2^32ths. Each squaring of a number between 1 and 2
 * yields another bit. It has no branches, as the kernel's verifier follows each.
 */
static __always_inline u32 log_of(u64 xi)
{
	u64 most = 254ULL << 32;
	u64 y = (1ULL << 32) + (xi < most ? xi : most);
	u32 out = 0;
	u32 whole = 0;
	u64 m;
	int i;

	/* y is below 2^8 · 2^32, so the whole part of the logarithm has three bits. */
	for (i = 4; i > 0; i >>= 1) {
		u32 shift = (y >> (32 + i) != 0) * i;

		whole += shift;
		y >>= shift;
	}
	m = y >> 1;
	for (i = 0; i < 27; i++) {
		u32 bit;

		m = m * m >> 31;
		bit = m >> 32;
		m >>= bit;
		out = out << 1 | bit;
	}
	return whole << 27 | out;
}

/* Cap of the exponent in growth_of: in a round trip a window grows at most by 31 times its size. */
#define MOST_DOUBLINGS 5

/*
 * Returns (1 + ξ)^(T / t_p) − 1 (eq. 3) in 2^28ths, from log₂ (1 + ξ) in 2^27ths and two times in
 * the same unit, each below 2^29.
 */
static __always_inline u64 growth_of(u32 log, u32 rtt, u32 interval)
{
	u64 x = (u64)log * rtt / interval;
	u64 whole, t, r;
	u32 k;

	if (x >= (u64)MOST_DOUBLINGS << 27)
		x = ((u64)MOST_DOUBLINGS << 27) - 1;
	whole = x >> 27;
	/* e^t − 1 = t (1 + t/2 (1 + t/3 (…))) for t = x ln 2 in 2^31ths. */
	t = (x & ((1 << 27) - 1)) * 1488522236 >> 27;
	r = 1ULL << 31;
	for (k = 12; k > 1; k--)
		r = (1ULL << 31) + (t * r >> 31) / k;
	r = t * r >> 31;
	/* 2^whole (1 + r) − 1; with zero doublings it is exactly r. */
	return ((r << whole) >> 3) + (((1ULL << whole) - 1) << 28);
}

/*
 * Experimental TCP option of an estimate (RFC 4727), as in crates/packet: kind, length, place of a
 * threshold.
 */
#define OPTION_KIND 253
#define OPTION_BYTES 4
#define OPTION_END 0
#define OPTION_NONE 1
/* Most bytes of options in a TCP header (RFC 9293 § 3.1). */
#define MOST_OPTION_BYTES 40

enum found { FOUND_NONE, FOUND, FOUND_MALFORMED };

/*
 * Returns all ones if `one` < `other`, both far below 2^31. The asm hides the values from the
 * compiler, which would otherwise make a branch of them.
 */
static __always_inline u32 below(u32 one, u32 other)
{
	u32 difference = one - other;
	u32 ones;

	asm volatile("" : "+r"(difference));
	ones = (s32)difference >> 31;
	asm volatile("" : "+r"(ones));
	return ones;
}

/*
 * Finds the first such option of a header; `options` to `end` is readable. Branches occur at the
 * end only, as the kernel's verifier follows each.
 */
static __always_inline enum found option_find(const u8 *options, const u8 *end, u16 *place)
{
	/* Offset of the next option; beyond the header once one was found, or the list ended. */
	u32 next = 0;
	u32 kinds = 0;
	u32 lengths = 0;
	u32 value = 0;
	u32 i;

	for (i = 0; i + OPTION_BYTES <= MOST_OPTION_BYTES; i++) {
		const u8 *at = options + i;
		u32 here, none, ours, ends, step;

		if (at + OPTION_BYTES > end)
			break;
		here = ~below(i, next);
		none = ~below(at[0], OPTION_NONE) & below(at[0], OPTION_NONE + 1);
		ours = ~below(at[0], OPTION_KIND) & below(at[0], OPTION_KIND + 1);
		ends = ours | below(at[0], OPTION_NONE) | (~none & below(at[1], 2));
		step = (none & 1) | (~none & at[1]) | (ends & 0xff);
		kinds |= here & ours;
		lengths |= here & ours & at[1];
		value |= here & ours & (at[2] << 8 | at[3]);
		next = (here & (i + step)) | (~here & next);
	}
	*place = value;
	if (!kinds)
		return FOUND_NONE;
	return lengths == OPTION_BYTES ? FOUND : FOUND_MALFORMED;
}
