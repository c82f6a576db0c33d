/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * BMCC (Qazi, Andrew, Znati 2009; sections and equations refer to it). The window grows and shrinks
 * by an estimate of the load factor at the most loaded link, which routers signal by two bits of
 * many packets. The algorithm is that of crates/cc/src/bmcc.rs.
 *
 * load.h has the computations on loads, group.h the transport of the estimate from receiver to
 * sender. This file is the sender. The kernel takes CE for a mark of RFC 3168: the receiver echoes
 * it, and the sender enters CWR. As this controller has `cong_control`, the kernel then changes
 * neither window nor pacing rate, and here only a sender without estimates reacts to that state.
 *
 * A sender without any estimate so far has a path without such routers, or a receiver without this
 * program. It must not multiply its window: it behaves like Reno in congestion avoidance.
 */
#include "kernel.h"

struct settings {
	/* t_p, µs. */
	u32 interval;
	/* κ₂, α, β_max, β_min, η₀, η, u, in billionths. */
	u32 mi_step;
	u32 alpha;
	u32 beta_most;
	u32 beta_least;
	u32 least;
	u32 high;
	u32 most;
	/* Cap of the RTT in eq. 3, µs. */
	u32 mi_rtt_most;
	/* A new flow multiplies its window until the estimate first is 1 or more. */
	u32 multiplies_first;
	/* Rule for the time between two decreases (enum below). */
	u32 rests;
	u32 on_loss;
	u32 paced;
	/* For receivers: ACKs that carry the estimate (load.h). */
	u32 carried;
	/* For receivers: connections that echo (sockops.h). */
	u32 address;
	u32 namespace_low;
	u32 namespace_high;
};

enum { RESTS_BOTH, RESTS_LONGER };
enum { ON_LOSS_IF_OVERLOAD, ON_LOSS_REPAIR, ON_LOSS_DECREASE };

SETTINGS settings SEC(".rodata.settings") = {
	.interval = 200000,
	.mi_step = 350000000,
	.alpha = 1000000000,
	.beta_most = 875000000,
	.beta_least = 650000000,
	.least = 150000000,
	.high = 750000000,
	.most = 1200000000,
	.mi_rtt_most = 500000,
	.multiplies_first = 1,
	.paced = 1,
};

/*
 * Counters of senders: ACKs with an estimate (`load_acks_heard`); options that are malformed, or in
 * an ACK outside the window; ACKs that multiplied, added, rested, or grew as Reno's (`…_unguided`);
 * decreases; losses that were only repaired.
 *
 * Counters of receivers: ECN-capable data packets (`told`), those that moved the estimate, those
 * with CE, and those outside the window (`outside`, too, and not `told`); options written.
 */
#define COUNTERS(X) \
	CAUSES(X) X(load_acks_heard) X(malformed) X(outside) X(load_acks_multiplied) \
	X(load_acks_added) X(load_acks_rested) X(load_acks_unguided) X(load_decreases) \
	X(losses_only_repaired) X(told) X(moved) X(marks) X(options_written)
#include "cause.h"
#include "skipped_calls.h"
#include "load.h"

/* Last estimate that reached a sender's socket, and whether any has. */
struct load_note {
	u32 heard;
	u16 place;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct load_note);
} cwnd_loads SEC(".maps");

#include "group.h"

/*
 * Windows are fixed-point numbers of segments, so that fractions accumulate; the kernel sees the
 * whole part.
 */
#define SHIFT 24
#define SEGMENT (1ULL << SHIFT)
/* Growth factor, in 2^28ths, with which the window grows by the acknowledged data. */
#define DOUBLES (1ULL << 28)
/* Limits that keep products within 64 bits: segments counted per ACK, and the window. */
#define MOST_ACKED 1024
#define MOST_WINDOW (SEGMENT << 20)
/* Quarters of a paced window that must be in flight for it to count as used. */
#define USED_QUARTERS 3
/* Reno's factor, for senders without an estimate. */
#define HALF_A_BILLION 500000000

struct state {
	/* Window; it grows as in slow start up to `repair` after a timeout. */
	u64 window;
	u64 repair;
	/* The window rests until `rests`, and does not decrease again before `adds`, µs. */
	u64 rests;
	u64 adds;
	/* Cached growth factor of eq. 3 and its RTT; log₂ (1 + ξ) of the last estimate. */
	u64 factor;
	u32 factor_rtt;
	u32 log;
	struct cause_state cause_state;
	/* `snd_una` as of the last ACK. */
	u32 una;
	/* Data below this sequence number was sent before the last reduction. */
	u32 reduced_until;
	/* Restart window, segments. */
	u32 initial;
	u16 place;
	/* The estimate never was 1 or more; there never was an estimate. */
	bool is_new;
	bool is_unguided;
	/* `ssthresh` was called: the kernel takes what follows for a reduction. */
	bool asked;
};

_Static_assert(sizeof(struct state) <= CA_PRIV_BYTES, "a socket has no room for this state");

static __always_inline struct state *state(struct sock *sk)
{
	return private(sk);
}

static __always_inline void hear(struct state *s, u16 place)
{
	s->place = place;
	s->is_new &= !is_over(place);
	s->log = log_of(xi_of(load_at(place, settings.least, settings.high, settings.most),
			      settings.mi_step));
	s->factor_rtt = 0;
}

/* Reads the note that the option of an ACK left at the socket. */
static __always_inline void hear_note(struct state *s, struct sock *sk)
{
	struct load_note *note = bpf_sk_storage_get(&cwnd_loads, sk, 0, 0);

	if (!note || !note->heard)
		return;
	s->is_unguided = 0;
	if (note->place != s->place)
		hear(s, note->place);
}

/* Writes the window to the socket. There is no slow start: the threshold is the window's goal. */
static __always_inline void show(const struct state *s, struct tcp_sock *tp)
{
	u32 window = s->window >> SHIFT;
	u32 goal = s->window < s->repair ? s->repair >> SHIFT : window;

	if (window > tp->snd_cwnd_clamp)
		window = tp->snd_cwnd_clamp;
	tp->snd_cwnd = window ? window : 1;
	tp->snd_ssthresh = as_threshold(goal);
}

/*
 * Sets the pacing rate: a window per smoothed RTT, in bytes per second. Without an RTT the first
 * window is not paced. A window below two segments is not paced either: its ACKs are a round trip
 * apart already. A pace of payload, to which the kernel adds headers, would be slower and let the
 * retransmission timer expire.
 */
static __always_inline void pace(const struct state *s, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 srtt = smoothed_rtt(tp);
	u64 bytes = (s->window >> 12) * tp->mss_cache >> 12;

	if (!settings.paced || !srtt)
		return;
	if (s->window < 2 * SEGMENT)
		sk->sk_pacing_rate = ~0UL;
	else
		sk->sk_pacing_rate = bytes * 8000000 / srtt;
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

static __always_inline void widen(struct state *s, u64 by)
{
	s->window += by;
	if (s->window > MOST_WINDOW)
		s->window = MOST_WINDOW;
}

/* Adds `segments`, in 2^24ths, per window of acknowledged data. */
static __always_inline void add(struct state *s, u64 acked, u64 segments)
{
	u64 most = (u64)MOST_ACKED << SHIFT;

	if (segments > most)
		segments = most;
	/* Exact to a 256th of an acknowledged segment. */
	widen(s, (segments * (acked >> 16) << 8) / (s->window >> 8));
}

/*
 * Grows the window by eq. 3 or 4, as Reno if there is no estimate, or repairs it after a timeout,
 * no faster than slow start; `acked` is in 2^24ths of a segment.
 */
static __always_inline void grow(struct state *s, struct sock *sk, u64 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 eighths = smoothed_rtt(tp);
	u32 rtt = eighths ? eighths : settings.interval * 8;

	if (s->window < s->repair) {
		widen(s, acked);
	} else if (s->is_unguided) {
		COUNT(load_acks_unguided);
		add(s, acked, SEGMENT);
	} else if (s->place < QUARTER || (s->is_new && settings.multiplies_first)) {
		COUNT(load_acks_multiplied);
		if (rtt > settings.mi_rtt_most * 8)
			rtt = settings.mi_rtt_most * 8;
		if (s->factor_rtt != rtt) {
			s->factor = growth_of(s->log, rtt, settings.interval * 8);
			s->factor_rtt = rtt;
		}
		if (ca_state(sk) == TCP_CA_Loss && s->factor > DOUBLES)
			widen(s, acked);
		else
			widen(s, (acked >> 8) * s->factor >> 20);
	} else {
		/* T / t_p in 2^24ths, capped at 2^30. */
		u64 ratio = ((u64)rtt << 24) / (settings.interval * 8);

		COUNT(load_acks_added);
		if (ratio >= 1 << 30)
			ratio = 1 << 30;
		add(s, acked, billionths_of(ratio * ratio >> 24, settings.alpha));
	}
}

/* Returns the fraction of the window that a decrease keeps, in billionths. */
static __always_inline u32 beta(const struct state *s)
{
	if (s->is_unguided)
		return HALF_A_BILLION;
	return beta_of(load_at(s->place, settings.least, settings.high, settings.most),
		       settings.most, settings.beta_most, settings.beta_least);
}

static __always_inline void decrease(struct state *s, const struct tcp_sock *tp)
{
	u64 now = tp->tcp_mstamp;
	/* Rounded up, so that `adds` is not before the end of the round trip. */
	u32 rtt = (smoothed_rtt(tp) + 7) / 8;
	u64 kept = billionths_of(s->window, beta(s));

	if (settings.rests == RESTS_LONGER) {
		s->rests = now + (rtt > settings.interval ? rtt : settings.interval);
		s->adds = s->rests;
	} else {
		s->rests = now + settings.interval;
		s->adds = s->rests + rtt;
	}
	if (kept < SEGMENT)
		kept = SEGMENT;
	if (kept < s->window)
		s->window = kept;
	s->reduced_until = tp->snd_nxt;
	COUNT(load_decreases);
}

/* True if a loss decreases the window, too. */
static __always_inline bool loss_decreases(const struct state *s, const struct tcp_sock *tp)
{
	if (s->is_unguided || settings.on_loss == ON_LOSS_DECREASE)
		return 1;
	return settings.on_loss == ON_LOSS_IF_OVERLOAD && is_over(s->place) &&
	       tp->tcp_mstamp >= s->rests;
}

/*
 * True if the window may grow. Pacing delays packets that the window would admit, so a paced window
 * counts as used if most of it is in flight.
 */
static __always_inline bool may_grow(const struct state *s, struct sock *sk, u64 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u8 phase = ca_state(sk);
	u64 flight;

	if (!acked || phase == TCP_CA_Recovery)
		return 0;
	if (cwnd_limited(tp))
		return 1;
	if (!settings.paced)
		return 0;
	/* Data in flight before this ACK. */
	flight = ((u64)in_flight(tp) << SHIFT) + acked;
	return flight * 4 >= s->window * USED_QUARTERS;
}

/* Processes an ACK. */
static __always_inline void on_ack(struct sock *sk)
{
	struct state *s = state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 mss = tp->mss_cache ? tp->mss_cache : 1;
	u64 bytes = tp->snd_una - s->una;
	u64 acked = (bytes << SHIFT) / mss;
	bool grows = may_grow(s, sk, acked);

	s->una = tp->snd_una;
	/*
	 * More than a window was sent in more than one round trip: an ACK that completes a repair.
	 */
	if (acked > s->window)
		acked = s->window;
	if (acked > (u64)MOST_ACKED << SHIFT)
		acked = (u64)MOST_ACKED << SHIFT;
	hear_note(s, sk);
	if (!is_over(s->place)) {
		if (grows)
			grow(s, sk, acked);
	} else if (tp->tcp_mstamp < s->rests) {
		COUNT(load_acks_rested);
	} else if (tp->tcp_mstamp < s->adds) {
		if (grows)
			grow(s, sk, acked);
	} else if (ca_state(sk) < TCP_CA_Recovery && before(s->reduced_until, tp->snd_una)) {
		/* Once per window of data, and not while losses are repaired. */
		decrease(s, tp);
	}
	show(s, tp);
	pace(s, sk);
}

static __always_inline void on_start(struct sock *sk)
{
	struct state *s = state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct load_note *note =
		bpf_sk_storage_get(&cwnd_loads, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	cause_init(&s->cause_state, sk);
	if (note)
		note->heard = 0;
	s->window = (u64)tp->snd_cwnd << SHIFT;
	s->initial = tp->snd_cwnd;
	s->una = tp->snd_una;
	s->reduced_until = tp->snd_una - 1;
	s->is_new = 1;
	s->is_unguided = 1;
	/* "New flows initially estimate f̂ = η₀" (§ III a). */
	hear(s, 0);
}

OP(void, bmcc_release, struct sock *sk)
{
	bpf_sk_storage_delete(&cwnd_loads, sk);
	cause_release(&state(sk)->cause_state);
}

OP(void, bmcc_in_ack_event, struct sock *sk, u32 flags)
{
	make_up_skipped(&state(sk)->cause_state, sk);
	cause_on_ack(&state(sk)->cause_state, tcp_sk(sk), flags);
}

/* Changes nothing yet, as the kernel may report the cause only afterwards. */
static __always_inline u32 threshold(struct sock *sk)
{
	state(sk)->asked = 1;
	return as_threshold(tcp_sk(sk)->snd_cwnd);
}

static __always_inline void on_state(struct sock *sk, u8 new_state)
{
	struct state *s = state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	enum cause cause = cause_on_state(&s->cause_state, sk, new_state);
	bool is_first = !before(tp->snd_una, s->reduced_until);

	if (cause == CAUSE_TIMEOUT) {
		/* A repeated timeout of the same data keeps the goal (RFC 5681 § 3.1). */
		if (s->asked) {
			u64 goal = s->window > s->repair ? s->window : s->repair;

			s->repair = loss_decreases(s, tp) ? billionths_of(goal, beta(s)) : goal;
		}
		s->window = (u64)tp->snd_cwnd << SHIFT;
		s->reduced_until = tp->snd_nxt;
		show(s, tp);
	} else if (cause == CAUSE_ECN) {
		/* The estimate already includes CE. Without estimates CE means congestion. */
		if (s->is_unguided && is_first)
			decrease(s, tp);
	} else if (cause != CAUSE_NONE) {
		if (is_first && loss_decreases(s, tp))
			decrease(s, tp);
		else if (is_first)
			COUNT(losses_only_repaired);
		/* Data outstanding when losses were detected causes no further reduction. */
		s->reduced_until = tp->snd_nxt;
	}
	s->asked = 0;
}

OP(void, bmcc_cong_control, struct sock *sk)
{
	/* The answer to a SYN is an ACK, too, and precedes `init`. */
	if (state(sk)->cause_state.started)
		on_ack(sk);
}

/*
 * RFC 5681 § 4.1: the restart window is min(IW, cwnd). The kernel leaves this to a controller with
 * `cong_control`.
 */
static __always_inline void first_transmission(struct sock *sk)
{
	struct state *s = state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 restart = (u64)s->initial << SHIFT;

	if ((s32)(jiffies() - tp->lsndtime) <= (s32)timeout_ticks(sk))
		return;
	if (s->window > restart)
		s->window = restart;
	s->repair = 0;
	show(s, tp);
	pace(s, sk);
}

OP(void, bmcc_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		first_transmission(sk);
}

OP(void, bmcc_cwnd_event_tx_start, struct sock *sk)
{
	first_transmission(sk);
}

/* Lowest burst: a segment if paced, as the router measures the rate, which follows the window. */
OP(u32, bmcc_min_tso_segs, struct sock *sk)
{
	return settings.paced ? 1 : 2;
}

OP(u32, bmcc_undo_cwnd, struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

TABLE_PROGRAMS(bmcc)

TABLE bmcc = {
	.name = "bmcc",
	.ssthresh = (void *)bmcc_ssthresh,
	.set_state = (void *)bmcc_set_state,
	.cwnd_event = (void *)bmcc_cwnd_event,
	.cwnd_event_tx_start = (void *)bmcc_cwnd_event_tx_start,
	.in_ack_event = (void *)bmcc_in_ack_event,
	.undo_cwnd = (void *)bmcc_undo_cwnd,
	.cong_control = (void *)bmcc_cong_control,
	.min_tso_segs = (void *)bmcc_min_tso_segs,
	.init = (void *)bmcc_init,
	.release = (void *)bmcc_release,
};
