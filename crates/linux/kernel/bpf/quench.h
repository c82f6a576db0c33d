/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Source quenches that a host believes. The bytes are those of crates/packet (RFC 792; the fifth
 * octet of the ICMP header is BECN's, § IV-B), the checks those of its HeardQuench and of crates/tcp/src/sender/quench.rs.
 */
#pragma once

#include "skb.h"

/* RFC 1812 § 4.3.2.3: an error message has at most so many octets. */
#define QUENCH_ROOM 576
/* IP's header, ICMP's, and the least of a quoted one with eight octets of what it carried. */
#define QUENCH_LEAST (20 + 8 + 20 + 8)
#define PROTOCOL_ICMP 1
#define TYPE_SOURCE_QUENCH 4
/* The fifth octet: the packet was marked, else dropped; and how bad it is. */
#define QUENCH_MARKED 0x80
#define QUENCH_LEVEL 0x07

/* Addresses and ports are as they are in packets; ours are those of the quoted packet's source. */
struct quench {
	u32 local;
	u32 remote;
	u16 local_port;
	u16 remote_port;
	u32 sequence;
	u8 said;
};

static __always_inline u32 two(const u8 *bytes, u32 at)
{
	return bytes[at] << 8 | bytes[at + 1];
}

static __always_inline u32 four(const u8 *bytes, u32 at)
{
	return two(bytes, at) << 16 | two(bytes, at + 2);
}

/* As they lie in memory. */
static __always_inline u32 address(const u8 *bytes, u32 at)
{
	u32 out;

	__builtin_memcpy(&out, bytes + at, sizeof(out));
	return out;
}

static __always_inline u16 port(const u8 *bytes, u32 at)
{
	u16 out;

	__builtin_memcpy(&out, bytes + at, sizeof(out));
	return out;
}

/* A place among the first 256 bytes, of which compilers know no more: what they make of more, verifiers of some kernels do not follow
 * (6.18.15: `at | 1` of a multiple of four). */
static __always_inline u32 place(u32 at)
{
	asm volatile("" : "+r"(at));
	return at & 0xff;
}

/* All ones where `one` is less than `other`, both far below 2^31; no branch, since the kernel's verifier follows each. */
static __always_inline u32 less(u32 one, u32 other)
{
	return (s32)(one - other) >> 31;
}

/* RFC 1071: of bytes with their checksum the sum is all ones. Both ends are even, but the last byte may be half a word. */
static __always_inline bool sums_to_ones(const u8 *bytes, u32 from, u32 end)
{
	u32 sum = 0;
	u32 i;

	for (i = 0; i < QUENCH_ROOM; i += 2) {
		u32 in = ~less(i, from);

		sum += (u32)bytes[i] << 8 & in & less(i, end);
		sum += bytes[i + 1] & in & less(i + 1, end);
	}
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* Whether a host can have an address that begins with this byte (RFC 1122 § 3.2.1.3): not "this network", nor a group, nor all;
 * nor a loopback's, from another host. */
static __always_inline bool of_a_host(u8 first, u8 to)
{
	return first && first < 224 && (first != 127 || to == 127);
}

/* Reads a packet of so many bytes, of which QUENCH_ROOM can be read, from its IPv4 header on; whether it is a source quench
 * about a TCP segment that a host may believe: whole, with right checksums, about a packet of the host's own. */
static __always_inline bool quench_read(const u8 *bytes, u32 length, struct quench *quench)
{
	u32 header = place((bytes[0] & 15) * 4);
	u32 total = two(bytes, 2);
	u32 message, about, quoted;

	if (length > QUENCH_ROOM || bytes[0] >> 4 != 4 || header < 20)
		return 0;
	if (total > length || total < header - 20 + QUENCH_LEAST)
		return 0;
	/* § 3.2.2 there: an error of nobody is discarded. */
	if (!of_a_host(bytes[12], bytes[16]))
		return 0;
	/* Bit 13 and what follows: more fragments, and which one. */
	if (bytes[9] != PROTOCOL_ICMP || two(bytes, 6) & 0x3fff || !sums_to_ones(bytes, 0, header))
		return 0;
	message = header;
	if (bytes[message] != TYPE_SOURCE_QUENCH || bytes[message + 1] || !sums_to_ones(bytes, message, total))
		return 0;
	about = message + 8;
	quoted = place((bytes[about] & 15) * 4);
	if (bytes[about] >> 4 != 4 || quoted < 20 || about + quoted + 8 > total)
		return 0;
	/* Later fragments have no ports. */
	if (address(bytes, about + 12) != address(bytes, 16) || two(bytes, about + 6) & 0x1fff)
		return 0;
	if (bytes[about + 9] != PROTOCOL_TCP)
		return 0;
	quench->local = address(bytes, about + 12);
	quench->remote = address(bytes, about + 16);
	quench->local_port = port(bytes, about + quoted);
	quench->remote_port = port(bytes, about + quoted + 2);
	quench->sequence = four(bytes, about + quoted + 4);
	quench->said = bytes[message + 4];
	return 1;
}

/* What is noted at a socket for its controller. */
struct note {
	/* Believed so far, and what the last one said: one word, so that both change at once. */
	u32 said;
	/* What was acknowledged when it came. */
	u32 una;
	/* Guesses that quoted nothing outstanding, since all that was outstanding at the first of them was not acknowledged. */
	u32 refused;
	u32 round_end;
};

/* A source quench reached a connection of ours. What it quotes must be outstanding (RFC 5927 § 4.1): who does not see the
 * connection can only guess, and who guesses wrong too often within a round trip makes the connection deaf for the rest
 * of it. */
static __always_inline void quench_hear(struct note *note, u32 una, u32 nxt, u32 sequence, u8 said)
{
	bool outstanding = !before(sequence, una) && before(sequence, nxt);

	if (note->refused && !before(una, note->round_end))
		note->refused = 0;
	if (!outstanding) {
		COUNT(outside);
		if (!note->refused)
			note->round_end = nxt;
		if (note->refused < ~0U)
			note->refused++;
		return;
	}
	if (settings.guesses && note->refused >= settings.guesses) {
		COUNT(deaf);
		return;
	}
	COUNT(quenches);
	note->una = una;
	note->said = ((note->said >> 8) + 1) << 8 | (said & (QUENCH_MARKED | QUENCH_LEVEL));
}
