// SPDX-License-Identifier: BSD-2-Clause
/* A link that loses, reorders and delays packets. Where the kernel has no netem, the machine of
 * scripts/check-rdma has it. */
#include "meet.h"

#include <stdio.h>

/* IWCM-54: loss, another order, and a delay, in both directions */
static void bad_link__loss_reorder_and_delay__all_bytes_right(void **state)
{
	struct net net;

	(void)state;
	if (!net_run("tc qdisc add dev lo root netem delay 1ms 2>/dev/null")) {
		printf("skipped: the kernel has no netem\n");
		skip();
	}
	assert_true(net_run("tc qdisc del dev lo root"));
	net_start(&net, 2, NET_IPV4, meet_all);
	for (unsigned i = 0; i < 2; i++)
		assert_true(net_run(
			"tc qdisc add dev p%u root netem delay 20ms reorder 5%% loss 1%%", i));
	net_pass_on(&net);
	net_join(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_link__loss_reorder_and_delay__all_bytes_right),
	};

	if (!net_enter())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
