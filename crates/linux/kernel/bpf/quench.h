/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Source quenches that a host accepts. The format is that of crates/packet (RFC 792; the fifth
 * octet of the ICMP header is BECN's, Akujobi et al. 2002, § IV-B). The checks are those of its
 * ReceivedQuench and of crates/tcp/src/sender/cwr.rs.
 */
#pragma once

#include "skb.h"

/* Largest ICMP error message, bytes (RFC 1812 § 4.3.2.3). */
#define QUENCH_ROOM 576
/* Smallest quench, bytes: IP header, ICMP header, quoted IP header, and eight bytes behind it. */
#define QUENCH_LEAST (20 + 8 + 20 + 8)
#define PROTOCOL_ICMP 1
#define TYPE_SOURCE_QUENCH 4
/* Bits of the fifth octet: the packet was marked, otherwise dropped; the severity. */
#define QUENCH_MARKED 0x80
#define QUENCH_LEVEL 0x07

/* First bytes of a packet, from its IPv4 header on. */
struct packet {
	u8 bytes[QUENCH_ROOM];
};

/*
 * A quench that was read. Addresses and ports are in network byte order; the local ones are those
 * of the quoted packet's source.
 */
struct quench {
	u32 local;
	u32 remote;
	u16 local_port;
	u16 remote_port;
	u32 sequence;
	u8 fifth_octet;
};

static __always_inline u32 two(const u8 *bytes, u32 at)
{
	return bytes[at] << 8 | bytes[at + 1];
}

static __always_inline u32 four(const u8 *bytes, u32 at)
{
	return two(bytes, at) << 16 | two(bytes, at + 2);
}

/* Addresses and ports are copied without conversion, in network byte order. */
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

/*
 * Hides an offset below 256 from the compiler: verifiers of some kernels do not follow the code
 * that compilers derive from what they know of it (6.18.15: `at | 1` of a multiple of four).
 */
static __always_inline u32 place(u32 at)
{
	asm volatile("" : "+r"(at));
	return at & 0xff;
}

/*
 * Returns all ones if `one` < `other`, both far below 2^31. It has no branch, as the kernel's
 * verifier follows each.
 */
static __always_inline u32 less(u32 one, u32 other)
{
	return (s32)(one - other) >> 31;
}

/*
 * True if data with its checksum sums to all ones (RFC 1071). `from` is even; the last byte may be
 * half a word.
 *
 * The verifier checks a global function once, with any arguments. If it is inlined, it is checked
 * for each path to a call: as clang 19 compiles it, over a million instructions, the limit.
 */
__attribute__((noinline)) bool sums_to_ones(const struct packet *packet, u32 from, u32 end)
{
	u32 sum = 0;
	u32 i;

	if (!packet)
		return 0;
	for (i = 0; i < QUENCH_ROOM; i += 2) {
		u32 in = ~less(i, from);

		sum += (u32)packet->bytes[i] << 8 & in & less(i, end);
		sum += packet->bytes[i + 1] & in & less(i + 1, end);
	}
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/*
 * True if an address that begins with this byte can be a host's (RFC 1122 § 3.2.1.3). Excluded are
 * "this network", multicast, reserved addresses and broadcast, and loopback unless the destination
 * is loopback, too.
 */
static __always_inline bool of_a_host(u8 first, u8 to)
{
	return first && first < 224 && (first != 127 || to == 127);
}

/*
 * Reads a packet of `length` bytes from its IPv4 header on.
 *
 * Returns true for a source quench about a TCP segment that a host may accept: whole, with right
 * checksums, about a packet that the host sent.
 */
static __always_inline bool quench_read(const struct packet *packet, u32 length,
					struct quench *quench)
{
	const u8 *bytes = packet->bytes;
	u32 header = place((bytes[0] & 15) * 4);
	u32 total = two(bytes, 2);
	u32 message, about, quoted;

	if (length > QUENCH_ROOM || bytes[0] >> 4 != 4 || header < 20)
		return 0;
	if (total > length || total < header - 20 + QUENCH_LEAST)
		return 0;
	/* RFC 1122 § 3.2.2: an error message with an invalid source is discarded. */
	if (!of_a_host(bytes[12], bytes[16]))
		return 0;
	/* Bit 13 and the bits below: more fragments, and the fragment offset. */
	if (bytes[9] != PROTOCOL_ICMP || two(bytes, 6) & 0x3fff || !sums_to_ones(packet, 0, header))
		return 0;
	message = header;
	if (bytes[message] != TYPE_SOURCE_QUENCH || bytes[message + 1] ||
	    !sums_to_ones(packet, message, total))
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
	quench->fifth_octet = bytes[message + 4];
	return 1;
}

/* Note at a socket for its controller. */
struct note {
	/*
	 * Count of accepted quenches, and the fifth octet of the last: one word, so that both
	 * change at once.
	 */
	u32 latest_quench;
	/* `snd_una` when it arrived. */
	u32 una;
	/*
	 * Quenches about no outstanding data, since the first of them; `round_end` is `snd_nxt` at
	 * that time.
	 */
	u32 refused;
	u32 round_end;
};

/*
 * Records a source quench for a connection of this controller. It must quote outstanding data (RFC
 * 5927 § 4.1), which an off-path attacker can only guess. After too many wrong guesses in a round
 * trip, all quenches in the rest of it are ignored.
 */
static __always_inline void quench_hear(struct note *note, u32 una, u32 nxt, u32 sequence, u8 octet)
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
	octet &= QUENCH_MARKED | QUENCH_LEVEL;
	note->latest_quench = ((note->latest_quench >> 8) + 1) << 8 | octet;
}
