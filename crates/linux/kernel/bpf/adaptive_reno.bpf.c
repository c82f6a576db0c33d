/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reno with adaptive backoff (McCullagh 2008 § 4.2): the kernel's Reno (RFC 5681) except for the
 * size of reductions.
 */
#include "kernel.h"
#include "adaptive.h"
#include "skipped_calls.h"

_Static_assert(sizeof(struct adaptive) <= CA_PRIV_BYTES, "a socket has no room for this state");

static __always_inline struct adaptive *state(struct sock *sk)
{
	return private(sk);
}

static __always_inline void on_start(struct sock *sk)
{
	adaptive_init(state(sk), sk);
}

OP(void, adaptive_reno_release, struct sock *sk)
{
	cause_release(&state(sk)->cause_state);
}

OP(void, adaptive_reno_in_ack_event, struct sock *sk, u32 flags)
{
	make_up_skipped(&state(sk)->cause_state, sk);
	cause_on_ack(&state(sk)->cause_state, tcp_sk(sk), flags);
}

OP(void, adaptive_reno_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	adaptive_hear(state(sk), tcp_sk(sk), sample);
}

static __always_inline u32 threshold(struct sock *sk)
{
	return adaptive_ssthresh(state(sk), tcp_sk(sk), tcp_reno_ssthresh(sk));
}

static __always_inline void on_state(struct sock *sk, u8 new_state)
{
	cause_on_state(&state(sk)->cause_state, sk, new_state);
}

OP(void, adaptive_reno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

OP(u32, adaptive_reno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

TABLE_PROGRAMS(adaptive_reno)

TABLE adaptive_reno = {
	.name = "adaptive_reno",
	.ssthresh = (void *)adaptive_reno_ssthresh,
	.cong_avoid = (void *)adaptive_reno_cong_avoid,
	.set_state = (void *)adaptive_reno_set_state,
	.in_ack_event = (void *)adaptive_reno_in_ack_event,
	.pkts_acked = (void *)adaptive_reno_pkts_acked,
	.undo_cwnd = (void *)adaptive_reno_undo_cwnd,
	.init = (void *)adaptive_reno_init,
	.release = (void *)adaptive_reno_release,
};
