/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Members of kernel types that only rtt_source.h needs: the timestamp echoed by the last ACK. */
#ifndef KERNEL_RTT_H
#define KERNEL_RTT_H

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct tcp_options_received {
	u16 saw_tstamp : 1;
	u32 rcv_tsecr;
};

/* CO-RE ignores the suffix after three underscores: this is the kernel's `struct tcp_sock`. */
struct tcp_sock___rtt {
	struct tcp_options_received rx_opt;
	/* Since 6.7: timestamps are in µs if the route says so. */
	u8 tcp_usec_ts : 1;
};

#pragma clang attribute pop
#else
#define tcp_sock___rtt tcp_sock
#endif

/*
 * Returns the RTT by the timestamp that the ACK in process echoes, µs; negative if it echoes none,
 * one in the future or one that is too old for the type. The kernel has already subtracted the
 * connection's timestamp offset from the echo.
 */
static __always_inline s32 echoed_rtt(const struct tcp_sock *tp)
{
	const struct tcp_sock___rtt *rtt = (const struct tcp_sock___rtt *)tp;
	u32 echo = rtt->rx_opt.rcv_tsecr;
	u64 now = tp->tcp_mstamp;
	s32 took;

	if (!BPF_CORE_READ_BITFIELD(rtt, rx_opt.saw_tstamp) || !echo)
		return -1;
	if (bpf_core_field_exists(rtt->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(rtt, tcp_usec_ts))
		return (u32)now - echo;
	took = (u32)(now / 1000) - echo;
	return took < 0 || took > 0x7fffffff / 1000 ? -1 : took * 1000;
}

#endif
