/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The program of a misbehaving receiver on the host: `ticks address < PACKETS`, with the address as
 * an integer.
 *
 * Input: one packet per line, in hexadecimal digits from its IPv4 header on. Output: the packets as
 * they leave the interface, and counters. The kernel's helpers are modelled below.
 */
#include <arpa/inet.h>
#include "host.h"

#define ROOM 256

struct __sk_buff;
static long bpf_skb_load_bytes(const struct __sk_buff *skb, u32 at, void *to, u32 length);
static long bpf_skb_load_bytes_relative(const struct __sk_buff *skb, u32 at, void *to, u32 length,
					u32 from);
static long bpf_skb_store_bytes(struct __sk_buff *skb, u32 at, const void *from, u32 length,
				u64 flags);
static long bpf_l4_csum_replace(struct __sk_buff *skb, u32 at, u64 from, u64 to, u64 flags);

#include "cheat_stamps.bpf.c"

static struct controller_info info;
static struct header room;
/* Link-layer header, and the packet. */
static u8 bytes[MOST_BEFORE + ROOM];
static u32 in_front, total;

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	(void)key;
	return map == (void *)&cwnd_header ? (void *)&room : (void *)&info;
}

static long bpf_skb_load_bytes(const struct __sk_buff *skb, u32 at, void *to, u32 length)
{
	(void)skb;
	if (at + length > total)
		return -1;
	memcpy(to, bytes + at, length);
	return 0;
}

static long bpf_skb_load_bytes_relative(const struct __sk_buff *skb, u32 at, void *to, u32 length,
					u32 from)
{
	(void)from;
	return bpf_skb_load_bytes(skb, in_front + at, to, length);
}

static long bpf_skb_store_bytes(struct __sk_buff *skb, u32 at, const void *from, u32 length,
				u64 flags)
{
	(void)skb, (void)flags;
	if (at + length > total)
		return -1;
	memcpy(bytes + at, from, length);
	return 0;
}

/* Updates a checksum for four changed bytes (RFC 1624): HC' = ~(~HC + ~m + m'). */
static long bpf_l4_csum_replace(struct __sk_buff *skb, u32 at, u64 from, u64 to, u64 flags)
{
	u16 checksum;
	u32 sum;

	(void)skb;
	if (flags != 4 || at + 2 > total)
		return -1;
	memcpy(&checksum, bytes + at, 2);
	from = ~from;
	sum = (u16)~checksum + (from & 0xffff) + (from >> 16 & 0xffff) + (to & 0xffff) +
	      (to >> 16 & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	checksum = ~((sum & 0xffff) + (sum >> 16));
	memcpy(bytes + at, &checksum, 2);
	return 0;
}

int main(int count, char **arguments)
{
	static char line[4 * ROOM];
	u32 n = 0;

	if (count != 3)
		return 2;
	settings.subtract = strtoul(arguments[1], NULL, 10);
	settings.address = htonl(strtoul(arguments[2], NULL, 10));
	while (fgets(line, sizeof(line), stdin)) {
		struct __sk_buff skb = { .protocol = htons(0x0800) };
		u32 length = 0, i;

		/* Alternately with and without an Ethernet header. */
		in_front = n++ % 2 ? 14 : 0;
		while (length < ROOM &&
		       sscanf(line + 2 * length, "%2hhx", &bytes[in_front + length]) == 1)
			length++;
		total = in_front + length;
		/* The length counts payload that the input leaves out. */
		skb.len = in_front +
			  (length >= 4 ? bytes[in_front + 2] << 8 | bytes[in_front + 3] : length);
		cwnd_cheat(&skb);
		for (i = 0; i < length; i++)
			printf("%02x", bytes[in_front + i]);
		puts("");
	}
	printf("%lu %lu\n", info.counted.rewritten, info.counted.failed);
	return 0;
}
