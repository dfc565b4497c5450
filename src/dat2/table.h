// SPDX-License-Identifier: BSD-2-Clause
#ifndef DAT2_TABLE_H
#define DAT2_TABLE_H

#include "core/base/front.h"

extern const struct core_front dat2_front;

#endif
