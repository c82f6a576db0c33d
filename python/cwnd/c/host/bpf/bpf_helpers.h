/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Macros and helpers of libbpf that a congestion controller uses, for the simulator. */
#pragma once

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define __ksym
#define __kconfig
#define __weak __attribute__((weak))
#define __hidden __attribute__((visibility("hidden")))
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif

#define barrier() asm volatile("" ::: "memory")
#define bpf_printk(...) ((void)0)

/* Time since an earlier start than the connection's; it never is zero. */
u64 bpf_ktime_get_ns(void);
u64 bpf_jiffies64(void);
/* The same numbers in each run. */
u32 bpf_get_prandom_u32(void);

long bpf_setsockopt(void *sk, int level, int option, void *value, int length);
long bpf_getsockopt(void *sk, int level, int option, void *value, int length);
/* Does nothing: the simulator's receivers have no controller. */
long bpf_tcp_send_ack(void *tp, u32 rcv_nxt);

/* Maps. The declarations of `__uint` and `__type` hold what a map needs in the types of members. */
struct cwnd_map {
	void *map;
	u32 type, entries, key_size, value_size;
};

#define CWND_MAP_ENTRIES(map) \
	((struct cwnd_map){ (map), sizeof(*(map)->type) / sizeof(int), \
			    sizeof(*(map)->max_entries) / sizeof(int), sizeof(*(map)->key), \
			    sizeof(*(map)->value) })
#define CWND_MAP_STORAGE(map) \
	((struct cwnd_map){ (map), sizeof(*(map)->type) / sizeof(int), 0, sizeof(*(map)->key), \
			    sizeof(*(map)->value) })

void *cwnd_map_lookup(struct cwnd_map map, const void *key);
long cwnd_map_update(struct cwnd_map map, const void *key, const void *value, u64 flags);
long cwnd_map_delete(struct cwnd_map map, const void *key);
void *cwnd_storage_get(struct cwnd_map map, void *sk, const void *value, u64 flags);
long cwnd_storage_delete(struct cwnd_map map, void *sk);

#define bpf_map_lookup_elem(map, key) cwnd_map_lookup(CWND_MAP_ENTRIES(map), key)
#define bpf_map_update_elem(map, key, value, flags) \
	cwnd_map_update(CWND_MAP_ENTRIES(map), key, value, flags)
#define bpf_map_delete_elem(map, key) cwnd_map_delete(CWND_MAP_ENTRIES(map), key)
#define bpf_sk_storage_get(map, sk, value, flags) \
	cwnd_storage_get(CWND_MAP_STORAGE(map), sk, (const void *)(value), flags)
#define bpf_sk_storage_delete(map, sk) cwnd_storage_delete(CWND_MAP_STORAGE(map), sk)
