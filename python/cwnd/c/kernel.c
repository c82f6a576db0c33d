/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Functions that the kernel exports to controllers (kfuncs), helpers, variables and maps. */
#include "linux.h"
#include "controller.h"

int getpagesize(void);
int mprotect(void *start, size_t bytes, int protection);
#define PROT_READ_WRITE 3

u64 cwnd_clock_us = CLOCK_START_US;
unsigned long CONFIG_HZ = HZ;

static u32 least(u32 one, u32 other)
{
	return one < other ? one : other;
}

/* Grows the window to the threshold at most; returns the segments beyond it. */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	s64 room = (s64)tp->snd_ssthresh - tp->snd_cwnd;
	s64 used = acked < room ? acked : room;

	tp->snd_cwnd = least(tp->snd_cwnd + used, tp->snd_cwnd_clamp);
	return acked - used;
}

/* Adds a segment per `w` acknowledged ones; a count kept from a larger `w` is worth one. */
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	bool is_full = tp->snd_cwnd_cnt >= w;
	u32 counted = (is_full ? 0 : tp->snd_cwnd_cnt) + acked;

	tp->snd_cwnd_cnt = counted % w;
	tp->snd_cwnd = least(tp->snd_cwnd + is_full + counted / w, tp->snd_cwnd_clamp);
}

/* RFC 5681 § 3.1, while the window limits the sender. */
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	bool begins = tp->snd_cwnd < tp->snd_ssthresh;

	(void)ack;
	if (!tp->is_cwnd_limited)
		return;
	if (begins)
		acked = tcp_slow_start(tp, acked);
	if (acked || !begins)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

u32 tcp_reno_ssthresh(struct sock *sk)
{
	u32 half = ((struct tcp_sock *)sk)->snd_cwnd >> 1;

	return half > 2 ? half : 2;
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

u64 bpf_ktime_get_ns(void)
{
	return cwnd_clock_us * NS_PER_US;
}

u64 bpf_jiffies64(void)
{
	return jiffies();
}

static u32 random_state = 2463534242U;

__attribute__((visibility("default"))) void cwnd_seed(cwnd_u64 seed)
{
	/* The state is never zero. */
	random_state = (u32)(seed ^ seed >> 32) | 1;
}

u32 bpf_get_prandom_u32(void)
{
	/* Marsaglia 2003, xorshift with 13, 17, 5. */
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

/* Options of the socket have no effect here; none of them changes the controller. */
long bpf_setsockopt(void *sk, int level, int option, void *value, int length)
{
	(void)sk, (void)level, (void)option, (void)value, (void)length;
	return -EOPNOTSUPP;
}

long bpf_getsockopt(void *sk, int level, int option, void *value, int length)
{
	(void)sk, (void)level, (void)option, (void)value, (void)length;
	return -EOPNOTSUPP;
}

long bpf_tcp_send_ack(void *tp, u32 rcv_nxt)
{
	(void)tp, (void)rcv_nxt;
	return 0;
}

/* Returns true if a value fits a variable. */
static bool fits(const struct cwnd_variable *variable, long long value)
{
	u32 bits = 8 * variable->size - variable->is_signed;

	if (!variable->is_signed && value < 0)
		return false;
	return bits >= 63 || (value < 0 ? ~value : value) >> bits == 0;
}

__attribute__((visibility("default"))) cwnd_u32 cwnd_set(const char *name, long long value)
{
	const struct cwnd_variable *variable = cwnd_variables;
	size_t page = getpagesize(), begin;

	while (variable->name && __builtin_strcmp(variable->name, name))
		variable++;
	if (!variable->name)
		return CWND_NO_VARIABLE;
	if (!fits(variable, value))
		return CWND_TOO_LARGE;
	begin = (size_t)variable->at / page * page;
	/* Constants may be in memory that can't be written. */
	if (mprotect((void *)begin, (size_t)variable->at + variable->size - begin,
		     PROT_READ_WRITE))
		return CWND_NO_VARIABLE;
	switch (variable->size) {
	case 1:
		*(u8 *)variable->at = value;
		break;
	case 2:
		*(u16 *)variable->at = value;
		break;
	case 4:
		*(u32 *)variable->at = value;
		break;
	default:
		*(u64 *)variable->at = value;
	}
	return CWND_SET;
}

/* Maps: of a run, as the object is loaded once for each. */

/* An entry of a map, with its key and value behind it; or of a socket's storage. */
struct entry {
	struct entry *next;
	const void *map;
	u64 bytes[];
};

static struct entry *entries;

static struct entry *new_entry(struct entry **list, struct cwnd_map map, u32 size)
{
	struct entry *entry = calloc(1, sizeof(*entry) + size);

	if (entry) {
		entry->map = map.map;
		entry->next = *list;
		*list = entry;
	}
	return entry;
}

static u32 room(u32 bytes)
{
	return (bytes + sizeof(u64) - 1) / sizeof(u64);
}

static bool is_array(struct cwnd_map map)
{
	return map.type == BPF_MAP_TYPE_ARRAY || map.type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

/* Returns the link to an entry of a map; NULL if there is none. */
static struct entry **find(struct cwnd_map map, const void *key)
{
	struct entry **at;

	for (at = &entries; *at; at = &(*at)->next)
		if ((*at)->map == map.map && !__builtin_memcmp((*at)->bytes, key, map.key_size))
			return at;
	return NULL;
}

static struct entry *add(struct cwnd_map map, const void *key)
{
	u32 size = (room(map.key_size) + room(map.value_size)) * sizeof(u64);
	struct entry *entry = new_entry(&entries, map, size);

	if (entry)
		__builtin_memcpy(entry->bytes, key, map.key_size);
	return entry;
}

void *cwnd_map_lookup(struct cwnd_map map, const void *key)
{
	struct entry **found = find(map, key);
	struct entry *entry = found ? *found : NULL;

	/* All elements of an array exist from the start. */
	if (!entry && is_array(map) && *(const u32 *)key < map.entries)
		entry = add(map, key);
	return entry ? entry->bytes + room(map.key_size) : NULL;
}

static u32 count_entries(struct cwnd_map map)
{
	const struct entry *entry;
	u32 count = 0;

	for (entry = entries; entry; entry = entry->next)
		count += entry->map == map.map;
	return count;
}

long cwnd_map_update(struct cwnd_map map, const void *key, const void *value, u64 flags)
{
	void *there = cwnd_map_lookup(map, key);

	if (there && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!there) {
		struct entry *entry;

		if (is_array(map) || flags == BPF_EXIST)
			return is_array(map) ? -E2BIG : -ENOENT;
		if (count_entries(map) >= map.entries)
			return -E2BIG;
		entry = add(map, key);
		if (!entry)
			return -ENOMEM;
		there = entry->bytes + room(map.key_size);
	}
	__builtin_memcpy(there, value, map.value_size);
	return 0;
}

long cwnd_map_delete(struct cwnd_map map, const void *key)
{
	struct entry **found = find(map, key);
	struct entry *entry = found ? *found : NULL;

	if (is_array(map))
		return -EINVAL;
	if (!entry)
		return -ENOENT;
	*found = entry->next;
	free(entry);
	return 0;
}

static struct entry **find_storage(void *sk, struct cwnd_map map)
{
	struct entry **at;

	for (at = cwnd_storage_of(sk); *at; at = &(*at)->next)
		if ((*at)->map == map.map)
			return at;
	return NULL;
}

void *cwnd_storage_get(struct cwnd_map map, void *sk, const void *value, u64 flags)
{
	struct entry **found = find_storage(sk, map);
	struct entry *entry = found ? *found : NULL;

	if (!entry && flags & BPF_SK_STORAGE_GET_F_CREATE) {
		entry = new_entry(cwnd_storage_of(sk), map, room(map.value_size) * sizeof(u64));
		if (entry && value)
			__builtin_memcpy(entry->bytes, value, map.value_size);
	}
	return entry ? entry->bytes : NULL;
}

long cwnd_storage_delete(struct cwnd_map map, void *sk)
{
	struct entry **found = find_storage(sk, map);
	struct entry *entry = found ? *found : NULL;

	if (!entry)
		return -ENOENT;
	*found = entry->next;
	free(entry);
	return 0;
}

void cwnd_free_storage(struct entry **list)
{
	while (*list) {
		struct entry *entry = *list;

		*list = entry->next;
		free(entry);
	}
}

__attribute__((destructor)) static void forget_entries(void)
{
	cwnd_free_storage(&entries);
}
