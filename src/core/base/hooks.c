// SPDX-License-Identifier: BSD-2-Clause
/* The table of calls from one room of the core to a higher one (hooks.h). */
#include "core/base/hooks.h"

struct core_hooks core_hooks;
