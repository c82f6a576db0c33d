/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Replacement of kernel.h for the programs of this directory: its types and macros on the host. */
#pragma once
#define KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long u64;
typedef int32_t s32;

#define SEC(name)
#define __uint(name, value) int name
#define __type(name, value) value *name
#define __sync_fetch_and_add(where, what) (*(where) += (what))
#define OP(type, name, args...) static type name(args)
#define SETTINGS static struct settings
#define TABLE static struct tcp_congestion_ops
#ifndef __always_inline
#define __always_inline inline
#endif

enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };

static void *bpf_map_lookup_elem(void *map, const void *key);

static bool before(u32 one, u32 other)
{
	return (s32)(one - other) < 0;
}
