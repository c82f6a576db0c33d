/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A controller of this folder as a program: events in, windows out, one line each. It is the same C that runs in the
 * kernel, compiled for this machine: below are the parts of the kernel that it meets, as far as it sees them.
 *
 *   cc -DCONTROLLER=abe_cubic -I.. replay.c && ./a.out SETTINGS < EVENTS
 *
 * SETTINGS are the words of its `struct settings`. The first line is `cwnd ssthresh least-rtt-µs`, each other
 *   a|d|l|e|c|t|w|p|q time-µs state cwnd-limited una nxt pacing-rate acked rtt-µs
 * for an ACK, a duplicate, a loss, an ECN-echo, a full queue of the sender's own, a timeout, a window that the transport sets, the end of a pause, a
 * source quench; windows, una, nxt and acked in segments, rtt −1 where there is none; a timeout has its number in a row for `acked`, a pause its
 * ticks, a quench its fifth octet, a window that is set has cwnd for `acked` and ssthresh for `rtt`.
 *
 * Compiled with -DUNTOLD it leaves out `ssthresh` and `set_state`, as kernels may (untold.h), and takes for the threshold what stood on a
 * stack; what the next ACK makes of that must be what the programs would have made of it, had they been called then.
 *
 * Compiled with -DEXACT=… it prints a third number for each event, with -DHEAR=… it is told of the RTT that the transport knows at a signal, and with
 * -DQUENCHES it hears quenches.
 */
#include "socket.h"

/* RFC 5681 § 3.1, slow start, each acknowledged segment counted; gives back what is left at the threshold. */
static u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 room = tp->snd_ssthresh - tp->snd_cwnd;
	u32 step = acked < room ? acked : room;

	tp->snd_cwnd += step;
	return acked - step;
}

/* One segment more after `w` acknowledged ones. A count that was kept for a larger number is worth one segment. */
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

/* RFC 5681 eq. 4 with the window for FlightSize. */
static u32 tcp_reno_ssthresh(struct sock *sk)
{
	u32 half = sk->tp->snd_cwnd / 2;

	return half > 2 ? half : 2;
}

/* RFC 5681 § 3.1. */
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

/* What arrives at an interface is played by hand. */
#define INGRESS_H

#define TEXT(name) #name
#define SOURCE(name) TEXT(name.bpf.c)
#include SOURCE(CONTROLLER)

static struct card card;

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	(void)map, (void)key;
	return &card;
}

#ifdef QUENCHES
/* One socket, one note. */
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
/* What stood on the stack. */
#define WILD 0x81104110
/* Whether a change is to be made up for, and the window before it. */
static bool pending;
static u32 window_then;
static unsigned int made_up;

/* The kernel asks once until it hears something. */
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

/* What the programs would leave for a threshold if they were called now. */
static u32 as_told(void)
{
	struct sock sk_now = sk;
	struct tcp_sock tp_now = tp;
	struct card card_now = card;
	u32 threshold;

	tp.snd_cwnd = window_then;
	tp.snd_ssthresh = CONTROLLER.ssthresh(&sk);
	CONTROLLER.set_state(&sk, sk.state);
	threshold = tp.snd_ssthresh;
	sk = sk_now;
	tp = tp_now;
	card = card_now;
	return threshold;
}

static void hear_ack(u32 flags)
{
	u32 want = pending ? as_told() : 0;

	CONTROLLER.in_ack_event(&sk, flags);
	if (!pending)
		return;
	if (tp.snd_ssthresh != want || tp.snd_cwnd > window_then)
		printf("apart in state %u: %u and not %u, and a window of %u, not %u\n", sk.state, tp.snd_ssthresh, want,
		       tp.snd_cwnd, window_then);
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

/* The kernel's PRR brings the window to the threshold in a round trip; here it is there at once. */
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

/* What the kernel does on entering CWR and Recovery. */
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

/* A router's word about a packet that is outstanding, and the next ACK, which acknowledges nothing. */
static void quench(u8 said)
{
#ifdef QUENCHES
	quench_hear(&note, tp.snd_una, tp.snd_nxt, tp.snd_una, said);
	hear_ack(0);
#else
	(void)said;
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

#define PRINT_COUNTER(name) printf(#name " %lu ", card.counted.name);

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
		/* While losses are repaired a quench tells nothing new. */
		if (last >= TCP_CA_Recovery && state >= TCP_CA_Recovery)
			quench(0x80);
		last = state;
		tp.snd_una = una;
		tp.snd_nxt = nxt;
		sk.sk_pacing_rate = rate;
		if (event == 'a') {
			struct ack_sample sample = { .pkts_acked = acked, .rtt_us = rtt };

			hear_ack(0);
			/* The kernel says so when it goes back to normal, and to every controller. */
			if (state == TCP_CA_Open && sk.state != TCP_CA_Open)
				to(TCP_CA_Open);
			/* A loss in a window that was reduced before is told by the state alone. */
			if (state == TCP_CA_Recovery && sk.state == TCP_CA_Open)
				reduce(TCP_CA_Recovery);
			else if (state == TCP_CA_Recovery && sk.state == TCP_CA_CWR)
				enter(TCP_CA_Recovery);
			if (CONTROLLER.pkts_acked)
				CONTROLLER.pkts_acked(&sk, &sample);
			/* While the window is being reduced it does not grow. */
			if (sk.state == TCP_CA_Open || sk.state == TCP_CA_Loss)
				CONTROLLER.cong_avoid(&sk, una, acked);
		} else if (event == 'd') {
			hear_ack(0);
			hear(rtt);
		} else if (event == 'q') {
			quench(acked);
			/* Another about the same window of data. */
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
	/* The counters, last. */
	COUNTERS(PRINT_COUNTER)
	printf("\n");
	return 0;
}
