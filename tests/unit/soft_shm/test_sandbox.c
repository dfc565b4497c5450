// SPDX-License-Identifier: BSD-2-Clause
/*
 * A kernel that refuses to copy for us. A thread of the library cannot store into mapped memory of
 * the peer then, in a way that a closed gate stops.
 */
#include "../soft/sandbox.h"
#include "play.h"
#include "soft/copy.h"

/* LMR-FREE-21 LMR-USE-14 */
static void write__mapped_memory_in_a_thread_of_the_library__through_the_ring(void **state)
{
	struct lab *lab = *state;

	lab_map_peer(lab);
	fill(lab->memory, 4, 1);
	soft_is_library_thread = true;
	post_rdma(lab, CORE_OP_RDMA_WRITE, 0, 4);
	soft_is_library_thread = false;
	assert_true(lab_is_open(lab));
	(void)expect_entry(lab, SHM_ENTRY_WRITE, 4, 1);
	expect_untouched(lab->peer_memory, 4);
}

static int setup_map(void **state)
{
	*state = lab_open(&(struct lab_form){.copy = CORE_COPY_MAP});
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			write__mapped_memory_in_a_thread_of_the_library__through_the_ring,
			setup_map, teardown),
	};

	if (refuse_process_vm())
		return 77; /* no filters are allowed here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
