// SPDX-License-Identifier: BSD-2-Clause
/* What the tests of refused posts share. */
#ifndef TESTS_REFUSED_H
#define TESTS_REFUSED_H

#include "dto_util.h"

/* Returns a valid remote triplet of that length. */
static inline DAT_RMR_TRIPLET target(struct rig *rig, size_t len)
{
	return dt_rseg(&rig->y, 0, len);
}

/* No refused request changed the target, its source, or the state of the peer. */
static inline void check_y_unchanged(struct rig *rig)
{
	dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
	dt_check_pattern(rig->x.p, RIG_LEN, RIG_SEED);
	expect_quiet(&rig->b);
}

#endif
