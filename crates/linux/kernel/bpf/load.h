/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Load factors by adaptive deterministic marks (BMCC: Qazi, Andrew, Znati 2009; sections and equations are of it): what a
 * receiver makes of two bits of a packet and its identification, which ACKs tell it, and what eq. 2, 3 and 6 are. The same
 * as crates/packet/src/adpm.rs, crates/tcp/src/echo/load.rs and crates/cc/src/bmcc.rs, in fixed
 * point: a program of the kernel has no other.
 */
#pragma once

/* Thresholds, in order (§ II-B): a quarter lies below η, as many between η and 1, half above 1; the last counts as u. */
#define QUARTER (1 << 14)
#define HALF (1 << 15)
#define MOST 0xffff

/* A load factor, in billionths and 2^15ths of these, in which every threshold is whole. */
#define LOAD_SHIFT 15
#define LOAD_ONE (BILLION << LOAD_SHIFT)

/* The place of the threshold of a packet with this identification. */
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

/* The code points of the two bits. */
enum { NOT_ECT, ECT_1, ECT_0, ECN_CE };

/* Which ACKs tell the estimate (§ VI). */
enum { CARRIED_SPACED, CARRIED_CHANGED, CARRIED_EVERY };

/* What a receiver knows of the load of its connection's path. */
struct echo {
	/* f̂: where the last threshold lies that told something. */
	u16 place;
	/* Whether any data came that may tell. */
	u16 hears;
	/* "Reset to 1 each time the price changes and incremented by 1 each time f̂ is sent". */
	u32 i;
	/* ACKs that have gone since one told it. */
	u32 without;
};

/* § II-B: the estimate after a packet of data with these bits and this identification; whether it moved. */
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

/* Whether the ACK that goes now tells it. */
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

/* The threshold at a place. `high` and the others are of the routers, in billionths. */
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

/* Eq. 2: ξ = κ₂ (1 − f) / f, in 2^32ths. */
static __always_inline u64 xi_of(u64 load, u32 step)
{
	u64 left, xi;

	if (load >= LOAD_ONE || !load)
		return 0;
	left = LOAD_ONE - load;
	/* A long division: each remainder is less than a load, which has 47 bits. */
	xi = left / load << 32;
	left = left % load << 16;
	xi += left / load << 16;
	left = left % load << 16;
	xi += left / load;
	return billionths_of(xi, step);
}

/* Eq. 6 for a load, of one below 1 as of 1; in billionths. */
static __always_inline u64 beta_of(u64 load, u64 most, u64 beta_most, u64 beta_least)
{
	u64 over = load > LOAD_ONE ? (load - LOAD_ONE) >> LOAD_SHIFT : 0;

	return beta_most - (beta_most - beta_least) * over / (most - BILLION);
}

/* log₂ (1 + ξ), of ξ in 2^32ths, in 2^27ths: each squaring of a number between 1 and 2 tells another bit. No branch, since
 * the kernel's verifier follows each. */
static __always_inline u32 log_of(u64 xi)
{
	u64 most = 254ULL << 32;
	u64 y = (1ULL << 32) + (xi < most ? xi : most);
	u32 out = 0;
	u32 whole = 0;
	u64 m;
	int i;

	/* It is less than 2^8. */
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

/* No window becomes more than 31 times what it was in a round trip. */
#define MOST_DOUBLINGS 5

/* Eq. 3: (1 + ξ)^(T / t_p) − 1 in 2^28ths, of log₂ (1 + ξ) in 2^27ths and two times in the same unit, each below 2^29. */
static __always_inline u64 growth_of(u32 log, u32 rtt, u32 interval)
{
	u64 x = (u64)log * rtt / interval;
	u64 whole, t, r;
	u32 k;

	if (x >= (u64)MOST_DOUBLINGS << 27)
		x = ((u64)MOST_DOUBLINGS << 27) - 1;
	whole = x >> 27;
	/* e^t − 1 = t (1 + t/2 (1 + t/3 (…))) of t = x ln 2 in 2^31ths. */
	t = (x & ((1 << 27) - 1)) * 1488522236 >> 27;
	r = 1ULL << 31;
	for (k = 12; k > 1; k--)
		r = (1ULL << 31) + (t * r >> 31) / k;
	r = t * r >> 31;
	/* 2^whole (1 + r) − 1, whose parts at zero doublings are those of r. */
	return ((r << whole) >> 3) + (((1ULL << whole) - 1) << 28);
}

/*
 * TCP option of an estimate (RFC 4727), as in crates/packet: kind, length, place of a threshold.
 */
#define OPTION_KIND 253
#define OPTION_BYTES 4
#define OPTION_END 0
#define OPTION_NONE 1
/* RFC 9293 § 3.1: a header has room for so many bytes of options. */
#define MOST_OPTION_BYTES 40

enum found { FOUND_NONE, FOUND, FOUND_MALFORMED };

/* All ones where `one` is less than `other`, both far below 2^31; a compiler that knew what it is would make a branch of it. */
static __always_inline u32 below(u32 one, u32 other)
{
	u32 difference = one - other;
	u32 ones;

	asm volatile("" : "+r"(difference));
	ones = (s32)difference >> 31;
	asm volatile("" : "+r"(ones));
	return ones;
}

/* The first such option of a header whose options are there; no branch but at the end, since the kernel's verifier follows each. */
static __always_inline enum found option_find(const u8 *options, const u8 *end, u16 *place)
{
	/* Where the next option begins; beyond the header once one was found, or all end. */
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
