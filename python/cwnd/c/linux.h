/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Interface between the parts of the kernel that the simulator models. */
#pragma once

#define CWND_LINUX
#include "vmlinux.h"
#include "bpf/bpf_helpers.h"
#include "errno.h"

void *calloc(size_t count, size_t size);
void free(void *memory);

/* Ticks per second: CONFIG_HZ of the kernel that this models. */
#define HZ 1000
#define NS_PER_US 1000ULL
#define US_PER_S 1000000ULL
/* The clock starts above zero, which means "never" to a controller. */
#define CLOCK_START_US US_PER_S

/* Time of the last call, µs. */
extern u64 cwnd_clock_us;

static inline u32 jiffies(void)
{
	return cwnd_clock_us / (US_PER_S / HZ);
}

/* A `const volatile` variable of whole numbers of the file; the last one has no name. */
struct cwnd_variable {
	const char *name;
	void *at;
	u32 size;
	bool is_signed;
};

/* Those of the file, listed by what compiles it. */
extern const struct cwnd_variable cwnd_variables[];

/* Entries of maps, or of a socket's storage. */
struct entry;

/* Returns the storage of a socket. */
struct entry **cwnd_storage_of(void *sk);
/* Frees the storage of a socket. */
void cwnd_free_storage(struct entry **list);
