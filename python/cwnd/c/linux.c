/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel around a congestion controller, as far as the controller sees it: a socket, the calls
 * of `tcp_congestion_ops` in the kernel's order, kfuncs and helpers. The transport of the simulator
 * repairs losses, reduces in proportion and paces; this file translates its events. Function names
 * of the kernel (net/ipv4, 7.3) are cited where behaviour follows them.
 *
 * The unit of windows is the segment. A shorter segment counts as one, as in the kernel.
 */
#include "linux.h"
#include "controller.h"

#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_CONG_NEEDS_ECN 2
#define TCP_ECN_OK 1
/* Lowest retransmission timeout (TCP_RTO_MIN), ticks. */
#define RTO_MIN_TICKS (HZ / 5)
/* Flags of an ACK, for `cong_control`. */
#define FLAG_DATA_ACKED 0x04
#define FLAG_DATA_SACKED 0x20
#define FLAG_ECE 0x40
#define FLAG_SND_UNA_ADVANCED 0x400

/* A connection. */
struct connection {
	/* First, as a `struct sock` is the beginning of it. */
	struct tcp_sock tp;
	const struct tcp_congestion_ops *ops;
	struct cwnd_start start;
	struct entry *storage;
	/* Delivery rate of the ACK in process. */
	struct rate_sample rate;
	/* Window and threshold of a restart after a pause. */
	u32 initial_window;
	/* Of the ACK in process: the calls that an event before `on_ack` has made. */
	bool has_ack_event, has_sample, has_reduced;
	/* `on_ack` has asked for a reduction, which follows it. */
	bool has_asked;
	/* It is a copy for `undo`. */
	bool is_copy;
};

static struct sock *sock_of(struct connection *c)
{
	return &c->tp.inet_conn.icsk_inet.sk;
}

static u64 us(u64 ns)
{
	return ns / NS_PER_US;
}

static u32 segments(const struct connection *c, u64 bytes)
{
	u64 whole = bytes / c->start.mss + (bytes % c->start.mss != 0);

	return whole < TCP_INFINITE_SSTHRESH ? whole : TCP_INFINITE_SSTHRESH;
}

static u8 state_of(const struct connection *c)
{
	return c->tp.inet_conn.icsk_ca_state;
}

/* tcp_set_ca_state */
static void set_state(struct connection *c, u8 state)
{
	if (c->ops->set_state)
		c->ops->set_state(sock_of(c), state);
	c->tp.inet_conn.icsk_ca_state = state;
}

/* tcp_ca_event */
static void cwnd_event(struct connection *c, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START && c->ops->cwnd_event_tx_start)
		c->ops->cwnd_event_tx_start(sock_of(c));
	else if (c->ops->cwnd_event)
		c->ops->cwnd_event(sock_of(c), event);
}

static void in_ack_event(struct connection *c, bool ece)
{
	if (c->ops->in_ack_event)
		c->ops->in_ack_event(sock_of(c), CA_ACK_SLOWPATH | (ece ? CA_ACK_ECE : 0));
}

static void pkts_acked(struct connection *c, u32 acked, u64 rtt)
{
	struct ack_sample sample = {
		.pkts_acked = acked,
		.rtt_us = rtt == CWND_NONE ? -1 : (s32)us(rtt),
		.in_flight = c->tp.packets_out,
	};

	if (c->ops->pkts_acked)
		c->ops->pkts_acked(sock_of(c), &sample);
}

/*
 * Per smoothed RTT, 2 windows in the first half of slow start and 1.2 later (sysctls
 * tcp_pacing_ss_ratio, tcp_pacing_ca_ratio); the data in flight counts if it is more than a window.
 */
static void update_pacing_rate(struct connection *c)
{
	const struct tcp_sock *tp = &c->tp;
	struct sock *sk = sock_of(c);
	u64 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
	u64 segments = tp->packets_out > tp->snd_cwnd ? tp->packets_out : tp->snd_cwnd;
	/* The RTT is kept in eighths of a microsecond. */
	u64 per_s = segments * tp->mss_cache * percent * (8 * US_PER_S / 100);

	if (c->ops->cong_control)
		return;
	if (tp->srtt_us)
		per_s /= tp->srtt_us;
	if (per_s > sk->sk_max_pacing_rate)
		per_s = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = per_s;
}

/* tcp_init_congestion_control, which the kernel calls once the RTT of the handshake is known. */
static void initialize(struct connection *c)
{
	if (c->tp.inet_conn.icsk_ca_initialized)
		return;
	c->tp.inet_conn.icsk_ca_initialized = 1;
	if (c->ops->init)
		c->ops->init(sock_of(c));
}

/* Takes the facts of a call over into the socket. */
static void take_over(struct connection *c, const struct cwnd_path *path)
{
	struct tcp_sock *tp = &c->tp;
	u64 srtt = path->srtt == CWND_NONE ? 0 : path->srtt;

	cwnd_clock_us = CLOCK_START_US + us(path->now);
	tp->tcp_mstamp = cwnd_clock_us;
	tp->tcp_clock_cache = cwnd_clock_us * NS_PER_US;
	tp->srtt_us = us(srtt << 3);
	if (path->min_rtt != CWND_NONE)
		tp->rtt_min.s[0].v = us(path->min_rtt);
	initialize(c);
	tp->snd_una = path->delivered;
	tp->snd_nxt = tp->write_seq = path->sent;
	tp->bytes_acked = path->delivered;
	tp->bytes_sent = path->sent;
	tp->segs_out = tp->data_segs_out = segments(c, path->sent);
	tp->packets_out = segments(c, path->sent - path->delivered);
	tp->inet_conn.icsk_rto = RTO_MIN_TICKS + us(srtt) / (US_PER_S / HZ);
	/* tcp_is_cwnd_limited reads the flag, or in slow start the number. */
	tp->is_cwnd_limited = path->cwnd_limited;
	tp->max_packets_out = path->cwnd_limited ? tp->snd_cwnd : 0;
	update_pacing_rate(c);
}

static void *controller_start(const void *kind, const struct cwnd_start *start)
{
	struct connection *c = calloc(1, sizeof(*c));
	struct tcp_sock *tp;

	if (!c)
		return NULL;
	tp = &c->tp;
	c->ops = kind;
	c->start = *start;
	c->initial_window = segments(c, start->initial_window);
	tp->snd_cwnd = c->initial_window;
	tp->snd_ssthresh = segments(c, start->initial_ssthresh);
	tp->snd_cwnd_clamp = segments(c, start->max_window);
	tp->mss_cache = tp->advmss = start->mss;
	tp->rtt_min.s[0].v = ~0U;
	tp->reordering = 3;
	tp->ecn_flags = TCP_ECN_OK;
	tp->tcp_mstamp = cwnd_clock_us;
	tp->inet_conn.icsk_ca_ops = c->ops;
	tp->inet_conn.icsk_rto = HZ;
	sock_of(c)->__sk_common.skc_state = TCP_ESTABLISHED;
	sock_of(c)->sk_gso_max_size = 65536;
	sock_of(c)->sk_pacing_rate = sock_of(c)->sk_max_pacing_rate = ~0UL;
	return c;
}

static void *controller_copy(const void *self)
{
	struct connection *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *(const struct connection *)self;
	copy->storage = NULL;
	copy->is_copy = true;
	return copy;
}

struct entry **cwnd_storage_of(void *sk)
{
	return &((struct connection *)sk)->storage;
}

static void controller_end(void *self)
{
	struct connection *c = self;

	if (!c->is_copy && c->tp.inet_conn.icsk_ca_initialized && c->ops->release)
		c->ops->release(sock_of(c));
	cwnd_free_storage(&c->storage);
	free(c);
}

/* tcp_init_cwnd_reduction, and the kernel's PRR at once: the transport spreads it. */
static void reduce(struct connection *c, u8 state)
{
	struct tcp_sock *tp = &c->tp;

	tp->high_seq = tp->snd_nxt;
	tp->prior_cwnd = tp->snd_cwnd;
	tp->prior_ssthresh = tp->snd_ssthresh;
	tp->snd_cwnd_cnt = 0;
	tp->snd_ssthresh = c->ops->ssthresh(sock_of(c));
	set_state(c, state);
	/* `cong_control` leaves the window to the controller. */
	if (!c->ops->cong_control && tp->snd_cwnd > tp->snd_ssthresh)
		tp->snd_cwnd = tp->snd_ssthresh;
	c->has_reduced = true;
}

/* tcp_enter_loss */
static void time_out(struct connection *c, bool reduces)
{
	struct tcp_sock *tp = &c->tp;

	if (reduces) {
		tp->prior_cwnd = tp->snd_cwnd;
		tp->prior_ssthresh = tp->snd_ssthresh;
		tp->snd_ssthresh = c->ops->ssthresh(sock_of(c));
		cwnd_event(c, CA_EVENT_LOSS);
	}
	tp->snd_cwnd = 1;
	tp->snd_cwnd_cnt = 0;
	tp->snd_cwnd_stamp = jiffies();
	tp->high_seq = tp->snd_nxt;
	set_state(c, TCP_CA_Loss);
}

/* tcp_cwnd_restart, which controllers with `cong_control` do not see. */
static void restart(struct connection *c, const struct cwnd_signal *signal)
{
	struct tcp_sock *tp = &c->tp;
	u32 left = c->initial_window;

	if (c->ops->cong_control)
		return;
	cwnd_event(c, CA_EVENT_CWND_RESTART);
	if (signal->keep_window != CWND_NONE) {
		left = segments(c, signal->keep_window);
		tp->snd_ssthresh = segments(c, signal->keep_ssthresh);
	}
	if (tp->snd_cwnd > left)
		tp->snd_cwnd = left;
	tp->snd_cwnd_stamp = jiffies();
}

static void controller_on_signal(void *self, const struct cwnd_path *path,
				 const struct cwnd_signal *signal)
{
	struct connection *c = self;
	struct tcp_sock *tp = &c->tp;

	take_over(c, path);
	switch (signal->event) {
	case CWND_REDUCE:
		if (signal->cause == CWND_CAUSE_LOSS) {
			tp->lost_out = 1;
			/* A loss after another cause in the same window only changes the state. */
			reduce(c, TCP_CA_Recovery);
			break;
		}
		tp->lost_out = 0;
		if (!c->has_asked) {
			in_ack_event(c, signal->cause == CWND_CAUSE_ECN);
			c->has_ack_event = true;
		}
		reduce(c, TCP_CA_CWR);
		c->has_reduced = !c->has_asked;
		break;
	case CWND_TIMEOUT:
		tp->lost_out = 1;
		tp->inet_conn.icsk_retransmits = signal->nth;
		time_out(c, signal->reduces);
		break;
	case CWND_IDLE:
		restart(c, signal);
		break;
	case CWND_RESUME:
		tp->lsndtime = (CLOCK_START_US + us(signal->since)) / (US_PER_S / HZ);
		cwnd_event(c, CA_EVENT_TX_START);
		break;
	}
}

/* Follows the transport's state, with what the kernel does at the end of a reduction. */
static void follow(struct connection *c, const struct cwnd_path *path)
{
	u8 to = (const u8[]){ TCP_CA_Open, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss }[path->phase & 3];
	u8 from = state_of(c);

	/* The state before the event that this ACK has caused. */
	if (to == from || (to == TCP_CA_Open && c->has_reduced))
		return;
	if (to == TCP_CA_Open) {
		c->tp.lost_out = 0;
		c->tp.inet_conn.icsk_retransmits = 0;
		if (from == TCP_CA_CWR || from == TCP_CA_Recovery)
			cwnd_event(c, CA_EVENT_COMPLETE_CWR);
	}
	set_state(c, to);
}

/* tcp_cong_control */
static void control(struct connection *c, const struct cwnd_path *path, const struct cwnd_ack *ack,
		    u32 acked)
{
	u8 state = state_of(c);
	bool is_unused = !path->cwnd_limited && !ack->ece;
	int flag = (ack->ece ? FLAG_ECE : 0) | (ack->newly_sacked ? FLAG_DATA_SACKED : 0);

	if (acked)
		flag |= FLAG_DATA_ACKED | FLAG_SND_UNA_ADVANCED;
	if (c->ops->cong_control) {
		c->rate.losses = segments(c, ack->newly_lost);
		c->ops->cong_control(sock_of(c), c->tp.snd_una, flag, &c->rate);
		return;
	}
	if (!acked || state == TCP_CA_CWR || state == TCP_CA_Recovery)
		return;
	/* A controller sees by itself if the window limits the sender. */
	if (ack->grow != CWND_GROW_YES && !is_unused)
		return;
	c->ops->cong_avoid(sock_of(c), c->tp.snd_una, acked);
	c->tp.snd_cwnd_stamp = jiffies();
}

static u32 controller_on_ack(void *self, const struct cwnd_path *path, const struct cwnd_ack *ack)
{
	struct connection *c = self;
	u32 acked = segments(c, ack->acked);
	u32 delivered = acked ? acked : segments(c, ack->newly_sacked);
	bool ece = ack->ece || ack->marked;

	take_over(c, path);
	c->has_asked = false;
	if (!c->ops->cong_control)
		c->tp.delivered += delivered;
	if (ece)
		c->tp.delivered_ce += delivered;
	c->tp.lost += segments(c, ack->newly_lost);
	c->tp.delivered_mstamp = cwnd_clock_us;
	if (!c->has_sample)
		pkts_acked(c, acked, ack->rtt);
	if (!c->has_ack_event)
		in_ack_event(c, ece);
	follow(c, path);
	/* The kernel enters CWR for each mark in Open (tcp_try_to_open). */
	c->has_asked = ack->marked && state_of(c) == TCP_CA_Open;
	if (!c->has_asked || c->ops->cong_control)
		control(c, path, ack, acked);
	c->has_sample = c->has_ack_event = c->has_reduced = false;
	return c->has_asked ? CWND_CAUSE_ECN : CWND_NO_CAUSE;
}

static void controller_on_rate(void *self, const struct cwnd_rate *rate)
{
	struct connection *c = self;
	struct tcp_sock *tp = &c->tp;
	bool is_sample = rate->prior_delivered != CWND_NONE && rate->interval != CWND_NONE;
	u32 in_flight = segments(c, rate->in_flight);

	tp->delivered = segments(c, rate->total_delivered);
	tp->sacked_out = tp->packets_out > in_flight ? tp->packets_out - in_flight : 0;
	c->rate = (struct rate_sample){
		.prior_mstamp = tp->tcp_mstamp,
		.delivered = -1,
		.interval_us = -1,
		.rtt_us = rate->rtt == CWND_NONE ? -1 : (long)us(rate->rtt),
		.acked_sacked = segments(c, rate->newly_delivered),
		.prior_in_flight = in_flight + segments(c, rate->newly_delivered),
		.is_app_limited = rate->app_limited,
	};
	if (is_sample) {
		c->rate.prior_delivered = segments(c, rate->prior_delivered);
		c->rate.delivered = segments(c, rate->total_delivered - rate->prior_delivered);
		c->rate.interval_us = us(rate->interval);
	}
}

static void controller_on_sack_rtt(void *self, const struct cwnd_path *path, cwnd_u64 rtt)
{
	struct connection *c = self;

	take_over(c, path);
	pkts_acked(c, 0, rtt);
	c->has_sample = true;
}

/* tcp_undo_cwnd_reduction */
static void controller_undo(void *self, const void *before, cwnd_u64 now, cwnd_u32 after_timeout)
{
	struct connection *c = self;
	const struct connection *then = before;
	struct tcp_sock *tp = &c->tp;

	cwnd_clock_us = CLOCK_START_US + us(now);
	tp->tcp_mstamp = cwnd_clock_us;
	tp->prior_cwnd = then->tp.snd_cwnd;
	tp->prior_ssthresh = then->tp.snd_ssthresh;
	tp->snd_cwnd = c->ops->undo_cwnd(sock_of(c));
	if (tp->snd_ssthresh < tp->prior_ssthresh)
		tp->snd_ssthresh = tp->prior_ssthresh;
	tp->snd_cwnd_stamp = jiffies();
}

static void controller_window(const void *self, struct cwnd_window *window)
{
	const struct connection *c = self;
	const struct sock *sk = &c->tp.inet_conn.icsk_inet.sk;
	u64 mss = c->start.mss;
	bool paces = sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_pacing_rate + 1 > 1;

	window->window = c->tp.snd_cwnd * mss;
	window->ssthresh =
		c->tp.snd_ssthresh >= TCP_INFINITE_SSTHRESH ? CWND_NONE : c->tp.snd_ssthresh * mss;
	window->pacing = paces ? 8 * (u64)sk->sk_pacing_rate : CWND_NONE;
}

static void controller_set_window(void *self, const struct cwnd_window *window)
{
	struct connection *c = self;

	c->tp.snd_cwnd = segments(c, window->window);
	c->tp.snd_ssthresh = segments(c, window->ssthresh);
}

extern const struct tcp_congestion_ops cwnd_tables_begin[], cwnd_tables_end[];

#define MOST_TABLES 32

/* tcp_validate_congestion_control */
static bool is_complete(const struct tcp_congestion_ops *ops)
{
	return ops->name[0] && !ops->name[sizeof(ops->name) - 1] && ops->ssthresh &&
	       ops->undo_cwnd && (ops->cong_avoid || ops->cong_control);
}

__attribute__((visibility("default"))) const struct cwnd_controller *
cwnd_controllers(cwnd_u32 version, cwnd_u32 *count)
{
	static struct cwnd_controller tables[MOST_TABLES];
	const struct tcp_congestion_ops *ops;

	(void)version;
	*count = 0;
	for (ops = cwnd_tables_begin; ops < cwnd_tables_end && *count < MOST_TABLES; ops++) {
		if (!is_complete(ops))
			continue;
		tables[(*count)++] = (struct cwnd_controller){
			.version = CWND_CONTROLLER_VERSION,
			.traits = (ops->cong_control ? CWND_BY_RATE : 0) |
				  (ops->flags & TCP_CONG_NEEDS_ECN ? CWND_READS_ECN : 0),
			.name = ops->name,
			.kind = ops,
			.start = controller_start,
			.copy = controller_copy,
			.end = controller_end,
			.on_ack = controller_on_ack,
			.on_signal = controller_on_signal,
			.on_rate = controller_on_rate,
			.on_sack_rtt = controller_on_sack_rtt,
			.undo = controller_undo,
			.window = controller_window,
			.set_window = controller_set_window,
		};
	}
	return tables;
}
