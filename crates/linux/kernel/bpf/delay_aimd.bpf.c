/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Delay-based AIMD (McCullagh 2008; equations and sections refer to it): Reno's increase, and a
 * backoff to δ · minRTT / RTT of the window when the queueing delay exceeds a threshold. The
 * algorithm is that of crates/cc/src/delay_aimd.rs with the newest RTT.
 *
 * The kernel has no cause "delay", so the window is set here and the state stays Open. The window
 * of data of that reduction is recorded: a loss or an ECN-echo in it causes no further reduction.
 */
#include "kernel.h"

struct settings {
	/* τ0: queueing delay that triggers a backoff, µs. */
	u32 threshold;
	/* δ, in billionths. */
	u32 delta;
	/* Lowest window that a backoff for delay leaves, segments (§ 3.4.3, § 3.4.5). */
	u32 least_window;
	/* Source of RTT samples (rtt_source.h). */
	u32 rtt_from;
};

SETTINGS settings SEC(".rodata.settings") = {
	.threshold = 50000,
	.delta = 800000000,
	.least_window = 2,
};

/*
 * `delay`: reductions for delay, those that ended slow start also as `delay_in_slow_start`.
 * `spared`: losses and ECN-echoes in a window that was already reduced.
 */
#define COUNTERS(X) CAUSES(X) X(delay) X(delay_in_slow_start) X(spared)
#include "cause.h"
#include "delay.h"
#include "rtt_source.h"
#include "skipped_calls.h"

/*
 * Windows are fixed-point numbers of segments, so that fractions accumulate; the kernel sees the
 * whole part.
 */
#define SHIFT 24
#define SEGMENT (1ULL << SHIFT)
/* Most segments counted per ACK, so that products fit 64 bits. */
#define MOST_ACKED 0xffff

struct state {
	/* Window, and slow-start threshold. */
	u64 window;
	u64 threshold;
	struct rtts rtts;
	struct rtt_source rtt_source;
	struct cause_state cause_state;
	/*
	 * Threshold that a timeout would set for a window that was just spared; zero if none was.
	 */
	u64 after_timeout;
	/* Data below this sequence number was sent before the last reduction. */
	u32 reduced_until;
	/*
	 * Congestion avoidance even below the threshold: a backoff for delay may leave less than
	 * the lowest threshold.
	 */
	bool avoids;
	/* τ > τ0 as of the last sample. */
	bool late;
};

_Static_assert(sizeof(struct state) <= CA_PRIV_BYTES, "a socket has no room for this state");

static __always_inline struct state *state(struct sock *sk)
{
	return private(sk);
}

/*
 * Adopts window and threshold if the kernel changed them (recovery, undo, idle restart); slow start
 * then depends on the threshold.
 */
static __always_inline void take_over(struct state *s, const struct tcp_sock *tp)
{
	if (s->window >> SHIFT != tp->snd_cwnd) {
		s->window = (u64)tp->snd_cwnd << SHIFT;
		s->avoids = 0;
	}
	if (s->threshold >> SHIFT != tp->snd_ssthresh)
		s->threshold = (u64)tp->snd_ssthresh << SHIFT;
}

static __always_inline void show(const struct state *s, struct tcp_sock *tp)
{
	tp->snd_cwnd = s->window >> SHIFT;
	tp->snd_ssthresh = s->threshold >> SHIFT;
}

/*
 * Returns β of the window, with β = δ · minRTT / RTT (eq. 2.6); δ before the first sample. The two
 * steps keep products within 64 bits.
 */
static __always_inline u64 kept(const struct state *s)
{
	u64 w = s->window;
	u64 newest = s->rtts.newest;
	u64 least = s->rtts.least;

	if (newest && least < newest)
		w = w / newest * least + w % newest * least / newest;
	return billionths_of(w, settings.delta);
}

static __always_inline u64 at_least_two(u64 window)
{
	return window > LEAST_SSTHRESH * SEGMENT ? window : LEAST_SSTHRESH * SEGMENT;
}

/* Reduces the window by eq. 2.5, to no less than `least` segments. */
static __always_inline void back_off(struct state *s, const struct tcp_sock *tp, u32 least)
{
	u64 reduced = kept(s);
	u64 lowest = (u64)least << SHIFT;

	s->threshold = at_least_two(reduced);
	if (reduced < lowest)
		reduced = lowest;
	/* A window below the minimum is not raised to it. */
	if (reduced < s->window)
		s->window = reduced;
	s->avoids = 1;
	s->reduced_until = tp->snd_nxt;
}

static __always_inline void on_start(struct sock *sk)
{
	struct state *s = state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	cause_init(&s->cause_state, sk);
	rtts_init(&s->rtts, rtt_source_initial_min(tp));
	rtt_source_init(&s->rtt_source, tp);
	s->window = (u64)tp->snd_cwnd << SHIFT;
	s->threshold = (u64)tp->snd_ssthresh << SHIFT;
	s->reduced_until = tp->snd_una;
}

OP(void, delay_aimd_release, struct sock *sk)
{
	cause_release(&state(sk)->cause_state);
}

OP(void, delay_aimd_in_ack_event, struct sock *sk, u32 flags)
{
	make_up_skipped(&state(sk)->cause_state, sk);
	cause_on_ack(&state(sk)->cause_state, tcp_sk(sk), flags);
}

OP(void, delay_aimd_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct state *s = state(sk);

	if (rtts_hear(&s->rtts, rtt_source_sample(&s->rtt_source, tcp_sk(sk), sample)))
		s->late = s->rtts.newest - s->rtts.least > settings.threshold;
}

static __always_inline u32 threshold(struct sock *sk)
{
	struct state *s = state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	take_over(s, tp);
	if (before(tp->snd_una, s->reduced_until)) {
		/*
		 * One reduction per window of data, for any cause but a timeout. The window becomes
		 * the one that the kernel now reduces it to.
		 */
		COUNT(spared);
		s->after_timeout = at_least_two(kept(s));
		s->threshold = (u64)as_threshold(tp->snd_cwnd) << SHIFT;
		return s->threshold >> SHIFT;
	}
	/* "Loss backoff … unchanged" (§ 3.4.5): at least two segments. */
	back_off(s, tp, LEAST_SSTHRESH);
	return s->threshold >> SHIFT;
}

static __always_inline void on_state(struct sock *sk, u8 new_state)
{
	struct state *s = state(sk);

	if (cause_on_state(&s->cause_state, sk, new_state) != CAUSE_NONE)
		s->reduced_until = tcp_sk(sk)->snd_nxt;
	if (new_state == TCP_CA_Loss) {
		if (s->after_timeout) {
			s->threshold = s->after_timeout;
			tcp_sk(sk)->snd_ssthresh = s->threshold >> SHIFT;
		}
		take_over(s, tcp_sk(sk));
		s->avoids = 0;
	}
	s->after_timeout = 0;
}

OP(void, delay_aimd_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct state *s = state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 left;

	take_over(s, tp);
	if (s->late) {
		/*
		 * No growth; a backoff once per window of data, and not while losses are repaired.
		 */
		if (ca_state(sk) < TCP_CA_CWR && before(s->reduced_until, tp->snd_una)) {
			COUNT(delay);
			if (!s->avoids && s->window < s->threshold)
				COUNT(delay_in_slow_start);
			back_off(s, tp, settings.least_window);
			show(s, tp);
		}
		return;
	}
	if (!cwnd_limited(tp))
		return;
	left = (u64)(acked < MOST_ACKED ? acked : MOST_ACKED) << SHIFT;
	if (!s->avoids && s->window < s->threshold) {
		u64 room = s->threshold - s->window;
		u64 step = left < room ? left : room;

		s->window += step;
		left -= step;
	}
	/* w + α / w for each acknowledged segment, α = 1. */
	s->window += (left << SHIFT) / s->window;
	if (s->window >> SHIFT > tp->snd_cwnd_clamp)
		s->window = (u64)tp->snd_cwnd_clamp << SHIFT;
	show(s, tp);
}

OP(u32, delay_aimd_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

TABLE_PROGRAMS(delay_aimd)

TABLE delay_aimd = {
	.name = "delay_aimd",
	.ssthresh = (void *)delay_aimd_ssthresh,
	.cong_avoid = (void *)delay_aimd_cong_avoid,
	.set_state = (void *)delay_aimd_set_state,
	.in_ack_event = (void *)delay_aimd_in_ack_event,
	.pkts_acked = (void *)delay_aimd_pkts_acked,
	.undo_cwnd = (void *)delay_aimd_undo_cwnd,
	.init = (void *)delay_aimd_init,
	.release = (void *)delay_aimd_release,
};
