/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The info map of a loaded controller: its identity, settings and counters.
 *
 * The including file must have defined `struct settings`, whose words the loader writes before it
 * loads the object, and COUNTERS(X), with an X(name) for each counter.
 * crates/linux/kernel/src/family.rs has the same members in the same order.
 */
#pragma once

#define SETTING_WORDS 20
#define COUNTER_WORDS 24

#define COUNTER_MEMBER(name) u64 name;

struct counters {
	COUNTERS(COUNTER_MEMBER)
};

_Static_assert(sizeof(struct settings) <= SETTING_WORDS * sizeof(u32),
	       "an info map has no room for these settings");
_Static_assert(sizeof(struct counters) <= COUNTER_WORDS * sizeof(u64),
	       "an info map has no room for these counters");

/* Value of one controller, for `status`. The loader fills in the members before the counters. */
struct controller_info {
	char name[16];
	char controller[16];
	u32 settings[SETTING_WORDS];
	u32 flags;
	u32 pid;
	u32 table;
	u32 version;
	union {
		struct counters counted;
		u64 words[COUNTER_WORDS];
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct controller_info);
} cwnd_card SEC(".maps");

static __always_inline struct controller_info *controller_info(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&cwnd_card, &only);
}

#define COUNT_BY(what, number) \
	do { \
		struct controller_info *info = controller_info(); \
		if (info) \
			__sync_fetch_and_add(&info->counted.what, number); \
	} while (0)
#define COUNT(what) COUNT_BY(what, 1)
