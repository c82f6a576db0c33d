/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Alternative Backoff with ECN (RFC 8511), for any controller whose answer to a loss is `ssthresh`.
 *
 * The kernel asks for the new threshold before it says why: `ssthresh` comes first, `set_state` at once after it. So
 * `ssthresh` always answers as for a loss, and `set_state` puts the threshold of an ECN-echo in its place where the state
 * is CWR and the ACK that is being processed carried ECE. The state tells loss and ECN apart whatever else the ACK said.
 */
#pragma once

/* Written by the loader before the object is loaded; crates/kernel/src/object.rs has the same members. */
struct settings {
	/* Part of the window that stays after an ECN-echo, in billionths (as crates/cc counts it). */
	u32 beta_ecn;
	/* Whether it also answers an ECN-echo that ends slow start (ABE § III; RFC 8511 changes congestion avoidance only). */
	u32 always;
	/* Whether a loss in the window that ECN reduced lowers the threshold to what the loss alone would have left. */
	u32 deepen;
	/* Ticks a second (CONFIG_HZ). */
	u32 hz;
};

SETTINGS settings SEC(".rodata.settings") = { .beta_ecn = 800000000, .hz = 1000 };

/* One a controller, for whoever asks how it fares; the loader fills in the first part. */
struct card {
	char name[16];
	char controller[16];
	struct settings settings;
	u32 flags;
	u32 pid;
	u32 table;
	u32 version;
	/* Windows reduced because of an ECN-echo, a loss, a timeout, and the sender's own queue. */
	u64 ecn;
	u64 loss;
	u64 timeout;
	u64 local;
	/* Losses in windows that an ECN-echo had reduced before. */
	u64 loss_after_ecn;
	/* Of `ecn`: reductions that ended or interrupted slow start. */
	u64 ecn_in_slow_start;
	/* Sockets that took the controller, and left it. */
	u64 opened;
	u64 closed;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct card);
} cwnd_card SEC(".maps");

static __always_inline struct card *the_card(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&cwnd_card, &only);
}

#define COUNT(what) \
	do { \
		struct card *card = the_card(); \
		if (card) \
			__sync_fetch_and_add(&card->what, 1); \
	} while (0)

/* The part of a socket's private area that is ABE's; zero when the socket takes the controller. */
struct abe {
	/* Time of the ACK that carried ECE and has not been answered, µs. */
	u32 ece_at;
	/* The window before the last reduction, and the threshold that a loss would have left. */
	u32 before;
	u32 after_loss;
	bool ece;
	/* The last reduction found congestion avoidance. */
	bool avoiding;
	bool begun;
};

/* RFC 5681 eq. 4: no threshold below two segments. */
#define LEAST_SSTHRESH 2
#define BILLION 1000000000ULL

static __always_inline void abe_init(struct abe *abe)
{
	abe->begun = 1;
	COUNT(opened);
}

static __always_inline void abe_release(struct abe *abe)
{
	/* Older kernels release a controller that never began. */
	if (!abe->begun)
		return;
	abe->begun = 0;
	COUNT(closed);
}

/* `in_ack_event`: the first that a controller hears of an ACK's flags. */
static __always_inline void abe_ack(struct abe *abe, const struct tcp_sock *tp, u32 flags)
{
	abe->ece = (flags & CA_ACK_ECE) != 0;
	abe->ece_at = (u32)tp->tcp_mstamp;
}

/* `ssthresh`: what a loss leaves, for a reason that is not known yet. */
static __always_inline u32 abe_ssthresh(struct abe *abe, const struct tcp_sock *tp, u32 after_loss)
{
	abe->before = tp->snd_cwnd;
	abe->after_loss = after_loss;
	abe->avoiding = tp->snd_cwnd >= tp->snd_ssthresh;
	return after_loss;
}

/* `set_state`: now the reason is known. */
static __always_inline void abe_state(struct abe *abe, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (state == TCP_CA_CWR) {
		/* Also entered when the sender's own queue is full, or when a probe repaired a loss. An ECE is answered once,
		 * and only while the ACK that carried it is processed. */
		bool ecn = abe->ece && abe->ece_at == (u32)tp->tcp_mstamp;

		abe->ece = 0;
		if (!ecn) {
			COUNT(local);
			return;
		}
		COUNT(ecn);
		if (!abe->avoiding)
			COUNT(ecn_in_slow_start);
		if (abe->avoiding || settings.always) {
			u32 kept = (u64)abe->before * settings.beta_ecn / BILLION;

			tp->snd_ssthresh = kept > LEAST_SSTHRESH ? kept : LEAST_SSTHRESH;
		}
	} else if (state == TCP_CA_Recovery) {
		/* The window was reduced already: the kernel does not ask for a threshold again (RFC 3168 § 6.1.2). */
		if (ca_state(sk) != TCP_CA_CWR) {
			COUNT(loss);
			return;
		}
		COUNT(loss_after_ecn);
		if (settings.deepen && abe->after_loss < tp->snd_ssthresh)
			tp->snd_ssthresh = abe->after_loss;
	} else if (state == TCP_CA_Loss) {
		COUNT(timeout);
	}
}
