// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Reno as a controller of the kernel: half of the window stays after a loss.
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

// A key of the scenario sets it.
const volatile u32 divisor = 2;

SEC("struct_ops")
u32 BPF_PROG(own_ssthresh, struct sock *sk)
{
	u32 left = ((struct tcp_sock *)sk)->snd_cwnd / divisor;

	return left > 2 ? left : 2;
}

SEC("struct_ops")
void BPF_PROG(own_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
u32 BPF_PROG(own_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops own = {
	.ssthresh = (void *)own_ssthresh,
	.cong_avoid = (void *)own_cong_avoid,
	.undo_cwnd = (void *)own_undo_cwnd,
	.name = "own_reno",
};
