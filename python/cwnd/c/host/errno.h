/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Error numbers that helpers return, negated. */
#pragma once

#define ENOENT 2
#define E2BIG 7
#define ENOMEM 12
#define EBUSY 16
#define EEXIST 17
#define EINVAL 22
#define EOPNOTSUPP 95
