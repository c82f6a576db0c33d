/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Packets as the kernel passes them to a program: bytes are loaded by helpers; at a control group
 * the socket is known.
 */
#pragma once

/* Value of enum bpf_hdr_start_off. */
#define BPF_HDR_START_NET 1
/* Return value of a classifier that leaves the decision to the next one. */
#define TC_ACT_UNSPEC (-1)
/* ETH_P_IP in network byte order. */
#define PACKET_IPV4 __builtin_bswap16(0x0800)
#define PROTOCOL_TCP 6

struct bpf_sock;

/* Layout of include/uapi/linux/bpf.h, which is stable. */
struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 before_sk[35];
	struct bpf_sock *sk;
};
