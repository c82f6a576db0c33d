/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Backward explicit congestion notification (BECN: Akujobi et al. 2002, § IV-B), for any controller: source quenches make
 * the window smaller, at most once a window of data, and after those about marked packets it rests for that window.
 *
 * A program at the interface (ingress.h) leaves a note at the socket; the next ACK, before it does anything else, has it
 * read. The kernel stays in its state "open", since it has no such cause, so the window of data is remembered here: a loss
 * or an ECN-echo in it reduces nothing more, nor does a quench in a window that the kernel reduced.
 */
#pragma once

struct settings {
	/* Part of the window that stays after a quench about a marked packet, in billionths. */
	u32 beta_quench;
	/* After which quenches the window does not grow for a window of data. */
	u32 rest;
	/* Wrong guesses in a round trip after which the rest of it is deaf; 0 is no limit. */
	u32 guesses;
	/* Ticks a second (CONFIG_HZ). */
	u32 hz;
};

enum { REST_MARKED, REST_NEVER, REST_ALWAYS };

SETTINGS settings SEC(".rodata.settings") = { .beta_quench = 500000000, .guesses = 10, .hz = 1000 };

/*
 * Windows reduced for a quench about a marked and about a dropped packet; quenches that were believed; those that were not:
 * none that a host may believe, about no connection of ours, about nothing outstanding, after too many guesses; `spared`:
 * losses and ECN-echoes in a window that a quench reduced.
 */
#define COUNTERS(X) \
	CAUSES(X) X(quench_marked) X(quench_dropped) X(quenches) X(malformed) X(stranger) X(outside) X(deaf) X(spared)
#include "cause.h"
#include "quench.h"

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct note);
} cwnd_notes SEC(".maps");

#include "ingress.h"

/* The part of a socket's private area that is BECN's; zero when the socket takes the controller. */
struct becn {
	struct heard heard;
	/* The last note that was read. */
	u32 answered;
	/* Data up to here was sent before the last reduction. */
	u32 reduced_until;
	/* What was counted towards the next segment when this ACK came. */
	u32 counted;
	/* What a timeout would leave of a window that was spared just now; zero if none was. */
	u32 after_timeout;
	/* The window does not grow before that is acknowledged. */
	bool rests;
	/* That reduction was for a quench. */
	bool by_quench;
};

static __always_inline void becn_init(struct becn *becn, struct sock *sk)
{
	struct note *note = bpf_sk_storage_get(&cwnd_notes, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	heard_init(&becn->heard, sk);
	becn->reduced_until = tcp_sk(sk)->snd_una;
	if (note)
		becn->answered = note->said;
}

static __always_inline void becn_release(struct becn *becn, struct sock *sk)
{
	heard_release(&becn->heard);
	bpf_sk_storage_delete(&cwnd_notes, sk);
}

enum quenched { QUENCHED_NOT, QUENCHED_MARKED, QUENCHED_DROPPED };

/* `in_ack_event`: whether a quench makes the window smaller now. A note that comes while the window was just reduced, or
 * while losses are repaired, is about the same congestion. */
static __always_inline enum quenched becn_ack(struct becn *becn, struct sock *sk, u32 flags)
{
	struct note *note = bpf_sk_storage_get(&cwnd_notes, sk, 0, 0);
	u32 said;

	heard_ack(&becn->heard, tcp_sk(sk), flags);
	becn->counted = tcp_sk(sk)->snd_cwnd_cnt;
	if (!note)
		return QUENCHED_NOT;
	said = *(volatile u32 *)&note->said;
	if (said == becn->answered)
		return QUENCHED_NOT;
	becn->answered = said;
	if (ca_state(sk) >= TCP_CA_CWR || before(note->una, becn->reduced_until))
		return QUENCHED_NOT;
	return said & QUENCH_MARKED ? QUENCHED_MARKED : QUENCHED_DROPPED;
}

/* Makes the window smaller; `after_loss` is what a loss would have left, and what a dropped packet leaves (§ IV-B). */
static __always_inline void becn_reduce(struct becn *becn, struct tcp_sock *tp, enum quenched why, u32 after_loss)
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
	becn->rests = settings.rest == REST_ALWAYS || (settings.rest == REST_MARKED && why == QUENCHED_MARKED);
}

/* Whether the kernel asks about what was sent before the last reduction. A loss is of something that was not acknowledged; an
 * echo is about something that was, just now (RFC 3168 § 6.1.2): most often the very packet that the quench was about, which
 * is the last that was sent before it where the router stands next to the sender. */
static __always_inline bool becn_is_over(const struct becn *becn, const struct tcp_sock *tp)
{
	if (becn->by_quench && !tp->lost_out && heard_now(&becn->heard, tp))
		return before(becn->reduced_until, tp->snd_una);
	return !before(tp->snd_una, becn->reduced_until);
}

/* `ssthresh`: whether the window was reduced for a quench already, and stays, with what the kernel has just forgotten; but
 * for a timeout, of which `set_state` hears. */
static __always_inline bool becn_spares(struct becn *becn, struct tcp_sock *tp, u32 after_timeout)
{
	if (becn_is_over(becn, tp))
		return 0;
	COUNT(spared);
	tp->snd_cwnd_cnt = becn->counted;
	becn->after_timeout = after_timeout;
	return 1;
}

/* `set_state`: a reduction of the kernel's own is the last one, too. */
static __always_inline void becn_state(struct becn *becn, struct sock *sk, u8 state)
{
	if (heard_state(&becn->heard, sk, state) != CAUSE_NONE) {
		becn->reduced_until = tcp_sk(sk)->snd_nxt;
		becn->by_quench = 0;
		becn->rests = 0;
	}
	if (state == TCP_CA_Loss && becn->after_timeout)
		tcp_sk(sk)->snd_ssthresh = becn->after_timeout;
	becn->after_timeout = 0;
}

/* `cong_avoid`: whether the window waits (§ IV-B: an RTT before it starts to increase), until something above what was sent
 * is acknowledged, as the kernel's own CWR. */
static __always_inline bool becn_rests(const struct becn *becn, const struct tcp_sock *tp)
{
	return becn->rests && before(tp->snd_una, becn->reduced_until);
}
