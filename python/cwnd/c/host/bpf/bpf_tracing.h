/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Programs of libbpf's `BPF_PROG`, which the simulator calls as functions. */
#pragma once

#include "bpf_helpers.h"

#define BPF_PROG(name, args...) name(args)
