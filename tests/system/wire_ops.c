// SPDX-License-Identifier: BSD-2-Clause
/*
 * All operations over TCP, for test_wire.py, which captures them: two endpoints of this process, on
 * the loopback interface. Prints what it has done, a line `NAME COUNT BYTES` for each kind.
 */
#include <stdio.h>
#include <string.h>

#include "conn_util.h"
#include "dto_util.h"

static const uint32_t sizes[] = {0, 1, 2, 3, 4, 100, 1460, 8191, 8192, RIG_LEN};

static struct tally {
	const char *name;
	unsigned count;
	uint64_t bytes;
} tallies[] = {{.name = "send"}, {.name = "solicited"}, {.name = "write"}, {.name = "read"}};

enum { SEND, SOLICITED, WRITE, READ };

static void count(unsigned which, uint32_t size)
{
	tallies[which].count++;
	tallies[which].bytes += size;
}

/* Each operation with each size, from a to b. */
static void run_all(struct rig *rig)
{
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		uint32_t size = sizes[i];
		DAT_LMR_TRIPLET here = dt_seg(&rig->x, 0, size);
		DAT_RMR_TRIPLET there = dt_rseg(&rig->y, 0, size);

		post_recv(&rig->b, dt_seg(&rig->y, 0, RIG_LEN), 1);
		post_recv(&rig->b, dt_seg(&rig->y, 0, RIG_LEN), 2);
		post_send(&rig->a, here, 3, 0);
		post_send(&rig->a, here, 4, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
		post_write(&rig->a, here, there, 5, 0);
		post_read(&rig->a, here, there, 6, 0);
		expect_received(&rig->b, 1, size);
		expect_received(&rig->b, 2, size);
		expect_sent(&rig->a, 3, size);
		expect_sent(&rig->a, 4, size);
		expect_sent(&rig->a, 5, size);
		expect_sent(&rig->a, 6, size);
		for (unsigned which = SEND; which <= READ; which++)
			count(which, size);
	}
}

/* A Write with a key that does not exist, which the target answers by a Terminate. */
static void break_it(struct rig *rig)
{
	DAT_RMR_TRIPLET there = dt_rseg(&rig->y, 0, 8);

	there.rmr_context ^= 0xfffc0000;
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), there, 7, 0);
	expect_request(&rig->a, 7, DAT_DTO_ERR_REMOTE_ACCESS);
	count(WRITE, 8);
	expect_broken(rig);
}

static void wire__all_operations__carried_out(void **state)
{
	struct rig *rig = *state;

	run_all(rig);
	rig_disconnect(rig, DAT_CLOSE_GRACEFUL_FLAG);
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
	rig_link(rig);
	break_it(rig);
	for (size_t i = 0; i < COUNT_OF(tallies); i++)
		printf("tally %s %u %llu\n", tallies[i].name, tallies[i].count,
		       (unsigned long long)tallies[i].bytes);
	fflush(stdout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {rig_test(wire__all_operations__carried_out)};

	return cmocka_run_group_tests_name("wire_ops", tests, NULL, NULL);
}
