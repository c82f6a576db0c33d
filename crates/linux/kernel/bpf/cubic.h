/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CUBIC (RFC 9438) in integers, as in the kernel: the window is a whole number of segments, and
 * grows by one after a number of acknowledgments. The algorithm is that of
 * `crates/cc/src/cubic/linux.rs` and `crates/cc/src/hystart.rs`. Section numbers without a document
 * refer to RFC 9438.
 */
#pragma once

/* CUBIC's part of a socket's private area; zero means "none yet". */
struct cubic {
	/* Acknowledged segments after which the window grows by one. */
	u32 needed;
	/* W_max, segments (§ 4.7). */
	u32 last_max;
	/* Window and tick for which `needed` was computed. */
	u32 computed_window;
	u32 computed_at;
	/*
	 * Current epoch: its start (ticks), the plateau (segments), the time from start to plateau
	 * K (1/1024 s).
	 */
	u32 epoch;
	u32 origin;
	u32 k;
	/* Reno-friendly window (§ 4.3), and acknowledged segments that it has not yet used. */
	u32 reno;
	u32 acks;
	/* Smallest RTT since the last timeout, µs. */
	u32 delay_min;
	/*
	 * HyStart's round: first and latest ACK of the train (µs), sequence number that ends it,
	 * smallest RTT (µs).
	 */
	u32 round_start;
	u32 last_ack;
	u32 round_end;
	u32 round_rtt;
	u8 samples;
	/* HyStart has ended slow start. */
	u8 found;
};

/* β (§ 4.6), in 1024ths. */
#define BETA 717
/* C = 0.4 segments/s³ (§ 5.1), in 1024ths. */
#define C 410
/*
 * Eight times the windows of acknowledgments in which Reno gains a segment (§ 4.3): 8 (1 + β) / (3
 * (1 − β)), truncated.
 */
#define RENO_SCALE (8 * (1024 + BETA) / 3 / (1024 - BETA))
/* Longest time from the plateau for which C t³ fits 64 bits, 1/1024 s: 342 s. */
#define FARTHEST 350000
/*
 * Bounds of `needed`: growth of at least a twentieth per round trip before any loss, and of at most
 * a half.
 */
#define MOST_NEEDED_AT_FIRST 20
#define LEAST_NEEDED 2

/* HyStart (Ha & Rhee), with the constants of Linux. It starts at this window, segments. */
#define LOW_WINDOW 16
/* Largest gap between ACKs of one train, µs. */
#define TRAIN_GAP 2000
/* RTT samples after which a round's delay is evaluated. */
#define MIN_SAMPLES 8
/* Bounds of the rise in delay that ends slow start, which is an eighth of the minimum RTT, µs. */
#define LEAST_RISE 4000
#define MOST_RISE 16000
/* Longest delay of ACKs that is attributed to offloads, µs. */
#define MOST_HELD 1000

/* Returns the cube root, rounded down, of a number below 2^63. */
static __always_inline u32 cube_root(u64 a)
{
	u64 root = 0;
	int bit;

#pragma unroll
	for (bit = 20; bit >= 0; bit--) {
		u64 more = root | 1ULL << bit;

		if (more * more * more <= a)
			root = more;
	}
	return root;
}

static __always_inline void cubic_begin_round(struct cubic *ca, const struct tcp_sock *tp)
{
	ca->round_start = ca->last_ack = (u32)tp->tcp_mstamp;
	ca->round_end = tp->snd_nxt;
	ca->round_rtt = ~0U;
	ca->samples = 0;
}

/* Clears the state: for a new connection, or after a timeout. */
static __always_inline void cubic_reset(struct cubic *ca, const struct tcp_sock *tp)
{
	__builtin_memset(ca, 0, sizeof(*ca));
	cubic_begin_round(ca, tp);
}

/* Returns the threshold after a loss (§ 4.6). */
static __always_inline u32 cubic_kept(const struct tcp_sock *tp)
{
	u32 kept = (u64)tp->snd_cwnd * BETA / 1024;

	return kept > 2 ? kept : 2;
}

/* Records a reduction (§ 4.6, § 4.7); returns the threshold. */
static __always_inline u32 cubic_reduce(struct cubic *ca, const struct tcp_sock *tp)
{
	u64 cwnd = tp->snd_cwnd;

	ca->epoch = 0;
	/* Fast convergence: a flow reduced below its last maximum leaves room for new flows. */
	ca->last_max = cwnd < ca->last_max ? cwnd * (1024 + BETA) / (2 * 1024) : cwnd;
	return cubic_kept(tp);
}

static __always_inline void cubic_begin_epoch(struct cubic *ca, u32 now, u32 cwnd, u32 acked)
{
	ca->epoch = now;
	ca->acks = acked;
	ca->reno = cwnd;
	if (ca->last_max <= cwnd) {
		ca->k = 0;
		ca->origin = cwnd;
	} else {
		/*
		 * § 4.2: K = cbrt((W_max − cwnd) / C), here in 1/1024 s: the cube of 1024 and C's
		 * 1024ths are 2^40.
		 */
		u64 cube = (u64)(ca->last_max - cwnd) * ((1ULL << 40) / C);
		u64 most = (1ULL << 63) - 1;

		ca->k = cube_root(cube < most ? cube : most);
		ca->origin = ca->last_max;
	}
}

/*
 * Sets `needed` so that the window reaches the cubic function's value one minimum RTT from now (§
 * 4.2).
 */
static __always_inline void cubic_by_curve(struct cubic *ca, u32 now, u32 cwnd)
{
	u64 hz = settings.hz;
	u64 delay = ((u64)ca->delay_min * hz + 999999) / 1000000;
	u64 t = ((u64)(u32)(now - ca->epoch) + delay) * 1024 / hz;
	u64 away = t < ca->k ? ca->k - t : t - ca->k;
	u64 distance, target;

	if (away > FARTHEST)
		away = FARTHEST;
	distance = C * away * away * away >> 40;
	if (t >= ca->k)
		target = ca->origin + distance;
	else
		target = ca->origin > distance ? ca->origin - distance : 0;
	if (target > cwnd)
		ca->needed = cwnd / (target - cwnd);
	else
		ca->needed = 100 * cwnd;
	if (ca->last_max == 0 && ca->needed > MOST_NEEDED_AT_FIRST)
		ca->needed = MOST_NEEDED_AT_FIRST;
}

/* Updates `needed`. */
static __always_inline void cubic_update(struct cubic *ca, u32 cwnd, u32 acked)
{
	u32 now = jiffies();
	u32 gain_after;

	ca->acks += acked;
	/*
	 * At most 32 times per second for a constant window, and the cubic function at most once
	 * per tick.
	 */
	if (ca->computed_window == cwnd && (s32)(now - ca->computed_at) <= (s32)(settings.hz / 32))
		return;
	if (!ca->epoch || now != ca->computed_at) {
		ca->computed_window = cwnd;
		ca->computed_at = now;
		if (!ca->epoch)
			cubic_begin_epoch(ca, now, cwnd, acked);
		cubic_by_curve(ca, now, cwnd);
	}
	/* § 4.3: `needed` for reaching the Reno-friendly window, if larger, in a round trip. */
	gain_after = (u64)cwnd * RENO_SCALE / 8;
	if (gain_after && ca->acks > gain_after) {
		u32 gains = (ca->acks - 1) / gain_after;

		ca->acks -= gains * gain_after;
		ca->reno += gains;
	}
	if (ca->reno > cwnd) {
		u32 by_reno = cwnd / (ca->reno - cwnd);

		if (ca->needed > by_reno)
			ca->needed = by_reno;
	}
	if (ca->needed < LEAST_NEEDED)
		ca->needed = LEAST_NEEDED;
}

/* Shifts the epoch by an idle period, at the first transmission after all data was acknowledged. */
static __always_inline void cubic_resume(struct cubic *ca, const struct tcp_sock *tp)
{
	u32 now = jiffies();
	s32 idle = now - tp->lsndtime;

	if (ca->epoch && idle > 0) {
		ca->epoch += idle;
		if ((s32)(ca->epoch - now) > 0)
			ca->epoch = now;
	}
}

/* HyStart: true if this ACK shows that the path is full. */
static __always_inline bool cubic_pipe_is_full(struct cubic *ca, struct sock *sk, u32 rtt)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 now = (u32)tp->tcp_mstamp;
	u32 rise = ca->delay_min / 8;
	bool full = 0;

	if ((s32)(tp->snd_una - ca->round_end) > 0)
		cubic_begin_round(ca, tp);
	if (tp->snd_cwnd < LOW_WINDOW)
		return 0;
	if ((s32)(now - ca->last_ack) <= TRAIN_GAP) {
		u64 rate = sk->sk_pacing_rate;
		u64 held = 0;
		u32 train;

		ca->last_ack = now;
		if (rate) {
			/* Four of the largest bursts at the pacing rate. */
			held = (u64)sk->sk_gso_max_size * 4 * 1000000 / rate;
			if (held > MOST_HELD)
				held = MOST_HELD;
		}
		train = ca->delay_min + held;
		/*
		 * Without pacing the train of a full path lasts a round trip; the forward path is
		 * half of it.
		 */
		if (sk->sk_pacing_status == SK_PACING_NONE)
			train /= 2;
		if ((s32)(now - ca->round_start) > (s32)train)
			full = 1;
	}
	if (ca->round_rtt > rtt)
		ca->round_rtt = rtt;
	if (ca->samples < MIN_SAMPLES) {
		ca->samples++;
		return full;
	}
	if (rise < LEAST_RISE)
		rise = LEAST_RISE;
	if (rise > MOST_RISE)
		rise = MOST_RISE;
	return full || ca->round_rtt > ca->delay_min + rise;
}

/* For `pkts_acked`: updates the minimum RTT and HyStart; negative RTTs are no samples. */
static __always_inline void cubic_acked(struct cubic *ca, struct sock *sk, s32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt = rtt_us > 0 ? rtt_us : 1;

	if (rtt_us < 0)
		return;
	/* For a second after an epoch starts, the queue is still in transition. */
	if (ca->epoch && (s32)(jiffies() - ca->epoch) < (s32)settings.hz)
		return;
	if (ca->delay_min == 0 || ca->delay_min > rtt)
		ca->delay_min = rtt;
	if (!ca->found && tp->snd_cwnd < tp->snd_ssthresh && cubic_pipe_is_full(ca, sk, rtt)) {
		ca->found = 1;
		tp->snd_ssthresh = tp->snd_cwnd;
	}
}

/* For `cong_avoid`: grows the window if it limits the sender. */
static __always_inline void cubic_avoid(struct cubic *ca, struct tcp_sock *tp, u32 acked)
{
	if (!cwnd_limited(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	cubic_update(ca, tp->snd_cwnd, acked);
	tcp_cong_avoid_ai(tp, ca->needed, acked);
}
