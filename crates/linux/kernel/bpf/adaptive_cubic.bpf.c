/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CUBIC with adaptive backoff (McCullagh 2008 § 4.2): the kernel's CUBIC (RFC 9438) except for the
 * size of reductions.
 */
#include "kernel.h"
#include "adaptive.h"
#include "cubic.h"
#include "skipped_calls.h"

struct state {
	struct adaptive adaptive;
	struct cubic cubic;
};

_Static_assert(sizeof(struct state) <= CA_PRIV_BYTES, "a socket has no room for this state");

static __always_inline struct state *state(struct sock *sk)
{
	return private(sk);
}

static __always_inline void on_start(struct sock *sk)
{
	adaptive_init(&state(sk)->adaptive, sk);
	cubic_reset(&state(sk)->cubic, tcp_sk(sk));
}

OP(void, adaptive_cubic_release, struct sock *sk)
{
	cause_release(&state(sk)->adaptive.cause_state);
}

OP(void, adaptive_cubic_in_ack_event, struct sock *sk, u32 flags)
{
	make_up_skipped(&state(sk)->adaptive.cause_state, sk);
	cause_on_ack(&state(sk)->adaptive.cause_state, tcp_sk(sk), flags);
}

OP(void, adaptive_cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubic_acked(&state(sk)->cubic, sk, adaptive_hear(&state(sk)->adaptive, tcp_sk(sk), sample));
}

static __always_inline u32 threshold(struct sock *sk)
{
	u32 fixed = cubic_reduce(&state(sk)->cubic, tcp_sk(sk));

	return adaptive_ssthresh(&state(sk)->adaptive, tcp_sk(sk), fixed);
}

static __always_inline void on_state(struct sock *sk, u8 new_state)
{
	cause_on_state(&state(sk)->adaptive.cause_state, sk, new_state);
	if (new_state == TCP_CA_Loss)
		cubic_reset(&state(sk)->cubic, tcp_sk(sk));
}

OP(void, adaptive_cubic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	cubic_avoid(&state(sk)->cubic, tcp_sk(sk), acked);
}

OP(void, adaptive_cubic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		cubic_resume(&state(sk)->cubic, tcp_sk(sk));
}

OP(void, adaptive_cubic_cwnd_event_tx_start, struct sock *sk)
{
	cubic_resume(&state(sk)->cubic, tcp_sk(sk));
}

OP(u32, adaptive_cubic_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

TABLE_PROGRAMS(adaptive_cubic)

TABLE adaptive_cubic = {
	.name = "adaptive_cubic",
	.ssthresh = (void *)adaptive_cubic_ssthresh,
	.cong_avoid = (void *)adaptive_cubic_cong_avoid,
	.set_state = (void *)adaptive_cubic_set_state,
	.cwnd_event = (void *)adaptive_cubic_cwnd_event,
	.cwnd_event_tx_start = (void *)adaptive_cubic_cwnd_event_tx_start,
	.in_ack_event = (void *)adaptive_cubic_in_ack_event,
	.pkts_acked = (void *)adaptive_cubic_pkts_acked,
	.undo_cwnd = (void *)adaptive_cubic_undo_cwnd,
	.init = (void *)adaptive_cubic_init,
	.release = (void *)adaptive_cubic_release,
};
