/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Why the kernel reduces a window. It asks for the new threshold before it says why: `ssthresh` comes first, `set_state` at
 * once after it. The state tells losses from the rest whatever else the ACK said; CWR is for an ECN-echo where the ACK that
 * is being processed carried ECE, and else for the sender's own queue, or for a loss that a probe repaired.
 *
 * Whoever includes this has said what card.h needs, with CAUSES(X) first in COUNTERS: reductions, `loss_after_ecn` (a
 * loss in a window that was reduced in CWR), sockets that took the controller and left it, and what untold.h makes up for.
 */
#pragma once

#define CAUSES(X) X(ecn) X(loss) X(timeout) X(local) X(loss_after_ecn) X(opened) X(closed) X(untold)
#include "card.h"

/* The part of a socket's private area that is for this; zero when the socket takes the controller. */
struct heard {
	/* Time of the ACK that carried ECE and has not been answered, µs. */
	u32 ece_at;
	bool ece;
	bool begun;
	/* The last state that was told. */
	u8 told;
};

enum cause { CAUSE_NONE, CAUSE_ECN, CAUSE_LOCAL, CAUSE_LOSS, CAUSE_LOSS_IN_CWR, CAUSE_TIMEOUT };

/* RFC 5681 eq. 4: no threshold below two segments. */
#define LEAST_SSTHRESH 2
#define BILLION 1000000000ULL

static __always_inline u32 as_threshold(u32 window)
{
	return window > LEAST_SSTHRESH ? window : LEAST_SSTHRESH;
}

/* So many billionths of a number, exact to one of its parts. */
static __always_inline u64 billionths_of(u64 number, u64 part)
{
	return number / BILLION * part + number % BILLION * part / BILLION;
}

/* So many billionths of a window, as a threshold. */
static __always_inline u32 part_of(u32 window, u32 part)
{
	return as_threshold((u64)window * part / BILLION);
}

static __always_inline void heard_init(struct heard *heard, struct sock *sk)
{
	heard->begun = 1;
	heard->told = ca_state(sk);
	COUNT(opened);
}

static __always_inline void heard_release(struct heard *heard)
{
	/* Older kernels release a controller that never began. */
	if (!heard->begun)
		return;
	heard->begun = 0;
	COUNT(closed);
}

/* `in_ack_event`: the first that a controller hears of an ACK's flags. */
static __always_inline void heard_ack(struct heard *heard, const struct tcp_sock *tp, u32 flags)
{
	heard->ece = (flags & CA_ACK_ECE) != 0;
	heard->ece_at = (u32)tp->tcp_mstamp;
}

/* Whether the ACK that is being processed carried ECE, and was not answered. */
static __always_inline bool heard_now(const struct heard *heard, const struct tcp_sock *tp)
{
	return heard->ece && heard->ece_at == (u32)tp->tcp_mstamp;
}

/* `set_state`: now the reason is known, and counted. */
static __always_inline enum cause heard_state(struct heard *heard, struct sock *sk, u8 state)
{
	heard->told = state;
	if (state == TCP_CA_CWR) {
		/* An ECE is answered once, and only while the ACK that carried it is processed. */
		bool ecn = heard_now(heard, tcp_sk(sk));

		heard->ece = 0;
		if (!ecn) {
			COUNT(local);
			return CAUSE_LOCAL;
		}
		COUNT(ecn);
		return CAUSE_ECN;
	}
	if (state == TCP_CA_Recovery) {
		/* The window was reduced already: the kernel does not ask for a threshold again (RFC 3168 § 6.1.2). */
		if (ca_state(sk) != TCP_CA_CWR) {
			COUNT(loss);
			return CAUSE_LOSS;
		}
		COUNT(loss_after_ecn);
		return CAUSE_LOSS_IN_CWR;
	}
	if (state == TCP_CA_Loss) {
		COUNT(timeout);
		return CAUSE_TIMEOUT;
	}
	return CAUSE_NONE;
}
