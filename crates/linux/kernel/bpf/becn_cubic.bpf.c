/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CUBIC with BECN (becn.h): the kernel's CUBIC (RFC 9438), whose window source quenches reduce,
 * too.
 */
#include "kernel.h"
#include "becn.h"
#include "cubic.h"
#include "skipped_calls.h"

struct state {
	struct becn becn;
	struct cubic cubic;
};

_Static_assert(sizeof(struct state) <= CA_PRIV_BYTES, "a socket has no room for this state");

static __always_inline struct state *state(struct sock *sk)
{
	return private(sk);
}

static __always_inline void on_start(struct sock *sk)
{
	becn_init(&state(sk)->becn, sk);
	cubic_reset(&state(sk)->cubic, tcp_sk(sk));
}

OP(void, becn_cubic_release, struct sock *sk)
{
	becn_release(&state(sk)->becn, sk);
}

OP(void, becn_cubic_in_ack_event, struct sock *sk, u32 flags)
{
	enum quenched why;

	make_up_skipped(&state(sk)->becn.cause_state, sk);
	why = becn_ack(&state(sk)->becn, sk, flags);
	if (why != QUENCHED_NOT)
		becn_reduce(&state(sk)->becn, tcp_sk(sk), why,
			    cubic_reduce(&state(sk)->cubic, tcp_sk(sk)));
}

OP(void, becn_cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubic_acked(&state(sk)->cubic, sk, sample->rtt_us);
}

static __always_inline u32 threshold(struct sock *sk)
{
	if (becn_spares(&state(sk)->becn, tcp_sk(sk), cubic_kept(tcp_sk(sk))))
		return as_threshold(tcp_sk(sk)->snd_cwnd);
	return cubic_reduce(&state(sk)->cubic, tcp_sk(sk));
}

static __always_inline void on_state(struct sock *sk, u8 new_state)
{
	becn_state(&state(sk)->becn, sk, new_state);
	if (new_state == TCP_CA_Loss)
		cubic_reset(&state(sk)->cubic, tcp_sk(sk));
}

OP(void, becn_cubic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	if (!becn_rests(&state(sk)->becn, tcp_sk(sk)))
		cubic_avoid(&state(sk)->cubic, tcp_sk(sk), acked);
}

OP(void, becn_cubic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		cubic_resume(&state(sk)->cubic, tcp_sk(sk));
}

OP(void, becn_cubic_cwnd_event_tx_start, struct sock *sk)
{
	cubic_resume(&state(sk)->cubic, tcp_sk(sk));
}

OP(u32, becn_cubic_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

TABLE_PROGRAMS(becn_cubic)

TABLE becn_cubic = {
	.name = "becn_cubic",
	.ssthresh = (void *)becn_cubic_ssthresh,
	.cong_avoid = (void *)becn_cubic_cong_avoid,
	.set_state = (void *)becn_cubic_set_state,
	.cwnd_event = (void *)becn_cubic_cwnd_event,
	.cwnd_event_tx_start = (void *)becn_cubic_cwnd_event_tx_start,
	.in_ack_event = (void *)becn_cubic_in_ack_event,
	.pkts_acked = (void *)becn_cubic_pkts_acked,
	.undo_cwnd = (void *)becn_cubic_undo_cwnd,
	.init = (void *)becn_cubic_init,
	.release = (void *)becn_cubic_release,
};
