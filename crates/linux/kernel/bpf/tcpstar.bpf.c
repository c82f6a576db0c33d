/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * TCP*(n) (Mondal & Kuzmanovic 2008): the retransmission timeout stays as it is for the first n expiries in a row, as far as
 * the kernel lets a program have it so. No program can set the timeout; it can only bound it, by 1 s at the least
 * (TCP_RTO_MAX_MS, since 6.15), and make it linear for thin streams (TCP_THIN_LINEAR_TIMEOUTS). So for the first n expiries
 * the bound is the timeout itself, or 1 s if that is less:
 *
 *   a timeout of 1 s or more, those of SYNs too            stays: TCP*(n)
 *   one of less, fewer than four packets outstanding,
 *   out of the first slow start, up to six expiries        stays: TCP*(n)
 *   one of less, otherwise                                 doubles, up to 1 s
 *
 * All is taken back when a round trip is measured, before the kernel computes the next timeout from it.
 *
 * The bound is also what the kernel goes by when it asks how long a connection may be without an answer: 15 timeouts (R2)
 * would be some 14 s, since its first retransmission, and a closed socket whose timeout is its bound counts as one whose peer
 * is gone, and is given up at once. Who has a time of their own for that (TCP_USER_TIMEOUT) is asked for neither, so for as
 * long as there is a bound that is what R2 is without one.
 */
#include "kernel.h"

struct settings {
	/* n. */
	u32 after;
	/* Ticks a second (CONFIG_HZ). */
	u32 hz;
	/* n of SYNs; 0 is that of data. */
	u32 syn_after;
	/* Whose connections: see sockops.h. */
	u32 address;
	u32 namespace_low;
	u32 namespace_high;
};

SETTINGS settings SEC(".rodata.settings") = { .after = 6, .hz = 1000 };

/* Expiries in all; those after which the timeout is to stay: `bounded` to itself, 1 s in place of less (`bounded_above`);
 * those after which it doubles; what was taken back; what the kernel refused. */
#define COUNTERS(X) \
	X(timeouts) X(bounded) X(bounded_above) X(doubled) X(taken_back) X(refused) X(opened) X(closed)
#include "card.h"
#include "sockops.h"

/* No timeout is bounded by less. */
#define LEAST_BOUND_MS 1000
/* TCP_RTO_MAX: what the kernel bounds it by, unless asked otherwise. */
#define MOST_BOUND_MS 120000
/* What 15 timeouts are that begin with 0.2 s and double up to that (tcp_retries2, tcp_model_timeout). */
#define R2_MS 924600

/* What a connection had before it was changed. */
struct had {
	s32 most_ms;
	s32 user_ms;
	u32 changed;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct had);
} cwnd_had SEC(".maps");

static __always_inline bool set(struct bpf_sock_ops *ctx, int option, s32 value)
{
	if (!bpf_setsockopt(ctx, SOL_TCP, option, &value, sizeof(value)))
		return 1;
	COUNT(refused);
	return 0;
}

/* The connection begins, or was opened by its peer. */
static __always_inline void begin(struct bpf_sock_ops *ctx)
{
	COUNT(opened);
	bpf_sock_ops_cb_flags_set(ctx, RTO_CB_FLAG | STATE_CB_FLAG);
}

static __always_inline void take_back(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct had *had = sk ? bpf_sk_storage_get(&cwnd_had, sk, 0, 0) : 0;

	if (!had || !had->changed)
		return;
	had->changed = 0;
	COUNT(taken_back);
	set(ctx, TCP_RTO_MAX_MS, had->most_ms);
	if (!had->user_ms)
		set(ctx, TCP_USER_TIMEOUT, 0);
	set(ctx, TCP_THIN_LINEAR_TIMEOUTS, 0);
	bpf_sock_ops_cb_flags_set(ctx, RTO_CB_FLAG | STATE_CB_FLAG);
}

/* The timer expired for the so manieth time in a row, counted from zero; its timeout in ticks. What is set here holds for
 * the timeout that the kernel computes next. */
static __always_inline void expired(struct bpf_sock_ops *ctx, u32 before_this, u32 ticks)
{
	struct bpf_sock *sk = ctx->sk;
	struct had *had;
	u32 after = settings.after;
	u64 ms;

	if (settings.syn_after && ctx->state == STATE_SYN_SENT)
		after = settings.syn_after;
	COUNT(timeouts);
	if (before_this >= after) {
		COUNT(doubled);
		take_back(ctx);
		return;
	}
	had = sk ? bpf_sk_storage_get(&cwnd_had, sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
	if (!had)
		return;
	if (!had->changed) {
		s32 most = MOST_BOUND_MS;
		s32 user = 0;

		if (bpf_getsockopt(ctx, SOL_TCP, TCP_RTO_MAX_MS, &most, sizeof(most)))
			most = MOST_BOUND_MS;
		if (bpf_getsockopt(ctx, SOL_TCP, TCP_USER_TIMEOUT, &user, sizeof(user)))
			user = 0;
		had->most_ms = most;
		had->user_ms = user;
	}
	had->changed = 1;
	/* Up, so that the bound is no less than the timeout. */
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
	if (!had->user_ms)
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
		take_back(ctx);
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
