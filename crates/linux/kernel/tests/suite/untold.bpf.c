/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * adaptive_reno with skipped calls, as in some kernels (skipped_calls.h): every third `ssthresh` is
 * skipped, with all other calls until the next ACK, and the kernel gets a value as from a stack.
 * Only the tests load it.
 */
#include "kernel.h"

/* shadow.rs has the same members. */
struct tally {
	u64 acks;
	u64 left_out;
	/*
	 * Calls that found a threshold or window that no program computed: of the program that an
	 * ACK runs first, and of others after it.
	 */
	u64 wild;
	u64 left_wild;
};

struct tally tally SEC(".bss.tally");

/* Stale stack contents; no window of the test's path is as large as LARGE. */
#define WILD 0x81104110
#define LARGE 1000000

static u32 asked;
static bool leaves_out;

#define IS(name, what) (!__builtin_strcmp(#name, "adaptive_reno_" what))

/* True if the program is to be skipped now. */
static __always_inline bool is_left_out(bool is_ack, bool is_threshold)
{
	if (is_ack)
		leaves_out = 0;
	if (is_threshold && !leaves_out && ++asked % 3 == 0) {
		leaves_out = 1;
		tally.left_out++;
	}
	return leaves_out;
}

/* Counts impossible values. An ACK runs `in_ack_event` first, and all other programs after it. */
static __always_inline void look(bool is_ack, const void *sk)
{
	const struct tcp_sock *tp = sk;

	tally.acks += is_ack;
	if (tp->snd_ssthresh != WILD && tp->snd_cwnd <= LARGE)
		return;
	if (is_ack)
		tally.wild++;
	else
		tally.left_wild++;
}

#pragma clang diagnostic ignored "-Wint-conversion"
#undef OP
#define OP(type, name, args...) \
	static __always_inline type told_##name(unsigned long long *ctx, ##args); \
	SEC("struct_ops/" #name) \
	type name(unsigned long long *ctx) \
	{ \
		const bool is_ack = IS(name, "in_ack_event"); \
\
		if (is_left_out(is_ack, IS(name, "ssthresh"))) \
			return (type)WILD; \
		look(is_ack, (void *)ctx[0]); \
		return told_##name(___bpf_ctx_cast(args)); \
	} \
	static __always_inline type told_##name(unsigned long long *ctx, ##args)

#include "adaptive_reno.bpf.c"
