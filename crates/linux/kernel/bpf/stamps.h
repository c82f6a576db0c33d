/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where in a TCP segment the timestamp stands that it echoes (RFC 7323 § 3.2), and what becomes of it where a receiver cheats
 * (McCullagh 2008 § 5.1.1): so much less, so that the round trip seems so much longer.
 */
#pragma once

#include "skb.h"

/* The longest header of IPv4, and of TCP. */
#define HEADER_ROOM 60
#define LEAST_IP 20
#define LEAST_TCP 20
/* Of the flags: the echo of a SYN-ACK is checked, as is that of the ACK that answers it, and without ACK there is none. */
#define FLAG_SYN 0x02
#define FLAG_ACK 0x10
#define OPTION_END 0
#define OPTION_NOTHING 1
#define OPTION_TIMESTAMPS 8
#define TIMESTAMPS_BYTES 10
/* Kind, length, and the timestamp of who writes it. */
#define ECHO_IN_OPTION 6

/* Length of an IPv4 header before a segment's first byte; zero where there is none. */
static __always_inline u32 segment_at(const u8 *ip)
{
	u32 header = (ip[0] & 15) * 4;

	/* Later fragments have no TCP header. */
	if (ip[0] >> 4 != 4 || header < LEAST_IP || ip[9] != PROTOCOL_TCP || (ip[6] & 0x1f) || ip[7])
		return 0;
	return header;
}

/* Bytes that a TCP header says to have; zero if it echoes nothing that may be changed. */
static __always_inline u32 header_of(const u8 *tcp)
{
	u32 header = (tcp[12] >> 4) * 4;

	if (header < LEAST_TCP || !(tcp[13] & FLAG_ACK) || tcp[13] & FLAG_SYN)
		return 0;
	return header;
}

/* Where in a TCP header of so many bytes the echo begins; zero if there is none. HEADER_ROOM bytes can be read. */
static __always_inline u32 echo_at(const u8 *tcp, u32 header)
{
	/* As wide as a register, so that what is compared is what is added. */
	u64 at = LEAST_TCP;
	u32 n;

	for (n = 0; n < HEADER_ROOM - LEAST_TCP; n++) {
		u32 kind, length;

		if (at + 2 > header)
			return 0;
		/* The kernel's verifier knows nothing of the first bound, and the compiler is to know nothing of the second. */
		__asm__ volatile("" : "+r"(at));
		if (at > HEADER_ROOM - 2)
			return 0;
		kind = tcp[at];
		if (kind == OPTION_END)
			return 0;
		if (kind == OPTION_NOTHING) {
			at++;
			continue;
		}
		length = tcp[at + 1];
		if (length < 2)
			return 0;
		if (kind == OPTION_TIMESTAMPS)
			return length == TIMESTAMPS_BYTES && at + length <= header ? at + ECHO_IN_OPTION : 0;
		at += length;
	}
	return 0;
}

/* An echo as it lies in memory, less so many ticks. Zero is no echo (RFC 7323 § 3.2), and none is made of one. */
static __always_inline u32 echo_less(u32 echo, u32 ticks)
{
	u32 less = __builtin_bswap32(__builtin_bswap32(echo) - ticks);

	return echo && less ? less : echo;
}

/* Checksums add up words of two bytes: what begins in the middle of one counts with its bytes turned by one place. */
static __always_inline u32 as_words(u32 four, u32 at)
{
	return at & 1 ? four << 8 | four >> 24 : four;
}
