// SPDX-License-Identifier: BSD-2-Clause
/* What the tests of rules begin and end with. */
#ifndef TESTS_RULES_UTIL_H
#define TESTS_RULES_UTIL_H

#include "bind_util.h"
#include "srq_util.h"

#include "reports.h"

#define FLAG DAT_COMPLETION_DEFAULT_FLAG

static int begin(void **state)
{
	reports.has_recv_none = false;
	rig_setup(state);
	forget_reports();
	return 0;
}

static int begin_bare(void **state)
{
	rig_setup_bare(state);
	forget_reports();
	return 0;
}

static int end(void **state)
{
	rig_teardown(state);
	forget_reports();
	return 0;
}

#define check_test(f) cmocka_unit_test_setup_teardown(f, begin, end)
#define check_test_bare(f) cmocka_unit_test_setup_teardown(f, begin_bare, end)

/* What is posted here, and not in a function of the harness, which is one place for all. */
#define POST_SEND(rig, len, cookie)                                                                \
	do {                                                                                       \
		DAT_LMR_TRIPLET seg_ = dt_seg(&(rig)->x, 0, len);                                  \
		dt_ok(dat_ep_post_send((rig)->a.ep, 1, &seg_, dt_cookie(cookie), FLAG));           \
	} while (0)

#define POST_WRITE(end, segment, target, cookie, flags)                                            \
	do {                                                                                       \
		DAT_LMR_TRIPLET seg_ = (segment);                                                  \
		DAT_RMR_TRIPLET remote_ = (target);                                                \
		dt_ok(dat_ep_post_rdma_write((end)->ep, 1, &seg_, dt_cookie(cookie), &remote_,     \
					     flags));                                              \
	} while (0)

static void check_rules_on(void)
{
	setenv("DAT_CHECK", "all", 1);
	dat_opendat_check_handler(take_report, NULL);
}

#endif
