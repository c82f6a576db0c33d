/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A controller of this directory as a program: events in, windows out, one line each. It is the C
 * that runs in the kernel, compiled for the host. The parts of the kernel that it uses are modelled
 * below, as far as it sees them.
 *
 *   cc -DCONTROLLER=abe_cubic -I.. replay.c && ./a.out SETTINGS < EVENTS
 *
 * SETTINGS are the words of `struct settings`. The first line is `cwnd ssthresh least-rtt-µs`, each
 * other
 *   a|d|l|e|c|t|w|p|q time-µs state cwnd-limited una nxt pacing-rate acked rtt-µs
 * for an ACK, a duplicate ACK, a loss, an ECN-echo, a full local queue, a timeout, a window set by
 * the transport, the end of a pause, and a source quench. Windows, `una`, `nxt` and `acked` are in
 * segments; `rtt` is -1 if there is none. `acked` is the number in a row of a timeout, the ticks of
 * a pause, the fifth octet of a quench, and the cwnd of a window that is set, with ssthresh in
 * `rtt`.
 *
 * With -DUNTOLD it skips `ssthresh` and `set_state`, as kernels may (skipped_calls.h), and takes
 * stale stack contents for the threshold. After the next ACK the window must be what the programs
 * would have computed, had they been called then.
 *
 * With -DEXACT=… it prints a third number for each event. With -DHEAR=… the controller gets the
 * transport's RTT at a signal. With -DQUENCHES it gets quenches.
 */
#include "socket.h"

/* Slow start (RFC 5681 § 3.1), by acknowledged segments; returns those left at the threshold. */
static u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 room = tp->snd_ssthresh - tp->snd_cwnd;
	u32 step = acked < room ? acked : room;

	tp->snd_cwnd += step;
	return acked - step;
}

/* Adds a segment per `w` acknowledged ones. A count kept from a larger `w` yields one segment. */
static void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	tp->snd_cwnd += tp->snd_cwnd_cnt / w;
	tp->snd_cwnd_cnt %= w;
}

/* RFC 5681 eq. 4, with the window in place of FlightSize. */
static u32 tcp_reno_ssthresh(struct sock *sk)
{
	u32 half = sk->tp->snd_cwnd / 2;

	return half > 2 ? half : 2;
}

/* Slow start and congestion avoidance (RFC 5681 § 3.1). */
static void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = sk->tp;

	(void)ack;
	if (!cwnd_limited(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh)
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

static u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return sk->tp->snd_cwnd;
}

/* The input replaces the program at an interface. */
#define INGRESS_H

#define TEXT(name) #name
#define SOURCE(name) TEXT(name.bpf.c)
#include SOURCE(CONTROLLER)

static struct controller_info info;

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	(void)map, (void)key;
	return &info;
}

#ifdef QUENCHES
/* The note of the only socket. */
static struct note note;

static void *bpf_sk_storage_get(void *map, struct sock *sk, void *value, u64 flags)
{
	(void)map, (void)sk, (void)value, (void)flags;
	return &note;
}

static long bpf_sk_storage_delete(void *map, struct sock *sk)
{
	(void)map, (void)sk;
	return 0;
}
#endif

static struct tcp_sock tp = { .echoed = -1 };
static struct sock sk = { .sk_gso_max_size = 65536, .tp = &tp };

static void to(u8 state)
{
	CONTROLLER.set_state(&sk, state);
	sk.state = state;
}

#ifdef UNTOLD
/* Stale stack contents that the kernel takes for a result. */
#define WILD 0x81104110
/* A skipped change is still to be made up for; the window before it. */
static bool pending;
static u32 window_then;
static unsigned int made_up;

/* Models a skipped reduction. Until the next ACK the kernel skips all calls. */
static void leave_out(u8 state)
{
	if (!pending) {
		window_then = tp.snd_cwnd;
		tp.prior_cwnd = tp.snd_cwnd;
		tp.snd_ssthresh = WILD;
		tp.snd_cwnd = WILD / 3;
	}
	pending = 1;
	sk.state = state;
}

/* Returns the threshold that the programs would set if they were called now. */
static u32 as_told(void)
{
	struct sock sk_now = sk;
	struct tcp_sock tp_now = tp;
	struct controller_info info_now = info;
	u32 threshold;

	tp.snd_cwnd = window_then;
	tp.snd_ssthresh = CONTROLLER.ssthresh(&sk);
	CONTROLLER.set_state(&sk, sk.state);
	threshold = tp.snd_ssthresh;
	sk = sk_now;
	tp = tp_now;
	info = info_now;
	return threshold;
}

static void hear_ack(u32 flags)
{
	u32 want = pending ? as_told() : 0;

	CONTROLLER.in_ack_event(&sk, flags);
	if (!pending)
		return;
	if (tp.snd_ssthresh != want || tp.snd_cwnd > window_then)
		printf("apart in state %u: %u and not %u, and a window of %u, not %u\n", sk.state,
		       tp.snd_ssthresh, want, tp.snd_cwnd, window_then);
	pending = 0;
	made_up++;
	if (sk.state != TCP_CA_Loss && tp.snd_cwnd > tp.snd_ssthresh)
		tp.snd_cwnd = tp.snd_ssthresh;
}
#else
static void hear_ack(u32 flags)
{
	CONTROLLER.in_ack_event(&sk, flags);
}
#endif

/*
 * Enters a state. The kernel's PRR takes a round trip to reduce the window; here it is immediate.
 */
static void enter(u8 state)
{
#ifdef UNTOLD
	if (pending) {
		leave_out(state);
		return;
	}
#endif
	to(state);
	if (tp.snd_cwnd > tp.snd_ssthresh)
		tp.snd_cwnd = tp.snd_ssthresh;
}

/* Models the kernel's entry into CWR and Recovery. */
static void reduce(u8 state)
{
#ifdef UNTOLD
	leave_out(state);
	return;
#endif
	tp.snd_cwnd_cnt = 0;
	tp.snd_ssthresh = CONTROLLER.ssthresh(&sk);
	enter(state);
}

/* Delivers a quench about outstanding data, and then an ACK that acknowledges nothing. */
static void quench(u8 fifth_octet)
{
#ifdef QUENCHES
	quench_hear(&note, tp.snd_una, tp.snd_nxt, tp.snd_una, fifth_octet);
	hear_ack(0);
#else
	(void)fifth_octet;
#endif
}

static void hear(long rtt)
{
#ifdef HEAR
	HEAR(rtt);
#else
	(void)rtt;
#endif
}

#define PRINT_COUNTER(name) printf(#name " %lu ", info.counted.name);

int main(int count, char **arguments)
{
	char event;
	u64 time;
	unsigned int state, limited, una, nxt;
	unsigned long rate;
	long acked, rtt;

	unsigned int last = TCP_CA_Open;
	u32 words[sizeof(settings) / sizeof(u32)];
	int i;

	if (count != 1 + (int)(sizeof(words) / sizeof(u32)) ||
	    scanf("%u %u %u", &tp.snd_cwnd, &tp.snd_ssthresh, &tp.least_rtt) != 3)
		return 2;
	for (i = 0; i < count - 1; i++)
		words[i] = strtoul(arguments[i + 1], NULL, 10);
	memcpy(&settings, words, sizeof(words));
	tp.snd_cwnd_clamp = ~0U;
	tp.tcp_mstamp = now;
	CONTROLLER.init(&sk);
	while (scanf(" %c %lu %u %u %u %u %lu %ld %ld", &event, &time, &state, &limited, &una, &nxt,
		     &rate, &acked, &rtt) == 9) {
		now = 1000000 + time;
		tp.tcp_mstamp = now;
		tp.limited = limited;
		/* While losses are repaired a quench carries no news. */
		if (last >= TCP_CA_Recovery && state >= TCP_CA_Recovery)
			quench(0x80);
		last = state;
		tp.snd_una = una;
		tp.snd_nxt = nxt;
		sk.sk_pacing_rate = rate;
		if (event == 'a') {
			struct ack_sample sample = { .pkts_acked = acked, .rtt_us = rtt };

			hear_ack(0);
			/* The kernel reports the return to Open to every controller. */
			if (state == TCP_CA_Open && sk.state != TCP_CA_Open)
				to(TCP_CA_Open);
			/* Only the state reports a loss in a window that was reduced before. */
			if (state == TCP_CA_Recovery && sk.state == TCP_CA_Open)
				reduce(TCP_CA_Recovery);
			else if (state == TCP_CA_Recovery && sk.state == TCP_CA_CWR)
				enter(TCP_CA_Recovery);
			if (CONTROLLER.pkts_acked)
				CONTROLLER.pkts_acked(&sk, &sample);
			/* The window does not grow while it is being reduced. */
			if (sk.state == TCP_CA_Open || sk.state == TCP_CA_Loss)
				CONTROLLER.cong_avoid(&sk, una, acked);
		} else if (event == 'd') {
			hear_ack(0);
			hear(rtt);
		} else if (event == 'q') {
			quench(acked);
			/* Another quench about the same window of data. */
			quench(acked);
		} else if (event == 'e') {
			hear(rtt);
			hear_ack(CA_ACK_ECE);
			reduce(TCP_CA_CWR);
		} else if (event == 'c') {
			reduce(TCP_CA_CWR);
		} else if (event == 'l') {
			hear(rtt);
			if (sk.state == TCP_CA_CWR && state == TCP_CA_CWR)
				enter(TCP_CA_Recovery);
			else
				reduce(TCP_CA_Recovery);
		} else if (event == 't') {
			hear(rtt);
#ifdef UNTOLD
			leave_out(TCP_CA_Loss);
#else
			if (acked == 1)
				tp.snd_ssthresh = CONTROLLER.ssthresh(&sk);
#endif
			tp.snd_cwnd = 1;
			tp.snd_cwnd_cnt = 0;
#ifndef UNTOLD
			to(TCP_CA_Loss);
#endif
		} else if (event == 'w') {
			tp.snd_cwnd = acked;
			tp.snd_ssthresh = rtt;
		} else if (event == 'p') {
			tp.lsndtime = jiffies() - acked;
			if (CONTROLLER.cwnd_event)
				CONTROLLER.cwnd_event(&sk, CA_EVENT_TX_START);
		}
#ifdef EXACT
		printf("%u %u %lu\n", tp.snd_cwnd, tp.snd_ssthresh, (u64)(EXACT));
#else
		printf("%u %u\n", tp.snd_cwnd, tp.snd_ssthresh);
#endif
	}
#ifdef UNTOLD
	printf("made up for %u\n", made_up);
#endif
	/* Counters follow at the end. */
	COUNTERS(PRINT_COUNTER)
	printf("\n");
	return 0;
}
