/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Reno with ABE: the kernel's own Reno (RFC 5681), but for the answer to an ECN-echo (RFC 8511). */
#include "kernel.h"
#include "abe.h"

_Static_assert(sizeof(struct abe) <= CA_PRIV_BYTES, "a socket has no room for this state");

OP(void, abe_reno_init, struct sock *sk)
{
	abe_init(private(sk));
}

OP(void, abe_reno_release, struct sock *sk)
{
	abe_release(private(sk));
}

OP(void, abe_reno_in_ack_event, struct sock *sk, u32 flags)
{
	abe_ack(private(sk), tcp_sk(sk), flags);
}

OP(u32, abe_reno_ssthresh, struct sock *sk)
{
	return abe_ssthresh(private(sk), tcp_sk(sk), tcp_reno_ssthresh(sk));
}

OP(void, abe_reno_set_state, struct sock *sk, u8 new_state)
{
	abe_state(private(sk), sk, new_state);
}

OP(void, abe_reno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

OP(u32, abe_reno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

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
