/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * TCP*(n) as a program: the C that runs in the kernel, beside a retransmission timer that behaves
 * as the kernel's (`tcp_retransmit_timer`), compiled for the host.
 *
 *   cc -I.. timer.c && ./a.out N 1000 N-OF-SYNS < CONNECTIONS
 *
 * Each line is `timeout-ms thin syn expiries` of a connection that gets no answer. The output is
 * its timeouts, and behind a colon the options after an RTT was measured: the bound, 1 if linear,
 * TCP_USER_TIMEOUT. Beside each expire a connection with another address, one in another
 * namespace, and one of IPv6, which must not be affected.
 */
#include "host.h"

struct bpf_sock;
struct bpf_sock_ops;
static void *bpf_sk_storage_get(void *map, struct bpf_sock *sk, void *value, u64 flags);
static long bpf_setsockopt(struct bpf_sock_ops *ctx, int level, int option, void *value,
			   int length);
static long bpf_getsockopt(struct bpf_sock_ops *ctx, int level, int option, void *value,
			   int length);
static long bpf_sock_ops_cb_flags_set(struct bpf_sock_ops *ctx, int flags);
static u64 bpf_get_netns_cookie(void *ctx);

#include "tcpstar.bpf.c"

static struct controller_info info;
static struct saved_options saved;
/*
 * Options of the socket: the bound of its timeout, ms; 1 if timeouts are linear while it is thin;
 * its TCP_USER_TIMEOUT, ms; and the calls that it requests.
 */
static s32 most = 120000, linear, user;
static int wanted;

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	(void)map, (void)key;
	return &info;
}

static void *bpf_sk_storage_get(void *map, struct bpf_sock *sk, void *value, u64 flags)
{
	(void)map, (void)sk, (void)value, (void)flags;
	return &saved;
}

static long bpf_setsockopt(struct bpf_sock_ops *ctx, int level, int option, void *value, int length)
{
	s32 number = *(s32 *)value;

	(void)ctx, (void)level, (void)length;
	if (option == TCP_THIN_LINEAR_TIMEOUTS) {
		linear = number;
		return 0;
	}
	if (option == TCP_USER_TIMEOUT) {
		user = number;
		return 0;
	}
	if (option != TCP_RTO_MAX_MS || number < 1000 || number > 120000)
		return -1;
	most = number;
	return 0;
}

static long bpf_getsockopt(struct bpf_sock_ops *ctx, int level, int option, void *value, int length)
{
	(void)ctx, (void)level, (void)length;
	if (option != TCP_RTO_MAX_MS && option != TCP_USER_TIMEOUT)
		return -1;
	*(s32 *)value = option == TCP_USER_TIMEOUT ? user : most;
	return 0;
}

static long bpf_sock_ops_cb_flags_set(struct bpf_sock_ops *ctx, int flags)
{
	(void)ctx;
	wanted = flags;
	return 0;
}

/* Address and namespace of the affected connections; others differ by one. */
static const u32 address = 0x010012c6;
static const u64 namespace = 0x500000007;
static u64 of_caller;

static u64 bpf_get_netns_cookie(void *ctx)
{
	(void)ctx;
	return of_caller;
}

static void call(u32 op, u32 state, u32 first, u32 second)
{
	static struct bpf_sock *some = (struct bpf_sock *)&saved;
	struct bpf_sock_ops ctx = { .op = op, .args = { first, second }, .sk = some };
	struct controller_info before;

	ctx.family = FAMILY_IPV4;
	ctx.state = state;
	before = info;
	of_caller = namespace;
	ctx.local_ip4 = address + 1;
	cwnd_timeouts(&ctx);
	of_caller = namespace + 1;
	ctx.local_ip4 = address;
	cwnd_timeouts(&ctx);
	ctx.family = FAMILY_IPV4 + 8;
	of_caller = namespace;
	cwnd_timeouts(&ctx);
	if (memcmp(&before, &info, sizeof(info)))
		exit(4);
	ctx.family = FAMILY_IPV4;
	cwnd_timeouts(&ctx);
}

int main(int count, char **arguments)
{
	u32 base, thin, syn, expiries;

	if (count != 4)
		return 2;
	settings.after = strtoul(arguments[1], NULL, 10);
	settings.hz = strtoul(arguments[2], NULL, 10);
	settings.syn_after = strtoul(arguments[3], NULL, 10);
	settings.address = address;
	settings.namespace_low = (u32)namespace;
	settings.namespace_high = namespace >> 32;
	while (scanf("%u %u %u %u", &base, &thin, &syn, &expiries) == 4) {
		u32 state = syn ? STATE_SYN_SENT : 1;
		u32 timeout = base;
		u32 expired;

		call(TCP_CONNECT_CB, STATE_SYN_SENT, 0, 0);
		for (expired = 0; expired < expiries; expired++) {
			printf("%u ", timeout);
			if (!(wanted & RTO_CB_FLAG))
				return 3;
			call(RTO_CB, state, expired, (u64)timeout * settings.hz / 1000);
			/* A bounded socket must not be given up because of the bound. */
			if ((most < 120000) != (user == R2_MS))
				return 5;
			/*
			 * Timeouts without backoff: the kernel's first four of a SYN; six of a thin
			 * stream, this one included.
			 */
			if (syn && expired + 1 <= 4)
				continue;
			if (linear && thin && expired + 1 <= 6)
				timeout = base < (u32)most ? base : (u32)most;
			else
				timeout = 2 * timeout < (u32)most ? 2 * timeout : (u32)most;
		}
		if (wanted & RTT_CB_FLAG)
			call(RTT_CB, 1, 0, 0);
		printf(": %d %d %d\n", most, linear, user);
	}
	return 0;
}
