/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Location of TSecr in a TCP segment (RFC 7323 § 3.2), and its falsification by a misbehaving
 * receiver (McCullagh 2008 § 5.1.1): subtracting a constant makes the RTT seem longer by it.
 */
#pragma once

#include "skb.h"

/* Longest header of IPv4, and of TCP, bytes. */
#define HEADER_ROOM 60
#define LEAST_IP 20
#define LEAST_TCP 20
/*
 * Flags. The peer's kernel checks the echo of a SYN-ACK, which stays, and that of the ACK that
 * answers it, which does not; without ACK there is no echo.
 */
#define FLAG_SYN 0x02
#define FLAG_ACK 0x10
#define OPTION_END 0
#define OPTION_NOTHING 1
#define OPTION_TIMESTAMPS 8
#define TIMESTAMPS_BYTES 10
/* Offset of TSecr in the option: behind kind, length and TSval. */
#define ECHO_IN_OPTION 6

/* Returns the length of the IPv4 header in front of a TCP segment; zero if there is no segment. */
static __always_inline u32 segment_at(const u8 *ip)
{
	u32 header = (ip[0] & 15) * 4;

	/* Later fragments have no TCP header. */
	if (ip[0] >> 4 != 4 || header < LEAST_IP || ip[9] != PROTOCOL_TCP || (ip[6] & 0x1f) ||
	    ip[7])
		return 0;
	return header;
}

/*
 * Returns the length of a TCP header by its data offset; zero if it has no echo that may be
 * changed.
 */
static __always_inline u32 header_of(const u8 *tcp)
{
	u32 header = (tcp[12] >> 4) * 4;

	if (header < LEAST_TCP || !(tcp[13] & FLAG_ACK) || tcp[13] & FLAG_SYN)
		return 0;
	return header;
}

/*
 * Returns the offset of TSecr in a TCP header of that length; zero if there is none. HEADER_ROOM
 * bytes must be readable.
 */
static __always_inline u32 echo_at(const u8 *tcp, u32 header)
{
	/* As wide as a register, so that the compared value is the one added. */
	u64 at = LEAST_TCP;
	u32 n;

	for (n = 0; n < HEADER_ROOM - LEAST_TCP; n++) {
		u32 kind, length;

		if (at + 2 > header)
			return 0;
		/*
		 * The verifier does not know the first bound; the asm keeps the compiler from
		 * removing the second.
		 */
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
			return length == TIMESTAMPS_BYTES && at + length <= header ?
				       at + ECHO_IN_OPTION : 0;
		at += length;
	}
	return 0;
}

/*
 * Subtracts ticks from an echo in network byte order. Zero means no echo (RFC 7323 § 3.2): it stays
 * zero, and an echo that would become zero is not changed.
 */
static __always_inline u32 echo_minus(u32 echo, u32 ticks)
{
	u32 less = __builtin_bswap32(__builtin_bswap32(echo) - ticks);

	return echo && less ? less : echo;
}

/* Checksums add 16-bit words: four bytes at an odd offset count rotated by one byte. */
static __always_inline u32 as_words(u32 four, u32 at)
{
	return at & 1 ? four << 8 | four >> 24 : four;
}
