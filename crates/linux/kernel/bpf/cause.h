/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cause of a reduction. The kernel calls `ssthresh` for the new threshold first, and
 * `set_state`, which implies the cause, right after it. The state distinguishes losses from other
 * causes, whatever the ACK said. CWR has three causes: an ECN-echo if the ACK in process carried
 * ECE; otherwise a full local queue, or a loss that a tail loss probe repaired.
 *
 * The including file must have defined what info_map.h needs, with CAUSES(X) first in COUNTERS:
 * reductions by cause; `loss_after_ecn`, a loss in a window that CWR had reduced; sockets that
 * started and stopped using the controller; and times that skipped_calls.h made up for calls.
 */
#pragma once

#define CAUSES(X) X(ecn) X(loss) X(timeout) X(local) X(loss_after_ecn) X(opened) X(closed) X(untold)
#include "info_map.h"

/* Part of a socket's private area; zero when the socket starts to use the controller. */
struct cause_state {
	/* Time of the last ACK, µs; with `ece` it carried an ECE that was not answered yet. */
	u32 ece_at;
	bool ece;
	bool started;
	/* Last state passed to `set_state`. */
	u8 last_state;
};

enum cause { CAUSE_NONE, CAUSE_ECN, CAUSE_LOCAL, CAUSE_LOSS, CAUSE_LOSS_IN_CWR, CAUSE_TIMEOUT };

/* Lowest threshold, segments (RFC 5681 eq. 4). */
#define LEAST_SSTHRESH 2
#define BILLION 1000000000ULL

static __always_inline u32 as_threshold(u32 window)
{
	return window > LEAST_SSTHRESH ? window : LEAST_SSTHRESH;
}

/* Returns `part` billionths of a number, rounded down; the product does not overflow. */
static __always_inline u64 billionths_of(u64 number, u64 part)
{
	return number / BILLION * part + number % BILLION * part / BILLION;
}

/* Returns `part` billionths of a window, as a threshold. */
static __always_inline u32 part_of(u32 window, u32 part)
{
	return as_threshold((u64)window * part / BILLION);
}

static __always_inline void cause_init(struct cause_state *cause, struct sock *sk)
{
	cause->started = 1;
	cause->last_state = ca_state(sk);
	COUNT(opened);
}

static __always_inline void cause_release(struct cause_state *cause)
{
	/* Older kernels release a controller whose `init` never ran. */
	if (!cause->started)
		return;
	cause->started = 0;
	COUNT(closed);
}

/* For `in_ack_event`, where a controller first sees an ACK's flags. */
static __always_inline void cause_on_ack(struct cause_state *cause, const struct tcp_sock *tp,
					 u32 flags)
{
	cause->ece = (flags & CA_ACK_ECE) != 0;
	cause->ece_at = (u32)tp->tcp_mstamp;
}

/* True if the ACK in process carried ECE, which was not answered yet. */
static __always_inline bool cause_is_ecn(const struct cause_state *cause, const struct tcp_sock *tp)
{
	return cause->ece && cause->ece_at == (u32)tp->tcp_mstamp;
}

/* For `set_state`: returns and counts the cause, which is known now. */
static __always_inline enum cause cause_on_state(struct cause_state *cause, struct sock *sk,
						 u8 state)
{
	cause->last_state = state;
	if (state == TCP_CA_CWR) {
		/* An ECE is answered once, and only while its ACK is in process. */
		bool ecn = cause_is_ecn(cause, tcp_sk(sk));

		cause->ece = 0;
		if (!ecn) {
			COUNT(local);
			return CAUSE_LOCAL;
		}
		COUNT(ecn);
		return CAUSE_ECN;
	}
	if (state == TCP_CA_Recovery) {
		/*
		 * The window was already reduced: the kernel does not call `ssthresh` again (RFC
		 * 3168 § 6.1.2).
		 */
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
