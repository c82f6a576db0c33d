/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reno with BECN (becn.h): the kernel's Reno (RFC 5681), whose window source quenches reduce, too.
 */
#include "kernel.h"
#include "becn.h"
#include "skipped_calls.h"

_Static_assert(sizeof(struct becn) <= CA_PRIV_BYTES, "a socket has no room for this state");

static __always_inline struct becn *state(struct sock *sk)
{
	return private(sk);
}

static __always_inline void on_start(struct sock *sk)
{
	becn_init(state(sk), sk);
}

OP(void, becn_reno_release, struct sock *sk)
{
	becn_release(state(sk), sk);
}

OP(void, becn_reno_in_ack_event, struct sock *sk, u32 flags)
{
	enum quenched why;

	make_up_skipped(&state(sk)->cause_state, sk);
	why = becn_ack(state(sk), sk, flags);
	if (why != QUENCHED_NOT)
		becn_reduce(state(sk), tcp_sk(sk), why, tcp_reno_ssthresh(sk));
}

static __always_inline u32 threshold(struct sock *sk)
{
	u32 after_loss = tcp_reno_ssthresh(sk);

	if (becn_spares(state(sk), tcp_sk(sk), after_loss))
		return as_threshold(tcp_sk(sk)->snd_cwnd);
	return after_loss;
}

static __always_inline void on_state(struct sock *sk, u8 new_state)
{
	becn_state(state(sk), sk, new_state);
}

OP(void, becn_reno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	if (!becn_rests(state(sk), tcp_sk(sk)))
		tcp_reno_cong_avoid(sk, ack, acked);
}

OP(u32, becn_reno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

TABLE_PROGRAMS(becn_reno)

TABLE becn_reno = {
	.name = "becn_reno",
	.ssthresh = (void *)becn_reno_ssthresh,
	.cong_avoid = (void *)becn_reno_cong_avoid,
	.set_state = (void *)becn_reno_set_state,
	.in_ack_event = (void *)becn_reno_in_ack_event,
	.undo_cwnd = (void *)becn_reno_undo_cwnd,
	.init = (void *)becn_reno_init,
	.release = (void *)becn_reno_release,
};
