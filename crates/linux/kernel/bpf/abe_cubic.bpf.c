/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CUBIC (RFC 9438) with ABE: the kernel's CUBIC except for its response to an ECN-echo (RFC 8511).
 */
#include "kernel.h"
#include "abe.h"
#include "cubic.h"
#include "skipped_calls.h"

struct state {
	struct abe abe;
	struct cubic cubic;
};

_Static_assert(sizeof(struct state) <= CA_PRIV_BYTES, "a socket has no room for this state");

static __always_inline struct state *state(struct sock *sk)
{
	return private(sk);
}

static __always_inline void on_start(struct sock *sk)
{
	abe_init(&state(sk)->abe, sk);
	cubic_reset(&state(sk)->cubic, tcp_sk(sk));
}

OP(void, abe_cubic_release, struct sock *sk)
{
	abe_release(&state(sk)->abe);
}

OP(void, abe_cubic_in_ack_event, struct sock *sk, u32 flags)
{
	make_up_skipped(&state(sk)->abe.cause_state, sk);
	abe_ack(&state(sk)->abe, tcp_sk(sk), flags);
}

static __always_inline u32 threshold(struct sock *sk)
{
	u32 after_loss = cubic_reduce(&state(sk)->cubic, tcp_sk(sk));

	return abe_ssthresh(&state(sk)->abe, tcp_sk(sk), after_loss);
}

static __always_inline void on_state(struct sock *sk, u8 new_state)
{
	abe_state(&state(sk)->abe, sk, new_state);
	if (new_state == TCP_CA_Loss)
		cubic_reset(&state(sk)->cubic, tcp_sk(sk));
}

OP(void, abe_cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubic_acked(&state(sk)->cubic, sk, sample->rtt_us);
}

OP(void, abe_cubic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	cubic_avoid(&state(sk)->cubic, tcp_sk(sk), acked);
}

OP(void, abe_cubic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		cubic_resume(&state(sk)->cubic, tcp_sk(sk));
}

OP(void, abe_cubic_cwnd_event_tx_start, struct sock *sk)
{
	cubic_resume(&state(sk)->cubic, tcp_sk(sk));
}

OP(u32, abe_cubic_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

TABLE_PROGRAMS(abe_cubic)

TABLE abe_cubic = {
	.name = "abe_cubic",
	.ssthresh = (void *)abe_cubic_ssthresh,
	.cong_avoid = (void *)abe_cubic_cong_avoid,
	.set_state = (void *)abe_cubic_set_state,
	.cwnd_event = (void *)abe_cubic_cwnd_event,
	.cwnd_event_tx_start = (void *)abe_cubic_cwnd_event_tx_start,
	.in_ack_event = (void *)abe_cubic_in_ack_event,
	.pkts_acked = (void *)abe_cubic_pkts_acked,
	.undo_cwnd = (void *)abe_cubic_undo_cwnd,
	.init = (void *)abe_cubic_init,
	.release = (void *)abe_cubic_release,
};
