/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Interface between the simulator and a controller in compiled code: an object exports
 * `cwnd_controllers`, which returns tables of functions. Times are ns, sizes are bytes of payload,
 * rates are bit/s. Every change of this file changes the version.
 */
#ifndef CWND_CONTROLLER_H
#define CWND_CONTROLLER_H

#define CWND_CONTROLLER_VERSION 2

typedef unsigned char cwnd_u8;
typedef unsigned int cwnd_u32;
typedef unsigned long long cwnd_u64;

/* A time, size or rate that is not known, or a bound that there is not. */
#define CWND_NONE (~0ULL)

/* Facts about a connection that its controller starts with. */
struct cwnd_start {
	/* First window, first threshold and upper bound of the window. */
	cwnd_u64 initial_window, initial_ssthresh, max_window;
	cwnd_u32 mss;
	/* 1 if the receiver may hold back the ACK of a lone segment. */
	cwnd_u32 delayed_acks;
};

/* State of loss recovery. */
enum cwnd_phase { CWND_OPEN, CWND_CWR, CWND_RECOVERY, CWND_LOSS };

/* Facts that the transport knows, at the moment of the call. */
struct cwnd_path {
	cwnd_u64 now;
	/* Smoothed, least and newest round-trip time. */
	cwnd_u64 srtt, min_rtt, rtt;
	/* Sent and not acknowledged; acknowledged since the start; sent since the start. */
	cwnd_u64 flight_size, delivered, sent;
	/* Number of round trips. */
	cwnd_u64 round;
	cwnd_u32 mss;
	cwnd_u8 phase;
	/* 1 if the congestion window limited what was sent. */
	cwnd_u8 cwnd_limited;
};

/* Permission to grow the window: none; in the round trip after a reduction; yes. */
enum cwnd_grow { CWND_GROW_NO, CWND_GROW_IN_CWR, CWND_GROW_YES };

/* Facts that one ACK reports. */
struct cwnd_ack {
	cwnd_u64 acked, newly_sacked, newly_lost;
	/* Round-trip time measured by this ACK. */
	cwnd_u64 rtt;
	cwnd_u8 ece;
	cwnd_u8 grow;
	/* 1 if the receiver reports a mark without ECE, which only a controller answers. */
	cwnd_u8 marked;
};

/* Delivery-rate sample of the ACK that follows. */
struct cwnd_rate {
	cwnd_u64 newly_delivered, total_delivered, prior_delivered;
	cwnd_u64 interval, rtt;
	cwnd_u64 in_flight;
	cwnd_u8 app_limited;
};

/* Cause of a reduction; `CWND_NO_CAUSE` as the answer to an ACK asks for none. */
enum cwnd_cause {
	CWND_NO_CAUSE,
	CWND_CAUSE_LOSS,
	CWND_CAUSE_ECN,
	CWND_CAUSE_DELAY,
	CWND_CAUSE_QUENCH,
	CWND_CAUSE_LOAD,
};

/* Rare events: a reduction, an expiry of the timer, the end of a pause, the first new data. */
enum cwnd_event { CWND_REDUCE, CWND_TIMEOUT, CWND_IDLE, CWND_RESUME };

struct cwnd_signal {
	/* Of CWND_IDLE: the length of the pause, and the window that the transport keeps. */
	cwnd_u64 idle, keep_window, keep_ssthresh;
	/* Of CWND_RESUME: the time at which data was last sent. */
	cwnd_u64 since;
	cwnd_u8 event;
	/* Of CWND_REDUCE. */
	cwnd_u8 cause;
	/* Of CWND_TIMEOUT: 1 if the threshold becomes smaller, and the number in a row. */
	cwnd_u8 reduces;
	/* Of a quench: 1 if it is about a marked packet, and the level of congestion. */
	cwnd_u8 quench_marked, quench_level;
	cwnd_u32 nth;
};

/*
 * Decisions: the window, its threshold, and the pacing rate. A window of CWND_NONE ends the run:
 * `cwnd_failure` says why.
 */
struct cwnd_window {
	cwnd_u64 window, ssthresh, pacing;
};

/* Properties of a kind of controller, for `traits`. */
enum {
	/* Delivery rates steer it: `on_rate` is called, and its window alone bounds recovery. */
	CWND_BY_RATE = 1,
	/* It reads the ECN field of all its data, so retransmissions are ECN-capable, too. */
	CWND_READS_ECN = 2,
};

/*
 * A kind of controller. `self` is what `start` returned; all of an object's controllers are called
 * by one thread.
 */
struct cwnd_controller {
	cwnd_u32 version;
	cwnd_u32 traits;
	/* Name by which a scenario selects it. */
	const char *name;
	/* Passed to `start`. */
	const void *kind;
	/* Begins a connection; NULL if there is no memory. */
	void *(*start)(const void *kind, const struct cwnd_start *start);
	/* Returns a copy in the same state, which only `undo`, `window` and `end` receive. */
	void *(*copy)(const void *self);
	void (*end)(void *self);
	/* Takes an ACK; returns the cause of a reduction to ask for. */
	cwnd_u32 (*on_ack)(void *self, const struct cwnd_path *path, const struct cwnd_ack *ack);
	void (*on_signal)(void *self, const struct cwnd_path *path,
			  const struct cwnd_signal *signal);
	void (*on_rate)(void *self, const struct cwnd_rate *rate);
	/* Takes an RTT that SACK reported, before the `on_ack` of the same ACK. */
	void (*on_sack_rtt)(void *self, const struct cwnd_path *path, cwnd_u64 rtt);
	/* Undoes the last reduction; `before` is a copy made just before it. */
	void (*undo)(void *self, const void *before, cwnd_u64 now, cwnd_u32 after_timeout);
	void (*window)(const void *self, struct cwnd_window *window);
	/* Sets window and threshold on behalf of the transport; `pacing` is not read. */
	void (*set_window)(void *self, const struct cwnd_window *window);
	/* Passes its counters to `each`, with `to`; NULL if it has none. */
	void (*count)(const void *self,
		      void (*each)(void *to, const char *name, cwnd_u64 number), void *to);
};

/*
 * Returns the tables of an object, and their number. It gets the version that the simulator has,
 * so that an object may have tables of several versions.
 */
const struct cwnd_controller *cwnd_controllers(cwnd_u32 version, cwnd_u32 *count);

/* Seeds the object's random numbers before its first connection. An object may have none. */
void cwnd_seed(cwnd_u64 seed);

/* Answers of `cwnd_set`. */
enum cwnd_set { CWND_SET, CWND_NO_VARIABLE, CWND_TOO_LARGE };

/* Sets a variable of an object before its first connection. An object may have none. */
cwnd_u32 cwnd_set(const char *name, long long value);

/* Describes the object's controllers as JSON. An object whose parameters are variables has none. */
const char *cwnd_describe(void);

/*
 * Sets the parameters of a controller, a JSON object, before its first connection; returns why not,
 * or NULL. It may change `traits`. An object has it if it has `cwnd_describe`.
 */
const char *cwnd_configure(const char *name, const char *parameters);

/* Returns why a controller failed. An object may have none. */
const char *cwnd_failure(void);

#endif
