/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the kernel hands to a program that sees packets: a packet of which bytes are asked for, and at a group its socket. */
#pragma once

/* enum bpf_hdr_start_off. */
#define BPF_HDR_START_NET 1
/* What a classifier answers where the next one is to decide. */
#define TC_ACT_UNSPEC (-1)
/* ETH_P_IP, as it is in packets. */
#define PACKET_IPV4 __builtin_bswap16(0x0800)
#define PROTOCOL_TCP 6

struct bpf_sock;

/* As include/uapi/linux/bpf.h has it; what the kernel shows of itself never moves. */
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
