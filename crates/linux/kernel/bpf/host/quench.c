/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The reader of source quenches as a program.
 *
 * Input: one packet per line, in hexadecimal digits from its IPv4 header on. Output: one line each,
 * `no`, or `local local-port remote remote-port sequence fifth_octet`, in host byte order.
 */
#include <arpa/inet.h>
#include "host.h"

#define COUNT(what) ((void)0)
static struct {
	u32 guesses;
} settings;

#include "quench.h"

int main(void)
{
	static char line[4 * QUENCH_ROOM];
	static struct packet packet;

	while (fgets(line, sizeof(line), stdin)) {
		struct quench quench;
		u32 length = 0;

		/* In the kernel the bytes behind a packet belong to other packets. */
		memset(&packet, 0xa5, sizeof(packet));
		while (length < QUENCH_ROOM &&
		       sscanf(line + 2 * length, "%2hhx", &packet.bytes[length]) == 1)
			length++;
		if (quench_read(&packet, length, &quench))
			printf("%u %u %u %u %u %u\n", ntohl(quench.local), ntohs(quench.local_port),
			       ntohl(quench.remote), ntohs(quench.remote_port), quench.sequence,
			       quench.fifth_octet);
		else
			puts("no");
	}
	return 0;
}
