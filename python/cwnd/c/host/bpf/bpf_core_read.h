/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Relocated accesses of libbpf, which the simulator makes as they are written. */
#pragma once

#define BPF_CORE_READ_BITFIELD(source, member) ((source)->member)
#define BPF_CORE_READ_BITFIELD_PROBED(source, member) ((source)->member)
#define bpf_core_field_exists(...) 1
#define bpf_core_type_exists(...) 1
#define bpf_core_enum_value_exists(...) 1
#define bpf_core_read(to, size, from) (__builtin_memcpy(to, from, size), 0)
