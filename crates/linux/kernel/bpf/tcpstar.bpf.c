/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * TCP*(n) (Mondal & Kuzmanovic 2008): the retransmission timeout stays constant for the first n
 * expiries in a row, as far as the kernel lets a program do so. No program can set the timeout. It
 * can bound it, to 1 s at the least (TCP_RTO_MAX_MS, since 6.15), and make it linear for thin
 * streams (TCP_THIN_LINEAR_TIMEOUTS). So for the first n expiries the bound is the timeout itself,
 * or 1 s if that is shorter:
 *
 *   timeout of 1 s or more, also of SYNs                   stays: TCP*(n)
 *   shorter, fewer than four packets outstanding,
 *   after the first slow start, up to six expiries         stays: TCP*(n)
 *   shorter, otherwise                                     doubles, up to 1 s
 *
 * The options are taken back when an RTT is measured, before the kernel computes the next timeout
 * from it, and at the expiry after the first n.
 *
 * The kernel also uses the bound to decide how long a connection may be without an answer. Its
 * limit (R2) would be some 14 s after the first retransmission. And a closed socket whose timeout
 * is at the bound is given up at once, as one whose peer is gone. Neither holds for a socket with
 * TCP_USER_TIMEOUT. So while there is a bound, others have that option, set to R2 without a bound.
 */
#include "kernel.h"

struct settings {
	/* n. */
	u32 after;
	/* Ticks per second (CONFIG_HZ). */
	u32 hz;
	/* n for SYNs; 0 means that of data. */
	u32 syn_after;
	/* Affected connections (sockops.h). */
	u32 address;
	u32 namespace_low;
	u32 namespace_high;
};

SETTINGS settings SEC(".rodata.settings") = { .after = 6, .hz = 1000 };

/*
 * Counters. `timeouts`: all expiries. Those that bound the timeout: by itself (`bounded`), or by
 * 1 s if it is shorter (`bounded_above`). `doubled`: the other expiries. `taken_back`: times that
 * the options were taken back. `refused`: options that the kernel refused.
 */
#define COUNTERS(X) \
	X(timeouts) X(bounded) X(bounded_above) X(doubled) X(taken_back) X(refused) X(opened) \
	X(closed)
#include "info_map.h"
#include "sockops.h"

/* Lowest bound that the kernel accepts, ms. */
#define LEAST_BOUND_MS 1000
/* Default bound, ms (TCP_RTO_MAX). */
#define MOST_BOUND_MS 120000
/*
 * Sum of 16 timeouts that start at 0.2 s and double up to that bound, ms: 15 retransmissions
 * (tcp_retries2, tcp_model_timeout).
 */
#define R2_MS 924600

/* Original options of a connection. */
struct saved_options {
	s32 most_ms;
	s32 user_ms;
	u32 changed;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct saved_options);
} cwnd_had SEC(".maps");

static __always_inline bool set(struct bpf_sock_ops *ctx, int option, s32 value)
{
	if (!bpf_setsockopt(ctx, SOL_TCP, option, &value, sizeof(value)))
		return 1;
	COUNT(refused);
	return 0;
}

/* Starts a connection, opened from here or by its peer. */
static __always_inline void begin(struct bpf_sock_ops *ctx)
{
	COUNT(opened);
	bpf_sock_ops_cb_flags_set(ctx, RTO_CB_FLAG | STATE_CB_FLAG);
}

static __always_inline void restore_options(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct saved_options *saved = sk ? bpf_sk_storage_get(&cwnd_had, sk, 0, 0) : 0;

	if (!saved || !saved->changed)
		return;
	saved->changed = 0;
	COUNT(taken_back);
	set(ctx, TCP_RTO_MAX_MS, saved->most_ms);
	if (!saved->user_ms)
		set(ctx, TCP_USER_TIMEOUT, 0);
	set(ctx, TCP_THIN_LINEAR_TIMEOUTS, 0);
	bpf_sock_ops_cb_flags_set(ctx, RTO_CB_FLAG | STATE_CB_FLAG);
}

/*
 * Handles an expiry of the timer. `before_this` counts the earlier ones in a row, `ticks` is the
 * expired timeout. The options apply to the timeout that the kernel computes next.
 */
static __always_inline void expired(struct bpf_sock_ops *ctx, u32 before_this, u32 ticks)
{
	struct bpf_sock *sk = ctx->sk;
	struct saved_options *saved;
	u32 after = settings.after;
	u64 ms;

	if (settings.syn_after && ctx->state == STATE_SYN_SENT)
		after = settings.syn_after;
	COUNT(timeouts);
	if (before_this >= after) {
		COUNT(doubled);
		restore_options(ctx);
		return;
	}
	saved = sk ? bpf_sk_storage_get(&cwnd_had, sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
	if (!saved)
		return;
	if (!saved->changed) {
		s32 most = MOST_BOUND_MS;
		s32 user = 0;

		if (bpf_getsockopt(ctx, SOL_TCP, TCP_RTO_MAX_MS, &most, sizeof(most)))
			most = MOST_BOUND_MS;
		if (bpf_getsockopt(ctx, SOL_TCP, TCP_USER_TIMEOUT, &user, sizeof(user)))
			user = 0;
		saved->most_ms = most;
		saved->user_ms = user;
	}
	saved->changed = 1;
	/* Rounded up, so that the bound is no less than the timeout. */
	ms = ((u64)ticks * 1000 + settings.hz - 1) / settings.hz;
	if (ms < LEAST_BOUND_MS) {
		COUNT(bounded_above);
		ms = LEAST_BOUND_MS;
	} else {
		COUNT(bounded);
	}
	if (ms > MOST_BOUND_MS)
		ms = MOST_BOUND_MS;
	set(ctx, TCP_RTO_MAX_MS, ms);
	if (!saved->user_ms)
		set(ctx, TCP_USER_TIMEOUT, R2_MS);
	set(ctx, TCP_THIN_LINEAR_TIMEOUTS, 1);
	bpf_sock_ops_cb_flags_set(ctx, RTO_CB_FLAG | STATE_CB_FLAG | RTT_CB_FLAG);
}

SEC("sockops")
int cwnd_timeouts(struct bpf_sock_ops *ctx)
{
	if (!is_ours(ctx))
		return 1;
	switch (ctx->op) {
	case TCP_CONNECT_CB:
	case PASSIVE_ESTABLISHED_CB:
		begin(ctx);
		break;
	case ACTIVE_ESTABLISHED_CB:
	case RTT_CB:
		restore_options(ctx);
		break;
	case RTO_CB:
		expired(ctx, ctx->args[0], ctx->args[1]);
		break;
	case STATE_CB:
		if (ctx->args[1] == STATE_CLOSE)
			COUNT(closed);
		break;
	}
	return 1;
}
