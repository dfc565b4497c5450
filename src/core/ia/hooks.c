// SPDX-License-Identifier: BSD-2-Clause
/* The table of calls from one room of the core to a higher one (hooks.h). */
#include "core/base/hooks.h"

#include "core/conn/cr.h"
#include "core/ep/ep.h"
#include "core/srq/srq.h"

const struct core_hooks core_hooks = {
	.cr_abandon = core_cr_abandon,
	.srq_return = core_srq_return,
	.srq_offer = core_ep_offer,
};
