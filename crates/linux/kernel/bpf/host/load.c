/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * BMCC as a program: the C that runs in the kernel, compiled for the host. The parts of the kernel
 * that it uses are modelled below, as far as it sees them.
 *
 *   cc -I.. load.c && ./a.out 0 SETTINGS < EVENTS of a sender
 *   ./a.out 1 CARRIED < PACKETS for a receiver
 *   ./a.out 2 < OPTIONS
 *
 * Sender: SETTINGS are the words of `struct settings`. The first line is `cwnd mss`, each other
 *   a|l|t|i time-µs state cwnd-limited una nxt flight srtt-8ths-of-a-µs acked place
 * for an ACK (a negative place means none), a loss, a timeout, and a first transmission after
 * silence. `una`, `nxt`, `flight` and `acked` are in bytes, and `flight` is before the ACK. For a
 * timeout `acked` is its number in a row. The output is cwnd and ssthresh in segments, and the
 * window in 2^24ths of a segment. An ACK with the last place, which CE signals, also carries an
 * ECN-echo, and the kernel enters CWR.
 *
 * Receiver: lines are `d ecn identification` for a data packet, and `a` for an ACK. The output is
 * f̂'s place, and 1 if an ACK carries it.
 *
 * Options: each line holds the bytes behind a TCP header in hexadecimal digits. The output is the
 * place, `none`, or `malformed`.
 */
#include "socket.h"

enum { SENDER, RECEIVER, OPTIONS };

/* The input replaces the programs of group.h. */
#define GROUP_H

#include "bmcc.bpf.c"

static struct controller_info info;
static struct load_note note;

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	(void)map, (void)key;
	return &info;
}

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

static struct tcp_sock tp = { .snd_cwnd_clamp = ~0U };
static struct sock sk = { .tp = &tp };

static void to(u8 state)
{
	bmcc.set_state(&sk, state);
	sk.state = state;
}

/* Models the kernel's entry into CWR and Recovery. */
static void reduce(u8 state)
{
	if (sk.state < TCP_CA_CWR)
		tp.snd_ssthresh = bmcc.ssthresh(&sk);
	to(state);
}

#define PRINT_COUNTER(name) printf(#name " %lu ", info.counted.name);

static int sender(int count, char **words)
{
	char event;
	u64 time;
	u32 state, limited, una, nxt, flight, srtt, acked, high = 0;
	u32 values[sizeof(settings) / sizeof(u32)];
	long place;
	int i;

	if (count != (int)(sizeof(values) / sizeof(u32)) ||
	    scanf("%u %u", &tp.snd_cwnd, &tp.mss_cache) != 2)
		return 2;
	for (i = 0; i < count; i++)
		values[i] = strtoul(words[i], NULL, 10);
	memcpy(&settings, values, sizeof(values));
	tp.tcp_mstamp = now;
	bmcc.init(&sk);
	while (scanf(" %c %lu %u %u %u %u %u %u %u %ld", &event, &time, &state, &limited, &una,
		     &nxt, &flight, &srtt, &acked, &place) == 10) {
		bool echo = event == 'a' && place == MOST;

		now = 1000000 + time;
		tp.tcp_mstamp = now;
		tp.limited = limited;
		tp.snd_una = una;
		tp.snd_nxt = nxt;
		tp.srtt_us = srtt;
		tp.flight = (flight - (event == 'a' ? acked : 0)) / tp.mss_cache;
		if (event == 'a') {
			if (place >= 0) {
				note.place = place;
				note.heard = 1;
			}
			bmcc.in_ack_event(&sk, echo ? CA_ACK_ECE : 0);
			if (state == TCP_CA_Open && sk.state >= TCP_CA_Recovery)
				to(TCP_CA_Open);
			else if (state == TCP_CA_Open && sk.state == TCP_CA_CWR &&
				 !before(una, high))
				to(TCP_CA_Open);
			/* Only the state reports a loss in a window that was reduced before. */
			if (state == TCP_CA_Recovery && sk.state < TCP_CA_Recovery)
				reduce(TCP_CA_Recovery);
			if (echo && sk.state < TCP_CA_CWR) {
				high = nxt;
				reduce(TCP_CA_CWR);
			}
			bmcc.cong_control(&sk);
		} else if (event == 'l') {
			bmcc.in_ack_event(&sk, 0);
			reduce(TCP_CA_Recovery);
		} else if (event == 't') {
			if (acked == 1)
				tp.snd_ssthresh = bmcc.ssthresh(&sk);
			tp.snd_cwnd = 1;
			to(TCP_CA_Loss);
		} else if (event == 'i') {
			tp.lsndtime = jiffies() - RTO_TICKS - 1;
			bmcc.cwnd_event(&sk, CA_EVENT_TX_START);
		}
		printf("%u %u %lu\n", tp.snd_cwnd, tp.snd_ssthresh,
		       ((struct state *)sk.private)->window);
	}
	/* Counters follow at the end. */
	COUNTERS(PRINT_COUNTER)
	printf("\n");
	return 0;
}

static int receiver(u32 carried)
{
	struct echo echo = { 0 };
	char event;
	u32 ecn, id;

	while (scanf(" %c", &event) == 1) {
		bool tells = 0;

		if (event == 'd' && scanf("%u %u", &ecn, &id) == 2)
			echo_hear(&echo, ecn, id);
		else if (echo.hears)
			tells = echo_takes(&echo, carried);
		printf("%u %u\n", echo.place, tells);
	}
	return 0;
}

static int options(void)
{
	static char line[4 * MOST_OPTION_BYTES];

	while (fgets(line, sizeof(line), stdin)) {
		u8 bytes[MOST_OPTION_BYTES];
		u32 length = 0;
		u16 place;

		memset(bytes, OPTION_KIND, sizeof(bytes));
		while (length < sizeof(bytes) &&
		       sscanf(line + 2 * length, "%2hhx", &bytes[length]) == 1)
			length++;
		switch (option_find(bytes, bytes + length, &place)) {
		case FOUND_NONE:
			puts("none");
			break;
		case FOUND_MALFORMED:
			puts("malformed");
			break;
		case FOUND:
			printf("%u\n", place);
			break;
		}
	}
	return 0;
}

int main(int count, char **arguments)
{
	unsigned long what = count > 1 ? strtoul(arguments[1], NULL, 10) : 0;

	if (what == SENDER && count > 1)
		return sender(count - 2, arguments + 2);
	if (what == RECEIVER && count == 3)
		return receiver(strtoul(arguments[2], NULL, 10));
	return what == OPTIONS ? options() : 2;
}
