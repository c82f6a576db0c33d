/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Reno with ABE: the kernel's Reno (RFC 5681) except for its response to an ECN-echo (RFC 8511). */
#include "kernel.h"
#include "abe.h"
#include "skipped_calls.h"

_Static_assert(sizeof(struct abe) <= CA_PRIV_BYTES, "a socket has no room for this state");

static __always_inline struct abe *state(struct sock *sk)
{
	return private(sk);
}

static __always_inline void on_start(struct sock *sk)
{
	abe_init(state(sk), sk);
}

OP(void, abe_reno_release, struct sock *sk)
{
	abe_release(state(sk));
}

OP(void, abe_reno_in_ack_event, struct sock *sk, u32 flags)
{
	make_up_skipped(&state(sk)->cause_state, sk);
	abe_ack(state(sk), tcp_sk(sk), flags);
}

static __always_inline u32 threshold(struct sock *sk)
{
	return abe_ssthresh(state(sk), tcp_sk(sk), tcp_reno_ssthresh(sk));
}

static __always_inline void on_state(struct sock *sk, u8 new_state)
{
	abe_state(state(sk), sk, new_state);
}

OP(void, abe_reno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

OP(u32, abe_reno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

TABLE_PROGRAMS(abe_reno)

TABLE abe_reno = {
	.name = "abe_reno",
	.ssthresh = (void *)abe_reno_ssthresh,
	.cong_avoid = (void *)abe_reno_cong_avoid,
	.set_state = (void *)abe_reno_set_state,
	.in_ack_event = (void *)abe_reno_in_ack_event,
	.undo_cwnd = (void *)abe_reno_undo_cwnd,
	.init = (void *)abe_reno_init,
	.release = (void *)abe_reno_release,
};
