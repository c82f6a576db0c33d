/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Differential test of CUBIC in the kernel: the kernel's CUBIC controls the window, and ours
 * follows. Both get every event with the same socket, and the results are compared. Only the tests
 * load it.
 */
#include "kernel.h"
#include "abe.h"
#include "cubic.h"

extern void cubictcp_init(struct sock *sk) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, u8 new_state) __ksym;
/* Of these two, each kernel has one. */
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;

/* The kernel's state, with its names. */
struct bictcp {
	u32 cnt;
	u32 last_max_cwnd;
	u32 bic_origin_point;
	u32 bic_K;
	u32 delay_min;
	u32 epoch_start;
	u32 ack_cnt;
	u32 tcp_cwnd;
	u8 sample_cnt;
	u8 found;
	u32 round_start;
	u32 end_seq;
	u32 last_ack;
	u32 curr_rtt;
	u32 last_cwnd;
	u32 last_time;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cubic);
} ours SEC(".maps");

/* shadow.rs has the same members. */
struct tally {
	u64 acks;
	u64 growths;
	u64 reductions;
	u64 exits;
	u64 timeouts;
	/* First transmissions after all data was acknowledged. */
	u64 resumes;
	/*
	 * Events during which the clock ticked: the two may have seen different times, so ours
	 * adopts the kernel's state.
	 */
	u64 ticked;
	/* Differences in the window, in the threshold, in the state. */
	u64 windows;
	u64 thresholds;
	u64 states;
	/*
	 * HyStart rounds that ours began below LOW_WINDOW, and those of them that the kernel did
	 * not begin.
	 */
	u64 small_rounds;
	u64 missed_rounds;
	/* New epochs; the sum of their K, and of the differences between the two, 1/1024 s. */
	u64 stages;
	u64 k_sum;
	u64 k_apart;
	/* First difference: event, member, the kernel's value, ours. */
	u64 first[4];
};

struct tally tally SEC(".bss.tally");

enum { INIT = 1, ACKED, AVOID, REDUCE, STATE, RESUME };

static __always_inline struct cubic *our(struct sock *sk)
{
	return bpf_sk_storage_get(&ours, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

static __always_inline void differ(u64 *where, u64 event, u64 member, u64 theirs, u64 us)
{
	__sync_fetch_and_add(where, 1);
	if (!tally.first[0]) {
		tally.first[1] = member;
		tally.first[2] = theirs;
		tally.first[3] = us;
		tally.first[0] = event;
	}
}

static __always_inline void take_over(struct cubic *ca, const struct bictcp *k)
{
	ca->needed = k->cnt;
	ca->last_max = k->last_max_cwnd;
	ca->computed_window = k->last_cwnd;
	ca->computed_at = k->last_time;
	ca->epoch = k->epoch_start;
	ca->origin = k->bic_origin_point;
	ca->k = k->bic_K;
	ca->reno = k->tcp_cwnd;
	ca->acks = k->ack_cnt;
	ca->delay_min = k->delay_min;
	ca->round_start = k->round_start;
	ca->last_ack = k->last_ack;
	ca->round_end = k->end_seq;
	ca->round_rtt = k->curr_rtt;
	ca->samples = k->sample_cnt;
	ca->found = k->found;
}

#define SAME(number, theirs, us) \
	do { \
		if ((theirs) != (us)) { \
			differ(&tally.states, event, number, theirs, us); \
			goto apart; \
		} \
	} while (0)

/* Compares the states after an event. HyStart's round is kept only while HyStart is active. */
static __always_inline void compare(struct cubic *ca, struct sock *sk, u64 event, u32 began)
{
	const struct bictcp *k = private(sk);

	if (jiffies() != began) {
		tally.ticked++;
		take_over(ca, k);
		return;
	}
	SAME(1, k->cnt, ca->needed);
	SAME(2, k->last_max_cwnd, ca->last_max);
	SAME(3, k->last_cwnd, ca->computed_window);
	SAME(4, k->last_time, ca->computed_at);
	SAME(5, k->epoch_start, ca->epoch);
	SAME(6, k->bic_origin_point, ca->origin);
	SAME(7, k->tcp_cwnd, ca->reno);
	SAME(8, k->ack_cnt, ca->acks);
	SAME(9, k->delay_min, ca->delay_min);
	SAME(10, k->found, ca->found);
	if (!ca->found) {
		SAME(11, k->round_start, ca->round_start);
		SAME(12, k->end_seq, ca->round_end);
		SAME(13, k->last_ack, ca->last_ack);
		SAME(14, k->curr_rtt, ca->round_rtt);
		SAME(15, k->sample_cnt, ca->samples);
	}
	return;
apart:
	take_over(ca, k);
}

OP(void, shadow_init, struct sock *sk)
{
	struct cubic *ca;
	u32 began = jiffies();

	cubictcp_init(sk);
	ca = our(sk);
	if (!ca)
		return;
	cubic_reset(ca, tcp_sk(sk));
	compare(ca, sk, INIT, began);
}

/* The kernel frees its state with the connection. */
OP(void, shadow_release, struct sock *sk)
{
	bpf_sk_storage_delete(&ours, sk);
}

/*
 * Kernels without commit 25c1a9ca53db (6.14) skip ACKs below LOW_WINDOW, even for the end of a
 * round. If the kernel kept its round, ours returns to its earlier round, which must then equal the
 * kernel's.
 */
static __always_inline void keep_round(struct cubic *ca, const struct cubic *before,
				       struct sock *sk)
{
	const struct bictcp *k = private(sk);

	if (ca->round_end == before->round_end || tcp_sk(sk)->snd_cwnd >= LOW_WINDOW)
		return;
	tally.small_rounds++;
	if (k->end_seq != before->round_end)
		return;
	tally.missed_rounds++;
	ca->round_start = before->round_start;
	ca->last_ack = before->last_ack;
	ca->round_end = before->round_end;
	ca->round_rtt = before->round_rtt;
	ca->samples = before->samples;
}

OP(void, shadow_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic *ca = our(sk);
	struct cubic ours_before;
	u32 began = jiffies();
	u32 before = tp->snd_ssthresh;
	u32 theirs;

	cubictcp_acked(sk, sample);
	if (!ca)
		return;
	ours_before = *ca;
	theirs = tp->snd_ssthresh;
	tp->snd_ssthresh = before;
	cubic_acked(ca, sk, sample->rtt_us);
	tally.acks++;
	tally.exits += theirs != before;
	if (tp->snd_ssthresh != theirs && jiffies() == began)
		differ(&tally.thresholds, ACKED, 0, theirs, tp->snd_ssthresh);
	tp->snd_ssthresh = theirs;
	if (jiffies() == began)
		keep_round(ca, &ours_before, sk);
	compare(ca, sk, ACKED, began);
}

OP(void, shadow_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct bictcp *k = private(sk);
	struct cubic *ca = our(sk);
	u32 began = jiffies();
	u32 cwnd = tp->snd_cwnd, cnt = tp->snd_cwnd_cnt, epoch = k->epoch_start;
	u32 their_cwnd, their_cnt;

	cubictcp_cong_avoid(sk, ack, acked);
	if (!ca)
		return;
	their_cwnd = tp->snd_cwnd;
	their_cnt = tp->snd_cwnd_cnt;
	tp->snd_cwnd = cwnd;
	tp->snd_cwnd_cnt = cnt;
	if (cwnd_limited(tp)) {
		if (tp->snd_cwnd < tp->snd_ssthresh)
			acked = tcp_slow_start(tp, acked);
		if (acked) {
			cubic_update(ca, tp->snd_cwnd, acked);
			if (!epoch && k->epoch_start && jiffies() == began) {
				/*
				 * The kernel's cube root is from a table. From here on ours uses
				 * its result.
				 */
				u32 apart = ca->k > k->bic_K ? ca->k - k->bic_K : k->bic_K - ca->k;

				if (ca->k != k->bic_K) {
					ca->k = k->bic_K;
					cubic_by_curve(ca, jiffies(), ca->computed_window);
					if (ca->needed < LEAST_NEEDED)
						ca->needed = LEAST_NEEDED;
				}
				tally.stages++;
				tally.k_sum += k->bic_K;
				tally.k_apart += apart;
			}
			tcp_cong_avoid_ai(tp, ca->needed, acked);
		}
	}
	tally.growths++;
	if (tp->snd_cwnd != their_cwnd && jiffies() == began)
		differ(&tally.windows, AVOID, 0, their_cwnd, tp->snd_cwnd);
	tp->snd_cwnd = their_cwnd;
	tp->snd_cwnd_cnt = their_cnt;
	compare(ca, sk, AVOID, began);
}

OP(u32, shadow_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic *ca = our(sk);
	u32 began = jiffies();
	u32 theirs = cubictcp_recalc_ssthresh(sk);
	u32 us;

	if (!ca)
		return theirs;
	us = cubic_reduce(ca, tp);
	tally.reductions++;
	if (us != theirs)
		differ(&tally.thresholds, REDUCE, 0, theirs, us);
	compare(ca, sk, REDUCE, began);
	return theirs;
}

OP(void, shadow_set_state, struct sock *sk, u8 new_state)
{
	struct cubic *ca = our(sk);
	u32 began = jiffies();

	cubictcp_state(sk, new_state);
	if (!ca)
		return;
	if (new_state == TCP_CA_Loss) {
		cubic_reset(ca, tcp_sk(sk));
		tally.timeouts++;
	}
	compare(ca, sk, STATE, began);
}

OP(void, shadow_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct cubic *ca = our(sk);
	u32 began = jiffies();

	cubictcp_cwnd_event(sk, event);
	if (!ca)
		return;
	if (event == CA_EVENT_TX_START)
		cubic_resume(ca, tcp_sk(sk));
	compare(ca, sk, RESUME, began);
	tally.resumes += event == CA_EVENT_TX_START;
}

OP(void, shadow_cwnd_event_tx_start, struct sock *sk)
{
	struct cubic *ca = our(sk);
	u32 began = jiffies();

	cubictcp_cwnd_event_tx_start(sk);
	if (!ca)
		return;
	cubic_resume(ca, tcp_sk(sk));
	compare(ca, sk, RESUME, began);
	tally.resumes++;
}

OP(u32, shadow_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

TABLE shadow = {
	.name = "shadow",
	.ssthresh = (void *)shadow_ssthresh,
	.cong_avoid = (void *)shadow_cong_avoid,
	.set_state = (void *)shadow_set_state,
	.cwnd_event = (void *)shadow_cwnd_event,
	.cwnd_event_tx_start = (void *)shadow_cwnd_event_tx_start,
	.pkts_acked = (void *)shadow_pkts_acked,
	.undo_cwnd = (void *)shadow_undo_cwnd,
	.init = (void *)shadow_init,
	.release = (void *)shadow_release,
};
