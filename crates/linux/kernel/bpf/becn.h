/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Backward explicit congestion notification (BECN: Akujobi et al. 2002, § IV-B), for any
 * controller: source quenches reduce the window, at most once per window of data. After those that
 * `rest` selects the window does not grow for that window of data.
 *
 * A program at the interface (ingress.h) leaves a note at the socket. The next ACK reads it before
 * anything else. The kernel has no state for this cause and stays in Open, so the window of data is
 * recorded here. A loss or an ECN-echo in it causes no further reduction, nor does a quench in a
 * window that the kernel has reduced.
 */
#pragma once

struct settings {
	/* Fraction of the window kept after a quench about a marked packet, in billionths. */
	u32 beta_quench;
	/* Quenches after which the window does not grow for a window of data (enum below). */
	u32 rest;
	/*
	 * Wrong guesses in a round trip after which all quenches in the rest of it are ignored; 0
	 * is no limit.
	 */
	u32 guesses;
	/* Ticks per second (CONFIG_HZ). */
	u32 hz;
};

enum { REST_MARKED, REST_NEVER, REST_ALWAYS };

SETTINGS settings SEC(".rodata.settings") = { .beta_quench = 500000000, .guesses = 10, .hz = 1000 };

/*
 * Counters. `quench_marked`, `quench_dropped`: reductions for a quench about a marked and a dropped
 * packet. `quenches`: accepted quenches.
 *
 * Rejected quenches: `malformed`: none that a host may accept; `stranger`: not about a connection
 * of this controller; `outside`: not about outstanding data; `deaf`: after too many wrong guesses.
 *
 * `spared`: losses and ECN-echoes in a window that was already reduced.
 */
#define COUNTERS(X) \
	CAUSES(X) X(quench_marked) X(quench_dropped) X(quenches) X(malformed) X(stranger) \
	X(outside) X(deaf) X(spared)
#include "cause.h"
#include "quench.h"

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct note);
} cwnd_notes SEC(".maps");

#include "ingress.h"

/* BECN's part of a socket's private area; zero when the socket starts to use the controller. */
struct becn {
	struct cause_state cause_state;
	/* The `latest_quench` of the last note that was read. */
	u32 last_read;
	/* Data below this sequence number was sent before the last reduction. */
	u32 reduced_until;
	/* `snd_cwnd_cnt` (progress towards the next segment) when this ACK arrived. */
	u32 saved_cwnd_cnt;
	/*
	 * Threshold that a timeout would set for a window that was just spared; zero if none was.
	 */
	u32 after_timeout;
	/* The window does not grow until `reduced_until` is acknowledged. */
	bool rests;
	/* The last reduction was for a quench. */
	bool by_quench;
};

static __always_inline void becn_init(struct becn *becn, struct sock *sk)
{
	struct note *note = bpf_sk_storage_get(&cwnd_notes, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	cause_init(&becn->cause_state, sk);
	becn->reduced_until = tcp_sk(sk)->snd_una;
	if (note)
		becn->last_read = note->latest_quench;
}

static __always_inline void becn_release(struct becn *becn, struct sock *sk)
{
	cause_release(&becn->cause_state);
	bpf_sk_storage_delete(&cwnd_notes, sk);
}

enum quenched { QUENCHED_NOT, QUENCHED_MARKED, QUENCHED_DROPPED };

/*
 * For `in_ack_event`: returns the quench that reduces the window now.
 *
 * A note that arrives right after a reduction, or while losses are repaired, is about the same
 * congestion.
 */
static __always_inline enum quenched becn_ack(struct becn *becn, struct sock *sk, u32 flags)
{
	struct note *note = bpf_sk_storage_get(&cwnd_notes, sk, 0, 0);
	u32 latest;

	cause_on_ack(&becn->cause_state, tcp_sk(sk), flags);
	becn->saved_cwnd_cnt = tcp_sk(sk)->snd_cwnd_cnt;
	if (!note)
		return QUENCHED_NOT;
	latest = *(volatile u32 *)&note->latest_quench;
	if (latest == becn->last_read)
		return QUENCHED_NOT;
	becn->last_read = latest;
	if (ca_state(sk) >= TCP_CA_CWR || before(note->una, becn->reduced_until))
		return QUENCHED_NOT;
	return latest & QUENCH_MARKED ? QUENCHED_MARKED : QUENCHED_DROPPED;
}

/*
 * Reduces the window. `after_loss` is the threshold of a loss, also used for a dropped packet
 * (§ IV-B).
 */
static __always_inline void becn_reduce(struct becn *becn, struct tcp_sock *tp, enum quenched why,
					u32 after_loss)
{
	u32 kept = after_loss;

	if (why == QUENCHED_MARKED) {
		COUNT(quench_marked);
		kept = part_of(tp->snd_cwnd, settings.beta_quench);
	} else {
		COUNT(quench_dropped);
	}
	tp->snd_ssthresh = kept;
	if (tp->snd_cwnd > kept)
		tp->snd_cwnd = kept;
	tp->snd_cwnd_cnt = 0;
	becn->reduced_until = tp->snd_nxt;
	becn->by_quench = 1;
	becn->rests = settings.rest == REST_ALWAYS ||
		      (settings.rest == REST_MARKED && why == QUENCHED_MARKED);
}

/*
 * True if the kernel's reduction is not about data sent before the last one.
 *
 * A loss concerns data that is not acknowledged. An ECN-echo concerns data that was acknowledged
 * just now (RFC 3168 § 6.1.2). That is most often the packet that caused the quench: if the router
 * is next to the sender, it is the last one sent before the quench.
 */
static __always_inline bool becn_is_over(const struct becn *becn, const struct tcp_sock *tp)
{
	if (becn->by_quench && !tp->lost_out && cause_is_ecn(&becn->cause_state, tp))
		return before(becn->reduced_until, tp->snd_una);
	return !before(tp->snd_una, becn->reduced_until);
}

/*
 * For `ssthresh`: true if the window was already reduced for this data and stays as it is, except
 * for a timeout, which `set_state` handles. Then restores `snd_cwnd_cnt`, which the kernel has just
 * cleared.
 */
static __always_inline bool becn_spares(struct becn *becn, struct tcp_sock *tp, u32 after_timeout)
{
	if (becn_is_over(becn, tp))
		return 0;
	COUNT(spared);
	tp->snd_cwnd_cnt = becn->saved_cwnd_cnt;
	becn->after_timeout = after_timeout;
	return 1;
}

/* For `set_state`: records a reduction by the kernel, and sets a spared timeout's threshold. */
static __always_inline void becn_state(struct becn *becn, struct sock *sk, u8 state)
{
	if (cause_on_state(&becn->cause_state, sk, state) != CAUSE_NONE) {
		becn->reduced_until = tcp_sk(sk)->snd_nxt;
		becn->by_quench = 0;
		becn->rests = 0;
	}
	if (state == TCP_CA_Loss && becn->after_timeout)
		tcp_sk(sk)->snd_ssthresh = becn->after_timeout;
	becn->after_timeout = 0;
}

/*
 * For `cong_avoid`: true while the window must not grow (§ IV-B: for an RTT). As in the kernel's
 * CWR, that ends when data sent after the reduction is acknowledged.
 */
static __always_inline bool becn_rests(const struct becn *becn, const struct tcp_sock *tp)
{
	return becn->rests && before(tp->snd_una, becn->reduced_until);
}
